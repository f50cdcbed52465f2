"""Features of the smallest coalitions, with coefficients by size."""

import numpy as np

_MAX_SIZES = 8


class SmallestSizes:
    """The sizes of the first stratum, at most 8, as strata of one size each.

    Probabilities are those of the first stratum, so that an expectation "in" such a
    stratum is that of the feature times the indicator of the size.
    """

    def __init__(self, strata):
        n = len(strata.stratum) - 1
        largest_size = 0
        if strata.n_strata > 1:
            largest_size = min(np.flatnonzero(strata.stratum == 0).max(), _MAX_SIZES)
        self.n_strata = int(largest_size)

        sizes = np.arange(n + 1)
        self.stratum = np.clip(sizes - 1, 0, max(largest_size - 1, 0))
        is_size = sizes == np.arange(1, largest_size + 1)[:, None]
        self.side_probabilities = [
            np.where(is_size, probabilities[0], 0.0)
            for probabilities in strata.side_probabilities
        ]


class BySize:
    """Features in the first stratum, with one coefficient for each of its sizes.

    A model of few rows often fails, predicts one class, or differs by size in other
    ways.

    Parameters
    ----------
    features : object
        Features of another kind, of the strata, whose description these share.
    features_of_sizes : object
        The same features, of `SmallestSizes`.
    n_strata : int
        Number of strata.
    """

    n_described = 0

    def __init__(self, features, features_of_sizes, n_strata):
        self.features = features
        self._features_of_sizes = features_of_sizes
        self._n_sizes = len(features_of_sizes.band)
        self.width = self._n_sizes * features.width
        self.band = np.where(np.arange(n_strata) == 0, 0, -1)

    def local(self, described, sizes):
        by_size = np.zeros((len(sizes), self._n_sizes, self.features.width))
        rows = np.flatnonzero((sizes >= 1) & (sizes <= self._n_sizes))
        values = self.features.local(described, sizes)
        by_size[rows, sizes[rows] - 1] = values[rows]
        return by_size.reshape(len(sizes), self.width)

    def expected(self, coefs):
        n_fits = coefs.shape[2]
        coefs = coefs.reshape(self._n_sizes, self.features.width, n_fits)
        sides = []
        for of_sizes in self._features_of_sizes.expected(coefs):
            expected = np.zeros((len(self.band), *of_sizes.shape[1:]))
            expected[0] = of_sizes.sum(axis=0)
            sides.append(expected)
        return sides
