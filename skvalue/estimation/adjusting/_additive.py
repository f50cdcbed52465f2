"""Sums over the members of a coalition."""

import numpy as np


class Additive:
    """``h(|S|) (1[j in S] - |S| / n)`` for every player j and two profiles h, in all
    strata.

    With coefficients b, ``x(S)'b = h(s) sum_j b_j (1[j in S] - s/n)``, and its
    expectation given S of size s is, with i in S and without,

        ``h(s) (b_i (1 - s/n) + (sum_j b_j - b_i) (s - n) / (n (n - 1)))``
        ``h(s) (-b_i s/n + (sum_j b_j - b_i) s / (n (n - 1)))``

    The profiles are 1/s and 1 / max(s, n/8). There are 2 n columns: use only with many
    coalitions (20 n or more). A description holds the members as the bits of its
    numbers.
    """

    def __init__(self, strata):
        n = len(strata.stratum) - 1
        self.band, self.width = np.zeros(strata.n_strata, dtype=np.int64), 2 * n
        self._n, self.n_described = n, -(-n // 64)
        s = np.arange(n + 1)
        profiles = [1 / np.maximum(s, least) for least in (1, n / 8)]
        pairs = max(n * (n - 1), 1)
        own_other = ((1 - s / n, (s - n) / pairs), (-s / n, s / pairs))
        # Of each side: factors of b_i and of the sum of the others, (2 profiles, 2,
        # n_strata).
        self._factors = [
            np.array([[(p * h) @ own, (p * h) @ other] for h in profiles])
            for p, (own, other) in zip(strata.side_probabilities, own_other)
        ]
        self._profiles = np.array(profiles)

    def describe(self, masks, starts, members):
        bits = np.packbits(masks, axis=1)
        packed = np.zeros((len(masks), 8 * self.n_described), dtype=np.uint8)
        packed[:, : bits.shape[1]] = bits
        return packed.view(np.float64)

    def local(self, described, sizes):
        packed = np.ascontiguousarray(described).view(np.uint8)
        centered = (
            np.unpackbits(packed, axis=1, count=self._n) - sizes[:, None] / self._n
        )
        return np.hstack(self._profiles[:, sizes, None] * centered)

    def expected(self, coefs):
        b = coefs.reshape(2, self._n, -1)  # by profiles
        others = b.sum(axis=1, keepdims=True) - b
        return [
            np.einsum("hk,hif->kif", factors[:, 0], b)
            + np.einsum("hk,hif->kif", factors[:, 1], others)
            for factors in self._factors
        ]
