"""Data-OOB against a plain loop over bags, groups, targets, errors."""

import time

import joblib
import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skvalue import DataOOBValuer
from skvalue.datasets import flip_labels
from skvalue.exceptions import ImpreciseValuesWarning, IncompleteFitWarning
from skvalue.inspection import noisy_label_auc
from skvalue.valuers.data_oob import bootstrap

from ..problems import two_classes
from ..watch import Watch


@pytest.fixture
def data(rng):
    return two_classes(rng, 30, 0).rows


def plain(estimator, X, y, score, n_models, seed, weights=None):
    """Scores of every row by the models whose bag it is not in."""
    scores = [[] for _ in y]
    for number in range(n_models):
        drawn, model_seed = bootstrap(seed, number, len(y))
        model = clone(estimator)
        if "random_state" in model.get_params():
            model.set_params(random_state=model_seed)
        if weights is None:
            model.fit(X[drawn], y[drawn])
        else:
            model.fit(X[drawn], y[drawn], sample_weight=weights[drawn])
        for i in np.setdiff1d(np.arange(len(y)), drawn):
            scores[i].append(score(model.predict(X[i : i + 1])[0], y[i]))
    return scores


def standard_errors(scores):
    """Of means of scores; the variance of all scores is that of one more score of each
    row."""
    variances, counts = (
        [np.var(s, ddof=1) for s in scores],
        np.array(list(map(len, scores))),
    )
    return np.sqrt((variances + np.var(np.concatenate(scores)) / counts) / counts)


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(max_features=1), None])
def test_classes(data, estimator):
    X, y = data
    valuer = DataOOBValuer(estimator, 40, random_state=3).fit(X, y)
    model = DecisionTreeClassifier() if estimator is None else estimator
    scores = plain(model, X, y, lambda a, b: float(a == b), 40, 3)
    np.testing.assert_allclose(valuer.values_, [np.mean(s) for s in scores])
    np.testing.assert_allclose(
        valuer.values_error_, standard_errors(scores), atol=1e-12
    )
    assert valuer.utility_ == pytest.approx(valuer.values_.mean())
    assert valuer.empty_utility_ == 0.5
    assert valuer.n_evaluations_ == 40


def test_targets(data):
    X, _ = data
    y = X[:, 0] + X[:, 1] ** 2
    valuer = DataOOBValuer(LinearRegression(), 40, random_state=3).fit(X, y)
    scores = plain(LinearRegression(), X, y, lambda a, b: -((a - b) ** 2), 40, 3)
    np.testing.assert_allclose(valuer.values_, [np.mean(s) for s in scores])
    np.testing.assert_allclose(valuer.values_error_, standard_errors(scores))
    assert valuer.empty_utility_ == pytest.approx(-y.var())


def test_groups_are_drawn_whole(data):
    X, y = data
    groups = np.repeat(["b", "a", "c", "d", "e"], 6)
    valuer = DataOOBValuer(n_estimators=30, random_state=1).fit(X, y, groups=groups)
    assert valuer.groups_.tolist() == ["a", "b", "c", "d", "e"]
    scores = {name: [] for name in valuer.groups_}
    for number in range(30):
        drawn, seed = bootstrap(1, number, 5)
        rows = np.concatenate(
            [np.flatnonzero(groups == valuer.groups_[g]) for g in drawn]
        )
        model = DecisionTreeClassifier(random_state=seed).fit(X[rows], y[rows])
        for g in set(range(5)) - set(drawn.tolist()):
            part = groups == valuer.groups_[g]
            scores[valuer.groups_[g]].append(model.score(X[part], y[part]))
    np.testing.assert_allclose(valuer.values_, [np.mean(s) for s in scores.values()])
    row_values = DataOOBValuer(n_estimators=30, random_state=1).fit_transform(
        X, y, groups=groups
    )
    np.testing.assert_array_equal(row_values[:6, 0], valuer.values_[1])


def test_weights_of_rows(data, rng):
    X, y = data
    weights = rng.random(30)
    valuer = DataOOBValuer(n_estimators=40, random_state=3).fit(
        X, y, sample_weight=weights
    )
    model = DecisionTreeClassifier()
    scores = plain(model, X, y, lambda a, b: float(a == b), 40, 3, weights)
    np.testing.assert_allclose(valuer.values_, [np.mean(s) for s in scores])
    equal = DataOOBValuer(n_estimators=40, random_state=3).fit(X, y)
    assert (equal.values_ != valuer.values_).any()


def test_rows_without_weight_train_no_model(data):
    X, y = data
    weights = np.r_[np.zeros(27), np.ones(3)]
    y = np.repeat(["no", "yes"], [27, 3])
    valuer = DataOOBValuer(n_estimators=60, random_state=3).fit(
        X, y, sample_weight=weights
    )
    assert (
        valuer.values_.tolist() == [0.0] * 27 + [1.0] * 3
    )  # every model knows one class
    with pytest.raises(
        ValueError, match="sample_weight must be positive .* 2 rows.* Got 1"
    ):
        DataOOBValuer().fit(X, y, sample_weight=np.arange(30) == 4)
    with pytest.raises(ValueError, match="positive in at least 2 groups.* Got 1"):
        DataOOBValuer().fit(
            X, y, groups=np.arange(30) // 15, sample_weight=np.arange(30) < 9
        )
    with pytest.raises(ValueError, match="sample_weight needs an estimator .*KNe"):
        DataOOBValuer(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(30))
    with pytest.raises(
        ValueError, match=r"sample_weight must have one entry per row of X \(30\)"
    ):
        DataOOBValuer().fit(X, y, sample_weight=np.ones(29))


def test_same_bits_for_any_workers(data):
    X, _ = data
    y = X[:, 0] ** 2
    one = DataOOBValuer(n_estimators=50, random_state=2).fit(X, y).values_
    with joblib.parallel_config("threading"):
        two = DataOOBValuer(n_estimators=50, random_state=2, n_jobs=2).fit(X, y).values_
    np.testing.assert_array_equal(one, two)
    assert (
        DataOOBValuer(n_estimators=50, random_state=3).fit(X, y).values_ != one
    ).any()


def test_more_models_until_every_row_was_out_twice(data):
    X, y = data
    valuer = DataOOBValuer(n_estimators=2, random_state=0).fit(X, y)
    assert valuer.n_evaluations_ > 2
    assert np.isfinite(valuer.values_).all()
    scores = plain(
        DecisionTreeClassifier(),
        X,
        y,
        lambda a, b: float(a == b),
        valuer.n_evaluations_,
        0,
    )
    assert min(map(len, scores)) >= 2
    np.testing.assert_allclose(valuer.values_, [np.mean(s) for s in scores])


def test_the_default_number_of_models_is_bounded(data):
    X, y = data
    assert DataOOBValuer().estimate_cost(X, y).n_evaluations == 800
    large = np.zeros((2_000, 1500), dtype=np.float32)
    with pytest.warns(
        ImpreciseValuesWarning, match="based on 50 models, the default for data of"
    ):
        valuer = DataOOBValuer(DummyClassifier()).fit(large, np.arange(2_000) % 2)
    assert (valuer.n_evaluations_, valuer.stop_reason_) == (50, "n_estimators")


class SlowDummy(DummyClassifier):
    def fit(self, X, y, sample_weight=None):
        time.sleep(0.01)
        return super().fit(X, y, sample_weight)


def test_estimated_cost(data):
    valuer = DataOOBValuer(SlowDummy(), 32, random_state=0)
    cost = valuer.estimate_cost(*data)
    assert not hasattr(valuer, "values_")
    assert (cost.n_evaluations, cost.n_players, cost.solver) == (32, 30, "loop")
    assert cost.seconds_per_evaluation == pytest.approx(cost.seconds / 32)
    two = valuer.set_params(n_jobs=2).estimate_cost(*data, groups=np.arange(30) % 6)
    assert two.n_players == 6
    assert two.seconds == pytest.approx(16 * two.seconds_per_evaluation)
    timed = DataOOBValuer(max_time=0.5).estimate_cost(*data)
    assert (timed.seconds, timed.n_evaluations) == (0.5, None)
    assert DataOOBValuer(tol=0.1).estimate_cost(*data).seconds is None


@pytest.mark.slow  # looks at the clock
def test_estimated_seconds_are_those_of_a_fit(data):
    valuer = DataOOBValuer(SlowDummy(), 32, random_state=0)
    seconds, start = valuer.estimate_cost(*data).seconds, time.perf_counter()
    valuer.fit(*data)
    assert 0.5 < (time.perf_counter() - start) / seconds < 2


def test_goals_of_the_number_of_models(data):
    X, y = data
    valuer = DataOOBValuer(tol=0.08, random_state=0).fit(X, y)
    assert valuer.stop_reason_ == "tol"
    assert valuer.values_error_.max() <= 0.08
    same = DataOOBValuer(n_estimators=valuer.n_evaluations_, random_state=0).fit(X, y)
    np.testing.assert_array_equal(valuer.values_, same.values_)
    assert valuer.n_evaluations_ % 16 == 0
    few = DataOOBValuer(n_estimators=40, tol=1e-9, random_state=0).fit(X, y)
    assert (few.n_evaluations_, few.stop_reason_) == (40, "n_estimators")
    timed = DataOOBValuer(max_time=1e-3, random_state=0).fit(X, y)
    assert timed.stop_reason_ == "max_time"
    assert 16 <= timed.n_evaluations_ <= 48  # each row was out of bag twice
    stopped = DataOOBValuer(tol=1e-9, random_state=0).set_callbacks(Watch(stop_at=3))
    with pytest.warns(IncompleteFitWarning):
        assert stopped.fit(X, y).stop_reason_ == "callback"
    assert stopped.n_evaluations_ == 48
    # The last: models that are being trained when `tol` is met end after the fit, in
    # their threads, which have the state of `warnings` in common with the others.
    with parallel_config("threading", n_jobs=2):
        two = DataOOBValuer(tol=0.08, random_state=0).fit(X, y)
    assert two.n_evaluations_ == valuer.n_evaluations_


def test_bags_of_one_class():
    X, y = np.arange(4.0)[:, None], np.array([0, 0, 0, 1])
    valuer = DataOOBValuer(LogisticRegression(), 60, random_state=0).fit(X, y)
    assert valuer.values_[3] == 0  # no model of the others has seen its class
    assert valuer.values_[0] > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_errors_cover_the_limit(data):
    # Bags are independent: the mean over many more lies within the errors of few.
    X, y = data
    limit = DataOOBValuer(n_estimators=3000, random_state=0).fit(X, y).values_
    ratios = []
    for seed in range(1, 9):
        valuer = DataOOBValuer(n_estimators=100, random_state=seed).fit(X, y)
        ratios.append((valuer.values_ - limit) / valuer.values_error_)
    assert 0.8 < np.std(np.concatenate(ratios)) < 1.25


def test_finds_wrong_labels():
    X, y = load_breast_cancer(return_X_y=True)
    y_noisy, wrong = flip_labels(y, 0.1, random_state=0)
    valuer = DataOOBValuer(n_estimators=50, random_state=0).fit(X, y_noisy)
    assert noisy_label_auc(valuer.values_, wrong) > 0.95


def test_takes_no_validation_set(data):
    X, y = data
    with pytest.raises(
        ValueError, match="X_val must be None: DataOOBValuer has no validation"
    ):
        DataOOBValuer().fit(X, y, X_val=X, y_val=y)
    with pytest.raises(ValueError, match="sample_weight_val needs X_val"):
        DataOOBValuer().fit(X, y, sample_weight_val=np.ones(3))
    assert not hasattr(DataOOBValuer(), "transform")


def test_callback_that_stops_too_early(data):
    valuer = DataOOBValuer(n_estimators=64, random_state=0).set_callbacks(
        Watch(stop_at=1)
    )
    with pytest.warns(UserWarning, match="based on the models trained until then"):
        valuer.fit(*data)
    assert valuer.n_evaluations_ == 16
