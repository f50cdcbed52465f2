"""Counts in balls and sums over them against a mask of exact distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import config_context

from skvalue.neighbors import balls, get_engine, make_space


def find_balls(engine, X, y, Q, radius, metric="euclidean", **options):
    """The balls around points Q, for rows X of three classes y."""
    space = make_space(X, metric, y, options.pop("n_classes", 3))
    return balls(get_engine(engine), space, Q, radius, **options)


def check(neighbours, mask, y):
    """Counts, and sums of different weights, are those of a mask (n_points, n_rows)."""
    counts = neighbours.counts
    of_class = [mask[:, y == code].sum(axis=1) for code in range(len(counts))]
    np.testing.assert_array_equal(counts, np.stack(of_class))
    weights = np.arange(1.0, counts.size + 1).reshape(counts.shape)
    expected = (mask * weights[y].T).sum(axis=0)
    np.testing.assert_allclose(neighbours.sum(weights), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 600])
def test_a_ball_is_closed(engine, rng, n, dtype):
    X = rng.integers(-3, 4, (n, 2))
    Q = rng.integers(-3, 4, (10, 2))
    y = rng.integers(0, 3, n)
    squares = cdist(Q, X, "sqeuclidean")
    for square in (0, 1, 2, 5, 8):
        radius = np.sqrt(square)
        neighbours = find_balls(engine, X.astype(dtype), y, Q.astype(dtype), radius)
        check(neighbours, squares <= square, y)


def test_a_ball_far_from_the_origin_is_closed(engine, rng):
    # In float32 the product rounds by about 1 here: only the rows themselves can
    # decide.
    X = (rng.integers(-3, 4, (300, 2)) + 4096).astype(np.float32)
    Q = (rng.integers(-3, 4, (9, 2)) + 4096).astype(np.float32)
    y = rng.integers(0, 3, 300)
    neighbours = find_balls(engine, X, y, Q, 2.0)
    check(neighbours, cdist(Q, X, "sqeuclidean") <= 4, y)


def test_rows_of_one_number_all_over_are_in_the_right_balls(engine, rng):
    # Every term of a float32 product rounds one way: by more than sqrt(d) times its
    # precision.
    X = np.repeat(np.linspace(1, 2, 301, dtype=np.float32)[:, None], 384, axis=1)
    Q = X[::2] + np.eye(1, 384, dtype=np.float32) / 2
    y = rng.integers(0, 3, len(X))
    # Far rows on the other side keep the products around the origin.
    far = -3 * X[::2]
    rows = np.concatenate([X, far])
    labels = np.concatenate([y, np.zeros(len(far), int)])
    squares = cdist(Q, rows, "sqeuclidean")
    for radius in (0.4994, 0.4996, 0.4998, 0.5):
        neighbours = find_balls(engine, rows, labels, Q, radius)
        check(neighbours, squares <= radius**2, labels)


@pytest.fixture
def many_points(rng):
    """Rows, labels and points that are more than one tile."""
    X = rng.normal(size=(400, 3))
    y = rng.integers(0, 2, 400)
    return X, y, rng.normal(size=(700, 3))


WAYS_TO_TILES = pytest.mark.parametrize(
    ("memory", "n_jobs"), [(1024, 3), (0.1, 1)], ids=["threads", "little memory"]
)


@WAYS_TO_TILES
def test_all_counts_of_several_tiles_are_there_before_the_first_weight(
    engine, many_points, memory, n_jobs
):
    X, y, Q = many_points
    space = make_space(X, "euclidean", y, 2)
    mask = cdist(Q, X) <= 1
    with config_context(working_memory=memory):
        neighbours = balls(get_engine(engine, "cpu"), space, Q, 1.0, n_jobs=n_jobs)
        weights = neighbours.counts[::-1] + 1.0
        sums = neighbours.sum(weights)
        check(neighbours, mask, y)
    expected = (mask * weights[y].T).sum(axis=0)
    np.testing.assert_allclose(sums, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("memory", "n_jobs", "n_parts"),
    [(1024, 3, 1), (0.1, 1, 1), (0.01, 1, 2)],
    ids=["threads", "tiles in memory", "tiles that do not fit in memory"],
)
def test_parts_have_the_balls_of_their_rows(
    engine, many_points, memory, n_jobs, n_parts, rng
):
    X, y, Q = many_points
    space = make_space(X, "euclidean", y, 2)
    mask = (cdist(Q, X) <= 1).T
    # Three integers of each class, and 18 weights, of which 16 are summed at a time.
    integers = rng.integers(-(2**52), 2**52, (2, 3, len(Q)))
    weights = rng.normal(size=(2, 18, len(Q))).astype(np.float32)
    integer_sums = np.zeros((3, len(X)), dtype=np.int64)
    sums = np.zeros((len(X), 18))
    n_rows = 0
    with config_context(working_memory=memory):
        neighbours = balls(get_engine(engine, "cpu"), space, Q, 1.0, n_jobs=n_jobs)
        parts = list(neighbours.parts())
        for rows, part in parts:
            n_rows += rows.stop - rows.start
            some = np.array([3, 0, 1])
            np.testing.assert_array_equal(part.members(some), mask[rows][some])
            check(part, mask[rows].T, y[rows])
            for code, block in part.row_blocks():
                prepared = part.prepared(integers[code], weights[code])
                index, integers_of_block, of_block = part.block_sums(block, prepared)
                assert (y[rows][index] == code).all()
                integer_sums[:, rows.start + index] += integers_of_block
                sums[rows.start + index] += of_block
    assert n_rows == len(X)
    assert len(parts) >= n_parts
    expected = np.einsum("iv,ikv->ik", mask, weights[y].astype(np.float64))
    np.testing.assert_allclose(sums, expected, atol=1e-4)
    expected = np.einsum("iv,ikv->ki", mask, integers[y])
    np.testing.assert_array_equal(integer_sums, expected)


@WAYS_TO_TILES
def test_the_error_of_a_tile_is_raised(engine, many_points, memory, n_jobs):
    X, y, Q = many_points
    space = make_space(X, "euclidean", y, 2)
    too_narrow = Q[:, :2]
    engine = get_engine(engine, "cpu")
    errors = (ValueError, IndexError, RuntimeError, AssertionError)
    with config_context(working_memory=memory), pytest.raises(errors):
        _ = balls(engine, space, too_narrow, 1.0, n_jobs=n_jobs).counts


@pytest.fixture
def directions(rng):
    """Rows, the first of which is zero, points and labels."""
    X = rng.normal(size=(500, 5))
    Q = rng.normal(size=(12, 5))
    y = rng.integers(0, 3, 500)
    X[0] = 0
    return X, y, Q


def test_cosine_balls_have_rows_of_zeros_at_distance_one(engine, directions):
    X, y, Q = directions
    norms = np.maximum(np.linalg.norm(X, axis=1), 1e-9)
    distances = 1 - Q @ X.T / np.outer(np.linalg.norm(Q, axis=1), norms)
    neighbours = find_balls(engine, X, y, Q, 0.5, "cosine")
    check(neighbours, distances <= 0.5, y)


def test_a_cosine_ball_of_radius_zero_has_the_row_itself(engine, directions):
    X, y, _ = directions
    neighbours = find_balls(engine, X, y, X[1:4], 0.0, "cosine")
    check(neighbours, np.eye(500, dtype=bool)[1:4], y)


def test_balls_of_a_metric_without_a_product(engine, rng):
    if engine == "faiss":
        pytest.skip("FAISS has Euclidean and cosine distances, and says so")
    X = rng.integers(0, 5, (70, 3)).astype(float)
    Q = rng.integers(0, 5, (7, 3)).astype(float)
    y = rng.integers(0, 3, 70)
    neighbours = find_balls(engine, X, y, Q, 2.0, "manhattan")
    check(neighbours, cdist(Q, X, "cityblock") <= 2, y)


def test_a_row_is_not_in_its_own_ball(engine, rng):
    X = rng.integers(0, 3, (60, 2)).astype(float)
    y = rng.integers(0, 3, 60)
    mask = cdist(X, X, "sqeuclidean") <= 1
    np.fill_diagonal(mask, False)
    neighbours = find_balls(engine, X, y, X, 1.0, self_index=np.arange(60))
    check(neighbours, mask, y)


def test_many_classes_of_which_one_has_no_row(engine, rng):
    X = rng.normal(size=(200, 2))
    y = rng.integers(0, 40, 200)
    y[y == 7] = 8
    Q = rng.normal(size=(6, 2))
    neighbours = find_balls(engine, X, y, Q, 1.0, n_classes=41)
    check(neighbours, cdist(Q, X) <= 1, y)
