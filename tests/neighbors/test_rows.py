"""Rows that are sparse, in a file or a Dask array: the values of the same rows in
memory."""

import pickle
from itertools import product

import numpy as np
import pytest
from oracles import check_same
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.neighbors import Rows, as_rows, concatenate_rows

KINDS = ["csr", "csc", "memmap", "columns", "dask"]
VALUERS = {
    "knn": KNNShapleyValuer(3),
    "knn-cosine": KNNShapleyValuer(4, metric="cosine"),
    "knn-manhattan": KNNShapleyValuer(2, metric="manhattan"),
    "knn-regression": KNNShapleyValuer(3, task="regression"),
    "knn-max-rank": KNNShapleyValuer(2, max_rank=7),
    "tknn": TKNNShapleyValuer(0.4),
    "tknn-euclidean": TKNNShapleyValuer(1.5, metric="euclidean"),
}


def cases(names, *some):
    """Kinds of rows and valuers: by default some of them, and the others in the slow
    tests."""
    others = [pytest.param(*case, marks=pytest.mark.slow)
              for case in product(KINDS, names) if case not in some]  # fmt: skip
    return pytest.mark.parametrize(("kind", "name"), [*some, *others])


def convert(X, kind, folder):
    """The same rows, kept elsewhere."""
    if kind == "csr":
        return sparse.csr_array(X)
    if kind == "csc":
        return sparse.csc_matrix(X)
    if kind == "dask":
        chunks = (25, 3) if len(X) < 1000 else (512, -1)
        return pytest.importorskip("dask.array").from_array(X, chunks=chunks)
    width = X.shape[1] + (3 if kind == "columns" else 0)
    path = folder / f"{kind}-{np.random.default_rng().integers(2**40)}.bin"
    disk = np.memmap(path, dtype=X.dtype, mode="w+", shape=(len(X) + 5, width))
    disk[5:, : X.shape[1]] = X
    disk.flush()
    disk = np.memmap(path, dtype=X.dtype, mode="r", shape=disk.shape)
    return disk[5:, : X.shape[1]]


def problem(rng, n=120, n_points=40, d=5, dtype=np.float64):
    """Grids, so that ties abound, with many zeros."""
    X, X_val = (rng.integers(-2, 3, (size, d)) * (rng.random((size, d)) < 0.5) / 2.0
                for size in (n, n_points))  # fmt: skip
    y = np.r_[np.arange(3), rng.integers(0, 3, n - 3)]
    return X.astype(dtype), y, X_val.astype(dtype), rng.integers(0, 3, n_points)


@cases(
    VALUERS, *product(["csr", "memmap"], VALUERS), ("csc", "knn"), ("columns", "tknn-euclidean"),
    ("dask", "knn"),
)  # fmt: skip
def test_values_are_those_of_the_same_rows_in_memory(kind, name, rng, tmp_path):
    dtype = np.float32 if kind in ("csr", "columns") else np.float64
    X, y, X_val, y_val = problem(rng, dtype=dtype)
    valuer, other = clone(VALUERS[name]), convert(X, kind, tmp_path)
    for kept in (X_val, convert(X_val, kind, tmp_path)):
        plain = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val)
        valuer.fit(other, y, X_val=kept, y_val=y_val)
        np.testing.assert_allclose(valuer.values_, plain.values_, atol=1e-13)
        assert valuer.utility_ == pytest.approx(plain.utility_)
    for cv in ("leave-one-out", 4):
        plain.set_params(cv=cv).fit(X, y)
        valuer.set_params(cv=cv).fit(other, y)
        np.testing.assert_allclose(valuer.values_, plain.values_, atol=1e-13)


@cases(
    ["knn", "knn-regression", "tknn-euclidean"], ("csr", "knn"), ("csr", "knn-regression"),
    ("csr", "tknn-euclidean"), ("memmap", "knn"), ("dask", "tknn-euclidean"),
)  # fmt: skip
def test_all_else_that_a_valuer_does(kind, name, rng, tmp_path):
    X, y, X_val, y_val = problem(rng)
    other = convert(X, kind, tmp_path)
    plain, valuer = (
        clone(VALUERS[name]).fit(rows, y, X_val=X_val, y_val=y_val)
        for rows in (X, other)
    )
    new = np.concatenate([X[:7], rng.normal(size=(5, 5)), X_val[:3]])
    for rows in (new, convert(new, kind, tmp_path)):
        check_same(valuer, plain, rows, y[:15], new, atol=1e-13)
    again = pickle.loads(pickle.dumps(valuer))
    np.testing.assert_array_equal(again.transform(new), valuer.transform(new))
    plain.add_validation(new, y[:15])
    valuer.add_validation(convert(new, kind, tmp_path), y[:15])
    np.testing.assert_allclose(valuer.values_, plain.values_, atol=1e-13)


def test_sparse_validation_points_of_dense_rows(rng):
    X, y, X_val, y_val = problem(rng)
    plain = KNNShapleyValuer().fit(X, y, X_val=X_val, y_val=y_val).values_
    valuer = KNNShapleyValuer().fit(X, y, X_val=sparse.coo_array(X_val), y_val=y_val)
    np.testing.assert_array_equal(valuer.values_, plain)


@pytest.mark.parametrize(
    ("valuer", "density"),
    [(KNNShapleyValuer(5), 0.2), (TKNNShapleyValuer(0.95), 0.002)],
)
def test_wide_sparse_rows_are_not_densified(valuer, density, rng, monkeypatch):
    d = 8000 if density < 0.1 else 500
    cells = rng.choice(700 * d, int(density * 700 * d), replace=False)
    X = sparse.csr_array((rng.random(len(cells)), np.divmod(cells, d)), shape=(700, d))
    y = rng.integers(0, 2, 700)
    plain = clone(valuer).fit(
        X[:500].toarray(), y[:500], X_val=X[500:].toarray(), y_val=y[500:]
    )
    whole = []
    convert = sparse.csr_array.toarray
    monkeypatch.setattr(
        sparse.csr_array,
        "toarray",
        lambda self, *a: whole.append(self.shape) or convert(self, *a),
    )
    valuer.fit(X[:500], y[:500], X_val=X[500:], y_val=y[500:])
    np.testing.assert_allclose(valuer.values_, plain.values_, atol=1e-12)
    assert all(
        shape[0] <= 200 or shape[1] < d for shape in whole
    )  # points, products: not rows


def test_many_rows_without_a_shared_column_are_tied(rng):
    # Cosines that are 0 because nothing is shared, or because products cancel, next to
    # others.
    X = np.zeros((400, 60))
    X[np.arange(400), rng.integers(0, 60, 400)] = 1.0
    X[:30, 50:] = rng.normal(size=(30, 10))
    X[30:40, 55:57] = [[0.1, 0.3]]
    X_val = np.zeros((20, 60))
    X_val[:, 52:58] = rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.4)
    X_val[5, 55:57] = [0.3, -0.1]
    y, y_val = rng.integers(0, 3, 400), rng.integers(0, 3, 20)
    for dtype in (np.float32, np.float64):
        dense, val = X.astype(dtype), X_val.astype(dtype)
        valuer = KNNShapleyValuer(3, metric="cosine")
        plain = valuer.fit(dense, y, X_val=val, y_val=y_val).values_
        values = valuer.fit(sparse.csr_array(dense), y, X_val=val, y_val=y_val).values_
        np.testing.assert_allclose(values, plain, atol=1e-13)


def test_zeros_and_doubles_of_a_sparse_format_do_not_matter(rng):
    X, y, *_ = problem(rng)
    whole = sparse.coo_array(X + 1.0)
    halves = sparse.coo_array(
        (np.tile(whole.data / 2, 2), (np.tile(whole.row, 2), np.tile(whole.col, 2))),
        shape=X.shape,
    )
    explicit = sparse.csr_array(X + 1.0)
    explicit.data[::7] = 0
    plain = KNNShapleyValuer().fit(X + 1.0, y)
    np.testing.assert_allclose(KNNShapleyValuer().fit(halves, y).values_, plain.values_)
    before = explicit.copy()
    valuer = KNNShapleyValuer().fit(explicit, y)
    np.testing.assert_allclose(
        valuer.values_, KNNShapleyValuer().fit(explicit.toarray(), y).values_
    )
    np.testing.assert_array_equal(explicit.data, before.data)  # not changed in place


@pytest.mark.parametrize(
    ("kind", "valuer"),
    [
        ("dask", TKNNShapleyValuer(40.0, metric="euclidean")),
        ("memmap", KNNShapleyValuer()),
        pytest.param("dask", KNNShapleyValuer(), marks=pytest.mark.slow),
    ],
)
def test_never_more_than_a_block_is_read(kind, valuer, rng, tmp_path, monkeypatch):
    # Twice the numbers that are checked at a time.
    X, y = rng.random(size=(4096, 2048), dtype=np.float32), rng.integers(0, 2, 4096)
    points = dict(X_val=X[:50] + np.float32(0.1), y_val=y[:50])
    plain = clone(valuer).fit(X, y, **points).values_
    elsewhere = convert(X, kind, tmp_path)
    lengths = []
    read = Rows.read
    monkeypatch.setattr(
        Rows, "read", lambda self: lengths.append(len(self)) or read(self)
    )
    with config_context(working_memory=8):
        valuer.fit(elsewhere, y, **points)
    np.testing.assert_allclose(valuer.values_, plain, atol=1e-13)
    assert max(lengths) == 2048
    assert (
        sum(length for length in lengths if length < 2048) >= 2 * 4096
    )  # measured, compared


@pytest.mark.parametrize("kind", ["memmap", "dask"])
def test_nan_and_shapes_are_refused(kind, rng, tmp_path):
    X, y, *_ = problem(rng)
    valuer = KNNShapleyValuer()
    for bad, what in [(np.nan, "NaN"), (np.inf, "infinity")]:
        bad_rows = X.copy()
        bad_rows[100, 2] = bad
        with pytest.raises(ValueError, match=f"Input X contains {what}"):
            valuer.fit(convert(bad_rows, kind, tmp_path), y)
        with pytest.raises(
            ValueError, match=f"X_val must be like X: Input X_val contains {what}"
        ):
            valuer.fit(X, y, X_val=convert(bad_rows, kind, tmp_path), y_val=y)
    other = convert(X, kind, tmp_path)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        valuer.fit(other, y[:-1])
    with pytest.raises(
        ValueError, match="X has 4 features, but KNNShapleyValuer is expecting 5"
    ):
        valuer.fit(other, y).transform(other[:, :4])
    with pytest.raises(ValueError, match="X must have at least 2 rows. Got 1."):
        valuer.fit(other[:1], y[:1])
    with pytest.raises(ValueError, match="X must be a 2D array of real numbers"):
        valuer.fit(convert(X.astype("S3"), kind, tmp_path), y)


def test_integers_in_a_file_are_read_as_float64(rng, tmp_path):
    X, y, X_val, y_val = problem(rng)
    X, X_val = (2 * X).astype(np.int16), 2 * X_val
    plain = KNNShapleyValuer().fit(X, y, X_val=X_val, y_val=y_val)
    valuer = KNNShapleyValuer().fit(
        convert(X, "memmap", tmp_path), y, X_val=X_val, y_val=y_val
    )
    np.testing.assert_array_equal(valuer.values_, plain.values_)


@pytest.mark.parametrize("kind", ["memmap", "columns"])
def test_a_pickle_of_rows_in_a_file_names_the_file(kind, rng, tmp_path):
    X = rng.normal(size=(5000, 6))
    data = pickle.dumps(as_rows(convert(X, kind, tmp_path))[3000:][::2])
    assert len(data) < 20_000
    np.testing.assert_array_equal(pickle.loads(data).read(), X[3000::2])


def test_views_and_concatenated_rows(rng, tmp_path):
    X = rng.normal(size=(50, 3))
    rows = as_rows(convert(X, "memmap", tmp_path))
    np.testing.assert_array_equal(
        rows[10:40][5:][[3, 0, -1]].read(), X[10:40][5:][[3, 0, -1]]
    )
    np.testing.assert_array_equal(rows[X[:, 0] > 0].read(), X[X[:, 0] > 0])
    both = concatenate_rows(rows, X[:7])
    assert isinstance(both, Rows)
    np.testing.assert_array_equal(both[45:55].read(), np.concatenate([X, X[:7]])[45:55])
    with pytest.raises(TypeError, match="read block by block"):
        np.asarray(rows)


def test_memory_maps_that_joblib_makes_are_memory(rng, tmp_path):
    folder = tmp_path / "joblib_memmapping_folder_1_2"
    folder.mkdir()
    X = convert(rng.normal(size=(20, 3)), "memmap", folder)
    assert as_rows(X) is X


def test_messages(rng, tmp_path):
    pytest.importorskip("dask.array")
    import dask.array as da

    X, y, *_ = problem(rng)
    lazy = da.from_array(X, chunks=(30, 5))
    with pytest.raises(
        ValueError, match="X must have known chunk sizes: call compute_chunk_sizes"
    ):
        KNNShapleyValuer().fit(lazy[lazy[:, 0] > 0], y)
    with pytest.raises(
        ValueError, match=r"X must have at least 1 column. Got shape \(\d+, 0\)"
    ):
        KNNShapleyValuer().fit(lazy[:, :0], y)
    with pytest.raises(
        ValueError, match="metric must be one of .* for sparse X, .* Got <function"
    ):
        KNNShapleyValuer(metric=lambda a, b: 0.0).fit(sparse.csr_array(X), y)


def test_sparse_float32_rows_keep_ties(rng):
    # Points off the grid: differences rounded to float32 would break its ties.
    X, y, X_val, y_val = problem(rng)
    X_val = X_val + 0.1 * rng.normal(size=X_val.shape)
    X, X_val = X.astype(np.float32), X_val.astype(np.float32)
    plain = KNNShapleyValuer(4, metric="manhattan").fit(X, y, X_val=X_val, y_val=y_val)
    valuer = KNNShapleyValuer(4, metric="manhattan").fit(
        sparse.csr_array(X), y, X_val=sparse.csr_array(X_val), y_val=y_val
    )
    np.testing.assert_allclose(valuer.values_, plain.values_, rtol=1e-12)
