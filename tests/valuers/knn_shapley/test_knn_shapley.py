"""KNN-Shapley against enumeration, and what its parameters promise."""

from functools import partial

import numpy as np
import pytest
from oracles import enumerate_game, grid_game, knn_utility
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from skvalue import KNNShapleyValuer, TKNNShapleyValuer

# The values ---------------------------------------------------------------------------


def enumerate_knn(game_rows, k, utility, n_classes, weights=None):
    """Values of the rows by all coalitions."""
    X, y, X_val, y_val = game_rows
    prior = y_val.mean() if weights is None else y_val @ weights
    game = partial(knn_utility, k=k, utility=utility, n_classes=n_classes, prior=prior)
    return enumerate_game(game, X, y, X_val, y_val, weights, metric="sqeuclidean")


@pytest.mark.parametrize("utility", ["soft", "original"])
@pytest.mark.parametrize("n_classes", [0, 2, 3, 4])
@pytest.mark.parametrize("n_games", [15, pytest.param(500, marks=pytest.mark.slow)])
def test_values_are_those_of_enumeration(engines, rng, n_games, n_classes, utility):
    # Grids give ties, duplicates and whole games of tied rows; n_classes = 0 is a
    # regression.
    for number in range(n_games):
        n = rng.choice([2, 3, 5, 6])
        side = rng.choice([1, 2, 3, 9])
        if number == 0:
            n = 9
        k = rng.choice([1, 2, 3, n - 1 or 1, n, n + 2])
        engine = engines[number % len(engines)]
        X, y, X_val, y_val = grid_game(rng, n, 3, n_classes, side)
        valuer = KNNShapleyValuer(k, engine=engine, utility=utility)
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
        expected = enumerate_knn((X, y, X_val, y_val), k, utility, min(n, n_classes))
        message = f"n={n}, side={side}, k={k}, {engine}"
        np.testing.assert_allclose(
            valuer.values_, expected, 1e-12, 1e-12, err_msg=message
        )


@pytest.mark.parametrize("n_classes", [0, 3])
def test_validation_weights_weight_the_mean_over_points(rng, n_classes):
    X, y, X_val, y_val = grid_game(rng, 6, 4, n_classes)
    weights = np.array([1.0, 0.0, 2.0, 5.0])
    valuer = KNNShapleyValuer(2)
    valuer.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weights)
    expected = enumerate_knn((X, y, X_val, y_val), 2, "soft", n_classes, weights / 8)
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


@pytest.mark.parametrize("utility", ["soft", "original"])
def test_held_out_targets_have_the_prior_of_all_rows(rng, utility):
    # Every row is the validation point of all others.
    X, y, *_ = grid_game(rng, 6, 1, 0)
    game = partial(knn_utility, k=2, utility=utility, n_classes=0, prior=y.mean())
    expected = np.zeros(6)
    for i in range(6):
        others = np.delete(np.arange(6), i)
        values = enumerate_game(
            game, X[others], y[others], X[[i]], y[[i]], metric="sqeuclidean"
        )
        expected[others] += values / 6
    valuer = KNNShapleyValuer(2, utility=utility).fit(X, y)
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


def test_the_recursion_of_the_paper_is_wrong_for_fewer_rows_than_neighbours():
    # Two rows, K = 4: the printed recursion gives (1.0, -0.5) here.
    X = np.array([[0.0], [1.0]])
    valuer = KNNShapleyValuer(4).fit(X, [1, 0], X_val=[[0.0]], y_val=[1])
    np.testing.assert_allclose(valuer.values_, [0.5, -0.5])


def test_the_recursion_of_the_paper_holds_for_many_rows(rng):
    # Wang and Jia (2023), Theorem 2, as printed, for N >= K and no ties.
    n = 200
    k = 7
    n_classes = 3
    X = rng.normal(size=(n, 2))
    y = rng.integers(0, n_classes, n)
    x = np.zeros(2)
    label = 1
    order = np.argsort(((X - x) ** 2).sum(axis=1))
    m = (y[order] == label).astype(float)
    s = np.empty(n)
    s[-1] = (m[-1] - m[:-1].sum() / (n - 1)) / n * sum(1 / (j + 1) for j in range(1, k))
    s[-1] += (m[-1] - 1 / n_classes) / n
    for i in range(n - 1, 0, -1):
        weight = sum(1 / j for j in range(1, k + 1)) + (min(i, k) * (n - 1) / i - k) / k
        s[i - 1] = s[i] + (m[i - 1] - m[i]) / (n - 1) * weight
    valuer = KNNShapleyValuer(k).fit(X, y, X_val=[x], y_val=[label])
    np.testing.assert_allclose(valuer.values_[order], s, atol=1e-13)


def test_the_bound_of_max_rank_is_nearly_reached():
    # All rows near the point match and none far away does, except for the last rank
    # used.
    n = 200
    max_rank = 10
    X = np.arange(n, dtype=float)[:, None]
    y = np.r_[np.zeros(max_rank), 1, np.zeros(n - max_rank - 1)]
    points = {"X_val": [[-1.0]], "y_val": [1.0]}
    exact = KNNShapleyValuer(1).fit(X, y, **points).values_
    valuer = KNNShapleyValuer(1, max_rank=max_rank).fit(X, y, **points)
    assert np.abs(valuer.values_ - exact).max() > 0.5 * valuer.truncation_error_


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_task_overrides_the_type_of_the_target(rng, task):
    X = rng.normal(size=(30, 2))
    y = rng.integers(0, 3, 30)
    valuer = KNNShapleyValuer(task=task).fit(X, y)
    assert hasattr(valuer, "classes_") == (task == "classification")
    assert (valuer.utility_ > 0) == (task == "classification")


# Distances ----------------------------------------------------------------------------


def test_float32_far_from_the_origin_keeps_ties(rng):
    # Rounding around a center that is no float of few digits must not break ties.
    for _ in range(25):
        X = rng.integers(-2, 3, (90, 2)).astype(np.float32)
        X_val = rng.integers(-2, 3, (20, 2)).astype(np.float32)
        y = rng.integers(0, 3, 90)
        y_val = rng.integers(0, 2, 20)
        near = KNNShapleyValuer(3).fit(X, y, X_val=X_val, y_val=y_val)
        X_far = X + np.float32(1e3)
        far = KNNShapleyValuer(3).fit(X_far, y, X_val=X_val + 1e3, y_val=y_val)
        np.testing.assert_allclose(far.values_, near.values_, rtol=1e-12, atol=1e-15)


SCIPY_METRICS = pytest.mark.parametrize(
    "metric",
    ["braycurtis", "canberra", "chebyshev", "correlation", "hamming", "sqeuclidean"],
)


@pytest.fixture
def rows_that_share_numbers(rng):
    X = rng.normal(size=(6, 4))
    X_val = rng.normal(size=(3, 4))
    X[1] = X[0]
    X[2, 0] = X_val[0, 0]
    return X, np.array([0, 1, 1, 0, 1, 0]), X_val, np.array([0, 1, 1])


@SCIPY_METRICS
def test_values_for_a_metric_of_scipy_are_those_of_enumeration(
    metric, rows_that_share_numbers
):
    X, y, X_val, y_val = rows_that_share_numbers
    valuer = KNNShapleyValuer(2, metric=metric).fit(X, y, X_val=X_val, y_val=y_val)
    game = partial(knn_utility, k=2, utility="soft", n_classes=2, prior=0)
    expected = enumerate_game(game, X, y, X_val, y_val, metric=metric)
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


@SCIPY_METRICS
def test_balls_of_a_metric_of_scipy_have_its_distances(metric, rows_that_share_numbers):
    X, y, X_val, y_val = rows_that_share_numbers
    valuer = TKNNShapleyValuer(0.9, metric=metric).fit(X, y, X_val=X_val, y_val=y_val)
    expected = (cdist(X_val, X, metric) <= 0.9).sum(axis=1)
    np.testing.assert_array_equal(valuer.counts_.sum(axis=0), expected)


def test_rows_without_a_distance_are_refused():
    X = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0]])
    message = "metric must give finite .* from metric='correlation'"
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer(metric="correlation").fit(X, [0, 1, 1])


# What is refused ----------------------------------------------------------------------


@pytest.fixture
def targets(rng):
    """Rows and targets between -1 and 1."""
    return rng.normal(size=(20, 2)), rng.uniform(-1, 1, 20)


def test_targets_whose_squares_fit_have_finite_values(targets):
    X, y = targets
    points = {"X_val": X[:5], "y_val": -5e74 * y[:5]}
    valuer = KNNShapleyValuer(task="regression").fit(X, 5e74 * y, **points)
    assert np.isfinite(valuer.values_).all()
    assert np.isfinite(valuer.validation_error_).all()
    assert np.isfinite(valuer.utility_)


# The warning is from type_of_target.
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_targets_whose_squares_are_too_large_are_refused(targets):
    X, y = targets
    too_large = y.copy()
    # As a number that marks a missing target.
    too_large[3] = 1e300
    valuer = KNNShapleyValuer(task="regression")
    message = "y must be at most .* in absolute value.* Got 1e.300"
    with pytest.raises(ValueError, match=message):
        valuer.fit(X, too_large, X_val=X[:5], y_val=-5e74 * y[:5])
    with pytest.raises(ValueError, match="y_val must be at most .* in absolute value"):
        valuer.fit(X, too_large / 1e300, X_val=X, y_val=too_large)


HARD = {"utility": "hard"}
TWO_PARAMETERS = r"\(alpha, beta\) of numbers from 1e-06 to 1e\+300. Got \(1, -1\)"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "'n_neighbors' parameter"),
        ({"utility": "harder"}, "'utility' parameter"),
        ({"engine": "abacus"}, "'engine' parameter"),
        ({"metric": "hamming distance"}, "'metric' parameter"),
        ({"max_rank": 4}, "max_rank must be at least n_neighbors=5. Got 4"),
        ({"max_rank": "auto"}, "tol must be a number with max_rank='auto'.* Got None"),
        (
            {"max_rank": 7, "tol": 0.1},
            "tol must be None unless max_rank='auto'.* Got tol=0.1",
        ),
        ({"max_rank": "auto", "tol": -1.0}, "'tol' parameter"),
        ({"semivalue": "shapely"}, "semivalue must be"),
        ({"semivalue": (1, -1)}, TWO_PARAMETERS),
        (
            {"semivalue": "banzhaf", "min_coalition": 2},
            "min_coalition needs semivalue='shapley'",
        ),
        ({"min_coalition": 11}, "min_coalition must be .* 11. Got 11"),
        ({"weights": "distance"}, "weights needs utility='hard'. Got 'distance'"),
        ({"weights": "wide"}, "'weights' parameter"),
        (HARD | {"max_rank": 8}, "max_rank must be None with utility='hard'. Got 8"),
        (
            HARD | {"max_rank": "auto", "tol": 0.1},
            "max_rank must be None with utility='hard'",
        ),
        (
            HARD | {"min_coalition": 2},
            "min_coalition must be 0 with utility='hard'. Got 2",
        ),
        (HARD | {"n_bits": 0}, "'n_bits' parameter"),
        (HARD | {"engine": "torch"}, "engine must be 'native' or 'auto'.* Got 'torch'"),
    ],
    ids=str,
)
def test_parameters_that_do_not_fit_are_refused(rng, parameters, message):
    if parameters.get("engine") == "torch":
        pytest.importorskip("torch")
    X = rng.normal(size=(12, 2))
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer(**parameters).fit(X, np.arange(12) % 2)


def test_a_coalition_of_all_others_but_one_is_accepted(rng):
    X = rng.normal(size=(12, 2))
    valuer = KNNShapleyValuer(min_coalition=10).fit(X, np.arange(12) % 2)
    assert np.isfinite(valuer.values_).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_rank": 9}, "max_rank must be None for a regression.* Got 9"),
        (
            {"max_rank": "auto", "tol": 0.1},
            "max_rank must be None for a regression.* Got 'auto'",
        ),
        ({"task": "classification"}, "y must hold classes when task="),
        (HARD, "utility must not be 'hard' for a regression.* Got 'hard'"),
    ],
    ids=str,
)
def test_parameters_for_classes_are_refused_for_targets(rng, parameters, message):
    X = rng.normal(size=(12, 2))
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer(**parameters).fit(X, np.arange(12) % 2 + 0.5)


def test_votes_of_sparse_rows_are_refused(rng):
    X = csr_array(rng.normal(size=(12, 2)))
    with pytest.raises(ValueError, match="utility must not be 'hard' for sparse"):
        KNNShapleyValuer(utility="hard").fit(X, np.arange(12) % 2)


def test_votes_of_sparse_distances_are_refused(rng):
    X = rng.normal(size=(12, 2))
    y = np.arange(12) % 2
    valuer = KNNShapleyValuer(utility="hard", metric="precomputed")
    points = {"X_val": csr_array(cdist(X[:3], X)), "y_val": y[:3]}
    with pytest.raises(ValueError, match="utility must not be 'hard' for sparse"):
        valuer.fit(cdist(X, X), y, **points)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("unit", [1e20, 1e50])
def test_values_of_large_targets_have_the_square_of_their_unit(rng, unit):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    valuer = KNNShapleyValuer(3).fit(X, y, X_val=X + 0.1, y_val=y)
    of_large = KNNShapleyValuer(3).fit(X, unit * y, X_val=X + 0.1, y_val=unit * y)
    np.testing.assert_allclose(
        of_large.values_ / unit**2, valuer.values_, rtol=1e-6, atol=1e-12
    )
