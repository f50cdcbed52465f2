"""Designs of several games side by side, until a stopping rule ends them."""

from time import perf_counter

import numpy as np


class Run:
    """Designs of a few games, of which the mean is wanted.

    ``ask()`` gives masks for the game whose number is `turn`, or None at the end;
    ``tell(utilities)`` takes their utilities. The games play a round each in turn.

    Parameters
    ----------
    designs : list of Design
        One a game.
    players : list of ndarray of int
        Who plays in each.
    n : int
        Number of players in all.
    stopping : Stopping
        When to end.

    Attributes
    ----------
    reason : str or None
        The rule that ended the run, None if nothing was left to be asked.
    error : Exception or None
        What ended it from outside.
    """

    def __init__(self, designs, players, n, stopping):
        self.designs, self.players, self.n, self.stopping = designs, players, n, stopping
        self.turn, self.reason, self.error = 0, None, None
        self._asked, self._start = 0, None  # coalitions asked by this object, and since when
        for design in designs:
            limit = stopping.max_evaluations
            design.limit = None if limit is None else limit // len(designs)
        self._planned = self.planned

    @property
    def planned(self):
        """Coalitions that will be asked if no rule but the count ends the run; None: unknown."""
        counts = [design.planned for design in self.designs]
        return None if None in counts else sum(counts)

    @property
    def n_steps(self):
        """Steps of the run, of a few coalitions each; None: unknown."""
        return None if self._planned is None else max(1, min(100, self._planned // 64))

    @property
    def steps_done(self):
        """How many of them are done; None: unknown."""
        if self._planned is None:
            return None
        return min(self._asked * self.n_steps // max(self._planned, 1), self.n_steps)

    def ask(self):
        """Masks of the next coalitions of the game `turn`, or None at the end.

        A run that resumes does so with the game whose turn it was, and looks at the goals first
        where that was due, so that it ends where it would have ended undisturbed.
        """
        self._start = perf_counter() if self._start is None else self._start
        if self._planned and self._asked >= self._planned:
            return None  # what orders that ended early have saved is not asked for
        if self.designs[self.turn].end_round():
            self._pass_turn()
        for _ in self.designs:
            if self.turn == 0 and self.designs[0].between_rounds:
                self._look_at_goals()
            if self.reason is not None:
                return None
            masks = self.designs[self.turn].ask()
            if masks is not None:
                return masks
            self._pass_turn()
        return None

    def tell(self, utilities):
        """Take the utilities of the coalitions of `ask`."""
        design = self.designs[self.turn]
        begins = design.full is None  # the utility of all players is no round
        design.tell(utilities)
        self._asked += len(utilities)
        if not begins and design.between_rounds:
            self._pass_turn()
        limit = self.stopping.max_time
        is_late = limit is not None and perf_counter() - self._start > limit
        if is_late and all(design.has_all_values for design in self.designs):
            self.reason = "max_time"

    def _pass_turn(self):
        self.turn = (self.turn + 1) % len(self.designs)

    def _look_at_goals(self):
        if self.stopping.goals and all(design.settled for design in self.designs):
            self.reason = self.stopping.reached(*self.result(), self.asked)

    @property
    def asked(self):
        """Coalitions on which the values are based."""
        return sum(design.asked for design in self.designs)

    @property
    def exact(self):
        """Whether all coalitions that count are asked for."""
        return all(design.exact for design in self.designs)

    @property
    def valued(self):
        """Numbers of the games that have values: those of all their players, where there are."""
        numbers = range(len(self.designs))
        whole = [i for i in numbers if self.designs[i].has_all_values]
        return whole or [i for i in numbers if self.designs[i].has_values]

    def result(self):
        """Values, standard errors and degrees of freedom, over the games that have values."""
        used = self.valued
        return combine([self.designs[i] for i in used], [self.players[i] for i in used], self.n)

    @property
    def truncation_bias(self):
        """What truncation can have moved each value by."""
        bias = np.zeros(self.n)
        for design, rows in zip(self.designs, self.players):
            if not design.exact:
                bias[rows] += design.moments.bias / len(self.designs)
        return bias

    def arrays(self):
        """Name -> array of everything needed to resume."""
        arrays = {**self.stopping.arrays(), "turn": np.array(self.turn)}
        for number, design in enumerate(self.designs):
            arrays |= {f"{number}/{name}": x for name, x in design.arrays().items()}
        return arrays

    def finish(self):
        """Forget the coalitions of blocks that are not complete.

        A first round of orders that was complete as the budget ended is added: there would be no
        value without it.
        """
        for design in self.designs:
            if not design.has_values:
                design.end_round()
            design.drop_unfinished()

    def restore(self, arrays):
        """Resume from `arrays`."""
        self.turn = int(arrays["turn"])
        self.stopping.restore(arrays)
        for number, design in enumerate(self.designs):
            prefix = f"{number}/"
            own = {k.removeprefix(prefix): x for k, x in arrays.items() if k.startswith(prefix)}
            design.restore(own)
        self._planned = self.planned


def combine(designs, players, n):
    """Mean over games of the values of n players, who play in some of them each.

    Parameters
    ----------
    designs : list of Design
        One a game; all of them have values.
    players : list of (ndarray of int or None)
        Who plays in each game; None: all.
    n : int
        Number of players.

    Returns
    -------
    values, errors, freedom : ndarrays of shape (n,)
        Values, their standard errors, and the degrees of freedom of these.
    """
    weight = 1 / len(designs)
    values, variances, spread = np.zeros(n), np.zeros(n), np.zeros(n)
    parts = []
    for design, rows in zip(designs, players):
        rows = slice(None) if rows is None else rows
        variance, freedom = design.variances()
        values[rows] += weight * design.values()
        variances[rows] += weight**2 * variance
        parts.append((rows, weight**2 * variance, freedom))
    with np.errstate(invalid="ignore", divide="ignore"):
        for rows, variance, freedom in parts:  # ratios, whose squares no unit makes overflow
            ratio = np.where(variance > 0, variance / variances[rows], 0.0)
            spread[rows] += ratio**2 / freedom
        freedom = np.where(variances > 0, 1 / spread, np.inf)
    return values, np.sqrt(variances), np.where(np.isnan(freedom), 1.0, freedom)
