"""Which rows of a new array are rows that the valuer was fitted on."""

import numpy as np
from scipy import sparse

from ..neighbors import Rows, read_rows

_BLOCK = 2**22  # numbers in a block that is read at a time


def hash_rows(X):
    """64-bit hash of each row of a float array; equal rows have equal hashes (also 0.0 and -0.0).

    >>> import numpy as np
    >>> h = hash_rows(np.array([[1.0, 0.0], [1.0, -0.0], [0.0, 1.0]]))
    >>> bool(h[0] == h[1]), bool(h[0] == h[2])
    (True, False)
    """
    if isinstance(X, Rows):
        if X.is_sparse:
            return _hash_sparse(X.read())
        blocks = [hash_rows(block) for _, block in X.blocks(max(1, _BLOCK // X.shape[1]))]
        return np.concatenate(blocks)
    hashes = np.full(len(X), 0x9E3779B97F4A7C15, dtype=np.uint64)
    words = np.uint32 if X.dtype == np.float32 else np.uint64
    for column in X.T:
        hashes ^= np.ascontiguousarray(column + 0.0).view(words).astype(np.uint64)
        hashes *= np.uint64(0xBF58476D1CE4E5B9)
        hashes ^= hashes >> np.uint64(29)
    return hashes


def _hash_sparse(X):
    """Row sums of hashes of column and value of the entries of a CSR array without zeros."""
    words = np.uint32 if X.dtype == np.float32 else np.uint64
    hashes = X.indices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    hashes ^= X.data.view(words).astype(np.uint64)
    for _ in range(2):
        hashes *= np.uint64(0xBF58476D1CE4E5B9)
        hashes ^= hashes >> np.uint64(29)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]


def _equal(first, second):
    """Mask of the rows that are equal in two arrays, dense or CSR."""
    if sparse.issparse(first) or sparse.issparse(second):
        return np.diff((sparse.csr_array(first) != sparse.csr_array(second)).tocsr().indptr) == 0
    return (first == second).all(axis=1)


class SeenRows:
    """Look-up of fitted values by row, built by the first look-up and not by fit."""

    def __init__(self):
        self._order = self._sorted = None

    def lookup(self, X, y, X_fit, y_fit, values):
        """Mean value of the identical rows of fit, and a mask of the rows that have any.

        With y, rows are identical only if their labels are.
        """
        if self._order is None:
            hashes = hash_rows(X_fit)
            self._order = np.argsort(hashes, kind="stable")
            self._sorted = hashes[self._order]
        hashes = hash_rows(X)
        starts = np.searchsorted(self._sorted, hashes, side="left")
        counts = np.searchsorted(self._sorted, hashes, side="right") - starts
        total = np.zeros(len(X))
        found = np.zeros(len(X), dtype=np.int64)
        for step in range(counts.max(initial=0)):
            candidates = np.flatnonzero(counts > step)
            rows = self._order[starts[candidates] + step]
            same = _equal(read_rows(X_fit[rows]), read_rows(X[candidates]))
            if y is not None:
                same &= y_fit[rows] == y[candidates]
            total[candidates[same]] += values[rows[same]]
            found[candidates[same]] += 1
        known = found > 0
        total[known] /= found[known]
        return total, known
