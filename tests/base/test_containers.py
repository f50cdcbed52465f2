"""Rows in containers that scikit-learn does not take: as others, or refused by name."""

import numpy as np
import pytest
from scipy import sparse

from skvalue import (
    DataOOBValuer,
    KNNShapleyValuer,
    LabelErrorDetector,
    ValueFilter,
)
from skvalue.audit import audit_table, check_table
from skvalue.labels import find_duplicates

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

rng = np.random.default_rng(0)
X = np.round(rng.normal(size=(60, 3)), 2)
X[X > 1] = 0.0
Y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
COLUMNS = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}


def with_long_indices(rows):
    """Sparse rows whose indices are of 64 bits."""
    rows.indices = rows.indices.astype(np.int64)
    rows.indptr = rows.indptr.astype(np.int64)
    return rows


CONTAINERS = {
    "pyarrow table": lambda: pa.table(COLUMNS),
    "pyarrow record batch": lambda: pa.record_batch(COLUMNS),
    "polars frame": lambda: pl.DataFrame(COLUMNS),
    "polars lazy frame": lambda: pl.LazyFrame(COLUMNS),
    "pandas frame of Arrow's types": lambda: pa.table(COLUMNS).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
}
SPARSE = {
    "csr array": lambda: with_long_indices(sparse.csr_array(X)),
    "csc matrix": lambda: with_long_indices(sparse.csc_matrix(X)),
}
# Use of the rows -> what is compared.
USES = {
    "neighbours": lambda X: KNNShapleyValuer().fit(X, Y).values_,
    "a model": lambda X: (
        DataOOBValuer(n_estimators=20, random_state=0).fit(X, Y).values_
    ),
    "detector": lambda X: LabelErrorDetector(cv=2, random_state=0).fit(X, Y).values_,
    "filter": lambda X: ValueFilter(KNNShapleyValuer(), 6).fit_resample(X, Y)[0].shape,
    "duplicates": lambda X: find_duplicates(X).codes,
}
OF_FRAMES = {
    "audit": lambda X: audit_table(X, Y, checks="fast", random_state=0).values,
    "checks": lambda X: [
        str(each) for each in check_table(X, Y, cells=False, random_state=0)
    ],
}


CASES = [
    pytest.param(
        container,
        use,
        marks=pytest.mark.slow if use in OF_FRAMES and "lazy" not in container else (),
    )
    for container in CONTAINERS
    for use in [*USES, *OF_FRAMES]
]


@pytest.mark.parametrize(("container", "use"), CASES)
def test_a_frame_of_any_library_is_taken_as_one_of_pandas(container, use):
    function = (USES | OF_FRAMES)[use]
    found = function(CONTAINERS[container]())
    np.testing.assert_array_equal(found, function(pd.DataFrame(COLUMNS)))


@pytest.mark.parametrize("use", ["neighbours", "a model", "detector", "filter"])
@pytest.mark.parametrize("container", SPARSE)
def test_sparse_rows_of_long_indices_are_taken_as_others(container, use):
    rows = SPARSE[container]()
    expected = type(rows)(X)
    found = USES[use](rows)
    np.testing.assert_array_equal(found, USES[use](expected))
    assert rows.indices.dtype == np.int64  # those of the user stay


def test_later_rows_may_be_of_any_library():
    valuer = KNNShapleyValuer().fit(pd.DataFrame(COLUMNS), Y)
    expected = valuer.transform(pd.DataFrame(COLUMNS))
    for make in CONTAINERS.values():
        np.testing.assert_array_equal(valuer.transform(make()), expected)


RECORDS = [{"u": 1.0}] * 60
LISTS = [[1.0, 2.0]] * 60
NESTED = {
    "records of pyarrow": lambda: pa.table({**COLUMNS, "odd": RECORDS}),
    "lists of pyarrow": lambda: pa.table({**COLUMNS, "odd": LISTS}),
    "records of polars": lambda: pl.DataFrame({**COLUMNS, "odd": RECORDS}),
    "lists of polars": lambda: pl.DataFrame({**COLUMNS, "odd": LISTS}),
    "records of a lazy frame": lambda: pl.LazyFrame({**COLUMNS, "odd": RECORDS}),
    "records of pandas": lambda: pa.table({**COLUMNS, "odd": RECORDS}).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
}


@pytest.mark.parametrize("use", [*USES, *OF_FRAMES])
@pytest.mark.parametrize("container", NESTED)
def test_a_column_of_records_or_lists_is_refused_by_its_name(container, use):
    function = (USES | OF_FRAMES)[use]
    with pytest.raises(ValueError, match="records or lists in the column 'odd'"):
        function(NESTED[container]())
