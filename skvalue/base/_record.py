"""The record of a fit, which the next fit replaces."""

from dataclasses import dataclass, field, replace

import numpy as np

from ..neighbors import Rows
from ._containers import is_plain, n_rows_of, row_hashes
from ._problem import Problem
from ._release import EXACT, Release
from ._seen_rows import SeenRows


@dataclass(frozen=True, eq=False)
class Result:
    """What a method computes: values of the players, and other public attributes."""

    values: np.ndarray
    utility: float
    empty_utility: float
    problem: Problem  # with the splits and points that were evaluated
    statistic: object = None  # what `score_samples` needs; in a private fit, what was released
    attributes: dict = field(default_factory=dict)
    error: Exception | None = None  # raised after the values are set
    warnings: tuple = ()  # (message, category) of warnings issued after the values are set
    curator: dict = field(default_factory=dict)  # other arrays of players, hidden like the values


@dataclass(frozen=True, eq=False)
class Fitted:
    """A result, the attributes returned by `_prepare`, and the release."""

    result: Result
    attributes: dict = field(default_factory=dict)
    release: Release = EXACT
    cache: dict = field(default_factory=dict)  # of later calls, such as `transform`

    @classmethod
    def of(cls, result, attributes, release):
        """The record of a fit; after a private fit, without the rows."""
        result = replace(result, error=None, warnings=())
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
        """What the method keeps for `score_samples`."""
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
        """The value of each row, or of its group."""
        groups, values = self.problem.groups, self.result.values
        return values if groups is None else values[groups]

    def lookup(self, X, codes):
        """Values of the rows that were in fit, and a mask of these rows."""
        problem = self.problem
        if problem.X is None:
            return np.zeros(n_rows_of(X)), np.zeros(n_rows_of(X), dtype=bool)
        if "seen" not in self.cache:
            as_they_are = isinstance(problem.X, Rows) or is_plain(problem.X)
            X_fit = problem.X if as_they_are else row_hashes(problem.X)
            self.cache.update(X=X_fit, seen=SeenRows())
        seen, X_fit = self.cache["seen"], self.cache["X"]
        X = X if X_fit is problem.X else row_hashes(X)
        return seen.lookup(X, codes, X_fit, problem.y, self.row_values)

    def __getstate__(self):
        # Values of a private fit are for the curator: they are not pickled.
        state = {**vars(self), "cache": {}}
        if self.hides_values:
            problem = replace(self.problem, groups=None, group_names=None)
            state["result"] = replace(self.result, values=None, curator={}, problem=problem)
        if self.is_private:  # with the seed the noise could be removed
            state["release"] = replace(self.release, noise_random_state=None)
        return state
