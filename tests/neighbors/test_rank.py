"""Ranks of neighbours against a full sort of exact distances."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from skvalue.neighbors import as_rows, ball_tiles, get_engine, make_space, rank_tiles
from skvalue.neighbors import ranks as all_ranks


def ranks(engine, X, Q, metric="euclidean", self_index=None, max_rank=None):
    """Order of the players for every point, and which are tied with the one before."""
    rows = [None] * len(Q)
    for places, (order, n_ranked) in all_ranks(
        get_engine(engine), make_space(X, metric), Q, self_index, max_rank
    ):
        for v, line, n in zip(places, order, n_ranked):
            rows[v] = np.where(line < 0, ~line, line)[:n], line[:n] < 0
    return rows


def check(rows, distances, exact_up_to=None):
    """Same distances in the same order, ties exactly where distances are equal."""
    for (order, tied), d in zip(rows, distances):
        head = slice(None, exact_up_to)
        np.testing.assert_array_equal(d[order][head], np.sort(d)[: len(order)][head])
        equal = np.r_[False, np.diff(d[order]) == 0]
        np.testing.assert_array_equal(tied[head], equal[head])
        assert len(set(order)) == len(order)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 7, 2000])
def test_order_on_integers_is_exact(engine, rng, n, dtype):
    X, Q = rng.integers(-4, 5, (n, 3)), rng.integers(-4, 5, (11, 3))
    rows = ranks(engine, X.astype(dtype), Q.astype(dtype))
    check(rows, cdist(Q, X, "sqeuclidean"), exact_up_to=1000)


@pytest.mark.parametrize("shift", [0, 1e3, 1e6])
def test_duplicates_far_from_the_origin_are_tied(engine, rng, shift):
    base = rng.normal(size=(40, 6)) + shift
    X = base[rng.integers(0, 40, 400)]
    rows = ranks(engine, X, base[:5] + 0.1)
    check(rows, ((base[:5, None] + 0.1 - X) ** 2).sum(axis=2))


def test_float32_order_is_that_of_float64_where_it_matters(engine, rng):
    X, Q = rng.normal(size=(5000, 40)).astype(np.float32), rng.normal(size=(20, 40))
    Q = Q.astype(np.float32)
    exact = np.argsort(cdist(Q, X, "sqeuclidean"), axis=1)
    rows = ranks(engine, X, Q)
    same = np.mean([order[:500] == line[:500] for (order, _), line in zip(rows, exact)])
    assert same > 0.999


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_outliers_do_not_blur_the_rest(engine, rng, scale):
    # One far row stretches the range of distances; the others crowd into one bin of the
    # sort.
    X = np.concatenate([rng.normal(size=(2000, 2)), [[scale, scale]]])
    check(
        ranks(engine, X, X[:6] + 1e-3),
        cdist(X[:6] + 1e-3, X, "sqeuclidean"),
        exact_up_to=1000,
    )


def test_all_rows_equal(engine):
    X = np.ones((300, 2))
    (order, tied), *_ = ranks(engine, X, np.zeros((3, 2)))
    assert sorted(order) == list(range(300))
    assert tied[1:].all()
    assert not tied[0]


def test_a_row_does_not_rank_itself(engine, rng):
    X = rng.integers(0, 3, (50, 2)).astype(float)
    for i, (order, _) in enumerate(ranks(engine, X, X, self_index=np.arange(50))):
        assert sorted(order) == [j for j in range(50) if j != i]
    one = ranks(engine, np.ones((40, 2)), np.ones((2, 2)), self_index=np.array([3, -1]))
    assert [len(order) for order, _ in one] == [39, 40]


@pytest.mark.parametrize("n", [30, 2000])
def test_max_rank_keeps_ties_across_the_cut(engine, rng, n):
    X, Q = (
        rng.integers(0, 4, (n, 2)).astype(float),
        rng.integers(0, 4, (9, 2)).astype(float),
    )
    D = cdist(Q, X, "sqeuclidean")
    for max_rank in (1, 3, 10, n):
        for (order, tied), d in zip(ranks(engine, X, Q, max_rank=max_rank), D):
            cut = np.sort(d)[max_rank - 1]
            assert sorted(order) == sorted(np.flatnonzero(d <= cut))
            check([(order, tied)], [d])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_does_not_cut_a_tie(engine, rng, dtype):
    # All cosines are 1 but for the rounding of the product, which is all that the keys
    # differ by.
    X, Q = 1 + rng.random((60, 1)), 1 + rng.random((20, 1))
    for max_rank in (1, 20, 59, 60):
        for order, tied in ranks(
            engine, X.astype(dtype), Q.astype(dtype), "cosine", None, max_rank
        ):
            assert sorted(order) == list(range(60))
            assert tied[1:].all()
    # Copies of far rows: their keys differ by rounding, here and there across an edge
    # of a code.
    X = np.repeat(rng.normal(size=(40, 30)), 50, axis=0).astype(dtype)
    Q = rng.normal(size=(100, 30)).astype(dtype)
    for order, tied in ranks(engine, X, Q, max_rank=120):
        assert len(order) == 150
        assert tied.sum() == 147


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev", "l1"])
def test_other_metrics(engine, rng, metric):
    if engine == "faiss":
        pytest.skip("FAISS has Euclidean and cosine distances, and says so")
    X, Q = (
        rng.integers(0, 5, (200, 3)).astype(float),
        rng.integers(0, 5, (7, 3)).astype(float),
    )
    name = {"manhattan": "cityblock", "l1": "cityblock"}.get(metric, metric)
    check(ranks(engine, X, Q, metric=metric), cdist(Q, X, name))


def test_cosine_ignores_lengths_and_puts_zeros_at_one(engine, rng):
    X = rng.normal(size=(60, 4))
    X = np.concatenate([X, 2 * X, np.zeros((1, 4))])
    Q = rng.normal(size=(5, 4))
    D = 1 - Q @ X.T / np.maximum(
        np.linalg.norm(Q, axis=1)[:, None] * np.linalg.norm(X, axis=1), 1e-30
    )
    for (order, tied), d in zip(ranks(engine, X, Q, "cosine"), D):
        np.testing.assert_allclose(d[order], np.sort(d), atol=1e-12)
        assert tied.sum() == 60  # every row with its double


def test_equal_distances_that_sum_up_differently_are_tied(engine, rng):
    # The same differences in another order of columns: equal but for the rounding of
    # the sum.
    X = rng.permuted(np.tile(rng.normal(size=9), (50, 1)), axis=1)
    for metric, Q in [("euclidean", np.zeros((2, 9))), ("cosine", np.ones((2, 9)))]:
        for order, tied in ranks(engine, X, Q, metric):
            assert sorted(order) == list(range(50))
            assert tied[1:].all()


@pytest.mark.parametrize("scale", [2.0**-510, 2.0**-60, 2.0**60, 2.0**74, 2.0**500])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_no_scale_changes_an_order(engine, metric, scale, rng):
    if engine == "faiss" and metric == "euclidean":
        scale = np.clip(scale, 2.0**-60, 2.0**60)  # it computes in float32
    X, Q = (
        rng.integers(1, 5, (60, 3)).astype(float),
        rng.integers(1, 5, (7, 3)).astype(float),
    )
    itself = np.arange(7)
    expected = ranks(engine, X, Q, metric, self_index=itself)
    for (order, tied), (plain, plain_tied), i in zip(
        ranks(engine, X * scale, Q * scale, metric, self_index=itself), expected, itself
    ):
        assert sorted([*order, i]) == list(range(60))
        np.testing.assert_array_equal(tied, plain_tied)
        D = cdist(Q[i : i + 1], X, metric)[0].round(12)
        np.testing.assert_array_equal(D[order], D[plain])


@pytest.mark.parametrize("sparsity", [np.asarray, sparse.csr_array])
def test_norms_that_do_not_fit_are_refused(sparsity, rng):
    fits = "must have squared norms that fit its precision"
    X = np.eye(3)
    for scale, dtype in [
        (1e30, np.float32),
        (1e19, np.float32),  # a key would overflow
        (1e-30, np.float32),
        (1e160, np.float64),
        (1e-160, np.float64),
    ]:
        points = sparsity((X * scale).astype(dtype))
        for metric in ("euclidean", "cosine"):
            with pytest.raises(ValueError, match=f"X {fits}"):
                make_space(as_rows(points), metric)
            space = make_space(as_rows(sparsity(X.astype(dtype))), metric)
            if (
                metric == "euclidean" and scale < 1
            ):  # next to the rows they are the origin
                space.queries(points)
                continue
            with pytest.raises(
                ValueError, match=rf"\(X_val, or rows to value\) {fits}"
            ):
                space.queries(points)
    for metric in ("euclidean", "cosine"):
        assert len(make_space(as_rows(sparsity(0.0 * X)), metric)) == 3


def test_far_points_are_refused_by_an_engine_of_float32(rng):
    pytest.importorskip("faiss")
    with pytest.raises(
        ValueError, match="rows to value\\) must have squared norms that fit float32"
    ):
        ranks("faiss", np.eye(3), np.eye(3) * 1e25)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_distances_that_are_not_finite_are_refused(value):
    X = np.eye(4)
    space = make_space(X, lambda a, b: value if a[3] or b[3] else 1.0)
    assert space.distances(X[:3], [0, 1, 2]).max() == 1
    with pytest.raises(ValueError, match="metric must give finite distances"):
        space.distances(X)


@pytest.mark.parametrize("engine", ["numba"], indirect=True)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_buckets_of_many_rows(engine, dtype, rng):
    # Above 131,072 rows the sort first divides them, here with far, crowded and equal
    # distances.
    n = 132_000
    normal = rng.normal(size=n).astype(dtype)
    far = np.append(normal[1:], dtype(1e4))
    crowded = np.exp(4 * normal)
    equal = np.round(4 * normal)
    cut = [None, 50] if dtype == np.float32 else [50, None]
    for x, max_rank in zip(
        (normal, far, crowded, equal, np.ones(n, dtype)), [*cut, *cut, None]
    ):
        ((order, tied),) = ranks(
            engine,
            x[:, None],
            np.zeros((1, 1), dtype),
            "euclidean",
            np.array([7]),
            max_rank,
        )
        squares = np.delete(x.astype(np.float64) ** 2, 7)
        key = x[order].astype(np.float64) ** 2
        np.testing.assert_allclose(
            key, np.sort(squares)[: len(key)], rtol=1e-5, atol=1e-12
        )
        assert len(np.unique(order)) == len(order) >= (max_rank or n - 1)
        assert 7 not in order
        assert tied[1:][np.diff(key) == 0].all()


@pytest.mark.parametrize("engine", ["numba"], indirect=True)
def test_more_rows_than_a_record_can_name(engine, rng):
    # Records of the sort of few rows have 21 bits for the row; those of many rows have
    # more.
    X, Q = rng.normal(size=(2**21 + 5, 1)), np.zeros((1, 1))
    ((order, _),) = ranks(engine, X, Q)
    np.testing.assert_array_equal(X[order, 0] ** 2, np.sort(X[:, 0] ** 2))


def test_far_float32_neighbours_are_tied_only_within_rounding(engine, rng):
    X, Q = rng.normal(size=(20_000, 64)), rng.normal(size=(8, 64))
    X[10_000:10_050] = X[19_000]  # duplicates, wherever they rank
    X, Q = X.astype(np.float32), Q.astype(np.float32)
    space = make_space(X, "euclidean")
    assert 1e-7 < space.far_tolerance <= space.rank_tolerance
    D = cdist(Q.astype(float), X.astype(float), "sqeuclidean")
    for (order, tied), d in zip(ranks(engine, X, Q), D):
        assert np.diff(d[order]).min() > -1e-3  # in order, up to rounding
        assert tied.mean() < 0.1
        places = np.flatnonzero((order >= 10_000) & (order < 10_050))
        first = places.min()
        assert places.max() - first < 60  # together, and tied throughout
        assert tied[first + 1 : places.max() + 1].all()


def test_outliers_at_the_near_end_are_ordered(engine, rng):
    # Many keys under few codes: the insertion pass carries rows over long ways.
    X = np.concatenate([1e-4 * rng.random((60, 1)), 1e3 + rng.random((8000, 1))])
    check(ranks(engine, X, np.zeros((1, 1))), X.T**2, exact_up_to=60)


@pytest.mark.parametrize("n_points", [3, 130, 300, 513, 1025, 1500])
def test_threads_get_the_same_number_of_tiles(n_points):
    engine = get_engine("numba")
    for workers in (1, 2, 3):
        for parts in (
            rank_tiles(engine, 5000, n_points, 32, workers=workers),
            ball_tiles(engine, 5000, n_points, workers),
        ):
            assert (
                np.concatenate([np.arange(n_points)[part] for part in parts]).size
                == n_points
            )
            assert len(parts) % workers == 0 or n_points < 64 * workers
            sizes = [part.stop - part.start for part in parts]
            assert max(sizes) - min(sizes) < len(parts)
