"""What a fit leaves behind, in one record that the next fit replaces."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ._problem import Problem
from ._release import EXACT, Release
from ._seen_rows import SeenRows


@dataclass(frozen=True, eq=False)
class Result:
    """What a method computes: values of the players, and public attributes beside them."""

    values: np.ndarray
    utility: float
    empty_utility: float
    problem: Problem  # with the splits and points that were evaluated before the fit ended
    statistic: object = None  # what scoring new rows needs; in a private fit, what was released
    attributes: dict = field(default_factory=dict)
    error: Exception | None = None  # raised once the values are set
    warn: Callable | None = None  # warns of what was found, once the values are set


@dataclass(frozen=True, eq=False)
class Fitted:
    """A result, the attributes it was computed with, and the release that it went through."""

    result: Result
    attributes: dict = field(default_factory=dict)
    release: Release = EXACT
    cache: dict = field(default_factory=dict)  # filled by the first `transform`, and so on

    @classmethod
    def of(cls, result, attributes, release):
        """The record of a fit; that of a private one holds no row."""
        result = replace(result, error=None, warn=None)
        if not release.is_exact:
            problem = replace(result.problem, X=None, y=None, sample_weight=None)
            result = replace(result, problem=problem)
        return cls(result, attributes, release)

    @property
    def problem(self):
        """The problem that was solved."""
        return self.result.problem

    @property
    def statistic(self):
        """What the method keeps for scoring new rows."""
        return self.result.statistic

    @property
    def is_private(self):
        """Whether the fit was private."""
        return not self.release.is_exact

    @property
    def hides_values(self):
        """Whether the values are for the curator only."""
        return self.is_private and not self.release.values_are_public

    @property
    def row_values(self):
        """The value of each row: its own, or its group's."""
        groups, values = self.problem.groups, self.result.values
        return values if groups is None else values[groups]

    def lookup(self, X, codes):
        """Values of the rows that were in fit, and a mask of these rows."""
        problem = self.problem
        if problem.X is None:
            return np.zeros(len(X)), np.zeros(len(X), dtype=bool)
        seen = self.cache.setdefault("seen", SeenRows())
        return seen.lookup(X, codes, problem.X, problem.y, self.row_values)

    def __getstate__(self):
        # Values of a private fit are for the curator, and stay in the process that fitted.
        state = {**vars(self), "cache": {}}
        if self.hides_values:
            problem = replace(self.problem, groups=None, group_names=None)
            state["result"] = replace(self.result, values=None, problem=problem)
        if self.is_private:  # a seed would take the noise off again
            state["release"] = replace(self.release, noise_random_state=None)
        return state
