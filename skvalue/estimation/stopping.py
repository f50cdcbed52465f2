"""When to stop evaluating coalitions."""

from dataclasses import dataclass


@dataclass
class Stopping:
    """Limits and a goal, the first of which ends the estimation.

    The rules are the parameters of the same names of `skvalue.SemivalueValuer`.
    """

    max_evaluations: int | None = None
    max_time: float | None = None
    tol: float | None = None
    by_default: bool = False  # whether `max_evaluations` is the default

    def limit(self, n_games):
        """Most coalitions of each of some games, with that of all players; None without
        a limit."""
        return None if self.max_evaluations is None else self.max_evaluations // n_games

    def allow(self, n_games, n_blocks, cost):
        """Increase the default to some blocks in each game, so that there is a standard
        error."""
        self.max_evaluations = max(
            self.max_evaluations, n_games * (1 + n_blocks * cost)
        )

    def refuse_few(self, designs, sampler):
        """Raise ValueError if the limit allows less than one replicate in every
        game."""
        costs = [
            1 + (design.total if design.exact else design.cost) for design in designs
        ]
        least = len(designs) * max(costs)
        if self.max_evaluations < least:
            games = (
                ""
                if len(designs) == 1
                else f", {max(costs)} in each of {len(designs)} splits"
            )
            raise ValueError(
                f"max_evaluations must be at least {least} for sampler={sampler!r} and "
                f"{max(design.n for design in designs)} players{games}. Got {self.max_evaluations}."
            )


def default_evaluations(n_players, n_rows, n_features):
    """Default number of coalitions: 40 per player, at least 500, at most a minute of
    linear fits.

    It is computed from the sizes, not measured, so that values do not depend on the
    machine.
    """
    seconds = 1.5e-3 + 3e-8 * n_rows * n_features  # measured for logistic regression
    return int(min(max(40 * n_players, 500), 60 / seconds))
