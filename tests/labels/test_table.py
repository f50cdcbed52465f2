"""Numbers of the columns of tables."""

import datetime

import numpy as np
import pytest
from scipy import sparse

from skvalue.labels import find_duplicates, match_rows, table_to_numbers


@pytest.mark.parametrize("container", ["pandas", "polars", "array"])
def test_columns_of_any_type_become_numbers(container):
    columns = {
        "age": [1.0, None, 3.0, 8.0],
        "job": ["a", "b", None, "a"],
        "old": [True, False, True, True],
        "empty": [None, None, None, None],
        "born": [datetime.date(2020, 1, day) for day in (1, 2, 3, 4)],
    }
    if container == "array":
        table = np.array(list(columns.values()), dtype=object).T
    else:
        table = pytest.importorskip(container).DataFrame(columns)
    vectors, notes = table_to_numbers(table)
    day = 86400.0
    expected = [
        [1, 1, 0, 0, 0, 1, 0],
        [3, 0, 1 * day, 1, 0, 0, 1],
        [3, 1, 2 * day, 0, 1, 0, 0],
        [8, 1, 3 * day, 0, 0, 1, 0],
    ]
    vectors[:, 2] -= vectors[0, 2]
    np.testing.assert_allclose(vectors, expected)

    # There is no note on a column of plain numbers.
    age, job, empty, born = notes
    assert "1 missing value replaced" in age
    assert "3 levels" in job
    assert "left out, it has no entry" in empty
    assert "seconds" in born


def test_plain_numbers_are_unchanged(rng):
    X = rng.normal(size=(5, 3))
    vectors, notes = table_to_numbers(X)
    np.testing.assert_array_equal(vectors, X)
    assert notes == []


def test_sparse_numbers_are_unchanged(rng):
    X = rng.normal(size=(5, 3))
    vectors, notes = table_to_numbers(sparse.csr_array(X))
    np.testing.assert_array_equal(vectors.toarray(), X)
    assert notes == []


def test_categories_of_many_levels_share_a_column():
    X = np.array([[f"level {i % 30}"] for i in range(90)], dtype=object)
    vectors, (note,) = table_to_numbers(X)
    assert vectors.shape == (90, 20)
    assert "30 levels, one column each for 19, one for the others" in note


def test_categories_that_are_numbers_are_categories():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"code": pandas.Categorical([3, 1, 3, None])})
    vectors, _ = table_to_numbers(frame)
    assert vectors.shape == (4, 3)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array(["a text", "another"], dtype=object), "pass embedding="),
        (np.zeros((3, 4, 4)), "pass embedding="),
        (np.array([[np.inf], [1.0]]), "Got infinity in the column 'x0'"),
        (
            np.array([["a", 10**400], ["b", 1]], dtype=object),
            "Got infinity in the column 'x1'",
        ),
        (
            np.array([[f"name {i}"] for i in range(50)], dtype=object),
            "X must have a column",
        ),
        (sparse.csr_array([[np.nan, 1.0]]), "NaN"),
    ],
)
def test_tables_without_finite_numbers_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        table_to_numbers(X)


@pytest.mark.parametrize("rows", [0, 3])
def test_no_rows_have_no_duplicates(rows):
    X = np.arange(2.0 * rows).reshape(rows, 2)
    duplicates = find_duplicates(X[:0])
    assert len(duplicates.codes) == 0
    assert duplicates.verdict == "none"
    codes, codes_of_none, pairs = match_rows(X, X[:0])
    assert (len(codes), len(codes_of_none), len(pairs)) == (rows, 0, 0)
