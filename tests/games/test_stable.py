"""The game with proved bounds, and logistic regressions in the dual."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skvalue.games import ModelGame, StableLogisticGame, clip_rows, stability
from skvalue.games.solvers.logistic import LogisticSolver
from skvalue.valuers.layered_shapley import change_bounds

from ..problems import two_classes


def problem(rng, n=14, d=4):
    return two_classes(rng, n, 30, d, names=None)


def coalitions(rng, n, count=40):
    masks = rng.random((count, n)) < rng.random((count, 1))
    masks[masks.sum(axis=1) == 0, 0] = True
    return masks


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("l2", [1e-3, 0.5, 20.0])
def test_stable_game_is_scikit_learn_with_a_falling_C(l2, intercept, rng):
    X, y, X_val, y_val = problem(rng)
    weights = rng.random(len(X_val))
    game = StableLogisticGame(
        X,
        y,
        X_val,
        y_val,
        l2=l2,
        max_norm=1.5,
        fit_intercept=intercept,
        sample_weight_val=weights,
    )

    def prepare(X):
        X = clip_rows(X, 1.5)
        return np.column_stack([X, np.ones(len(X))]) if intercept else X

    masks = coalitions(rng, len(X), 12)
    n_compared = 0
    for mask, utility in zip(masks, game.utility(masks)):
        if len(set(y[mask])) < 2:  # scikit-learn refuses it
            continue
        model = LogisticRegression(
            C=1 / (l2 * mask.sum()),
            fit_intercept=False,
            tol=1e-10,
            solver="newton-cholesky",
        ).fit(prepare(X)[mask], y[mask])
        margins = prepare(X_val) @ model.coef_[0] * (2 * y_val - 1)
        expected = -np.average(np.log1p(np.exp(-margins)), weights=weights)
        assert utility == pytest.approx(expected, abs=1e-6)
        n_compared += 1
    assert n_compared > 5
    assert game.utility(np.zeros((1, len(X)), bool))[0] == -np.log(2)


def test_no_row_moves_a_utility_by_more_than_the_bound(rng):
    # Rows that point towards the only validation point, and away from it, do most.
    largest = {}
    for k in (1, 2, 3, 10):
        for _ in range(40):
            X = rng.normal(size=(k, 2)) * rng.choice([0.0, 1.0, 5.0])
            y = rng.integers(0, 2, k)
            X_val = rng.normal(size=(1, 2)) * 9
            X[0] = X_val * rng.choice([1.0, -1.0])
            utilities = []
            for label in (0, 1):
                labels = np.r_[label, y[1:]]
                game = StableLogisticGame(
                    X, labels, X_val, np.ones(1), fit_intercept=False
                )
                utilities.append(game.utility(np.ones((1, k), dtype=bool))[0])
            change = abs(utilities[0] - utilities[1])
            largest[k] = max(largest.get(k, 0), change)
    _, bounds = change_bounds(9, 1.0, 1.0, fit_intercept=False)  # of a row among k
    assert all(largest[k] <= bounds[k - 1] for k in largest)
    assert largest[1] > 0.5 * bounds[0]  # 0.401 of 0.664
    assert largest[10] < 0.2 * largest[1]


def test_constants_of_stability_are_those_of_the_steepest_margin():
    # The steepest margin: l2 |w|^2 of one row alone, at its worst penalty, is near the
    # bound.
    kappa, slope, tolerance = stability(1.0, 1.0, fit_intercept=False)
    t = np.linspace(0, 5, 100_001)
    radius = np.sqrt((t / (1 + np.exp(t))).max())
    assert kappa == 1.0
    assert slope == pytest.approx(1 / (1 + np.exp(-radius)), abs=1e-9)
    assert tolerance < 1e-10
    assert stability(1.0, 3.0)[0] == pytest.approx(np.sqrt(10))


def test_rows_of_any_size_are_clipped(rng):
    X = np.array([[1e300, 1e300], [0.0, 0.0], [3.0, -4.0], [1e-300, 0.0], [0.6, 0.8]])
    clipped = clip_rows(X, 1.0)
    assert (np.linalg.norm(clipped, axis=1) <= 1).all()
    np.testing.assert_allclose(clipped[[0, 2]], [[0.5**0.5] * 2, [0.6, -0.8]])
    np.testing.assert_array_equal(clipped[[1, 3]], X[[1, 3]])


def test_a_row_of_another_class_adds_nothing(rng):
    X, y, X_val, y_val = problem(rng)
    y = y.copy()
    y[3] = 2
    game = StableLogisticGame(X, y, X_val, y_val)
    alone = np.zeros((1, len(X)), dtype=bool)
    alone[0, 3] = True
    assert game.utility(alone)[0] == pytest.approx(-np.log(2))


@pytest.mark.parametrize("intercept", [True, False])
def test_the_dual_gives_what_the_primal_gives(intercept, rng):
    X, y, X_val, y_val = problem(rng, n=40, d=20)
    estimator = LogisticRegression(C=3.0, fit_intercept=intercept)
    exact = LogisticRegression(C=3.0, fit_intercept=intercept, tol=1e-10, max_iter=5000)
    for scoring in (None, "neg_log_loss"):
        game = ModelGame(estimator, X, y, X_val, y_val, scoring=scoring)
        loop = ModelGame(exact, X, y, X_val, y_val, scoring=scoring, batch="never")
        masks = coalitions(rng, 40, 12)
        masks[:6] = rng.permuted(np.tile(np.arange(40) < 3, (6, 1)), axis=1)
        np.testing.assert_allclose(game.utility(masks), loop.utility(masks), atol=1e-6)
    assert isinstance(game._solver, LogisticSolver)
    assert game._solver._max_dual_rows == 10


def test_weighted_rows_are_not_solved_in_the_dual(rng):
    X, y, X_val, y_val = problem(rng, n=30, d=8)
    game = ModelGame(
        LogisticRegression(), X, y, X_val, y_val, sample_weight=rng.random(30)
    )
    game.utility(coalitions(rng, 30, 3))
    assert game._solver._max_dual_rows == 0
