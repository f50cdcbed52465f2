"""The logarithm of the size of a coalition."""

import numpy as np


class Sizes:
    """log |S|, with one coefficient per stratum."""

    width, n_described = 1, 0

    def __init__(self, strata):
        self.band = np.arange(strata.n_strata)
        self._log = np.log(np.maximum(np.arange(len(strata.stratum)), 1))
        self._means = [p @ self._log for p in strata.side_probabilities]

    def describe(self, masks, starts, members):
        return np.empty((len(masks), 0))

    def local(self, described, sizes):
        return self._log[sizes, None]

    def expected(self, coefs):
        return [mean[:, None, None] * coefs for mean in self._means]
