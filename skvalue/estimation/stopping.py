"""When to stop evaluating coalitions."""

from dataclasses import dataclass

import numpy as np

from .intervals import decided, t_halfwidth

_FRACTION = 0.95  # of the lowest rows that must be the same for `stable_bottom`


@dataclass
class Stopping:
    """Limits, any of which ends the estimation, and goals, which end it when all are reached.

    The rules are the parameters of the same names of `skvalue.SemivalueValuer`.
    """

    max_evaluations: int | None = None
    max_time: float | None = None
    tol: float | None = None
    sign_level: float | None = None
    stable_bottom: int | None = None
    anchor: tuple | None = None  # number of coalitions, and the lowest rows, at the last check
    by_default: bool = False  # whether `max_evaluations` is the default
    stable: bool = False  # whether the lowest rows were the same at the last two checks

    @property
    def goals(self):
        """Names of the goals that are set."""
        names = ("tol", "sign_level", "stable_bottom")
        return [name for name in names if getattr(self, name) is not None]

    def limit(self, n_games):
        """Most coalitions of each of some games, with that of all players; None without a limit."""
        return None if self.max_evaluations is None else self.max_evaluations // n_games

    def refuse_few(self, designs, sampler):
        """Raise ValueError if the limit allows less than one replicate in every game."""
        costs = [1 + (design.total if design.exact else design.cost) for design in designs]
        least = len(designs) * max(costs)
        if self.max_evaluations < least:
            games = "" if len(designs) == 1 else f", {max(costs)} in each of {len(designs)} splits"
            raise ValueError(
                f"max_evaluations must be at least {least} for sampler={sampler!r} and "
                f"{max(design.n for design in designs)} players{games}. Got {self.max_evaluations}."
            )

    def is_late(self, seconds):
        """Whether `max_time` is over after a number of seconds."""
        return self.max_time is not None and seconds > self.max_time

    def reached(self, values, errors, freedom, n_evaluations):
        """Names of the goals if all are reached, else None."""
        if self.stable_bottom is not None:
            self._check_bottom(values, n_evaluations)
        rows_done = np.full(len(values), self.tol is self.sign_level is None)
        if self.tol is not None:
            rows_done |= errors <= self.tol
        if self.sign_level is not None:
            rows_done |= decided(values, t_halfwidth(errors, freedom, self.sign_level))
        all_done = rows_done.all() and (self.stable_bottom is None or self.stable)
        return ", ".join(self.goals) if all_done and self.goals else None

    def _check_bottom(self, values, n_evaluations):
        if self.anchor is not None and n_evaluations < 2 * self.anchor[0]:
            return
        lowest = np.argsort(values, kind="stable")[: self.stable_bottom]
        if self.anchor is not None:
            overlap = len(np.intersect1d(lowest, self.anchor[1])) / len(lowest)
            self.stable = overlap >= _FRACTION
        self.anchor = n_evaluations, lowest

    def arrays(self):
        """Name -> array of the state of `reached`."""
        n_evaluations, lowest = (0, np.zeros(0, np.int64)) if self.anchor is None else self.anchor
        return {"anchor": np.array([n_evaluations, self.stable]), "lowest": lowest}

    def restore(self, arrays):
        """Resume from `arrays`."""
        n_evaluations, stable = arrays["anchor"]
        self.anchor = (int(n_evaluations), arrays["lowest"]) if n_evaluations else None
        self.stable = bool(stable)


def default_evaluations(n_players, n_rows, n_features):
    """Default number of coalitions: 40 per player, at least 500, at most a minute of linear fits.

    It is computed from the sizes, not measured, so that values do not depend on the machine.
    """
    seconds = 1.5e-3 + 3e-8 * n_rows * n_features  # measured for logistic regression
    return int(min(max(40 * n_players, 500), 60 / seconds))
