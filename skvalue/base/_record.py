"""The record of a fit, which the next fit replaces."""

from dataclasses import dataclass, field, replace

import numpy as np

from ..privacy import Release
from ._containers import n_rows_of
from ._problem import Problem
from ._seen_rows import SeenRows


@dataclass(frozen=True, eq=False)
class Result:
    """What a method computes: values of the players, and other attributes; the record
    of a fit."""

    values: np.ndarray
    utility: float
    empty_utility: float
    problem: Problem  # with the splits and points that were evaluated
    statistic: object = (
        None  # what `score_samples` needs; in a private fit, what was released
    )
    attributes: dict = field(
        default_factory=dict
    )  # set on the valuer if they end in "_"
    release: Release | None = None  # of a private fit
    answers: object = (
        None  # releases one value at a time, `answers.answer(i)`; see `values_for`
    )
    curator: dict = field(
        default_factory=dict
    )  # other arrays of players, hidden like the values
    error: Exception | None = None  # raised after the values are set
    cache: dict = field(
        default_factory=dict, init=False
    )  # of later calls, such as `transform`

    @property
    def is_private(self):
        """Whether the fit was private."""
        return self.release is not None

    @property
    def hides_values(self):
        """Whether the values are for the curator only."""
        return self.is_private and not self.problem.capabilities.values_are_public

    @property
    def row_values(self):
        """The value of each row, or of its group."""
        groups = self.problem.groups
        return self.values if groups is None else self.values[groups]

    def lookup(self, X, codes):
        """Values of the rows that were in fit, and a mask of these rows."""
        problem = self.problem
        if problem.X is None:
            return np.zeros(n_rows_of(X)), np.zeros(n_rows_of(X), dtype=bool)
        if "seen" not in self.cache:
            self.cache["seen"] = SeenRows(problem.X)
        return self.cache["seen"].lookup(X, codes, problem.y, self.row_values)

    def __getstate__(self):
        # Values of a private fit are for the curator: they are not pickled.
        state = {**vars(self), "cache": {}}
        if self.hides_values:
            problem = replace(self.problem, groups=None, group_names=None)
            state |= {"values": None, "curator": {}, "problem": problem}
        if self.is_private:  # with the seed the noise could be removed
            state["release"] = replace(self.release, noise_random_state=None)
        return state
