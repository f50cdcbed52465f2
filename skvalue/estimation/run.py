"""Runs the designs of several games in turn until a stopping rule ends them."""

from time import perf_counter

import numpy as np

_USED = 0.9  # least fraction of `max_evaluations` that is evaluated


class Run:
    """Designs of a few games, whose mean values are computed.

    ``ask()`` returns masks for the game of index `turn`, or None at the end; ``tell(utilities)``
    adds their utilities. The games take turns, one round each.
    """

    def __init__(self, designs, players, n, stopping):
        self.designs, self.players, self.n, self.stopping = designs, players, n, stopping
        # Index of the game; the rule that ended the run, if one did; an exception that ended it.
        self.turn, self.reason, self.error = 0, None, None
        self._n_evaluated, self._start = 0, None  # coalitions of this object, and when it started
        for design in designs:
            limit = stopping.max_evaluations
            if limit is not None:
                design.limit, design.least = limit // len(designs), _USED * limit / len(designs)
        self._planned = self.planned

    @property
    def planned(self):
        """Number of coalitions left if only their number ends the run; None: unknown."""
        counts = [design.planned for design in self.designs]
        return None if None in counts else sum(counts)

    @property
    def n_steps(self):
        """Number of steps for progress reports, of several coalitions each; None: unknown."""
        return None if self._planned is None else max(1, min(100, self._planned // 64))

    @property
    def steps_done(self):
        """Number of steps done; None: unknown."""
        if self._planned is None:
            return None
        return min(self._n_evaluated * self.n_steps // max(self._planned, 1), self.n_steps)

    def ask(self):
        """Masks of the next coalitions of the game of index `turn`, or None at the end.

        A resumed run continues with the same game, and checks the goals first if a check was due,
        so that it ends where an uninterrupted run would have ended.
        """
        self._start = perf_counter() if self._start is None else self._start
        if self.designs[self.turn].end_round():
            self._pass_turn()
        for _ in self.designs:
            if self.turn == 0 and self.designs[0].between_rounds:
                self._check_goals()
            if self.reason is not None:
                return None
            masks = self.designs[self.turn].ask()
            if masks is not None:
                return masks
            self._pass_turn()
        return None

    def tell(self, utilities):
        """Receive the utilities of the coalitions of `ask`."""
        design = self.designs[self.turn]
        begins = design.full is None  # the coalition of all players is not a round
        design.tell(utilities)
        self._n_evaluated += len(utilities)
        if not begins and design.between_rounds:
            self._pass_turn()
        limit = self.stopping.max_time
        is_late = limit is not None and perf_counter() - self._start > limit
        if is_late and all(design.has_all_values for design in self.designs):
            self.reason = "max_time"

    def _pass_turn(self):
        self.turn = (self.turn + 1) % len(self.designs)

    def _check_goals(self):
        if not self.stopping.goals or not self.designs[0].is_due:
            return
        if all(design.has_reliable_errors for design in self.designs):
            self.reason = self.stopping.reached(*self.result(), self.n_evaluations)

    @property
    def n_evaluations(self):
        """Number of coalitions on which the values are based."""
        return sum(design.n_evaluations for design in self.designs)

    @property
    def exact(self):
        """Whether all designs enumerate their coalitions."""
        return all(design.exact for design in self.designs)

    @property
    def valued(self):
        """Indices of the games with values of all players; else of those with some values."""
        numbers = range(len(self.designs))
        whole = [i for i in numbers if self.designs[i].has_all_values]
        return whole or [i for i in numbers if self.designs[i].has_values]

    def result(self):
        """Values, standard errors and degrees of freedom, over the games that have values."""
        used = self.valued
        return combine([self.designs[i] for i in used], [self.players[i] for i in used], self.n)

    @property
    def truncation_bias(self):
        """Bound on the bias of each value by truncation."""
        bias = np.zeros(self.n)
        for design, rows in zip(self.designs, self.players):
            if not design.exact:
                bias[rows] += design.moments.bias / len(self.designs)
        return bias

    def arrays(self):
        """Name -> array of the full state needed to resume."""
        arrays = {**self.stopping.arrays(), "turn": np.array(self.turn)}
        for number, design in enumerate(self.designs):
            arrays |= {f"{number}/{name}": x for name, x in design.arrays().items()}
        return arrays

    def finish(self):
        """Add the rounds that are complete, and drop the coalitions of incomplete blocks."""
        for design in self.designs:
            design.end_round()
            design.drop_unfinished()

    def restore(self, arrays):
        """Resume from `arrays`."""
        self.turn = int(arrays["turn"])
        self.stopping.restore(arrays)
        for number, design in enumerate(self.designs):
            prefix = f"{number}/"
            kept = {k.removeprefix(prefix): x for k, x in arrays.items() if k.startswith(prefix)}
            design.restore(kept)
        self._planned = self.planned


def combine(designs, players, n):
    """Mean values of n players over games, their standard errors and degrees of freedom.

    ``players`` has the indices of the players of each game (None: all); the value of a player is
    0 in the other games.
    """
    weight = 1 / len(designs)
    values, variances, inverses = np.zeros(n), np.zeros(n), np.zeros(n)
    parts = []
    for design, rows in zip(designs, players):
        rows = slice(None) if rows is None else rows
        variance, freedom = design.variances()
        values[rows] += weight * design.values()
        variances[rows] += weight**2 * variance
        parts.append((rows, weight**2 * variance, freedom))
    with np.errstate(invalid="ignore", divide="ignore"):
        for rows, variance, freedom in parts:  # squares of ratios cannot overflow
            ratio = np.where(variance > 0, variance / variances[rows], 0.0)
            inverses[rows] += ratio**2 / freedom
        freedom = np.where(variances > 0, 1 / inverses, np.inf)
    return values, np.sqrt(variances), np.where(np.isnan(freedom), 1.0, freedom)
