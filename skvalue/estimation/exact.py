"""Semivalues from the utilities of all coalitions."""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from ..semivalues import tabulated_semivalue
from .design import ENTRIES, ROUND, Design, Moments


@dataclass(frozen=True)
class TableMoments(Moments):
    """Utilities of all coalitions in a fixed order; the first `count` are known.

    The others are NaN. `add` fills the array in place after the first `count` entries,
    which never change.
    """

    count: int
    utilities: np.ndarray

    def add(self, utilities):
        table = self.utilities.copy() if self.count == 0 else self.utilities
        count = self.count + len(utilities)
        table[self.count : count] = utilities
        return replace(self, count=count, utilities=table)


class ExactDesign(Design):
    """All 2^n coalitions, of which the last, of all players, is evaluated first."""

    exact = True

    def __init__(self, q, **options):
        self.q = q
        self.total = 2 ** len(q)
        self.cost = min(ROUND, self.total)
        self.n_blocks = -(-self.total // self.cost)
        super().__init__(len(q), **options)

    def _no_moments(self):
        return TableMoments(count=0, utilities=np.full(self.total, np.nan))

    def round_of(self, block):
        return block, block + 1

    @property
    def _end_of_block(self):
        """Number of coalitions up to the end of the block that is evaluated."""
        return min((self.block + 1) * self.cost, self.total)

    def _ask(self, blocks):
        start = self.moments.count
        n_coalitions = min(self.size, max(1, ENTRIES // self.n))
        end = min(self._end_of_block, self.total - 1)
        codes = np.arange(start, min(start + n_coalitions, end))
        self._pending = (codes[:, None] >> np.arange(self.n)) % 2 == 1
        return self._pending

    def _tell(self, utilities):
        n_new = len(utilities)
        if self.moments.count + n_new == self.total - 1:
            utilities = np.append(utilities, self.full)
        moments = self.moments.add(utilities)
        is_complete = moments.count == self._end_of_block
        if is_complete:
            self._pending = None
        self._advance(moments, int(is_complete), n_new)

    def values(self):
        if not self.has_reliable_errors:
            return np.full(self.n, np.nan)
        return tabulated_semivalue(self.moments.utilities, lambda _n: self.q)

    def variances(self):
        error = 0.0 if self.has_reliable_errors else np.inf
        return np.full(self.n, error), np.full(self.n, np.inf)

    def reweighted(self, q):
        design = copy(self)
        design.q = q
        return design, 0.0, 0.0

    def interactions(self, q):
        """Interactions of pairs of players, (n, n), with zeros on the diagonal.

        ``q``, (n - 1,), are the probabilities of the sizes that a pair joins.
        """
        n = self.n
        interactions = np.zeros((n, n))
        for j in range(n):
            # What player j adds is a game of the others.
            by_player = self.moments.utilities.reshape(2 ** (n - 1 - j), 2, 2**j)
            added = (by_player[:, 1] - by_player[:, 0]).ravel()
            others = np.delete(np.arange(n), j)
            interactions[others, j] = tabulated_semivalue(added, lambda _n: q)
        return interactions

    @property
    def has_reliable_errors(self):
        return self.moments.count == self.total
