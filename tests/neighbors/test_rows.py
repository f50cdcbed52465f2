"""Rows that are sparse, in a file or a Dask array have the values of rows in memory."""

import pickle
from itertools import product

import numpy as np
import pytest
from oracles import check_same
from problems import Problem
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


def cases(names, *fast_cases):
    """All kinds of rows and valuers; those that are not listed are slow tests."""
    slow_cases = [
        pytest.param(*case, marks=pytest.mark.slow)
        for case in product(KINDS, names)
        if case not in fast_cases
    ]
    return pytest.mark.parametrize(("kind", "name"), [*fast_cases, *slow_cases])


def convert(X, kind, folder):
    """The same rows, kept elsewhere."""
    if kind == "csr":
        return sparse.csr_array(X)
    if kind == "csc":
        return sparse.csc_matrix(X)
    if kind == "dask":
        chunks = (25, 3) if len(X) < 1000 else (512, -1)
        return pytest.importorskip("dask.array").from_array(X, chunks=chunks)

    # Rows from the fifth on in a file, which has more columns for "columns".
    n, d = X.shape
    width = d + 3 if kind == "columns" else d
    path = folder / f"{kind}-{np.random.default_rng().integers(2**40)}.bin"
    disk = np.memmap(path, dtype=X.dtype, mode="w+", shape=(n + 5, width))
    disk[5:, :d] = X
    disk.flush()
    disk = np.memmap(path, dtype=X.dtype, mode="r", shape=disk.shape)
    return disk[5:, :d]


def sparse_grid(rng, n=120, n_val=40, d=5, dtype=np.float64):
    """A problem on a grid, so that there are many ties, with many zeros."""

    def draw(size):
        numbers = rng.integers(-2, 3, (size, d))
        return numbers * (rng.random((size, d)) < 0.5) / 2.0

    X = draw(n)
    X_val = draw(n_val)
    y = np.r_[np.arange(3), rng.integers(0, 3, n - 3)]
    return Problem(X.astype(dtype), y, X_val.astype(dtype), rng.integers(0, 3, n_val))


# Values -------------------------------------------------------------------------------

FAST = cases(
    VALUERS,
    *product(["csr", "memmap"], VALUERS),
    ("csc", "knn"),
    ("columns", "tknn-euclidean"),
    ("dask", "knn"),
)


def dtype_of(kind):
    return np.float32 if kind in ("csr", "columns") else np.float64


@FAST
@pytest.mark.parametrize("converts_points", [False, True])
def test_values_are_those_of_rows_in_memory(kind, name, converts_points, rng, tmp_path):
    problem = sparse_grid(rng, dtype=dtype_of(kind))
    expected = problem.fit(clone(VALUERS[name]))
    other = problem._replace(X=convert(problem.X, kind, tmp_path))
    if converts_points:
        other = other._replace(X_val=convert(problem.X_val, kind, tmp_path))
    valuer = other.fit(clone(VALUERS[name]))
    np.testing.assert_allclose(valuer.values_, expected.values_, atol=1e-13)
    assert valuer.utility_ == pytest.approx(expected.utility_)


@FAST
@pytest.mark.parametrize("cv", ["leave-one-out", 4])
def test_values_of_held_out_rows_are_those_of_rows_in_memory(
    kind, name, cv, rng, tmp_path
):
    X, y, *_ = sparse_grid(rng, dtype=dtype_of(kind))
    expected = clone(VALUERS[name]).set_params(cv=cv).fit(X, y)
    valuer = clone(VALUERS[name]).set_params(cv=cv)
    valuer.fit(convert(X, kind, tmp_path), y)
    np.testing.assert_allclose(valuer.values_, expected.values_, atol=1e-13)


# After the fit ------------------------------------------------------------------------

AFTER_THE_FIT = cases(
    ["knn", "knn-regression", "tknn-euclidean"],
    ("csr", "knn"),
    ("csr", "knn-regression"),
    ("csr", "tknn-euclidean"),
    ("memmap", "knn"),
    ("dask", "tknn-euclidean"),
)


@pytest.fixture
def fitted_pair(kind, name, rng, tmp_path):
    """A valuer of converted rows and one of the same in memory, and new rows."""
    problem = sparse_grid(rng)
    expected = problem.fit(clone(VALUERS[name]))
    other = problem._replace(X=convert(problem.X, kind, tmp_path))
    valuer = other.fit(clone(VALUERS[name]))
    rows = [problem.X[:7], rng.normal(size=(5, 5)), problem.X_val[:3]]
    return valuer, expected, np.concatenate(rows), problem.y[:15]


@AFTER_THE_FIT
@pytest.mark.parametrize("converts_new_rows", [False, True])
def test_new_rows_are_valued_as_by_rows_in_memory(
    fitted_pair, kind, converts_new_rows, tmp_path
):
    valuer, expected, new, labels = fitted_pair
    rows = convert(new, kind, tmp_path) if converts_new_rows else new
    check_same(valuer, expected, rows, labels, new, atol=1e-13)


@AFTER_THE_FIT
def test_a_pickled_valuer_values_new_rows(fitted_pair):
    valuer, _, new, _ = fitted_pair
    copy = pickle.loads(pickle.dumps(valuer))
    np.testing.assert_array_equal(copy.transform(new), valuer.transform(new))


@AFTER_THE_FIT
def test_points_are_added_as_to_rows_in_memory(fitted_pair, kind, tmp_path):
    valuer, expected, new, labels = fitted_pair
    expected.add_validation(new, labels)
    valuer.add_validation(convert(new, kind, tmp_path), labels)
    np.testing.assert_allclose(valuer.values_, expected.values_, atol=1e-13)


# Sparse rows --------------------------------------------------------------------------


def test_validation_points_of_dense_rows_may_be_sparse(rng):
    problem = sparse_grid(rng)
    expected = problem.fit(KNNShapleyValuer()).values_
    thin = problem._replace(X_val=sparse.coo_array(problem.X_val))
    values = thin.fit(KNNShapleyValuer()).values_
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    ("valuer", "density"),
    [(KNNShapleyValuer(5), 0.2), (TKNNShapleyValuer(0.95), 0.002)],
)
def test_wide_sparse_rows_are_not_densified(valuer, density, rng, monkeypatch):
    d = 8000 if density < 0.1 else 500
    cells = rng.choice(700 * d, int(density * 700 * d), replace=False)
    X = sparse.csr_array((rng.random(len(cells)), np.divmod(cells, d)), shape=(700, d))
    y = rng.integers(0, 2, 700)
    problem = Problem(X[:500], y[:500], X[500:], y[500:])
    dense = problem._replace(X=X[:500].toarray(), X_val=X[500:].toarray())
    expected = dense.fit(clone(valuer)).values_

    shapes = []
    toarray = sparse.csr_array.toarray

    def watched(self, *args):
        shapes.append(self.shape)
        return toarray(self, *args)

    monkeypatch.setattr(sparse.csr_array, "toarray", watched)
    np.testing.assert_allclose(problem.fit(valuer).values_, expected, atol=1e-12)
    # Points and products are, but not rows.
    assert all(n <= 200 or width < d for n, width in shapes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_without_a_shared_column_are_tied(dtype, rng):
    # Cosines that are 0 because nothing is shared, or because products cancel, next to
    # others.
    X = np.zeros((400, 60), dtype)
    X[np.arange(400), rng.integers(0, 60, 400)] = 1.0
    X[:30, 50:] = rng.normal(size=(30, 10))
    X[30:40, 55:57] = [[0.1, 0.3]]
    X_val = np.zeros((20, 60), dtype)
    X_val[:, 52:58] = rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.4)
    X_val[5, 55:57] = [0.3, -0.1]
    problem = Problem(X, rng.integers(0, 3, 400), X_val, rng.integers(0, 3, 20))
    valuer = KNNShapleyValuer(3, metric="cosine")
    expected = problem.fit(valuer).values_
    values = problem._replace(X=sparse.csr_array(X)).fit(valuer).values_
    np.testing.assert_allclose(values, expected, atol=1e-13)


def with_indices(indices, pointers):
    """A function of a CSR array to one whose indices have other dtypes."""

    def convert_indices(X):
        X = sparse.csr_array(X)
        X.indices = X.indices.astype(indices)
        X.indptr = X.indptr.astype(pointers)
        return X

    return convert_indices


def reversed_rows(X):
    """A CSR array whose columns are not sorted."""
    X = sparse.csr_array(X)
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        X.indices[row] = X.indices[row][::-1].copy()
        X.data[row] = X.data[row][::-1].copy()
    X.has_sorted_indices = False
    return X


def stored_zeros(X):
    full = sparse.csr_array(np.ones_like(X))
    full.data[:] = X.ravel()
    return full


def in_halves(X):
    """A COO array with 64-bit indices that has each entry in two halves."""
    cells = np.tile(np.nonzero(X), 2)
    return sparse.coo_array((np.tile(X[np.nonzero(X)] / 2, 2), cells), shape=X.shape)


SPARSE = {
    "coo": sparse.coo_array,
    "bsr": sparse.bsr_array,
    "dia": sparse.dia_array,
    "lil": sparse.lil_array,
    "dok": sparse.dok_array,
    "64-bit indices": with_indices(np.int64, np.int64),
    "64-bit pointers": with_indices(np.int32, np.int64),
    "64-bit columns": with_indices(np.int64, np.int32),
    "unsorted": reversed_rows,
    "stored zeros": stored_zeros,
    "in halves": in_halves,
}


@pytest.mark.parametrize("which", ["X", "X_val", "both"])
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_rows_in_any_form_have_the_values_of_csr(name, which, rng):
    problem = sparse_grid(rng)
    csr = problem._replace(
        X=sparse.csr_array(problem.X), X_val=sparse.csr_array(problem.X_val)
    )
    changes = {}
    if which != "X_val":
        changes["X"] = SPARSE[name](problem.X)
    if which != "X":
        changes["X_val"] = SPARSE[name](problem.X_val)
    for valuer in (KNNShapleyValuer(3), TKNNShapleyValuer(1.0, metric="euclidean")):
        expected = csr.fit(clone(valuer))
        fitted = csr._replace(**changes).fit(clone(valuer))
        np.testing.assert_array_equal(fitted.values_, expected.values_)
        new = SPARSE[name](problem.X_val[:5])
        np.testing.assert_array_equal(
            fitted.score_samples(new), expected.score_samples(problem.X_val[:5])
        )


def test_entries_that_a_sparse_format_stores_twice_add_up(rng):
    X, y, *_ = sparse_grid(rng)
    X = X + 1.0
    coo = sparse.coo_array(X)
    cells = np.tile(coo.row, 2), np.tile(coo.col, 2)
    halves = sparse.coo_array((np.tile(coo.data / 2, 2), cells), shape=X.shape)
    expected = KNNShapleyValuer().fit(X, y).values_
    np.testing.assert_allclose(KNNShapleyValuer().fit(halves, y).values_, expected)


def test_zeros_that_a_sparse_format_stores_do_not_matter(rng):
    X, y, *_ = sparse_grid(rng)
    explicit = sparse.csr_array(X + 1.0)
    explicit.data[::7] = 0
    before = explicit.copy()
    values = KNNShapleyValuer().fit(explicit, y).values_
    expected = KNNShapleyValuer().fit(explicit.toarray(), y).values_
    np.testing.assert_allclose(values, expected)
    # They are not changed in place.
    np.testing.assert_array_equal(explicit.data, before.data)


def test_sparse_float32_rows_keep_ties(rng):
    # Points off the grid: differences rounded to float32 would break its ties.
    problem = sparse_grid(rng)
    X = problem.X.astype(np.float32)
    X_val = problem.X_val + 0.1 * rng.normal(size=problem.X_val.shape)
    X_val = X_val.astype(np.float32)
    valuer = KNNShapleyValuer(4, metric="manhattan")
    expected = problem._replace(X=X, X_val=X_val).fit(valuer).values_
    thin = problem._replace(X=sparse.csr_array(X), X_val=sparse.csr_array(X_val))
    np.testing.assert_allclose(thin.fit(valuer).values_, expected, rtol=1e-12)


# Files and Dask arrays ----------------------------------------------------------------


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
    X = rng.random(size=(4096, 2048), dtype=np.float32)
    y = rng.integers(0, 2, 4096)
    points = {"X_val": X[:50] + np.float32(0.1), "y_val": y[:50]}
    expected = clone(valuer).fit(X, y, **points).values_
    rows = convert(X, kind, tmp_path)
    lengths = []
    read = Rows.read

    def watched(self):
        lengths.append(len(self))
        return read(self)

    monkeypatch.setattr(Rows, "read", watched)
    with config_context(working_memory=8):
        valuer.fit(rows, y, **points)
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-13)
    assert max(lengths) == 2048
    # All rows are measured, and compared.
    assert sum(length for length in lengths if length < 2048) >= 2 * 4096


OUT_OF_MEMORY = pytest.mark.parametrize("kind", ["memmap", "dask"])


@OUT_OF_MEMORY
@pytest.mark.parametrize(("number", "name"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_numbers_that_are_not_finite_are_refused(kind, number, name, rng, tmp_path):
    X, y, *_ = sparse_grid(rng)
    bad = X.copy()
    bad[100, 2] = number
    valuer = KNNShapleyValuer()
    with pytest.raises(ValueError, match=f"Input X contains {name}"):
        valuer.fit(convert(bad, kind, tmp_path), y)
    message = f"X_val must be like X: Input X_val contains {name}"
    with pytest.raises(ValueError, match=message):
        valuer.fit(X, y, X_val=convert(bad, kind, tmp_path), y_val=y)


@OUT_OF_MEMORY
def test_labels_of_another_length_are_refused(kind, rng, tmp_path):
    X, y, *_ = sparse_grid(rng)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KNNShapleyValuer().fit(convert(X, kind, tmp_path), y[:-1])


@OUT_OF_MEMORY
def test_new_rows_of_another_width_are_refused(kind, rng, tmp_path):
    X, y, *_ = sparse_grid(rng)
    rows = convert(X, kind, tmp_path)
    valuer = KNNShapleyValuer().fit(rows, y)
    message = "X has 4 features, but KNNShapleyValuer is expecting 5"
    with pytest.raises(ValueError, match=message):
        valuer.transform(rows[:, :4])


@OUT_OF_MEMORY
def test_a_single_row_is_refused(kind, rng, tmp_path):
    X, y, *_ = sparse_grid(rng)
    rows = convert(X, kind, tmp_path)
    with pytest.raises(ValueError, match="X must have at least 2 rows. Got 1."):
        KNNShapleyValuer().fit(rows[:1], y[:1])


@OUT_OF_MEMORY
def test_rows_of_texts_are_refused(kind, rng, tmp_path):
    X, y, *_ = sparse_grid(rng)
    texts = convert(X.astype("S3"), kind, tmp_path)
    with pytest.raises(ValueError, match="X must be a 2D array of real numbers"):
        KNNShapleyValuer().fit(texts, y)


def test_integers_in_a_file_are_read_as_float64(rng, tmp_path):
    problem = sparse_grid(rng)
    X = (2 * problem.X).astype(np.int16)
    problem = problem._replace(X=X, X_val=2 * problem.X_val)
    expected = problem.fit(KNNShapleyValuer()).values_
    in_file = problem._replace(X=convert(X, "memmap", tmp_path))
    values = in_file.fit(KNNShapleyValuer()).values_
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("kind", ["memmap", "columns"])
def test_a_pickle_of_rows_in_a_file_names_the_file(kind, rng, tmp_path):
    X = rng.normal(size=(5000, 6))
    data = pickle.dumps(as_rows(convert(X, kind, tmp_path))[3000:][::2])
    assert len(data) < 20_000
    np.testing.assert_array_equal(pickle.loads(data).read(), X[3000::2])


@pytest.fixture
def array_and_rows(rng, tmp_path):
    """An array, and the same rows in a file."""
    X = rng.normal(size=(50, 3))
    return X, as_rows(convert(X, "memmap", tmp_path))


def test_views_of_views_have_the_rows_of_arrays(array_and_rows):
    X, rows = array_and_rows
    expected = X[10:40][5:][[3, 0, -1]]
    np.testing.assert_array_equal(rows[10:40][5:][[3, 0, -1]].read(), expected)


def test_a_mask_selects_rows(array_and_rows):
    X, rows = array_and_rows
    is_positive = X[:, 0] > 0
    np.testing.assert_array_equal(rows[is_positive].read(), X[is_positive])


def test_concatenated_rows_are_read_across_both(array_and_rows):
    X, rows = array_and_rows
    both = concatenate_rows(rows, X[:7])
    assert isinstance(both, Rows)
    expected = np.concatenate([X, X[:7]])[45:55]
    np.testing.assert_array_equal(both[45:55].read(), expected)


def test_rows_are_not_converted_to_an_array_unasked(array_and_rows):
    _, rows = array_and_rows
    with pytest.raises(TypeError, match="read block by block"):
        np.asarray(rows)


def test_memory_maps_that_joblib_makes_are_memory(rng, tmp_path):
    folder = tmp_path / "joblib_memmapping_folder_1_2"
    folder.mkdir()
    X = convert(rng.normal(size=(20, 3)), "memmap", folder)
    assert as_rows(X) is X


def test_dask_arrays_of_unknown_length_are_refused(rng):
    X, y, *_ = sparse_grid(rng)
    lazy = convert(X, "dask", None)
    message = "X must have known chunk sizes: call compute_chunk_sizes"
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer().fit(lazy[lazy[:, 0] > 0], y)


def test_dask_arrays_without_columns_are_refused(rng):
    X, y, *_ = sparse_grid(rng)
    lazy = convert(X, "dask", None)
    message = r"X must have at least 1 column. Got shape \(\d+, 0\)"
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer().fit(lazy[:, :0], y)


def test_a_callable_metric_of_sparse_rows_is_refused(rng):
    X, y, *_ = sparse_grid(rng)
    message = "metric must be one of .* for sparse X, .* Got <function"
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer(metric=lambda a, b: 0.0).fit(sparse.csr_array(X), y)
