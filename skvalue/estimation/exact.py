"""Semivalues from the utilities of all coalitions."""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from ..semivalues import tabulated_semivalue
from .design import ENTRIES, ROUND, Design, Moments


@dataclass(frozen=True)
class TableMoments(Moments):
    """Utilities of coalitions in a fixed order; the first `count` are known, the rest
    NaN.

    `add` fills the array in place after the first `count` entries, which never change.
    """

    count: int
    utilities: np.ndarray

    def add(self, utilities):
        filled = self.utilities.copy() if self.count == 0 else self.utilities
        filled[self.count : self.count + len(utilities)] = utilities
        return replace(self, count=self.count + len(utilities), utilities=filled)


class ExactDesign(Design):
    """All 2^n coalitions."""

    exact = True

    def __init__(self, q, **options):
        self.q, self.total = q, 2 ** len(q)
        self.cost = min(ROUND, self.total)
        self.n_blocks = -(-self.total // self.cost)
        super().__init__(len(q), **options)

    def _no_moments(self):
        return TableMoments(0, np.full(self.total, np.nan))

    def round_of(self, block):
        return block, block + 1

    def _ask(self, blocks):
        start, stop = self.moments.count, min((self.block + 1) * self.cost, self.total)
        codes = np.arange(
            start, min(start + min(self.size, max(1, ENTRIES // self.n)), stop)
        )
        self._drawn = (codes[:, None] >> np.arange(self.n)) % 2 == 1
        return self._drawn

    def _tell(self, utilities):
        moments = self.moments.add(utilities)
        complete = moments.count == min((self.block + 1) * self.cost, self.total)
        self._drawn = None if complete else self._drawn
        self._advance(moments, complete, len(utilities))

    def values(self):
        if not self.has_reliable_errors:
            return np.full(self.n, np.nan)
        return tabulated_semivalue(self.moments.utilities, lambda _n: self.q)

    def variances(self):
        error = 0.0 if self.has_reliable_errors else np.inf
        return np.full(self.n, error), np.full(self.n, np.inf)

    def reweighted(self, q):
        other = copy(self)
        other.q = q
        return other, 0.0, 0.0

    @property
    def has_reliable_errors(self):
        return self.moments.count == self.total
