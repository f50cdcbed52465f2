"""Rows are found again by hash, and never taken for others."""

import numpy as np
import pytest

from skvalue.base import _seen_rows
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


def test_lookup_costs_one_comparison_a_row_however_many_copies(rng, monkeypatch):
    compared = []
    read = _seen_rows.read_rows
    monkeypatch.setattr(_seen_rows, "read_rows", lambda X: compared.append(len(X)) or read(X))
    X = np.ones((3000, 2))
    X[:3] = rng.normal(size=(3, 2))
    values = rng.normal(size=3000)
    y = rng.integers(0, 2, 3000)
    seen = SeenRows()
    mean, known = seen.lookup(X, None, X, None, values)
    assert known.all()
    assert mean[3:] == pytest.approx(values[3:].mean())
    assert mean[:3] == pytest.approx(values[:3])
    mean, _ = seen.lookup(X, y, X, y, values)
    for label in (0, 1):
        alike = np.flatnonzero(y[3:] == label) + 3
        assert mean[alike] == pytest.approx(values[alike].mean())
    assert sum(compared) <= 6 * 3000


def test_lookup_with_collisions_copies_and_missing_entries(rng, monkeypatch):
    monkeypatch.setattr(
        "skvalue.base._seen_rows.hash_rows", lambda X: (X[:, 0] > 0).astype(np.uint64)
    )
    X = rng.integers(-2, 3, (200, 2)).astype(float)
    X[::7, 1] = np.nan
    y, values = rng.integers(0, 3, 200), rng.normal(size=200)
    for labels in (None, y):
        mean, known = SeenRows().lookup(X, labels, X, y, values)
        assert known.all()
        for row in range(200):
            same = ((X[row] == X) | (np.isnan(X) & np.isnan(X[row]))).all(axis=1)
            same &= True if labels is None else y == y[row]
            assert mean[row] == pytest.approx(values[same].mean())
    unknown = SeenRows().lookup(np.array([[9.0, 9.0], [-9.0, 1.0]]), None, X, y, values)[1]
    assert not unknown.any()
