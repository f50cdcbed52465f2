"""Least squares and ridge regression in batches give what the loop gives."""

import numpy as np
import pytest
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score

from skvalue.games import ModelGame

from ..problems import two_classes
from .batched import check_equal, coalitions, each_kind, spread, targets

MODELS = [
    Ridge(),
    Ridge(alpha=1e-4),
    Ridge(alpha=50, fit_intercept=False),
    LinearRegression(),
    LinearRegression(fit_intercept=False),
]
both_models = pytest.mark.parametrize(
    "estimator", [Ridge(), LinearRegression()], ids=str
)


@each_kind
@pytest.mark.parametrize("estimator", MODELS, ids=str)
def test_coalitions_of_any_kind_are_those_of_the_loop(estimator, kind, rng):
    for scoring in (None, "neg_mean_squared_error", "neg_median_absolute_error"):
        masks = spread(coalitions(rng, 40, kind), 10)
        check_equal(estimator, targets(), masks, scoring=scoring, empty_utility=0)


@both_models
def test_weights_and_groups_are_those_of_the_loop(estimator, rng):
    weights = rng.random(40) * 2
    weights[::9] = 0
    check_equal(
        estimator,
        targets(),
        rng.random((40, 20)) < 0.3,
        sample_weight=weights,
        groups=np.arange(40) % 20,
        sample_weight_val=rng.random(50),
    )


@both_models
def test_many_rows_and_columns_are_those_of_the_loop(estimator, rng):
    # Products of pairs of columns would be more than 20 million: each Gram matrix by
    # itself.
    X, y = make_regression(1050, 200, noise=20.0, random_state=0)
    X = X + 3
    y = y / 50
    prefixes = np.argsort(rng.permutation(1000))[None] <= np.arange(900, 908)[:, None]
    masks = np.concatenate([prefixes, rng.random((4, 1000)) < 0.5])
    check_equal(estimator, (X[:1000], y[:1000], X[1000:], y[1000:]), masks)


@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge(alpha=1e-3)], ids=str)
def test_columns_that_depend_on_each_other_are_those_of_the_loop(estimator, rng):
    X, y, X_val, y_val = targets()
    X = np.c_[X, X[:, 0] * 2, np.ones(len(X))]
    X_val = np.c_[X_val, X_val[:, 0] * 2, np.ones(len(X_val))]
    masks = coalitions(rng, 40, "permutation")
    check_equal(estimator, (X, y, X_val, y_val), masks)


@pytest.mark.parametrize("n_equal", [1, 7, 12])
def test_equal_rows_have_no_slope(n_equal, rng):
    X, y, X_val, y_val = targets()
    X = np.repeat(X[:20], n_equal, axis=0)
    weights = rng.random(len(X)) + 0.1
    groups = np.repeat(np.arange(20), n_equal)
    data = X, np.repeat(y[:20], n_equal), X_val, y_val
    game = ModelGame(LinearRegression(), *data, sample_weight=weights, groups=groups)
    expected = [r2_score(y_val, np.full(len(y_val), target)) for target in y[:20]]
    np.testing.assert_allclose(game.utility(np.eye(20, dtype=bool)), expected)


def test_least_squares_cuts_small_singular_values(rng):
    X, y, X_val, y_val = targets()
    y = y + 3 * X[:, 4]
    for rows in (X, X_val):  # `tol` leaves the difference of two columns out
        rows[:, 4] = rows[:, 0] + 1e-8 * rows[:, 4]
    masks = coalitions(rng, 40, "permutation")
    check_equal(LinearRegression(), (X, y, X_val, y_val), masks)


@pytest.mark.parametrize("scale", [1e-12, 1e-8, 1e8])
def test_least_squares_keeps_a_column_of_another_unit(scale, rng):
    """The estimator itself leaves out a column of a small unit, by its `tol`."""
    X, y, X_val, y_val = targets()
    y = y + 3 * X[:, 4]
    units = np.array([1, 1, 1, 1, scale])
    masks = coalitions(rng, 40, "permutation")
    masks = masks[masks.sum(axis=1) > 7]  # of fewer rows the least norm has a unit
    game = ModelGame(LinearRegression(), X * units, y, X_val * units, y_val)
    expected = ModelGame(LinearRegression(), X, y, X_val, y_val).utility(masks)
    np.testing.assert_allclose(game.utility(masks), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "estimator", [Ridge(alpha=0), Ridge(positive=True, solver="lbfgs")], ids=str
)
def test_parameters_without_a_batched_solver_are_left_to_the_loop(estimator):
    assert ModelGame(estimator, *targets()).solver == "loop"


def test_r2_of_one_validation_point_is_an_error():
    X, y, X_val, y_val = targets()
    game = ModelGame(Ridge(), X, y, X_val[:1], y_val[:1])
    with pytest.raises(ValueError, match="scoring must return a finite number. Got n"):
        game.utility(np.ones((1, 40), dtype=bool))


def test_one_row_of_a_regression_has_a_utility(rng):
    X, _, X_val, _ = two_classes(rng, 40, 20)
    game = ModelGame(LinearRegression(), X, X[:, 0], X_val, X_val[:, 0])
    assert np.isfinite(game.utility(np.eye(40, dtype=bool))).all()
    assert game.n_failed == 0
