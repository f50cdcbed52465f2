"""Coalitions of parties, and semivalues from their values.

A design has `masks` (n_coalitions, n_parties), the rows `singles` of the coalitions of
one party and the row `grand` of all parties.
"""

import numpy as np

from ...samplers import draw_orders, prefix_marginals, prefix_masks
from ...semivalues import size_weights, tabulated_semivalue


class AllCoalitions:
    """All 2^n coalitions of n parties; bit i of a coalition's number is party i."""

    def __init__(self, n):
        self.masks = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)
        self.singles = 1 << np.arange(n)
        self.grand = 2**n - 1

    def semivalues(self, values, semivalue):
        """Semivalues of the parties, and their standard errors, which are 0."""
        return tabulated_semivalue(values, semivalue), np.zeros(self.masks.shape[1])


class PrefixCoalitions:
    """Distinct prefixes of pairs of reversed permutations, and single parties."""

    def __init__(self, n, n_permutations, rng):
        n_pairs = (n_permutations + 1) // 2
        self._pairs = np.array(
            [draw_orders(rng, n, "antithetic") for _ in range(n_pairs)]
        )
        positions = np.argsort(self._pairs.reshape(-1, n), axis=1)
        lengths = np.tile(np.arange(1, n + 1), 2 * n_pairs)
        prefixes = prefix_masks(np.repeat(positions, n, axis=0), lengths)
        distinct, rows = np.unique(prefixes, axis=0, return_inverse=True)
        self._prefix_rows = rows.reshape(n_pairs, 2, n)
        self.masks = np.concatenate([distinct, np.eye(n, dtype=bool)])
        self.singles = len(distinct) + np.arange(n)
        self.grand = self._prefix_rows[0, 0, -1]

    def semivalues(self, values, semivalue):
        """Mean marginal contributions, and standard errors over pairs."""
        n_pairs, _, n = self._pairs.shape
        utilities = np.concatenate(
            [np.zeros((n_pairs, 2, 1)), values[self._prefix_rows]], axis=2
        )
        weights = n * size_weights(semivalue, n)
        gains = np.array(
            [
                prefix_marginals(orders, prefix_values, weights)
                for orders, prefix_values in zip(self._pairs, utilities)
            ]
        )
        errors = np.zeros(n)
        if n_pairs > 1:
            errors = gains.std(axis=0, ddof=1) / np.sqrt(n_pairs)
        return gains.mean(axis=0), errors
