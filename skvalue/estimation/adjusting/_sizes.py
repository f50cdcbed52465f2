"""Functions of the size of a coalition."""

import numpy as np

_N_BINS = 6


class Sizes:
    """log |S|, and ``1[|S| >= e]`` for five edges.

    The edges split the draws of the stratum equally.
    """

    width = _N_BINS
    n_described = 0

    def __init__(self, strata):
        self.band = np.arange(strata.n_strata)
        sizes = np.arange(len(strata.stratum))

        # Edges (n_strata, 5); above the last size the indicator is 0.
        fractions = np.arange(1, _N_BINS) / _N_BINS
        cumulated = np.cumsum(strata.probabilities, axis=1)
        edges = (cumulated[:, :, None] < fractions).sum(axis=1) + 1

        # Values of the features by size and stratum.
        indicators = sizes[:, None, None] >= edges
        logs = np.log(np.maximum(sizes, 1))[:, None, None]
        logs = np.broadcast_to(logs, (*indicators.shape[:2], 1))
        table = np.concatenate([logs, indicators], axis=2)
        self._means = [
            np.einsum("ks,skw->kw", probabilities, table)
            for probabilities in strata.side_probabilities
        ]
        self._table = table[sizes, np.maximum(strata.stratum, 0)]

    def local(self, described, sizes):
        return self._table[sizes]

    def expected(self, coefs):
        return [np.einsum("kw,kwf->kf", mean, coefs)[:, None] for mean in self._means]
