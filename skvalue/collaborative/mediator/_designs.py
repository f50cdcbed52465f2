"""Coalitions of parties, and semivalues from their values."""

import numpy as np

from ...samplers import draw_orders, prefix_marginals, prefix_masks
from ...semivalues import size_weights, tabulated_semivalue


class AllCoalitions:
    """All 2^n coalitions of n parties; bit i of a coalition's number is party i."""

    def __init__(self, n):
        self.masks = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)
        self.singles, self.grand = 1 << np.arange(n), 2**n - 1

    def semivalues(self, values, semivalue):
        """Semivalues of the parties, and their standard errors, which are 0."""
        return tabulated_semivalue(values, semivalue), np.zeros(self.masks.shape[1])


class PrefixCoalitions:
    """Distinct prefixes of random permutations and of their reverses, and the single
    parties."""

    def __init__(self, n, n_permutations, rng):
        n_pairs = (n_permutations + 1) // 2
        self._pairs = np.array(
            [draw_orders(rng, n, "antithetic") for _ in range(n_pairs)]
        )
        positions = np.argsort(self._pairs.reshape(-1, n), axis=1)
        masks = prefix_masks(
            np.repeat(positions, n, axis=0), np.tile(np.arange(1, n + 1), 2 * n_pairs)
        )
        unique, places = np.unique(masks, axis=0, return_inverse=True)
        self._places = places.reshape(n_pairs, 2, n)
        self.masks = np.concatenate([unique, np.eye(n, dtype=bool)])
        self.singles, self.grand = len(unique) + np.arange(n), self._places[0, 0, -1]

    def semivalues(self, values, semivalue):
        """Mean marginal contributions, and their standard errors over pairs of
        permutations."""
        n_pairs, _, n = self._pairs.shape
        utilities = np.concatenate(
            [np.zeros((n_pairs, 2, 1)), values[self._places]], axis=2
        )
        weights = n * size_weights(semivalue, n)
        gains = np.array(
            [prefix_marginals(*pair, weights) for pair in zip(self._pairs, utilities)]
        )
        errors = (
            gains.std(axis=0, ddof=1) / np.sqrt(n_pairs) if n_pairs > 1 else np.zeros(n)
        )
        return gains.mean(axis=0), errors
