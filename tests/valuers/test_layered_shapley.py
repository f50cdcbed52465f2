"""Layered Shapley as an estimator: exact where it enumerates, core sets, groups of rows, errors."""

from math import comb

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

from skvalue import DataShapleyValuer, LayeredShapleyValuer
from skvalue.games import StableLogisticGame
from skvalue.samplers import ALLOCATIONS, layer_counts
from skvalue.valuers import CoreSet, suggest_bound
from skvalue.valuers.layered_shapley import DESIGNS, marginal_bounds

ALL = dict(tol=1e-4, random_state=0)  # enough coalitions that all are enumerated


def problem(rng, n=8, d=3, n_val=20):
    X = rng.normal(size=(n + n_val, d))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n + n_val) > 0, "yes", "no")
    y[:2] = ["yes", "no"]
    return X[:n], y[:n], dict(X_val=X[n:], y_val=y[n:])


@pytest.mark.parametrize("design", DESIGNS)
def test_many_coalitions_give_the_shapley_value(design, rng):
    X, y, points = problem(rng)
    valuer = LayeredShapleyValuer(design=design, **ALL).fit(X, y, **points)
    exact = DataShapleyValuer(sampler="exact").fit(X, y, **points)
    np.testing.assert_allclose(valuer.values_, exact.values_, atol=1e-12)
    np.testing.assert_allclose(valuer.layer_values_.sum(axis=0), valuer.values_)
    assert valuer.values_.sum() == pytest.approx(valuer.utility_ - valuer.empty_utility_)
    assert not valuer.values_error_.any()
    assert valuer.truncation_bias_ == 0
    assert valuer.data_fraction_ == 1


def test_regression_and_other_estimators(rng):
    X, y, points = problem(rng, n=6)
    targets = {"X_val": points["X_val"], "y_val": points["X_val"][:, 0] + 1}
    valuer = LayeredShapleyValuer(**ALL).fit(X, X[:, 0] + 1, **targets)
    exact = DataShapleyValuer(Ridge(), sampler="exact").fit(X, X[:, 0] + 1, **targets)
    np.testing.assert_allclose(valuer.values_, exact.values_, atol=1e-12)
    loop = LayeredShapleyValuer(KNeighborsClassifier(1), batch="never", **ALL).fit(X, y, **points)
    exact = DataShapleyValuer(KNeighborsClassifier(1), sampler="exact").fit(X, y, **points)
    np.testing.assert_allclose(loop.values_, exact.values_, atol=1e-12)


def test_groups_and_splits(rng):
    X, y, points = problem(rng, n=16)
    groups = np.arange(16) % 6
    for kwargs in (points, {}):
        valuer = LayeredShapleyValuer(cv=2, **ALL).fit(X, y, groups=groups, **kwargs)
        exact = DataShapleyValuer(sampler="exact", cv=2).fit(X, y, groups=groups, **kwargs)
        np.testing.assert_allclose(valuer.values_, exact.values_, atol=1e-12)
        new = valuer.score_samples(X[:3] + 5, y[:3])
        assert np.isfinite(new).all()


@pytest.mark.parametrize("parameters", [{}, {"l2": 0.5, "max_norm": 2.0}])
def test_a_new_row_has_the_value_of_one_that_joins(parameters, rng):
    X, y, points = problem(rng)
    valuer = LayeredShapleyValuer(**ALL, **parameters).fit(X, y, **points)
    X_new, y_new = rng.normal(size=(2, 3)), np.array(["no", "yes"])
    scores = valuer.score_samples(X_new, y_new)
    for row, label, score in zip(X_new, y_new, scores):
        joined = LayeredShapleyValuer(**ALL, **parameters)
        joined.fit(np.vstack([X, row]), np.append(y, label), **points)
        assert score == pytest.approx(joined.values_[-1], abs=1e-12)
    by_label = [valuer.score_samples(X_new, [label] * 2) for label in ("no", "yes")]
    probabilities = LogisticRegression().fit(X, y).predict_proba(X_new)
    expected = probabilities[:, 0] * by_label[0] + probabilities[:, 1] * by_label[1]
    np.testing.assert_allclose(valuer.transform(X_new)[:, 0], expected)
    np.testing.assert_array_equal(valuer.transform(X[::-1])[::-1, 0], valuer.values_)


@pytest.mark.parametrize("design", DESIGNS)
def test_rows_are_equally_often_in_core_sets(design, rng):
    X, y, points = problem(rng, n=40)
    valuer = LayeredShapleyValuer(l2=1.0, design=design, max_evaluations=3000, random_state=0)
    core = valuer.fit(X, y, **points).core_sets()[0]
    assert len(core.X) == 40
    members = np.concatenate([members.ravel() for members, *_ in core.coalitions])
    counts = np.bincount(members)
    assert 0.6 * counts.mean() < counts.min() <= counts.max() < 1.4 * counts.mean()


@pytest.mark.parametrize("n_fits", [20, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("allocation", ALLOCATIONS)
@pytest.mark.parametrize("design", DESIGNS)
def test_core_sets_of_samples_value_new_rows(design, allocation, n_fits, rng):
    # Mean over fits of the values of a new row, against the value in the game with it; and of the
    # values of the fit, against exact ones.
    X, y, points = problem(rng, n=9)
    row, label = rng.normal(size=(1, 3)), np.array(["yes"])
    exact = DataShapleyValuer(sampler="exact")
    exact.fit(np.vstack([X, row]), np.append(y, label), **points)
    settings = dict(design=design, allocation=allocation, max_evaluations=120)
    found = []
    for seed in range(n_fits):
        valuer = LayeredShapleyValuer(**settings, random_state=seed).fit(X, y, **points)
        found.append(np.append(valuer.values_, valuer.score_samples(row, label)))
    expected = DataShapleyValuer(sampler="exact").fit(X, y, **points).values_
    expected = np.append(expected, exact.values_[-1])
    errors = np.std(found, axis=0, ddof=1) / np.sqrt(n_fits)
    assert (np.abs(np.mean(found, axis=0) - expected) < 4.5 * errors).all()


@pytest.mark.parametrize(
    "parameters", [{"l2": np.float32(0.5)}, {"estimator": LogisticRegression(C=2.0)}]
)
def test_core_sets_are_saved_without_pickle(parameters, rng, tmp_path):
    X, y, points = problem(rng, n=30)
    valuer = LayeredShapleyValuer(
        max_evaluations=300, design="poisson", random_state=0, **parameters
    )
    core = valuer.fit(X, y, **points).core_sets()[0]
    core.save(tmp_path / "core.npz")
    estimator = parameters.get("estimator")
    again = CoreSet.load(tmp_path / "core.npz", estimator=estimator)
    X_new = rng.normal(size=(4, 3))
    labels = np.array(["no", "yes", "yes", "no"])
    expected = valuer.score_samples(X_new, labels)
    np.testing.assert_allclose(again.score_samples(X_new, labels), expected, atol=1e-9)
    assert again.n_coalitions == core.n_coalitions > 0
    with pytest.raises(ValueError, match="estimator must be that of the fit"):
        CoreSet.load(tmp_path / "core.npz", estimator=Ridge())
    with pytest.raises(ValueError, match="y must hold only labels that the fit has seen.*'maybe'"):
        again.score_samples(X_new, ["maybe"] * 4)
    with pytest.raises(ValueError, match="scoring must be a string or a number to be saved"):
        core.settings.__class__(scoring=len).plain()


def test_core_sets_leave_out_rows_in_no_coalition(rng):
    X, y, points = problem(rng, n=40)
    valuer = LayeredShapleyValuer(
        l2=1.0, design="poisson", n_layers=2, tol=0.5, bound=0.3, allocation="bound", random_state=1
    ).fit(X, y, **points)
    core = valuer.core_sets()[0]
    assert 0 < len(core.X) < 40
    assert 0 < valuer.data_fraction_ < 0.9
    row, label = rng.normal(size=(1, 3)), ["yes"]
    assert core.score_samples(row, label) == pytest.approx(valuer.score_samples(row, label))


def test_value_of_a_group(rng):
    X, y, points = problem(rng, n=20)
    valuer = LayeredShapleyValuer(
        design="iid", tol=0.4, allocation="bound", l2=1.0, n_layers=4, random_state=0
    ).fit(X, y, **points)
    few = valuer.value_of_group([3])
    assert (few.value, few.n_evaluations) == (valuer.values_[3], 0)
    many = valuer.value_of_group(range(20))
    assert many.value == pytest.approx(many.row_values.sum())
    assert many.mean == pytest.approx(many.value / 20)
    # A twentieth of the probability of failure: the logarithm of the number of rows.
    bounds = marginal_bounds(20, n_layers=4, game=(1.0, 1.0, True))[0]
    counts = layer_counts(bounds, 0.4, 0.95)[2:]  # layers 0 and 1 are enumerated
    for_all = counts * (1 + np.log(20) / np.log(2 * 5 / 0.05))
    more = np.ceil(for_all - np.ceil(counts))
    assert more.min() > 5
    assert many.n_evaluations == 2 * 20 * more.sum()
    close = valuer.value_of_group([3, 7], tol=0.02)
    exact = LayeredShapleyValuer(tol=1e-3, l2=1.0, n_layers=3, random_state=0)
    exact = exact.set_params(n_layers=4).fit(X, y, **points)
    np.testing.assert_allclose(close.row_values, exact.values_[[3, 7]], atol=0.002)
    with pytest.raises(ValueError, match="indices must be rows of fit, between 0 and 19"):
        valuer.value_of_group([20])


def test_layers_left_out_are_bounded(rng):
    X, y, points = problem(rng, n=10)
    whole = LayeredShapleyValuer(l2=0.2, **ALL).fit(X, y, **points)
    for k in (1, 4, 8):
        part = LayeredShapleyValuer(l2=0.2, n_layers=k, **ALL).fit(X, y, **points)
        assert part.layer_values_.shape == (k + 1, 10)
        gap = np.abs(part.values_ - whole.values_).max()
        assert 0 < gap <= part.truncation_bias_
    given = LayeredShapleyValuer(n_layers=4, bound=0.7, **ALL).fit(X, y, **points)
    assert given.truncation_bias_ == pytest.approx(0.7 / 10 * (1 / np.arange(5, 10)).sum())


def test_same_seed_same_bits(rng):
    X, y, points = problem(rng, n=30)
    build = lambda **kw: LayeredShapleyValuer(max_evaluations=400, **kw).fit(X, y, **points)  # noqa: E731
    one, two = build(random_state=3, n_jobs=1), build(random_state=3, n_jobs=2)
    np.testing.assert_array_equal(one.values_, two.values_)
    assert not np.array_equal(one.values_, build(random_state=4).values_)
    assert not np.array_equal(build().values_, build().values_)


@pytest.mark.parametrize("design", ["blocks", "iid"])
def test_errors_are_about_right(design, rng):
    X, y, points = problem(rng, n=20)
    fits = [
        LayeredShapleyValuer(l2=0.1, design=design, max_evaluations=600, random_state=seed).fit(
            X, y, **points
        )
        for seed in range(30)
    ]
    deviation = np.std([fit.values_ for fit in fits], axis=0, ddof=1)
    stated = np.sqrt(np.mean([fit.values_error_**2 for fit in fits], axis=0))
    ratio = np.median(stated / deviation)
    assert 0.65 < ratio < (1.5 if design == "blocks" else 2.5)


def test_errors_of_parameters(rng):
    X, y, points = problem(rng)

    def fit(y=y, **parameters):
        LayeredShapleyValuer(**parameters).fit(X, y, **points)

    with pytest.raises(ValueError, match="estimator must be None with l2.*Got LogisticRegression"):
        fit(estimator=LogisticRegression(), l2=1.0)
    with pytest.raises(ValueError, match="scoring must be None with l2.*Got 'accuracy'"):
        fit(scoring="accuracy", l2=1.0)
    with pytest.raises(ValueError, match="l2 needs two classes. Got 3 classes"):
        fit(y=np.r_[y[:-1], ["maybe"]], l2=1.0)
    with pytest.raises(ValueError, match="l2 needs two classes. Got a continuous target"):
        LayeredShapleyValuer(l2=1.0).fit(X, X[:, 0], X_val=X, y_val=X[:, 0])
    with pytest.raises(ValueError, match="'confidence' parameter of LayeredShapleyValuer must be"):
        fit(confidence=1.0)
    with pytest.raises(ValueError, match="label 'no' are all among the validation points"):
        LayeredShapleyValuer(cv=[(np.arange(4), np.arange(4, 8)), (np.arange(4, 8), np.arange(4))]
        ).fit(X, ["yes"] * 4 + ["no"] * 4)  # fmt: skip


class BrokenClassifier(LogisticRegression):
    def fit(self, X, y):
        raise RuntimeError("no")


def test_a_model_that_fails_is_an_error(rng):
    X, y, points = problem(rng)
    with pytest.raises(ValueError, match="estimator must train on all .* raised RuntimeError, the"):
        LayeredShapleyValuer(BrokenClassifier(), max_evaluations=100).fit(X, y, **points)
    with pytest.raises(ValueError, match="estimator must train on all .* raised RuntimeError"):
        LayeredShapleyValuer(BrokenClassifier(), max_evaluations=100, cv=2).fit(X, y)


def test_bound_from_public_data(rng):
    X, y, points = problem(rng, n=30)
    bound = suggest_bound(LogisticRegression(), X, y, **points)
    assert 0.05 < bound < 30
    assert bound == suggest_bound(LogisticRegression(), X, y, **points)


def test_a_default_fit_is_bounded_and_its_cost_is_known(rng):
    X, y, points = problem(rng, n=60)
    valuer = LayeredShapleyValuer(random_state=0)
    cost = valuer.estimate_cost(X, y, **points)
    assert cost.n_evaluations <= 40 * 60
    assert cost.n_players == 60
    expected = cost.n_evaluations * cost.seconds_per_evaluation
    assert cost.seconds == pytest.approx(expected, rel=0.01)
    valuer.fit(X, y, **points)
    assert valuer.n_evaluations_ == pytest.approx(cost.n_evaluations, rel=0.2)
    few = valuer.set_params(max_time=cost.seconds / 5).fit(X, y, **points)
    assert few.n_evaluations_ < 0.8 * cost.n_evaluations
    valuer.set_params(max_time=None, tol=1.0, max_evaluations=500)
    assert valuer.estimate_cost(X, y, **points).n_evaluations <= 500
    private = LayeredShapleyValuer(l2=1.0, n_layers=2, epsilon=1.0)
    one = private.estimate_cost(X, y, **points)
    all_values = private.set_params(release="all").estimate_cost(X, y, **points)
    assert 0 < one.n_evaluations < all_values.n_evaluations


def test_minus_training_loss_as_utility(rng):
    X, y, points = problem(rng, n=8)
    valuer = LayeredShapleyValuer(l2=0.3, fit_intercept=False, scoring="neg_training_loss", **ALL)
    valuer.fit(X, y, **points)
    game = StableLogisticGame(
        X, (y == "yes").astype(int), X, np.zeros(8, int), l2=0.3, fit_intercept=False,
        loss="training",
    )  # fmt: skip
    assert valuer.utility_ - valuer.empty_utility_ == pytest.approx(valuer.values_.sum())
    # It is the minimum of the objective, which a row changes by at most its largest loss / (k + 1).
    model = LogisticRegression(C=1 / (0.3 * 8), fit_intercept=False, tol=1e-10)
    Z = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    model.fit(Z, y)
    margins = Z @ model.coef_[0] * np.where(y == "yes", 1, -1)
    objective = np.log1p(np.exp(-margins)).mean() + 0.15 * (model.coef_**2).sum()
    assert valuer.utility_ == pytest.approx(-objective, abs=1e-6)
    codes = np.arange(2**8)
    masks = ((codes[:, None] >> np.arange(8)) % 2).astype(bool)
    utilities, sizes = game.utility(masks), masks.sum(axis=1)
    for i in range(8):
        without = sizes[~masks[:, i]]
        gain = utilities[codes | 1 << i] - utilities[codes]
        weights = 1 / (8 * np.array([comb(7, size) for size in without]))
        assert valuer.values_[i] == pytest.approx(weights @ gain[~masks[:, i]], abs=1e-10)
        largest = np.log1p(np.exp(np.sqrt(0.2785 / 0.3)))
        assert (np.abs(gain)[sizes < 8] * (sizes[sizes < 8] + 1) <= largest).all()
    with pytest.raises(ValueError, match="scoring must be None with l2.*Got 'neg_log_loss'"):
        LayeredShapleyValuer(l2=0.3, scoring="neg_log_loss").fit(X, y, **points)
