"""Which rows of a new array are rows that the valuer was fitted on."""

import numpy as np

from ._hashes import row_hashes


class SeenRows:
    """Look-up of fitted values by row; X are the rows of fit. Identical rows are a
    group."""

    def __init__(self, X):
        self._hashes, self._group = np.unique(row_hashes(X), return_inverse=True)

    def lookup(self, X, y, y_fit, values):
        """Mean value of the identical rows of fit, and a mask of the rows that have
        any.

        With y, rows are identical only if their labels are.
        """
        hashes = row_hashes(X)
        wanted = np.minimum(
            np.searchsorted(self._hashes, hashes), len(self._hashes) - 1
        )
        wanted[self._hashes[wanted] != hashes] = -1
        found = np.zeros(len(y_fit), dtype=bool)
        found[wanted[wanted >= 0]] = True
        rows = np.flatnonzero(found[self._group])
        keys = self._group[rows]
        if y is not None:
            both = np.concatenate([y_fit[rows], y])
            labels, codes = np.unique(both, return_inverse=True)
            keys = keys * len(labels) + codes[: len(rows)]
            wanted = np.where(
                wanted >= 0, wanted * len(labels) + codes[len(rows) :], -1
            )
        kept, inverse = np.unique(keys, return_inverse=True)
        means = np.bincount(inverse, weights=values[rows]) / np.bincount(inverse)
        place = np.searchsorted(kept, wanted)
        known = np.append(kept, -2)[place] == wanted
        return np.where(known, np.append(means, 0.0)[place], 0.0), known
