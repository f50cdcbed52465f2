"""Functions of the class counts of a coalition."""

import numpy as np


class Counts:
    """Which classes are missing, and the logarithms of class frequencies, by stratum.

    With the number ``n_c`` of members of class c, ``1[n_c = 0]`` and ``log((n_c + 1) / (s + C))``,
    summed over the classes with the class weights and with equal weights; with two classes, of
    each class. The number of members of class c among s - 1 (or s) of the other players is
    hypergeometric, so that expectations depend on the class of the player only.
    """

    def __init__(self, strata, codes, class_weights):
        from .sums_kernels import count_expectations

        codes = np.asarray(codes, dtype=np.int64)
        n, n_strata = len(codes), strata.n_strata
        self.band, totals = np.arange(n_strata), np.bincount(codes)
        C = len(totals) if class_weights is None else len(class_weights)
        totals = np.r_[totals, np.zeros(C - len(totals), dtype=totals.dtype)]
        weights = totals / n if class_weights is None else np.asarray(class_weights, float)
        self._weights = np.eye(C) if C <= 2 else np.stack([weights, np.ones(C)])
        self.n_described = self.width = 2 * len(self._weights)
        self._codes, self._log = codes, np.log(np.arange(1, n + C + 1))
        # E of the two functions by (stratum, distinct number of rows of the class, whether the
        # player has this class), of both sides.
        distinct, place = np.unique(totals, return_inverse=True)
        shape, self._means = (n_strata, len(distinct), 2, 2), []
        for side, p in enumerate(strata.side_probabilities):
            table = np.zeros(shape)
            count_expectations(strata.stratum, p.sum(axis=0), distinct, side == 0, self._log, table)
            # sum of p can be 0 in a stratum without such coalitions; log(s + C) has no count in it.
            table[..., 1] -= (p @ self._log[C - 1 :])[:, None, None]
            other, own = table[:, place, 0], table[:, place, 1]  # (n_strata, C, 2)
            weighted = np.einsum("kcf,wc->kfw", other, self._weights)[:, :, :, None]
            change = np.einsum("kcf,wc->kfwc", own - other, self._weights)
            self._means.append((weighted + change).reshape(n_strata, self.width, C))

    def describe(self, masks, starts, members):
        from .sums_kernels import count_functions

        out = np.empty((len(masks), self.width))
        count_functions(starts, members, self._codes, self._weights, self._log, out)
        return out

    def local(self, described, sizes):
        return described

    def expected(self, coefs):
        return [np.einsum("kwc,kwf->kcf", mean, coefs)[:, self._codes] for mean in self._means]
