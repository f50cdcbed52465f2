"""Sums over the members of a coalition."""

import numpy as np


class Additive:
    """``h(|S|) (1[j in S] - |S| / n)`` for every player j and two profiles h.

    With coefficients b, ``x(S)'b = h(s) sum_j b_j (1[j in S] - s/n)``, and its
    expectation given S of size s is, with i in S and without,

        ``h(s) (b_i (1 - s/n) + (sum_j b_j - b_i) (s - n) / (n (n - 1)))``
        ``h(s) (-b_i s/n + (sum_j b_j - b_i) s / (n (n - 1)))``

    The profiles are 1/s and 1 / max(s, n/8). There are 2 n columns, in all strata: use
    only with many coalitions (20 n or more). A description holds the members as the
    bits of its numbers.
    """

    def __init__(self, strata):
        n = len(strata.stratum) - 1
        self.band = np.zeros(strata.n_strata, dtype=np.int64)
        self.width = 2 * n
        self.n_described = -(-n // 64)
        self._n_players = n

        sizes = np.arange(n + 1)
        smallest_size = np.maximum(sizes, 1)
        self._profiles = np.array([1 / smallest_size, 1 / np.maximum(sizes, n / 8)])

        # What multiplies b_i and the sum of the others in the expectations, by size.
        n_pairs = max(n * (n - 1), 1)
        factors_inside = (1 - sizes / n, (sizes - n) / n_pairs)
        factors_outside = (-sizes / n, sizes / n_pairs)
        probabilities_inside, probabilities_outside = strata.side_probabilities
        self._inside = self._mean_factors(probabilities_inside, *factors_inside)
        self._outside = self._mean_factors(probabilities_outside, *factors_outside)

    def _mean_factors(self, probabilities, own, others):
        """Means over the sizes of each stratum of h times what multiplies coefficients.

        Of shape (2 profiles, 2, n_strata): for the own coefficient, and for the others.
        """
        means = []
        for profile in self._profiles:
            weights = probabilities * profile
            means.append([weights @ own, weights @ others])
        return np.array(means)

    def describe(self, masks, starts, members):
        bits = np.packbits(masks, axis=1)
        packed = np.zeros((len(masks), 8 * self.n_described), dtype=np.uint8)
        packed[:, : bits.shape[1]] = bits
        return packed.view(np.float64)

    def local(self, described, sizes):
        packed = np.ascontiguousarray(described).view(np.uint8)
        members = np.unpackbits(packed, axis=1, count=self._n_players)
        centered = members - sizes[:, None] / self._n_players
        return np.hstack(self._profiles[:, sizes, None] * centered)

    def expected(self, coefs):
        b = coefs.reshape(2, self._n_players, -1)  # by profiles
        others = b.sum(axis=1, keepdims=True) - b
        return [
            np.einsum("hk,hif->kif", factors[:, 0], b)
            + np.einsum("hk,hif->kif", factors[:, 1], others)
            for factors in (self._inside, self._outside)
        ]
