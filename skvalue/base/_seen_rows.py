"""Which rows of a new array are rows that the valuer was fitted on."""

import numpy as np

from ._hashes import row_hashes


class SeenRows:
    """Look-up of fitted values by row; X are the rows of fit.

    Identical rows of fit are one kind of row.
    """

    def __init__(self, X):
        self._hashes, self._kinds = np.unique(row_hashes(X), return_inverse=True)

    def lookup(self, X, y, y_fit, values):
        """Mean values of the identical rows of fit, and which rows have any.

        With y, rows are identical only if their labels are. Both results have one entry
        per row of X; the value of other rows is 0.
        """
        kinds = self._kinds_of(X)

        # Only rows of fit of these kinds are compared.
        is_asked = np.zeros(len(y_fit), dtype=bool)
        is_asked[kinds[kinds >= 0]] = True
        rows = np.flatnonzero(is_asked[self._kinds])
        kinds_fit = self._kinds[rows]
        if y is not None:
            # A pair of a kind and a label is one number.
            labels, codes = np.unique(
                np.concatenate([y_fit[rows], y]), return_inverse=True
            )
            kinds_fit = kinds_fit * len(labels) + codes[: len(rows)]
            with_labels = kinds * len(labels) + codes[len(rows) :]
            kinds = np.where(kinds >= 0, with_labels, -1)

        # The mean of each kind, and 0 for rows of a kind that no row of fit has. The
        # place of these may be behind the last kind, where -2 is no kind.
        kinds_fit, index = np.unique(kinds_fit, return_inverse=True)
        means = np.bincount(index, weights=values[rows]) / np.bincount(index)
        place = np.searchsorted(kinds_fit, kinds)
        is_seen = np.append(kinds_fit, -2)[place] == kinds
        return np.where(is_seen, np.append(means, 0.0)[place], 0.0), is_seen

    def _kinds_of(self, X):
        """Kind of each row; -1 for rows that were not in fit."""
        hashes = row_hashes(X)
        kinds = np.searchsorted(self._hashes, hashes)
        kinds = np.minimum(kinds, len(self._hashes) - 1)
        kinds[self._hashes[kinds] != hashes] = -1
        return kinds
