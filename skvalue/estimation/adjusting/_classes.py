"""Functions of the class counts of a coalition."""

import numpy as np

_N_FUNCTIONS = 5


class Counts:
    """Functions of the number of members ``n_c`` of each class c, by stratum.

    ``1[n_c = 0]``, ``1[n_c <= 1]``, ``1[n_c <= 3]``, ``1[2 n_c > s] + 1[2 n_c = s] /
    2`` and ``log((n_c + 1) / (s + C))``, summed over the classes with the class weights
    and with equal weights; with two classes, of each class. The number of members of
    class c among s - 1 (or s) of the other players is hypergeometric, so that
    expectations depend on the class of the player.
    """

    def __init__(self, strata, codes, class_weights):
        n_classes = len(class_weights)
        self.band = np.arange(strata.n_strata)
        if n_classes <= 2:
            self._weights = np.eye(n_classes)
        else:
            self._weights = np.stack([class_weights, np.ones(n_classes)])
        self.n_described = self.width = _N_FUNCTIONS * len(self._weights)
        self._codes = np.array(codes, dtype=np.int64)
        self._log = np.log(np.arange(1, len(codes) + n_classes + 1))
        self._means = self._expected_functions(strata, n_classes)

    def _expected_functions(self, strata, n_classes):
        """Expectations of the features for a player of each class, of both sides.

        Each of shape (n_strata, width, n_classes).
        """
        from .sums_kernels import count_expectations

        # They depend on the class by its number of rows alone, and by whether it is
        # that of the player: (n_strata, n_distinct, 2, n_functions).
        totals = np.bincount(self._codes, minlength=n_classes)
        distinct, place = np.unique(totals, return_inverse=True)
        means = []
        for side, probabilities in enumerate(strata.side_probabilities):
            table = np.zeros((strata.n_strata, len(distinct), 2, _N_FUNCTIONS))
            count_expectations(
                strata.stratum,
                probabilities.sum(axis=0),
                distinct,
                side == 0,
                self._log,
                table,
            )
            # The denominator log(s + C) has no count in it. Probabilities sum to 0 in a
            # stratum without such coalitions.
            log_sizes = probabilities @ self._log[n_classes - 1 :]
            table[..., 4] -= log_sizes[:, None, None]

            # The player changes the functions of its own class alone.
            as_other = table[:, place, 0]  # (n_strata, n_classes, n_functions)
            as_own = table[:, place, 1]
            base = np.einsum("kcf,wc->kwf", as_other, self._weights)[:, :, :, None]
            change = np.einsum("kcf,wc->kwfc", as_own - as_other, self._weights)
            means.append((base + change).reshape(-1, self.width, n_classes))
        return means

    def describe(self, masks, starts, members):
        from .sums_kernels import count_functions

        sums = np.empty((len(masks), len(self._weights), _N_FUNCTIONS))
        count_functions(starts, members, self._codes, self._weights, self._log, sums)
        return sums.reshape(len(masks), self.width)

    def local(self, described, sizes):
        return described

    def expected(self, coefs):
        return [
            np.einsum("kwc,kwf->kcf", mean, coefs)[:, self._codes]
            for mean in self._means
        ]
