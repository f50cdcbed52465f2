"""Features of the smallest coalitions, with coefficients by size."""

import numpy as np

_MOST = 8  # sizes


class SmallestSizes:
    """The sizes of the first stratum, at most 8, as strata of one size each.

    Probabilities are those of the first stratum, so that an expectation "in" such a
    stratum is that of the feature times the indicator of the size.
    """

    def __init__(self, strata):
        n = len(strata.stratum) - 1
        last = (
            min(np.flatnonzero(strata.stratum == 0).max(), _MOST)
            if strata.n_strata > 1
            else 0
        )
        self.n_strata, sizes = int(last), np.arange(n + 1)
        self.stratum = np.clip(sizes - 1, 0, max(last - 1, 0))
        alone = sizes == np.arange(1, last + 1)[:, None]
        self.side_probabilities = [
            np.where(alone, p[0], 0.0) for p in strata.side_probabilities
        ]


class BySize:
    """Features of another kind in the first stratum, one coefficient for each of its
    sizes.

    A model of few rows often fails, predicts one class, or differs by size in other
    ways.
    """

    n_described = 0

    def __init__(self, part, small, n_strata):
        self.part, self._of_sizes = (
            part,
            small,
        )  # of the strata, and of the smallest sizes
        self._n_sizes = len(small.band)
        self.width = self._n_sizes * part.width
        self.band = np.where(np.arange(n_strata) == 0, 0, -1)

    def local(self, described, sizes):
        by_size = np.zeros((len(sizes), self._n_sizes, self.part.width))
        rows = np.flatnonzero((sizes >= 1) & (sizes <= self._n_sizes))
        by_size[rows, sizes[rows] - 1] = self.part.local(described, sizes)[rows]
        return by_size.reshape(len(sizes), self.width)

    def expected(self, coefs):
        coefs = coefs.reshape(self._n_sizes, self.part.width, coefs.shape[2])
        found = []
        for expected in self._of_sizes.expected(coefs):
            found.append(np.zeros((len(self.band), *expected.shape[1:])))
            found[-1][0] = expected.sum(axis=0)
        return found
