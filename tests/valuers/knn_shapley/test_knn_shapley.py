"""KNN-Shapley against enumeration, and what its parameters promise."""

from functools import partial

import numpy as np
import pytest
from oracles import enumerate_game, grid_game, knn_utility
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from skvalue import KNNShapleyValuer, TKNNShapleyValuer


def oracle(X, y, X_val, y_val, k, utility, n_classes, weights=None):
    prior = y_val.mean() if weights is None else y_val @ weights
    game = partial(knn_utility, k=k, utility=utility, n_classes=n_classes, prior=prior)
    return enumerate_game(game, X, y, X_val, y_val, weights, metric="sqeuclidean")


@pytest.mark.parametrize("utility", ["soft", "original"])
@pytest.mark.parametrize("n_classes", [0, 2, 3, 4])
@pytest.mark.parametrize("n_games", [15, pytest.param(500, marks=pytest.mark.slow)])
def test_equals_enumeration(engines, rng, n_games, n_classes, utility):
    # Grids give ties, duplicates and whole games of tied rows; n_classes = 0 is a
    # regression.
    for game in range(n_games):
        n, side = rng.choice([2, 3, 5, 6]), rng.choice([1, 2, 3, 9])
        n = 9 if game == 0 else n
        k, engine = (
            rng.choice([1, 2, 3, n - 1 or 1, n, n + 2]),
            engines[game % len(engines)],
        )
        X, y, X_val, y_val = grid_game(rng, n, 3, n_classes, side)
        expected = oracle(X, y, X_val, y_val, k, utility, min(n, n_classes))
        valuer = KNNShapleyValuer(k, engine=engine, utility=utility)
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
        message = f"n={n}, side={side}, k={k}, {engine}"
        np.testing.assert_allclose(
            valuer.values_, expected, 1e-12, 1e-12, err_msg=message
        )


@pytest.mark.parametrize("n_classes", [0, 3])
def test_validation_weights(rng, n_classes):
    X, y, X_val, y_val = grid_game(rng, 6, 4, n_classes)
    weights = np.array([1.0, 0.0, 2.0, 5.0])
    valuer = KNNShapleyValuer(2).fit(
        X, y, X_val=X_val, y_val=y_val, sample_weight_val=weights
    )
    expected = oracle(X, y, X_val, y_val, 2, "soft", n_classes, weights / 8)
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


@pytest.mark.parametrize("utility", ["soft", "original"])
def test_leave_one_out_regression(rng, utility):
    # Every row is the validation point of all others; the prior mean is that of all
    # rows.
    X, y, *_ = grid_game(rng, 6, 1, 0)
    expected = np.zeros(6)
    for i in range(6):
        rest = np.delete(np.arange(6), i)
        game = partial(knn_utility, k=2, utility=utility, n_classes=0, prior=y.mean())
        part = enumerate_game(
            game, X[rest], y[rest], X[[i]], y[[i]], metric="sqeuclidean"
        )
        expected[rest] += part / 6
    valuer = KNNShapleyValuer(2, utility=utility).fit(X, y)
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


def test_the_erratum_of_the_recursion():
    # Two rows, K = 4: the printed recursion gives (1.0, -0.5) here.
    X, y = np.array([[0.0], [1.0]]), np.array([1, 0])
    valuer = KNNShapleyValuer(4).fit(X, y, X_val=[[0.0]], y_val=[1])
    np.testing.assert_allclose(valuer.values_, [0.5, -0.5])


def test_soft_recursion_of_the_paper(rng):
    # Wang and Jia (2023), Theorem 2, as printed, for N >= K and no ties.
    n, k, n_classes = 200, 7, 3
    X, y = rng.normal(size=(n, 2)), rng.integers(0, n_classes, n)
    x, label = np.zeros(2), 1
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


def test_max_rank_bound_is_nearly_reached():
    # All rows near the point match and none far away does, except for the last rank
    # used.
    n, rank = 200, 10
    X, y = (
        np.arange(n, dtype=float)[:, None],
        np.r_[np.zeros(rank), 1, np.zeros(n - rank - 1)],
    )
    fit = dict(X_val=[[-1.0]], y_val=[1.0])
    exact = KNNShapleyValuer(1).fit(X, y, **fit).values_
    valuer = KNNShapleyValuer(1, max_rank=rank).fit(X, y, **fit)
    assert np.abs(valuer.values_ - exact).max() > 0.5 * valuer.truncation_error_


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_task_overrides_the_type_of_the_target(rng, task):
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    valuer = KNNShapleyValuer(task=task).fit(X, y)
    assert hasattr(valuer, "classes_") == (task == "classification")
    assert (valuer.utility_ > 0) == (task == "classification")


def test_float32_far_from_the_origin_keeps_ties(rng):
    # Rounding around a center that is no float of few digits must not break ties.
    for _ in range(25):
        X, X_val = (rng.integers(-2, 3, (n, 2)).astype(np.float32) for n in (90, 20))
        y, y_val = rng.integers(0, 3, 90), rng.integers(0, 2, 20)
        far = KNNShapleyValuer(3).fit(
            X + np.float32(1e3), y, X_val=X_val + 1e3, y_val=y_val
        )
        near = KNNShapleyValuer(3).fit(X, y, X_val=X_val, y_val=y_val)
        np.testing.assert_allclose(far.values_, near.values_, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "metric",
    ["braycurtis", "canberra", "chebyshev", "correlation", "hamming", "sqeuclidean"],
)
def test_metrics_of_scipy(metric, rng):
    X, X_val = rng.normal(size=(6, 4)), rng.normal(size=(3, 4))
    X[1], X[2, 0] = X[0], X_val[0, 0]
    y, y_val = np.array([0, 1, 1, 0, 1, 0]), np.array([0, 1, 1])
    valuer = KNNShapleyValuer(2, metric=metric).fit(X, y, X_val=X_val, y_val=y_val)
    game = partial(knn_utility, k=2, utility="soft", n_classes=2, prior=0)
    expected = enumerate_game(game, X, y, X_val, y_val, metric=metric)
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)
    balls = TKNNShapleyValuer(0.9, metric=metric).fit(X, y, X_val=X_val, y_val=y_val)
    expected = (cdist(X_val, X, metric) <= 0.9).sum(axis=1)
    np.testing.assert_array_equal(balls.counts_.sum(axis=0), expected)


def test_rows_without_a_distance_are_refused():
    X, y = np.array([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0]]), [0, 1, 1]
    with pytest.raises(
        ValueError, match="metric must give finite .* from metric='correlation'"
    ):
        KNNShapleyValuer(metric="correlation").fit(X, y)


@pytest.mark.filterwarnings(
    "ignore:invalid value encountered in cast"
)  # type_of_target
def test_targets_whose_squares_are_too_large_are_refused(rng):
    X, y = rng.normal(size=(20, 2)), rng.uniform(-1, 1, 20)
    public = dict(X_val=X[:5], y_val=-5e74 * y[:5])
    valuer = KNNShapleyValuer(task="regression").fit(X, 5e74 * y, **public)
    assert np.isfinite(
        [*valuer.values_, *valuer.validation_error_, valuer.utility_]
    ).all()
    y[3] = 1e300  # as one that marks a missing target
    with pytest.raises(
        ValueError, match="y must be at most .* in absolute value.* Got 1e.300"
    ):
        valuer.fit(X, y, **public)
    with pytest.raises(ValueError, match="y_val must be at most .* in absolute value"):
        valuer.fit(X, y / 1e300, X_val=X, y_val=y)


HARD = dict(utility="hard")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (dict(n_neighbors=0), "'n_neighbors' parameter"),
        (dict(utility="harder"), "'utility' parameter"),
        (dict(engine="abacus"), "'engine' parameter"),
        (dict(metric="hamming distance"), "'metric' parameter"),
        (dict(max_rank=4), "max_rank must be at least n_neighbors=5. Got 4"),
        (
            dict(max_rank="auto"),
            "tol must be a number with max_rank='auto'.* Got None",
        ),
        (
            dict(max_rank=7, tol=0.1),
            "tol must be None unless max_rank='auto'.* Got tol=0.1",
        ),
        (dict(max_rank="auto", tol=-1.0), "'tol' parameter"),
        (dict(semivalue="shapely"), "semivalue must be"),
        (
            dict(semivalue=(1, -1)),
            r"\(alpha, beta\) of numbers from 1e-06 to 1e\+300. Got \(1, -1\)",
        ),
        (
            dict(semivalue="banzhaf", min_coalition=2),
            "min_coalition needs semivalue='shapley'",
        ),
        (dict(min_coalition=11), "min_coalition must be .* 11. Got 11"),
        (dict(weights="distance"), "weights needs utility='hard'. Got 'distance'"),
        (dict(weights="wide"), "'weights' parameter"),
        (HARD | dict(max_rank=8), "max_rank must be None with utility='hard'. Got 8"),
        (
            HARD | dict(max_rank="auto", tol=0.1),
            "max_rank must be None with utility='hard'",
        ),
        (
            HARD | dict(min_coalition=2),
            "min_coalition must be 0 with utility='hard'. Got 2",
        ),
        (HARD | dict(n_bits=0), "'n_bits' parameter"),
        (HARD | dict(engine="torch"), "engine must be 'numba' or 'auto'.* Got 'torch'"),
    ],
    ids=str,
)
def test_refused_parameters(rng, parameters, message):
    if parameters.get("engine") == "torch":
        pytest.importorskip("torch")
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer(**parameters).fit(rng.normal(size=(12, 2)), np.arange(12) % 2)


def test_refused_data(rng):
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    KNNShapleyValuer(min_coalition=10).fit(X, y)  # one less is accepted
    for parameters, message in [
        (dict(max_rank=9), "max_rank must be None for a regression.* Got 9"),
        (
            dict(max_rank="auto", tol=0.1),
            "max_rank must be None for a regression.* Got 'auto'",
        ),
        (dict(task="classification"), "y must hold classes when task="),
        (HARD, "utility must not be 'hard' for a regression.* Got 'hard'"),
    ]:
        with pytest.raises(ValueError, match=message):
            KNNShapleyValuer(**parameters).fit(X, y + 0.5)
    with pytest.raises(ValueError, match="utility must not be 'hard' for sparse"):
        KNNShapleyValuer(utility="hard").fit(csr_array(X), y)
    precomputed = KNNShapleyValuer(utility="hard", metric="precomputed")
    with pytest.raises(ValueError, match="utility must not be 'hard' for sparse"):
        precomputed.fit(cdist(X, X), y, X_val=csr_array(cdist(X[:3], X)), y_val=y[:3])
