"""Counts in balls and sums over them against a mask of exact distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import config_context

from skvalue.neighbors import balls, get_engine, make_space


def ball(engine, X, y, Q, radius, metric="euclidean", self_index=None, n_classes=3):
    weights = np.arange(1.0, n_classes * len(Q) + 1).reshape(n_classes, len(Q))
    found = balls(
        get_engine(engine), make_space(X, metric, y, n_classes), Q, radius, self_index
    )
    return found.sum(weights), found.counts, weights


def check(result, mask, y):
    values, counts, weights = result
    expected = np.stack([mask[:, y == c].sum(axis=1) for c in range(len(counts))])
    np.testing.assert_array_equal(counts, expected)
    np.testing.assert_allclose(values, (mask * weights[y].T).sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ball_is_closed(engine, rng, dtype):
    for n in (1, 7, 8, 9, 600):
        X, Q = rng.integers(-3, 4, (n, 2)), rng.integers(-3, 4, (10, 2))
        y = rng.integers(0, 3, n)
        squares = cdist(Q, X, "sqeuclidean")
        for square in (0, 1, 2, 5, 8):
            result = ball(engine, X.astype(dtype), y, Q.astype(dtype), np.sqrt(square))
            check(result, squares <= square, y)


def test_boundary_far_from_the_origin(engine, rng):
    # In float32 the product rounds by about 1 here: only the rows themselves can
    # decide.
    X = (rng.integers(-3, 4, (300, 2)) + 4096).astype(np.float32)
    Q = (rng.integers(-3, 4, (9, 2)) + 4096).astype(np.float32)
    y = rng.integers(0, 3, 300)
    check(ball(engine, X, y, Q, 2.0), cdist(Q, X, "sqeuclidean") <= 4, y)


def test_rows_of_one_number_all_over(engine, rng):
    # Every term of a float32 product rounds one way: by more than sqrt(d) times its
    # precision.
    X = np.repeat(np.linspace(1, 2, 301, dtype=np.float32)[:, None], 384, axis=1)
    Q = X[::2] + np.eye(1, 384, dtype=np.float32) / 2
    y = rng.integers(0, 3, len(X))
    # Far rows on the other side keep the products around the origin.
    far = -3 * X[::2]
    rows, labels = (
        np.concatenate([X, far]),
        np.concatenate([y, np.zeros(len(far), int)]),
    )
    squares = cdist(Q, rows, "sqeuclidean")
    for radius in (0.4994, 0.4996, 0.4998, 0.5):
        check(ball(engine, rows, labels, Q, radius), squares <= radius**2, labels)


@pytest.mark.parametrize(("memory", "workers"), [(1024, 3), (0, 1)])
def test_tiles_look_like_one(engine, rng, memory, workers):
    """All counts are there before the first weight, and few bits are kept where memory
    is short."""
    X, y, Q = (
        rng.normal(size=(400, 3)),
        rng.integers(0, 2, 400),
        rng.normal(size=(700, 3)),
    )
    working, mask = get_engine(engine, "cpu"), cdist(Q, X) <= 1
    space = make_space(X, "euclidean", y, 2)
    with config_context(working_memory=memory or 0.1):
        found = balls(working, space, Q, 1.0, n_jobs=workers)
        weights = found.counts[::-1] + 1.0
        check((found.sum(weights), found.counts, weights), mask, y)
        with pytest.raises((ValueError, IndexError, RuntimeError, AssertionError)):
            _ = balls(working, space, Q[:, :2], 1.0, n_jobs=workers).counts


def test_cosine(engine, rng):
    X, Q, y = (
        rng.normal(size=(500, 5)),
        rng.normal(size=(12, 5)),
        rng.integers(0, 3, 500),
    )
    X[0] = 0
    D = 1 - Q @ X.T / np.outer(
        np.linalg.norm(Q, axis=1), np.maximum(np.linalg.norm(X, axis=1), 1e-9)
    )
    check(ball(engine, X, y, Q, 0.5, "cosine"), D <= 0.5, y)
    check(ball(engine, X, y, X[1:4], 0.0, "cosine"), np.eye(500, dtype=bool)[1:4], y)


def test_other_metric(engine, rng):
    if engine == "faiss":
        pytest.skip("FAISS has Euclidean and cosine distances, and says so")
    X, Q = (
        rng.integers(0, 5, (70, 3)).astype(float),
        rng.integers(0, 5, (7, 3)).astype(float),
    )
    y = rng.integers(0, 3, 70)
    check(ball(engine, X, y, Q, 2.0, "manhattan"), cdist(Q, X, "cityblock") <= 2, y)


def test_a_row_is_not_in_its_own_ball(engine, rng):
    X, y = rng.integers(0, 3, (60, 2)).astype(float), rng.integers(0, 3, 60)
    mask = cdist(X, X, "sqeuclidean") <= 1
    np.fill_diagonal(mask, False)
    check(ball(engine, X, y, X, 1.0, self_index=np.arange(60)), mask, y)


def test_many_classes_and_an_absent_one(engine, rng):
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 40, 200)
    y[y == 7] = 8
    Q = rng.normal(size=(6, 2))
    check(ball(engine, X, y, Q, 1.0, n_classes=41), cdist(Q, X) <= 1, y)
