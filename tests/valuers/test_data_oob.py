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


def is_right(prediction, label):
    return float(prediction == label)


def negative_squared_error(prediction, target):
    return -((prediction - target) ** 2)


def scores_of_rows(estimator, X, y, score, n_models, seed, weights=None):
    """Scores of every row by the models whose bag it is not in."""
    scores = [[] for _ in y]
    for number in range(n_models):
        bag, model_seed = bootstrap(seed, number, len(y))
        model = clone(estimator)
        if "random_state" in model.get_params():
            model.set_params(random_state=model_seed)
        options = {} if weights is None else {"sample_weight": weights[bag]}
        model.fit(X[bag], y[bag], **options)
        for i in np.setdiff1d(np.arange(len(y)), bag):
            scores[i].append(score(model.predict(X[i : i + 1])[0], y[i]))
    return scores


def means(scores):
    return [np.mean(of_row) for of_row in scores]


def standard_errors(scores):
    """Errors of means of scores.

    The variance of all scores is that of one more score of each row.
    """
    variances = np.array([np.var(of_row, ddof=1) for of_row in scores])
    counts = np.array([len(of_row) for of_row in scores])
    variance_of_all = np.var(np.concatenate(scores))
    return np.sqrt((variances + variance_of_all / counts) / counts)


# Values and errors --------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(max_features=1), None])
def test_values_of_classes_are_rates_of_right_predictions(data, estimator):
    valuer = DataOOBValuer(estimator, 40, random_state=3).fit(*data)
    model = DecisionTreeClassifier() if estimator is None else estimator
    scores = scores_of_rows(model, *data, is_right, 40, 3)
    np.testing.assert_allclose(valuer.values_, means(scores))
    np.testing.assert_allclose(
        valuer.values_error_, standard_errors(scores), atol=1e-12
    )
    assert valuer.utility_ == pytest.approx(valuer.values_.mean())
    assert valuer.empty_utility_ == 0.5
    assert valuer.n_evaluations_ == 40


def test_values_of_targets_are_negative_squared_errors(data):
    X, _ = data
    y = X[:, 0] + X[:, 1] ** 2
    valuer = DataOOBValuer(LinearRegression(), 40, random_state=3).fit(X, y)
    scores = scores_of_rows(LinearRegression(), X, y, negative_squared_error, 40, 3)
    np.testing.assert_allclose(valuer.values_, means(scores))
    np.testing.assert_allclose(valuer.values_error_, standard_errors(scores))
    assert valuer.empty_utility_ == pytest.approx(-y.var())


class ColumnClassifier(DecisionTreeClassifier):
    """It predicts a column, as some estimators do."""

    def predict(self, X):
        return super().predict(X)[:, None]


class ColumnRegressor(LinearRegression):
    """It predicts a column, as some estimators do."""

    def predict(self, X):
        return super().predict(X)[:, None]


@pytest.mark.parametrize(
    ("estimator", "of_columns"),
    [
        (DecisionTreeClassifier(), ColumnClassifier()),
        (LinearRegression(), ColumnRegressor()),
    ],
)
def test_predicted_columns_have_the_values_of_arrays(data, estimator, of_columns):
    X, y = data
    if isinstance(estimator, LinearRegression):
        y = X[:, 0]
    valuer = DataOOBValuer(estimator, 20, random_state=3).fit(X, y)
    other = DataOOBValuer(of_columns, 20, random_state=3).fit(X, y)
    np.testing.assert_array_equal(other.values_, valuer.values_)


class TestGroups:
    groups = np.repeat(["b", "a", "c", "d", "e"], 6)

    def test_they_are_drawn_whole(self, data):
        X, y = data
        valuer = DataOOBValuer(n_estimators=30, random_state=1)
        valuer.fit(X, y, groups=self.groups)
        names = ["a", "b", "c", "d", "e"]
        assert valuer.groups_.tolist() == names
        scores = {name: [] for name in names}
        for number in range(30):
            bag, seed = bootstrap(1, number, 5)
            rows = np.concatenate(
                [np.flatnonzero(self.groups == names[g]) for g in bag]
            )
            model = DecisionTreeClassifier(random_state=seed).fit(X[rows], y[rows])
            for g in set(range(5)) - set(bag.tolist()):
                in_group = self.groups == names[g]
                scores[names[g]].append(model.score(X[in_group], y[in_group]))
        np.testing.assert_allclose(valuer.values_, means(scores.values()))

    def test_each_row_has_the_value_of_its_group(self, data):
        valuer = DataOOBValuer(n_estimators=30, random_state=1)
        column = valuer.fit_transform(*data, groups=self.groups)
        of_rows = valuer.values_[np.searchsorted(valuer.groups_, self.groups)]
        np.testing.assert_array_equal(column[:, 0], of_rows)


def test_models_are_trained_with_the_weights_of_rows(data, rng):
    weights = rng.random(30)
    valuer = DataOOBValuer(n_estimators=40, random_state=3)
    valuer.fit(*data, sample_weight=weights)
    model = DecisionTreeClassifier()
    scores = scores_of_rows(model, *data, is_right, 40, 3, weights)
    np.testing.assert_allclose(valuer.values_, means(scores))
    unweighted = clone(valuer).fit(*data)
    assert (unweighted.values_ != valuer.values_).any()


def test_rows_without_weight_train_no_model(data):
    X, _ = data
    weights = np.r_[np.zeros(27), np.ones(3)]
    y = np.repeat(["no", "yes"], [27, 3])
    valuer = DataOOBValuer(n_estimators=60, random_state=3)
    valuer.fit(X, y, sample_weight=weights)
    # Every model knows one class.
    assert valuer.values_.tolist() == [0.0] * 27 + [1.0] * 3


@pytest.mark.parametrize(
    ("valuer", "options", "message"),
    [
        (
            DataOOBValuer(),
            {"sample_weight": np.arange(30) == 4},
            "sample_weight must be positive .* 2 rows.* Got 1",
        ),
        (
            DataOOBValuer(),
            {"groups": np.arange(30) // 15, "sample_weight": np.arange(30) < 9},
            "positive in at least 2 groups.* Got 1",
        ),
        (
            DataOOBValuer(KNeighborsClassifier()),
            {"sample_weight": np.ones(30)},
            "sample_weight needs an estimator .*KNe",
        ),
        (
            DataOOBValuer(),
            {"sample_weight": np.ones(29)},
            r"sample_weight must have one entry per row of X \(30\)",
        ),
    ],
    ids=["one row", "one group", "estimator without weights", "too few"],
)
def test_bad_weights_are_refused(data, valuer, options, message):
    with pytest.raises(ValueError, match=message):
        valuer.fit(*data, **options)


def test_a_class_that_some_bags_lack_can_be_valued():
    X = np.arange(4.0)[:, None]
    y = np.array([0, 0, 0, 1])
    valuer = DataOOBValuer(LogisticRegression(), 60, random_state=0).fit(X, y)
    assert valuer.values_[3] == 0  # no model of the others has seen its class
    assert valuer.values_[0] > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_errors_cover_the_limit(data):
    # Bags are independent: the mean over many more lies within the errors of few.
    limit = DataOOBValuer(n_estimators=3000, random_state=0).fit(*data).values_
    ratios = []
    for seed in range(1, 9):
        valuer = DataOOBValuer(n_estimators=100, random_state=seed).fit(*data)
        ratios.append((valuer.values_ - limit) / valuer.values_error_)
    assert 0.8 < np.std(ratios) < 1.25


def test_wrong_labels_have_low_values():
    X, y = load_breast_cancer(return_X_y=True)
    y_noisy, is_wrong = flip_labels(y, 0.1, random_state=0)
    valuer = DataOOBValuer(n_estimators=50, random_state=0).fit(X, y_noisy)
    assert noisy_label_auc(valuer.values_, is_wrong) > 0.95


# Random numbers -----------------------------------------------------------------------


def squares(data):
    X, _ = data
    return X, X[:, 0] ** 2


def test_the_bits_are_the_same_for_any_number_of_workers(data):
    one = DataOOBValuer(n_estimators=50, random_state=2).fit(*squares(data))
    with joblib.parallel_config("threading"):
        two = DataOOBValuer(n_estimators=50, random_state=2, n_jobs=2)
        two.fit(*squares(data))
    np.testing.assert_array_equal(one.values_, two.values_)


def test_another_random_state_has_other_values(data):
    one = DataOOBValuer(n_estimators=50, random_state=2).fit(*squares(data))
    other = DataOOBValuer(n_estimators=50, random_state=3).fit(*squares(data))
    assert (one.values_ != other.values_).any()


# The number of models -----------------------------------------------------------------


def test_models_are_trained_until_every_row_was_out_of_bag_twice(data):
    valuer = DataOOBValuer(n_estimators=2, random_state=0).fit(*data)
    assert valuer.n_evaluations_ > 2
    assert np.isfinite(valuer.values_).all()
    model = DecisionTreeClassifier()
    scores = scores_of_rows(model, *data, is_right, valuer.n_evaluations_, 0)
    assert min(map(len, scores)) >= 2
    np.testing.assert_allclose(valuer.values_, means(scores))


def test_the_default_number_of_models_is_800(data):
    assert DataOOBValuer().estimate_cost(*data).n_evaluations == 800


def test_the_default_number_of_models_of_large_data_is_50_with_a_warning():
    X = np.zeros((2_000, 1500), dtype=np.float32)
    y = np.arange(2_000) % 2
    with pytest.warns(
        ImpreciseValuesWarning, match="based on 50 models, the default for data of"
    ):
        valuer = DataOOBValuer(DummyClassifier()).fit(X, y)
    assert valuer.n_evaluations_ == 50
    assert valuer.stop_reason_ == "n_estimators"


class TestGoals:
    def test_tol_ends_the_fit_at_a_precision(self, data):
        valuer = DataOOBValuer(tol=0.08, random_state=0).fit(*data)
        assert valuer.stop_reason_ == "tol"
        assert valuer.values_error_.max() <= 0.08
        assert valuer.n_evaluations_ % 16 == 0

    def test_a_fit_of_as_many_models_has_the_same_values(self, data):
        valuer = DataOOBValuer(tol=0.08, random_state=0).fit(*data)
        same = DataOOBValuer(n_estimators=valuer.n_evaluations_, random_state=0)
        np.testing.assert_array_equal(valuer.values_, same.fit(*data).values_)

    def test_n_estimators_ends_what_a_goal_does_not(self, data):
        valuer = DataOOBValuer(n_estimators=40, tol=1e-9, random_state=0).fit(*data)
        assert valuer.n_evaluations_ == 40
        assert valuer.stop_reason_ == "n_estimators"

    def test_max_time_ends_the_fit_once_each_row_was_out_of_bag_twice(self, data):
        valuer = DataOOBValuer(max_time=1e-3, random_state=0).fit(*data)
        assert valuer.stop_reason_ == "max_time"
        assert 16 <= valuer.n_evaluations_ <= 48

    def test_a_callback_ends_the_fit(self, data):
        valuer = DataOOBValuer(tol=1e-9, random_state=0)
        with pytest.warns(IncompleteFitWarning):
            valuer.set_callbacks(Watch(stop_at=3)).fit(*data)
        assert valuer.stop_reason_ == "callback"
        assert valuer.n_evaluations_ == 48

    def test_a_callback_that_stops_at_once_leaves_the_first_models(self, data):
        valuer = DataOOBValuer(n_estimators=64, random_state=0)
        valuer.set_callbacks(Watch(stop_at=1))
        with pytest.warns(UserWarning, match="based on the models trained until then"):
            valuer.fit(*data)
        assert valuer.n_evaluations_ == 16

    def test_a_tol_with_threads_ends_at_the_same_model(self, data):
        # The last: models that are being trained when `tol` is met end after the fit,
        # in their threads, which have the state of `warnings` in common with others.
        single = DataOOBValuer(tol=0.08, random_state=0).fit(*data)
        with parallel_config("threading", n_jobs=2):
            threaded = DataOOBValuer(tol=0.08, random_state=0).fit(*data)
        assert threaded.n_evaluations_ == single.n_evaluations_


# The cost -----------------------------------------------------------------------------


class SlowDummy(DummyClassifier):
    """Takes ten milliseconds to fit."""

    def fit(self, X, y, sample_weight=None):
        time.sleep(0.01)
        return super().fit(X, y, sample_weight)


class TestEstimatedCost:
    def test_it_is_that_of_one_worker(self, data):
        valuer = DataOOBValuer(SlowDummy(), 32, random_state=0)
        cost = valuer.estimate_cost(*data)
        assert (cost.n_evaluations, cost.n_players, cost.solver) == (32, 30, "loop")
        assert cost.seconds_per_evaluation == pytest.approx(cost.seconds / 32)
        assert not hasattr(valuer, "values_")

    def test_two_workers_take_half_the_time(self, data):
        valuer = DataOOBValuer(SlowDummy(), 32, n_jobs=2)
        cost = valuer.estimate_cost(*data, groups=np.arange(30) % 6)
        assert cost.n_players == 6
        assert cost.seconds == pytest.approx(16 * cost.seconds_per_evaluation)

    def test_it_is_the_time_limit_if_there_is_one(self, data):
        cost = DataOOBValuer(max_time=0.5).estimate_cost(*data)
        assert (cost.seconds, cost.n_evaluations) == (0.5, None)

    def test_it_is_unknown_with_a_goal(self, data):
        assert DataOOBValuer(tol=0.1).estimate_cost(*data).seconds is None

    @pytest.mark.slow  # looks at the clock
    def test_it_is_that_of_a_fit(self, data):
        valuer = DataOOBValuer(SlowDummy(), 32, random_state=0)
        seconds = valuer.estimate_cost(*data).seconds
        start = time.perf_counter()
        valuer.fit(*data)
        assert 0.5 < (time.perf_counter() - start) / seconds < 2


# Validation points --------------------------------------------------------------------


def test_validation_points_are_not_used_and_a_warning_says_so(data):
    X, y = data
    valuer = DataOOBValuer(n_estimators=5, random_state=0)
    expected = valuer.fit(X, y).values_
    with pytest.warns(UserWarning, match="X_val is not used: DataOOB"):
        valuer.fit(X, y, X_val=X[:9] + 1, y_val=y[:9])
    np.testing.assert_array_equal(valuer.values_, expected)


def test_weights_of_validation_points_are_refused(data):
    with pytest.raises(ValueError, match="sample_weight_val needs X_val"):
        DataOOBValuer().fit(*data, sample_weight_val=np.ones(3))


def test_there_is_no_transform_without_refitting():
    assert not hasattr(DataOOBValuer(), "transform")
