"""Functions of the size of a coalition."""

import numpy as np

_BINS = 6


class Sizes:
    """log |S|, and ``1[|S| >= e]`` for five edges that split the draws of the stratum
    equally."""

    width, n_described = _BINS, 0

    def __init__(self, strata):
        self.band, sizes = np.arange(strata.n_strata), np.arange(len(strata.stratum))
        at = np.arange(1, _BINS) / _BINS
        below = np.cumsum(strata.probabilities, axis=1)
        edges = (below[:, :, None] < at).sum(
            axis=1
        ) + 1  # (n_strata, 5); above the last size: 0
        # Values of the features by (size, stratum).
        steps = sizes[:, None, None] >= edges
        logs = np.broadcast_to(
            np.log(np.maximum(sizes, 1))[:, None, None], (*steps.shape[:2], 1)
        )
        table = np.concatenate([logs, steps], axis=2)
        self._means = [
            np.einsum("ks,skw->kw", p, table) for p in strata.side_probabilities
        ]
        self._table = table[sizes, np.maximum(strata.stratum, 0)]

    def local(self, described, sizes):
        return self._table[sizes]

    def expected(self, coefs):
        return [np.einsum("kw,kwf->kf", mean, coefs)[:, None] for mean in self._means]
