"""Which rows of a new array are rows that the valuer was fitted on."""

import numpy as np

from ..neighbors import Rows
from ._containers import row_hashes

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


class SeenRows:
    """Look-up of fitted values by row; X are the rows of fit. Identical rows are a group."""

    def __init__(self, X):
        self._hashes, self._group = np.unique(row_hashes(X), return_inverse=True)

    def lookup(self, X, y, y_fit, values):
        """Mean value of the identical rows of fit, and a mask of the rows that have any.

        With y, rows are identical only if their labels are.
        """
        hashes = row_hashes(X)
        wanted = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        wanted[self._hashes[wanted] != hashes] = -1
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
