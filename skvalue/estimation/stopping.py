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
        """Most coalitions of each game, with that of all players; None: no limit."""
        if self.max_evaluations is None:
            return None
        return self.max_evaluations // n_games

    def allow(self, n_games, n_blocks, cost):
        """Increase the default to a number of blocks in each game.

        At least two blocks are needed for standard errors.
        """
        n_needed = n_games * (1 + n_blocks * cost)
        self.max_evaluations = max(self.max_evaluations, n_needed)

    def refuse_few(self, designs, sampler):
        """Raise ValueError if the limit does not allow a replicate in every game."""
        n_needed = max(
            design.total if design.exact else 1 + design.cost for design in designs
        )
        n_games = len(designs)
        if self.max_evaluations >= n_games * n_needed:
            return
        n_players = max(design.n for design in designs)
        games = f", {n_needed} in each of {n_games} splits" if n_games > 1 else ""
        raise ValueError(
            f"max_evaluations must be at least {n_games * n_needed} for "
            f"sampler={sampler!r} and {n_players} players{games}, since only complete "
            f"replicates are evaluated. Got {self.max_evaluations}."
        )


def default_evaluations(n_players, n_rows, n_features):
    """Default number of coalitions: 40 per player, at least 500.

    At most a minute of linear fits, which is computed from the sizes, not measured, so
    that values do not depend on the machine.
    """
    seconds = 1.5e-3 + 3e-8 * n_rows * n_features  # measured for logistic regression
    return int(min(max(40 * n_players, 500), 60 / seconds))
