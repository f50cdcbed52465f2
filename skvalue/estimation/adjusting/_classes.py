"""Functions of the class counts of a coalition."""

import numpy as np

_FUNCTIONS = 5


class Counts:
    """Functions of the number of members ``n_c`` of each class c, by stratum.

    ``1[n_c = 0]``, ``1[n_c <= 1]``, ``1[n_c <= 3]``, ``1[2 n_c > s] + 1[2 n_c = s] /
    2`` and ``log((n_c + 1) / (s + C))``, summed over the classes with the class weights
    and with equal weights; with two classes, of each class. The number of members of
    class c among s - 1 (or s) of the other players is hypergeometric, so that
    expectations depend on the class of the player.
    """

    def __init__(self, strata, codes, class_weights):
        from .sums_kernels import count_expectations

        codes = np.array(codes, dtype=np.int64)
        n, n_strata, C = len(codes), strata.n_strata, len(class_weights)
        totals = np.bincount(codes, minlength=C)
        self.band = np.arange(n_strata)
        self._weights = np.eye(C) if C <= 2 else np.stack([class_weights, np.ones(C)])
        self.n_described = self.width = _FUNCTIONS * len(self._weights)
        self._codes, self._log = codes, np.log(np.arange(1, n + C + 1))
        # E of the functions by (stratum, distinct number of rows of the class, whether
        # the player has this class), of both sides.
        distinct, place = np.unique(totals, return_inverse=True)
        shape, self._means = (n_strata, len(distinct), 2, _FUNCTIONS), []
        for side, p in enumerate(strata.side_probabilities):
            table = np.zeros(shape)
            count_expectations(
                strata.stratum, p.sum(axis=0), distinct, side == 0, self._log, table
            )
            # sum of p can be 0 in a stratum without such coalitions; log(s + C) has no
            # count in it.
            table[..., 4] -= (p @ self._log[C - 1 :])[:, None, None]
            other, own = (
                table[:, place, 0],
                table[:, place, 1],
            )  # (n_strata, C, functions)
            weighted = np.einsum("kcf,wc->kwf", other, self._weights)[:, :, :, None]
            change = np.einsum("kcf,wc->kwfc", own - other, self._weights)
            self._means.append((weighted + change).reshape(n_strata, self.width, C))

    def describe(self, masks, starts, members):
        from .sums_kernels import count_functions

        out = np.empty((len(masks), len(self._weights), _FUNCTIONS))
        count_functions(starts, members, self._codes, self._weights, self._log, out)
        return out.reshape(len(masks), self.width)

    def local(self, described, sizes):
        return described

    def expected(self, coefs):
        return [
            np.einsum("kwc,kwf->kcf", mean, coefs)[:, self._codes]
            for mean in self._means
        ]
