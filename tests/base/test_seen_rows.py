"""Rows are found again by hash, and never taken for others."""

import numpy as np
import pytest

from skvalue.base._seen_rows import SeenRows, hash_rows


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_hash_alike_and_others_do_not(rng, dtype):
    X = rng.integers(-3, 4, (5000, 4)).astype(dtype)
    X[rng.random(X.shape) < 0.05] *= -0.0
    unique, inverse = np.unique(X, axis=0, return_inverse=True)
    inverse = inverse.ravel()  # NumPy 2.0 gives a column
    hashes = hash_rows(X)
    assert len(np.unique(hashes)) == len(unique)
    order = np.argsort(inverse, kind="stable")
    same = np.diff(inverse[order]) == 0
    assert (hashes[order][1:][same] == hashes[order][:-1][same]).all()


def test_lookup_averages_identical_rows():
    X = np.array([[1.0, 2], [3, 4], [1, 2], [5, 6]])
    y, values = np.array([0, 1, 1, 0]), np.array([1.0, 2.0, 5.0, 4.0])
    asked = np.array([[1.0, 2], [5, 6], [7, 8]])
    mean, known = SeenRows().lookup(asked, None, X, y, values)
    assert known.tolist() == [True, True, False]
    assert mean[:2].tolist() == [3.0, 4.0]
    mean, known = SeenRows().lookup(asked, np.array([1, 1, 0]), X, y, values)
    assert known.tolist() == [True, False, False]
    assert mean[0] == 5.0


def test_a_collision_of_hashes_is_no_match(monkeypatch):
    monkeypatch.setattr(
        "skvalue.base._seen_rows.hash_rows", lambda X: np.zeros(len(X), dtype=np.uint64)
    )
    X, values = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])
    mean, known = SeenRows().lookup(np.array([[2.0, 3], [9, 9]]), None, X, None, values)
    assert known.tolist() == [True, False]
    assert mean[0] == 2.0
