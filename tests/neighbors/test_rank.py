"""Ranks of neighbours against a full sort of exact distances."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from skvalue.neighbors import (
    as_rows,
    ball_tiles,
    get_engine,
    make_space,
    rank_tiles,
    ranks,
)


class PointRanks(NamedTuple):
    """The ranked rows of one point, and which are tied with the one before."""

    order: np.ndarray
    tied: np.ndarray


def rank(engine, X, Q, metric="euclidean", self_index=None, max_rank=None):
    """The `PointRanks` of all points Q among rows X."""
    space = make_space(X, metric)
    by_point = [None] * len(Q)
    for places, order in ranks(get_engine(engine), space, Q, self_index, max_rank):
        for v, rows, n in zip(places, order.rows, order.n_ranked):
            is_tied = rows < 0
            by_point[v] = PointRanks(np.where(is_tied, ~rows, rows)[:n], is_tied[:n])
    return by_point


def check(by_point, distances, exact_up_to=None):
    """Same distances in the same order, ties exactly where distances are equal."""
    head = slice(None, exact_up_to)
    for (order, tied), d in zip(by_point, distances):
        ranked = d[order]
        np.testing.assert_array_equal(ranked[head], np.sort(d)[: len(order)][head])
        is_equal = np.r_[False, np.diff(ranked) == 0]
        np.testing.assert_array_equal(tied[head], is_equal[head])
        assert len(set(order)) == len(order)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 2000])
def test_order_of_integers_is_exact(engine, rng, n, dtype):
    X = rng.integers(-4, 5, (n, 3))
    Q = rng.integers(-4, 5, (11, 3))
    by_point = rank(engine, X.astype(dtype), Q.astype(dtype))
    check(by_point, cdist(Q, X, "sqeuclidean"), exact_up_to=1000)


@pytest.mark.parametrize("shift", [0, 1e3, 1e6])
def test_duplicates_far_from_the_origin_are_tied(engine, rng, shift):
    base = rng.normal(size=(40, 6)) + shift
    X = base[rng.integers(0, 40, 400)]
    Q = base[:5] + 0.1
    by_point = rank(engine, X, Q)
    check(by_point, ((base[:5, None] + 0.1 - X) ** 2).sum(axis=2))


def test_float32_order_is_that_of_float64_where_it_matters(engine, rng):
    X = rng.normal(size=(5000, 40)).astype(np.float32)
    Q = rng.normal(size=(20, 40)).astype(np.float32)
    exact = np.argsort(cdist(Q, X, "sqeuclidean"), axis=1)
    order = np.array([point.order for point in rank(engine, X, Q)])
    assert np.mean(order[:, :500] == exact[:, :500]) > 0.999


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_outliers_do_not_blur_the_other_ranks(engine, rng, scale):
    # One far row stretches the range of distances; the others crowd into one bin of the
    # sort.
    X = np.concatenate([rng.normal(size=(2000, 2)), [[scale, scale]]])
    Q = X[:6] + 1e-3
    check(rank(engine, X, Q), cdist(Q, X, "sqeuclidean"), exact_up_to=1000)


def test_equal_rows_are_all_tied(engine):
    X = np.ones((300, 2))
    order, tied = rank(engine, X, np.zeros((3, 2)))[0]
    assert sorted(order) == list(range(300))
    assert tied[1:].all()
    assert not tied[0]


def test_a_row_does_not_rank_itself(engine, rng):
    X = rng.integers(0, 3, (50, 2)).astype(float)
    by_point = rank(engine, X, X, self_index=np.arange(50))
    for i, point in enumerate(by_point):
        assert sorted(point.order) == [j for j in range(50) if j != i]


def test_a_point_that_is_no_row_ranks_all_rows(engine):
    self_index = np.array([3, -1])
    by_point = rank(engine, np.ones((40, 2)), np.ones((2, 2)), self_index=self_index)
    assert [len(point.order) for point in by_point] == [39, 40]


@pytest.mark.parametrize("n", [30, 2000])
def test_max_rank_keeps_ties_across_the_cut(engine, rng, n):
    X = rng.integers(0, 4, (n, 2)).astype(float)
    Q = rng.integers(0, 4, (9, 2)).astype(float)
    distances = cdist(Q, X, "sqeuclidean")
    for max_rank in (1, 3, 10, n):
        by_point = rank(engine, X, Q, max_rank=max_rank)
        check(by_point, distances)
        for point, d in zip(by_point, distances):
            cut = np.sort(d)[max_rank - 1]
            assert sorted(point.order) == sorted(np.flatnonzero(d <= cut))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_does_not_cut_ties_of_all_rows(engine, rng, dtype):
    # All cosines are 1 but for the rounding of the product, which is all that the keys
    # differ by.
    X = (1 + rng.random((60, 1))).astype(dtype)
    Q = (1 + rng.random((20, 1))).astype(dtype)
    for max_rank in (1, 20, 59, 60):
        for order, tied in rank(engine, X, Q, "cosine", max_rank=max_rank):
            assert sorted(order) == list(range(60))
            assert tied[1:].all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_does_not_cut_ties_of_copies(engine, rng, dtype):
    # Keys of copies differ by rounding, here and there across an edge of a code.
    X = np.repeat(rng.normal(size=(40, 30)), 50, axis=0).astype(dtype)
    Q = rng.normal(size=(100, 30)).astype(dtype)
    for order, tied in rank(engine, X, Q, max_rank=120):
        assert len(order) == 150
        assert tied.sum() == 147


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "l1"])
def test_ranks_of_a_metric_without_a_product(engine, rng, metric):
    if engine == "faiss":
        pytest.skip("FAISS has Euclidean and cosine distances, and says so")
    X = rng.integers(0, 5, (200, 3)).astype(float)
    Q = rng.integers(0, 5, (7, 3)).astype(float)
    name = {"manhattan": "cityblock", "l1": "cityblock"}.get(metric, metric)
    check(rank(engine, X, Q, metric=metric), cdist(Q, X, name))


def test_cosine_ignores_lengths_and_puts_zeros_at_one(engine, rng):
    X = rng.normal(size=(60, 4))
    X = np.concatenate([X, 2 * X, np.zeros((1, 4))])
    Q = rng.normal(size=(5, 4))
    lengths = np.linalg.norm(Q, axis=1)[:, None] * np.linalg.norm(X, axis=1)
    distances = 1 - Q @ X.T / np.maximum(lengths, 1e-30)
    for (order, tied), d in zip(rank(engine, X, Q, "cosine"), distances):
        np.testing.assert_allclose(d[order], np.sort(d), atol=1e-12)
        # Every row with its double.
        assert tied.sum() == 60


@pytest.mark.parametrize(("metric", "number"), [("euclidean", 0.0), ("cosine", 1.0)])
def test_equal_distances_that_sum_up_differently_are_tied(engine, metric, number, rng):
    # The same differences in another order of columns: equal but for the rounding of
    # the sum.
    X = rng.permuted(np.tile(rng.normal(size=9), (50, 1)), axis=1)
    Q = np.full((2, 9), number)
    for order, tied in rank(engine, X, Q, metric):
        assert sorted(order) == list(range(50))
        assert tied[1:].all()


@pytest.mark.parametrize("scale", [2.0**-510, 2.0**-60, 2.0**60, 2.0**74, 2.0**500])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_no_scale_changes_an_order(engine, metric, scale, rng):
    if engine == "faiss" and metric == "euclidean":
        # It computes in float32, and refuses squares that do not fit it.
        scale = np.clip(scale, 2.0**-48, 2.0**60)
    X = rng.integers(1, 5, (60, 3)).astype(float)
    Q = rng.integers(1, 5, (7, 3)).astype(float)
    self_index = np.arange(7)
    expected = rank(engine, X, Q, metric, self_index)
    scaled = rank(engine, X * scale, Q * scale, metric, self_index)
    distances = cdist(Q, X, metric).round(12)
    for i in self_index:
        assert sorted([*scaled[i].order, i]) == list(range(60))
        np.testing.assert_array_equal(scaled[i].tied, expected[i].tied)
        d = distances[i]
        np.testing.assert_array_equal(d[scaled[i].order], d[expected[i].order])


SPARSITIES = pytest.mark.parametrize("sparsity", [np.asarray, sparse.csr_array])
# With 1e19 in float32 a key would overflow.
UNFIT_SCALES = [
    (1e30, np.float32),
    (1e19, np.float32),
    (1e-30, np.float32),
    (1e160, np.float64),
    (1e-160, np.float64),
]
UNFIT = "must have squared norms that fit its precision"


@SPARSITIES
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize(("scale", "dtype"), UNFIT_SCALES)
def test_rows_whose_norms_do_not_fit_are_refused(sparsity, metric, scale, dtype):
    X = sparsity((np.eye(3) * scale).astype(dtype))
    with pytest.raises(ValueError, match=f"X {UNFIT}"):
        make_space(as_rows(X), metric)


@SPARSITIES
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("large", [1e160, -1e308])
def test_the_column_of_too_large_numbers_is_named(sparsity, metric, large):
    X = np.eye(3)
    X[1, 2] = large
    with pytest.raises(ValueError, match="Got too large ones, from column 2"):
        make_space(as_rows(sparsity(X)), metric)


@SPARSITIES
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize(("scale", "dtype"), UNFIT_SCALES)
def test_points_whose_norms_do_not_fit_are_refused(sparsity, metric, scale, dtype):
    points = sparsity((np.eye(3) * scale).astype(dtype))
    space = make_space(as_rows(sparsity(np.eye(3, dtype=dtype))), metric)
    if metric == "euclidean" and scale < 1:
        # Next to the rows they are the origin.
        space.queries(points)
        return
    with pytest.raises(ValueError, match=rf"\(X_val, or rows to value\) {UNFIT}"):
        space.queries(points)


@SPARSITIES
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_rows_of_zeros_are_accepted(sparsity, metric):
    assert len(make_space(as_rows(sparsity(np.zeros((3, 3)))), metric)) == 3


def test_far_points_are_refused_by_an_engine_of_float32():
    pytest.importorskip("faiss")
    message = r"rows to value\) must have squared norms that fit float32"
    with pytest.raises(ValueError, match=message):
        rank("faiss", np.eye(3), np.eye(3) * 1e25)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_distances_that_are_not_finite_are_refused(value):
    X = np.eye(4)
    space = make_space(X, lambda a, b: value if a[3] or b[3] else 1.0)
    assert space.distances(X[:3], [0, 1, 2]).max() == 1
    with pytest.raises(ValueError, match="metric must give finite distances"):
        space.distances(X)


@pytest.mark.parametrize("engine", ["native"], indirect=True)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["normal", "far", "crowded", "rounded", "equal"])
def test_buckets_of_many_rows_are_sorted(engine, kind, dtype, rng):
    # Above 131,072 rows the sort first divides them.
    n = 132_000
    normal = rng.normal(size=n).astype(dtype)
    x = {
        "normal": normal,
        "far": np.append(normal[1:], dtype(1e4)),
        "crowded": np.exp(4 * normal),
        "rounded": np.round(4 * normal),
        "equal": np.ones(n, dtype),
    }[kind]
    # Some with a cut, and some without, the other way round for the other precision.
    has_cut = kind in ("far", "rounded")
    if dtype == np.float64:
        has_cut = kind in ("normal", "crowded")
    max_rank = 50 if has_cut else None
    Q = np.zeros((1, 1), dtype)
    self_index = np.array([7])
    (point,) = rank(engine, x[:, None], Q, "euclidean", self_index, max_rank)
    order, tied = point

    squares = x.astype(np.float64) ** 2
    ranked = squares[order]
    nearest = np.sort(np.delete(squares, 7))[: len(ranked)]
    np.testing.assert_allclose(ranked, nearest, rtol=1e-5, atol=1e-12)
    assert len(np.unique(order)) == len(order)
    assert len(order) >= (max_rank or n - 1)
    assert 7 not in order
    assert tied[1:][np.diff(ranked) == 0].all()


def numbers(kind, n, rng):
    """Rows of one column that are hard to sort, each in another way."""
    normal = rng.normal(size=n)
    return {
        "normal": normal,
        "copies": normal[rng.integers(0, max(1, n // 10), n)],
        "rounded": np.round(4 * normal),
        "equal": np.ones(n),
        "zeros": np.where(abs(normal) > 1, normal, np.copysign(0, normal)),
        "far": np.append(1e4, normal[1:]),
        "crowded": np.exp(4 * normal),
        "all sizes": np.exp(rng.uniform(-40, 40, n)),
        "last bits": rng.choice([-1, 1], n) * (1 + rng.permutation(n) * 2.0**-40),
    }[kind]


def rank_by_plain_sort(x, q, tolerance):
    """`PointRanks` of numbers x around q, for rows in a file, by stable sorts."""
    half = x * x / x.dtype.type(2)
    sizes = half.astype(np.float64) + q * q / 2
    keys = half - x * x.dtype.type(q)
    exact = (x.astype(np.float64) - q) ** 2
    order = np.argsort(keys, kind="stable")
    tied = np.zeros(len(x), dtype=bool)
    tied[1:] = np.diff(keys[order]) <= tolerance * sizes[order][1:]
    # Near-ties that begin at a rank below 4096 are sorted by exact keys.
    starts = np.append(np.flatnonzero(~tied), len(x))
    for start, stop in pairwise(starts):
        if start < 4096 and stop - start > 1:
            run = order[start:stop]
            run = run[np.argsort(exact[run], kind="stable")]
            order[start:stop] = run
            gaps = np.diff(exact[run])
            tied[start + 1 : stop] = gaps <= 1e-14 * exact[run][1:]
    return PointRanks(order, tied)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kind",
    [
        "normal",
        "copies",
        "rounded",
        "equal",
        "zeros",
        "far",
        "crowded",
        "all sizes",
        "last bits",
    ],
)
# A bucket of the sort has up to 8,192 rows, or those of one bin.
@pytest.mark.parametrize("n", [1, 2, 500, 8192, 8193, 131_073])
def test_rows_in_a_file_are_in_the_order_of_a_plain_sort(kind, n, dtype, rng, tmp_path):
    x = numbers(kind, n, rng).astype(dtype)
    np.save(tmp_path / "rows.npy", x[:, None])
    rows = as_rows(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    tolerance = make_space(rows, "euclidean").rank_tolerance
    for q, max_rank in ((0, None), (0, 1), (1, n // 3), (1, None)):
        expected = rank_by_plain_sort(x, q, tolerance)
        (point,) = rank("native", rows, np.full((1, 1), q, dtype), max_rank=max_rank)
        n_ranked = len(point.order)
        assert n_ranked == n or not expected.tied[n_ranked]
        assert expected.tied[max_rank or n : n_ranked].all()
        np.testing.assert_array_equal(point.order, expected.order[:n_ranked])
        np.testing.assert_array_equal(point.tied, expected.tied[:n_ranked])


@pytest.mark.parametrize("engine", ["native"], indirect=True)
def test_more_rows_than_a_record_can_name_are_sorted(engine, rng):
    # Records of the sort of few rows have 21 bits for the row; those of many rows have
    # more.
    X = rng.normal(size=(2**21 + 5, 1))
    (point,) = rank(engine, X, np.zeros((1, 1)))
    squares = X[:, 0] ** 2
    np.testing.assert_array_equal(squares[point.order], np.sort(squares))


def test_far_float32_neighbours_are_tied_only_within_rounding(engine, rng):
    X = rng.normal(size=(20_000, 64))
    Q = rng.normal(size=(8, 64)).astype(np.float32)
    # Duplicates, wherever they rank.
    X[10_000:10_050] = X[19_000]
    X = X.astype(np.float32)
    space = make_space(X, "euclidean")
    assert 1e-7 < space.far_tolerance <= space.rank_tolerance
    distances = cdist(Q.astype(float), X.astype(float), "sqeuclidean")
    for (order, tied), d in zip(rank(engine, X, Q), distances):
        # In order, up to rounding.
        assert np.diff(d[order]).min() > -1e-3
        assert tied.mean() < 0.1
        # The duplicates are together, and tied throughout.
        positions = np.flatnonzero((order >= 10_000) & (order < 10_050))
        first = positions.min()
        last = positions.max()
        assert last - first < 60
        assert tied[first + 1 : last + 1].all()


def test_many_keys_under_one_code_are_ordered(engine, rng):
    # Outliers at the near end: the insertion pass carries rows over long ways.
    X = np.concatenate([1e-4 * rng.random((60, 1)), 1e3 + rng.random((8000, 1))])
    check(rank(engine, X, np.zeros((1, 1))), X.T**2, exact_up_to=60)


@pytest.mark.parametrize("n_points", [3, 130, 300, 513, 1025, 1500])
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("kind", ["rank", "ball"])
def test_threads_get_the_same_number_of_tiles(kind, n_points, workers):
    engine = get_engine("native")
    if kind == "rank":
        slices = rank_tiles(engine, 5000, n_points, 32, workers=workers)
    else:
        slices = ball_tiles(engine, 5000, n_points, workers)
    covered = np.concatenate([np.arange(n_points)[tile] for tile in slices])
    assert covered.size == n_points
    assert len(slices) % workers == 0 or n_points < 64 * workers
    sizes = [tile.stop - tile.start for tile in slices]
    assert max(sizes) - min(sizes) < len(slices)
