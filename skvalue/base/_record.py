"""The record of a fit, which the next fit replaces."""

from dataclasses import dataclass, field, replace

import numpy as np

from ..privacy import Release
from ._containers import n_rows_of
from ._problem import Problem
from ._seen_rows import SeenRows


@dataclass(frozen=True, eq=False)
class Result:
    """What a method computes, and what a fitted valuer keeps of it.

    Parameters
    ----------
    values : ndarray of shape (n_players,) or None
        Values of the players: of the groups, if there are any, or of the rows. None if
        there are none yet.
    utility : float
        Utility of all rows, the mean over splits.
    empty_utility : float
        Utility of the empty coalition, the mean over splits.
    problem : Problem
        The problem, with the splits and points that were evaluated.
    statistic : object, default=None
        What `score_samples` and other methods of the valuer need later; in a private
        fit, what was released.
    attributes : dict, default={}
        Further results by name. Those that end in "_" become attributes of the valuer.
    release : skvalue.privacy.Release, default=None
        The release of a private fit.
    answers : object, default=None
        What releases one value at a time, by ``answers.answer(i)``, when an owner calls
        `values_for`.
    curator : dict, default={}
        Other arrays of players by name, which are hidden as the values are.
    error : Exception, default=None
        An error to raise once the values are set.
    pending : str, default=""
        Why there are no values yet, where they are None.
    parameters : dict, default={}
        The parameters of the valuer on which the values depend. `fit` sets it.

    Attributes
    ----------
    cache : dict
        What later calls, such as `transform`, compute once.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.base import Result, make_problem
    >>> X, y = np.arange(6.0).reshape(-1, 1), np.array([0, 1] * 3)
    >>> problem = make_problem(KNNShapleyValuer(), X, y, groups=[0, 0, 1, 1, 2, 2])
    >>> values = problem.sum_by_group(np.arange(6.0))
    >>> Result(values, utility=15.0, empty_utility=0.0, problem=problem).row_values
    array([1., 1., 5., 5., 9., 9.])
    """

    values: np.ndarray
    utility: float
    empty_utility: float
    problem: Problem
    statistic: object = None
    attributes: dict = field(default_factory=dict)
    release: Release | None = None
    answers: object = None
    curator: dict = field(default_factory=dict)
    error: Exception | None = None
    pending: str = ""
    parameters: dict = field(default_factory=dict)
    cache: dict = field(default_factory=dict, init=False)

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
        """Values of the rows that were in fit.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Validated rows.
        codes : ndarray of shape (n_rows,) or None
            Their codes or targets; None finds rows whatever their labels are.

        Returns
        -------
        values : ndarray of shape (n_rows,)
            The mean value of the identical rows of fit, 0 where there are none.
        is_seen : ndarray of bool of shape (n_rows,)
            Where there are identical rows of fit.
        """
        problem = self.problem
        if problem.X is None:
            n_rows = n_rows_of(X)
            return np.zeros(n_rows), np.zeros(n_rows, dtype=bool)
        if "seen" not in self.cache:
            self.cache["seen"] = SeenRows(problem.X)
        return self.cache["seen"].lookup(X, codes, problem.y, self.row_values)

    def __getstate__(self):
        # Values of a private fit are for the curator: they are not pickled.
        state = {**vars(self), "cache": {}}
        if self.hides_values:
            problem = replace(self.problem, groups=None, group_names=None)
            state |= {"values": None, "curator": {}, "problem": problem}
        # With the seed the noise could be removed.
        if self.is_private:
            state["release"] = replace(self.release, noise_random_state=None)
        return state
