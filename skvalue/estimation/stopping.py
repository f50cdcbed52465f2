"""When to stop asking for more coalitions."""

from dataclasses import dataclass

import numpy as np

from .intervals import decided, t_halfwidth

_SHARE = 0.95  # of the lowest rows that must have been the lowest before


@dataclass
class Stopping:
    """Limits, any of which ends the estimation, and goals, which end it when all are reached.

    Attributes
    ----------
    max_evaluations : int or None
        Coalitions asked for, in all games together.
    max_time : float or None
        Seconds.
    tol : float or None
        Largest standard error wanted.
    sign_level : float or None
        Confidence at which the sign of every value is to be decided; with ``tol``, of every value
        whose standard error is larger.
    stable_bottom : int or None
        Number of lowest values that are to be the same rows, 19 of 20, as when there were half as
        many coalitions.
    anchor : tuple of (int, ndarray) or None
        Coalitions when the lowest rows were last looked at, and which they were.
    stable : bool
        Whether they were the same then as before.
    """

    max_evaluations: int | None = None
    max_time: float | None = None
    tol: float | None = None
    sign_level: float | None = None
    stable_bottom: int | None = None
    anchor: tuple | None = None
    stable: bool = False

    @property
    def goals(self):
        """Names of the goals that are set."""
        names = ("tol", "sign_level", "stable_bottom")
        return [name for name in names if getattr(self, name) is not None]

    def reached(self, values, errors, freedom, asked):
        """Names of the goals if all are reached, else None."""
        if self.stable_bottom is not None:
            self._look_at_bottom(values, asked)
        rows_done = np.full(len(values), self.tol is self.sign_level is None)
        if self.tol is not None:
            rows_done |= errors <= self.tol
        if self.sign_level is not None:
            rows_done |= decided(values, t_halfwidth(errors, freedom, self.sign_level))
        all_done = rows_done.all() and (self.stable_bottom is None or self.stable)
        return ", ".join(self.goals) if all_done and self.goals else None

    def _look_at_bottom(self, values, asked):
        if self.anchor is not None and asked < 2 * self.anchor[0]:
            return
        lowest = np.argsort(values, kind="stable")[: self.stable_bottom]
        if self.anchor is not None:
            shared = len(np.intersect1d(lowest, self.anchor[1])) / len(lowest)
            self.stable = shared >= _SHARE
        self.anchor = asked, lowest

    def arrays(self):
        """Name -> array of what `reached` remembers."""
        asked, lowest = (0, np.zeros(0, np.int64)) if self.anchor is None else self.anchor
        return {"anchor": np.array([asked, self.stable]), "lowest": lowest}

    def restore(self, arrays):
        """Go on from `arrays`."""
        asked, stable = arrays["anchor"]
        self.anchor = (int(asked), arrays["lowest"]) if asked else None
        self.stable = bool(stable)


def default_evaluations(n_players, n_rows, n_features):
    """Number of coalitions for a call that asks for nothing particular.

    About a minute of fits one by one of a linear model on 10,000 rows, and 40 coalitions a player
    at most: a count, so that the same call gives the same values on any machine.

    Parameters
    ----------
    n_players, n_rows, n_features : int
        Sizes.

    Returns
    -------
    count : int
        The number.

    Examples
    --------
    >>> default_evaluations(100, 100, 10), default_evaluations(10_000, 10_000, 20)
    (4000, 8000)
    """
    seconds = 1.5e-3 + 3e-8 * n_rows * n_features  # measured for logistic regression
    return int(min(max(40 * n_players, 500), 60 / seconds))
