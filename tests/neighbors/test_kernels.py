"""Compiled loops of neighbours by themselves: all kinds and numbers of rows.

The oracles are plain Python of the definitions.
"""

import itertools

import numpy as np
import pytest

from skvalue.neighbors.kernels import ball, rank, ties
from skvalue.neighbors.kernels.kinds import COSINE, EUCLIDEAN, GENERIC

# Around the numbers of points that a register holds, of float64, float32 and bytes.
NUMBERS_OF_POINTS = [0, 1, 7, 8, 9, 15, 16, 17, 65, 131]
LABEL_TYPES = [np.uint8, np.uint16, np.uint32, np.int64]
REAL_TYPES = [np.float32, np.float64]
each_number_of_points = pytest.mark.parametrize("n_points", NUMBERS_OF_POINTS)
each_real_type = pytest.mark.parametrize("dtype", REAL_TYPES)
each_label_type = pytest.mark.parametrize("label_type", LABEL_TYPES)


def read_only(array):
    """A copy that cannot be written, as rows of users may be."""
    copy = np.ascontiguousarray(array).copy()
    copy.flags.writeable = False
    return copy


def bits_of(inside):
    """A mask (n_blocks * 8, n_points) as bytes, a bit for each row of a block."""
    blocks = inside.reshape(len(inside) // 8, 8, inside.shape[1])
    return np.packbits(blocks, axis=1, bitorder="little")[:, 0]


# Balls --------------------------------------------------------------------------------


def pack(rng, n_points, dtype, slack, n_blocks=3, kind=EUCLIDEAN):
    """Balls of rows on a grid, whose distances tie with the radius.

    Returns the bits and counts of `pack_blocks`, and the mask of the definition.
    """
    n_rows = 8 * n_blocks
    rows = rng.integers(-2, 3, (n_rows, 2)).astype(dtype)
    points = rng.integers(-2, 3, (n_points, 2)).astype(dtype)
    square = 4.0
    classes = np.arange(n_blocks) % 2
    order = np.arange(n_rows)
    half = (rows**2).sum(axis=1) / 2
    # The last row is padding, which is in no ball.
    half[n_rows - 1 :] = np.inf
    order[n_rows - 1 :] = -1
    threshold = ((points**2).sum(axis=1) - square) / 2
    bits = np.full((n_blocks, n_points), 99, dtype=np.uint8)
    counts = np.zeros((2, n_points), dtype=np.int64)
    ball.pack_blocks(
        kind,
        read_only(rows @ points.T),
        half=half.astype(dtype),
        slack=np.full(n_blocks, slack, dtype=dtype),
        threshold=threshold.astype(dtype),
        point_slack=np.full(n_points, slack, dtype=dtype),
        order=order,
        rows=read_only(rows),
        queries=read_only(points),
        limit=square,
        block_class=classes,
        bits=bits,
        counts=counts,
    )
    inside = ((rows[:, None] - points) ** 2).sum(axis=2) <= square
    inside[n_rows - 1 :] = False
    of_class = np.repeat(classes, 8)
    expected_counts = np.stack([inside[of_class == c].sum(axis=0) for c in (0, 1)])
    return bits, counts, inside, expected_counts


@each_number_of_points
@each_real_type
@pytest.mark.parametrize("slack", [0.0, 1.0], ids=["sure", "doubtful"])
def test_blocks_are_packed_as_exact_distances_say(n_points, dtype, slack, rng):
    bits, counts, inside, expected_counts = pack(rng, n_points, dtype, slack)
    np.testing.assert_array_equal(bits, bits_of(inside))
    np.testing.assert_array_equal(counts, expected_counts)


@each_real_type
@pytest.mark.parametrize("n_blocks", [0, 1])
def test_few_blocks_are_packed(n_blocks, dtype, rng):
    bits, counts, inside, expected_counts = pack(rng, 9, dtype, 1.0, n_blocks)
    np.testing.assert_array_equal(bits, bits_of(inside))
    np.testing.assert_array_equal(counts, expected_counts)


def test_distances_that_are_given_are_not_computed_again(rng):
    # Without a slack the comparison of the products decides, ties included.
    bits, counts, inside, expected_counts = pack(
        rng, 17, np.float64, slack=0.0, kind=GENERIC
    )
    np.testing.assert_array_equal(bits, bits_of(inside))
    np.testing.assert_array_equal(counts, expected_counts)


@each_number_of_points
@each_label_type
@pytest.mark.parametrize("n_rows", [0, 1, 11])
def test_rows_are_packed_where_they_belong(n_points, label_type, n_rows, rng):
    inside = rng.random((n_rows, n_points)) < 0.5
    labels = rng.integers(0, 3, n_rows).astype(label_type)
    position = rng.permutation(16)[:n_rows]
    bits = np.zeros((2, n_points), dtype=np.uint8)
    counts = np.zeros((3, n_points), dtype=np.int64)
    ball.pack_rows(inside.view(np.uint8), position, labels, bits, counts)

    expected = np.zeros((16, n_points), dtype=bool)
    expected[position] = inside
    np.testing.assert_array_equal(bits, bits_of(expected))
    for label in range(3):
        of_label = inside[labels == label].sum(axis=0)
        np.testing.assert_array_equal(counts[label], of_label)


@each_number_of_points
@each_label_type
def test_a_point_leaves_its_own_ball(n_points, label_type, rng):
    n_rows = 24
    inside = rng.random((n_rows, n_points)) < 0.5
    labels = rng.integers(0, 3, n_rows).astype(label_type)
    position = rng.permutation(n_rows)
    # Every third point is no row.
    own = rng.integers(0, n_rows, n_points)
    own[::3] = -1
    bits = bits_of(inside)
    counts = np.stack(
        [inside[position[labels == label]].sum(axis=0) for label in range(3)]
    )
    ball.remove_self(bits, counts, position, labels, own)

    for point, row in enumerate(own):
        if row >= 0:
            inside[position[row], point] = False
    np.testing.assert_array_equal(bits, bits_of(inside))
    for label in range(3):
        of_label = inside[position[labels == label]].sum(axis=0)
        np.testing.assert_array_equal(counts[label], of_label)


@each_number_of_points
@pytest.mark.parametrize("n_blocks", [0, 1, 3])
def test_sums_over_balls_are_those_of_the_mask(n_points, n_blocks, rng):
    inside = rng.random((8 * n_blocks, n_points)) < 0.5
    classes = np.arange(n_blocks) % 2
    numbers = rng.normal(size=8 * n_blocks)
    weights = rng.integers(-(2**50), 2**50, (2, n_points))
    bits = read_only(bits_of(inside).reshape(n_blocks, n_points))
    by_point = np.zeros(n_points)
    by_row = np.zeros(8 * n_blocks, dtype=np.int64)
    both = np.zeros((2, 8 * n_blocks), dtype=np.int64)
    n_balls = np.zeros(8 * n_blocks, dtype=np.int32)
    ball.add_rows(bits, numbers, by_point)
    ball.add_weights(bits, classes, weights, by_row)
    ball.add_weights_of_class(bits, weights, both)
    ball.count_balls(bits, n_balls)

    of_row = np.repeat(classes, 8)
    np.testing.assert_allclose(by_point, numbers @ inside, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(by_row, (inside * weights[of_row]).sum(axis=1))
    np.testing.assert_array_equal(both, weights @ inside.T)
    np.testing.assert_array_equal(n_balls, inside.sum(axis=1))


# Keys ---------------------------------------------------------------------------------


def key_of(kind, x, q):
    """Squared distance, or minus the cosine, 0 for a row of zeros."""
    x = x.astype(np.float64)
    q = q.astype(np.float64)
    if kind == EUCLIDEAN:
        return ((x - q) ** 2).sum()
    norms = np.linalg.norm(x) * np.linalg.norm(q)
    return -(x @ q) / norms if norms > 0 else 0.0


def some_pairs(rng, d, dtype, n_pairs):
    """Rows and points, a row of zeros among them, and pairs of them."""
    rows = rng.normal(size=(5, d)).astype(dtype)
    points = rng.normal(size=(4, d)).astype(dtype)
    rows[0] = 0
    i = rng.integers(0, 5, n_pairs)
    i[:1] = 0
    return rows, points, i, rng.integers(0, 4, n_pairs)


@each_real_type
@pytest.mark.parametrize("kind", [EUCLIDEAN, COSINE], ids=["euclidean", "cosine"])
@pytest.mark.parametrize("d", [0, 1, 7, 8, 9, 33])
@pytest.mark.parametrize("n_pairs", [0, 1, 12])
def test_exact_keys_are_those_of_the_definition(dtype, kind, d, n_pairs, rng):
    rows, points, i, v = some_pairs(rng, d, dtype, n_pairs)
    keys = ties.dense_keys(kind, read_only(rows), i, read_only(points), v)
    expected = [key_of(kind, rows[a], points[b]) for a, b in zip(i, v)]
    np.testing.assert_allclose(keys, expected, rtol=1e-12, atol=1e-13)


@each_real_type
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [EUCLIDEAN, COSINE], ids=["euclidean", "cosine"])
@pytest.mark.parametrize("d", [1, 7, 8, 9, 33])
@pytest.mark.parametrize("n_pairs", [0, 1, 12])
def test_keys_of_sparse_rows_have_the_bits_of_dense_ones(
    dtype, index_type, kind, d, n_pairs, rng
):
    sparse = pytest.importorskip("scipy.sparse")
    rows, points, i, v = some_pairs(rng, d, dtype, n_pairs)
    rows[rng.random(rows.shape) < 0.5] = 0
    arrays = []
    for dense, which in ((rows, i), (points, v)):
        table = sparse.csr_array(dense)
        arrays += [
            table.indptr.astype(index_type),
            table.indices.astype(index_type),
            read_only(table.data),
            which,
        ]
    keys = ties.sparse_keys(kind, *arrays, n_columns=d)
    np.testing.assert_array_equal(keys, ties.dense_keys(kind, rows, i, points, v))


@pytest.mark.parametrize("sizes", [[], [0], [1], [2, 0, 5], [40, 1, 100]])
def test_runs_are_sorted_by_themselves(sizes, rng):
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    keys = rng.integers(0, 9, starts[-1]).astype(float)
    places = ties.sort_runs(starts, keys)
    for start, stop in itertools.pairwise(starts):
        expected = start + np.argsort(keys[start:stop], kind="stable")
        np.testing.assert_array_equal(places[start:stop], expected)


# Ranks --------------------------------------------------------------------------------


def ranked(rng, n, n_points, dtype, max_rank):
    """The order and numbers of ranks of `rank_tile`, and the squared distances."""
    rows = rng.integers(-3, 4, (n, 2)).astype(dtype)
    points = rng.integers(-3, 4, (n_points, 2)).astype(dtype)
    squares = ((points[:, None].astype(float) - rows) ** 2).sum(axis=2)
    half = (rows.astype(float) ** 2).sum(axis=1) / 2
    params = ties.KeyParameters(
        kind=EUCLIDEAN,
        half=half.astype(dtype),
        scale=np.ones(n, dtype=dtype),
        rows=read_only(rows),
        tolerance=1e-5,
        far_tolerance=1e-5,
        largest_half=half.max(initial=0.0),
        mean_half=half.mean() if n else 0.0,
    )
    order = np.full((n_points, n), 99, dtype=np.int32)
    n_ranked = np.full(n_points, 99, dtype=np.int64)
    rank.rank_tile(
        params,
        read_only(points @ rows.T),
        queries=read_only(points),
        query_half=(points.astype(float) ** 2).sum(axis=1) / 2,
        absent_ptr=np.zeros(n_points + 1, dtype=np.int64),
        absent=np.empty(0, dtype=np.int64),
        max_rank=max_rank,
        head=n,
        work=rank.workspace(n, dtype),
        order=order,
        n_ranked=n_ranked,
    )
    return order, n_ranked, squares


@each_real_type
@pytest.mark.parametrize("n_points", [0, 1, 9])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 15, 16, 17, 300])
def test_rows_on_a_grid_are_ranked_with_their_ties(dtype, n_points, n, rng):
    order, n_ranked, squares = ranked(rng, n, n_points, dtype, max_rank=max(n, 1))
    for v in range(n_points):
        assert n_ranked[v] == n
        # A row that is tied with the one before it is written as its complement.
        is_tied = order[v] < 0
        rows = np.where(is_tied, ~order[v], order[v])
        np.testing.assert_array_equal(np.sort(rows), np.arange(n))
        steps = np.diff(squares[v, rows])
        assert (steps >= 0).all()
        np.testing.assert_array_equal(is_tied[1:], steps == 0)
