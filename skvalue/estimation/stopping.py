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

    def refuse_few(self, designs, sampler, n_more=0, is_auto=False):
        """Raise ValueError if the limit does not allow a replicate in every game.

        ``n_more`` are further coalitions of the limit that designs do not evaluate. If
        `is_auto`, the sampler is the choice of "auto", which needs the fewest.
        """
        n_needed = max(map(_fewest_coalitions, designs)) + n_more
        n_games = len(designs)
        if self.max_evaluations >= n_games * n_needed:
            return

        n_players = max(design.n for design in designs)
        games = ""
        if n_games > 1:
            games = f", {n_needed} in each of {n_games} splits"
        reason = "only complete replicates are evaluated"
        if sampler == "process":
            reason = "its process has a hyperparameter for each player"
        choice = repr(sampler)
        if is_auto:
            choice = f"'auto', here {sampler!r},"
        raise ValueError(
            f"max_evaluations must be at least {n_games * n_needed} for "
            f"sampler={choice} and {n_players} players{games}, since {reason}. Got "
            f"{self.max_evaluations}."
        )

    def refuse_many(self, designs, most):
        """Raise ValueError if the limit allows more coalitions than a design can take.

        Of few players there are not as many coalitions.
        """
        limit = self.limit(len(designs))
        n_players = max(design.n for design in designs)
        if limit is None or limit <= most or 2**n_players <= most:
            return

        n_games = len(designs)
        splits = ""
        if n_games > 1:
            splits = f" in each of {n_games} splits"
        raise ValueError(
            f"max_evaluations must be at most {most:,}{splits} for sampler='process', "
            "whose time and memory grow faster than the number of coalitions. Got "
            f"{self.max_evaluations:,}: set another sampler."
        )


def _fewest_coalitions(design):
    """Number of coalitions that a design needs for values, with that of all players."""
    if design.exact:
        return design.total
    return 1 + max(design.cost, design.fewest)


def default_evaluations(n_players, n_rows, n_features):
    """Default number of coalitions: 40 per player, at least 500.

    At most a minute of linear fits, which is computed from the sizes, not measured, so
    that values do not depend on the machine.
    """
    seconds = 1.5e-3 + 3e-8 * n_rows * n_features  # measured for logistic regression
    return int(min(max(40 * n_players, 500), 60 / seconds))
