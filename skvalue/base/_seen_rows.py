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


def _matches(X, rows, others, chosen):
    """Which rows of X equal the chosen rows of another array; NaN equals NaN in dense arrays."""
    size = max(1, _BLOCK // X.shape[1])
    found = [np.zeros(0, dtype=bool)]
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        first, second = read_rows(X[rows[part]]), read_rows(others[chosen[part]])
        if sparse.issparse(first) or sparse.issparse(second):
            different = (sparse.csr_array(first) != sparse.csr_array(second)).tocsr()
            found.append(np.diff(different.indptr) == 0)
        else:
            same = (first == second) | ((first != first) & (second != second))
            found.append(same.all(axis=1))
    return np.concatenate(found)


class SeenRows:
    """Look-up of fitted values by row; X are the rows of fit.

    Identical rows are a group. A row whose hash collides with that of another one is not found.
    """

    def __init__(self, X):
        hashes, first, group = np.unique(hash_rows(X), return_index=True, return_inverse=True)
        later = np.flatnonzero(first[group] != np.arange(len(X)))
        group[later[~_matches(X, later, X, first[group[later]])]] = len(hashes)
        self.X, self._hashes, self._firsts, self._group = X, hashes, first, group

    def _find(self, X):
        """The group of each row of X, or -1."""
        hashes = hash_rows(X)
        place = np.searchsorted(self._hashes[:-1], hashes)
        rows = np.flatnonzero(self._hashes[place] == hashes)
        rows = rows[_matches(X, rows, self.X, self._firsts[place[rows]])]
        group = np.full(len(X), -1)
        group[rows] = place[rows]
        return group

    def lookup(self, X, y, y_fit, values):
        """Mean value of the identical rows of fit, and a mask of the rows that have any.

        With y, rows are identical only if their labels are.
        """
        wanted = self._find(X)
        found = np.zeros(len(y_fit), dtype=bool)
        found[wanted[wanted >= 0]] = True
        rows = np.flatnonzero(found[self._group])
        keys = self._group[rows]
        if y is not None:
            both = np.concatenate([y_fit[rows], y])
            labels, codes = np.unique(both, return_inverse=True)
            keys = keys * len(labels) + codes[: len(rows)]
            wanted = np.where(wanted >= 0, wanted * len(labels) + codes[len(rows) :], -1)
        kept, inverse = np.unique(keys, return_inverse=True)
        means = np.bincount(inverse, weights=values[rows]) / np.bincount(inverse)
        place = np.searchsorted(kept, wanted)
        known = np.append(kept, -2)[place] == wanted
        return np.where(known, np.append(means, 0.0)[place], 0.0), known
