"""Several estimations side by side, until a stopping rule says so."""

from time import perf_counter

import numpy as np

from .checkpoint import write_arrays
from .estimation import combine

_CHECKPOINT_SECONDS = 1.0  # between two writes


class Run:
    """Estimations of a few games, of which the mean is wanted.

    Parameters
    ----------
    estimations : list of Estimation
        The games.
    players : list of (ndarray of int or None)
        Who plays in each; None: all.
    n : int
        Number of players in all.
    stopping : Stopping
        When to end.
    header : dict
        Arrays that tell this run from others in its checkpoint.
    checkpoint : path-like or None
        File to write to about every second.
    """

    def __init__(self, estimations, players, n, stopping, header, checkpoint=None):
        self.estimations, self.players, self.n = estimations, players, n
        self.stopping, self.header, self.checkpoint = stopping, header, checkpoint
        limit = stopping.max_evaluations
        self.limit = None if limit is None else limit // len(estimations)
        self.reason = self.error = None
        self._turn = 0  # the game whose round it is

    @property
    def n_steps(self):
        """Steps of `steps`; None: unknown."""
        planned = self.planned()
        return None if planned is None else max(1, min(100, planned // 64))

    def planned(self):
        """Coalitions that will be asked if no rule but the count ends the run."""
        counts = [estimation.planned(self.limit) for estimation in self.estimations]
        return None if None in counts else sum(counts)

    def steps(self):
        """Ask until the end; yields once for every step of `n_steps`.

        `reason` is the rule that ended it, None if nothing was left to be asked.

        Errors end the run, and are kept in `error`, if there are values to be kept, too.
        """
        planned, n_steps, done = self.planned(), self.n_steps, 0
        try:
            for asked in self._ask():
                due = done + 1 if planned is None else asked * n_steps // max(planned, 1)
                for _ in range(min(due, np.inf if n_steps is None else n_steps) - done):
                    done += 1
                    yield
        except Exception as error:
            if not self.valued:
                raise
            self.error = error

    def _ask(self):
        """Play rounds, of the games in turn; yields the number of coalitions asked, after every
        question.

        A run that goes on does so with the game whose turn it was, and looks at the goals first
        where that was due, so that it ends where it would have ended undisturbed.
        """
        asked, start, written = 0, perf_counter(), perf_counter()
        while self._turn or not self._is_at_goal():
            if not any(e.full is None or e.blocks_within(self.limit) for e in self.estimations):
                return
            for number in range(self._turn, len(self.estimations)):
                estimation = self.estimations[number]
                self._turn, block, before = number, estimation.block, estimation.questions
                for _ in estimation.advance(self.limit):
                    self._turn = number + estimation.ended_a_round_since(block)
                    yield asked + estimation.questions - before
                    if self._is_late(perf_counter() - start):
                        self.reason = "max_time"
                        return
                    if self.checkpoint and perf_counter() - written > _CHECKPOINT_SECONDS:
                        self.write()
                        written = perf_counter()
                asked += estimation.questions - before
            self._turn = 0

    def _is_at_goal(self):
        rules = self.stopping
        if rules.has_goals and all(e.settled for e in self.estimations):
            self.reason = rules.reached(*self.result(), sum(e.asked for e in self.estimations))
        return self.reason is not None

    def _is_late(self, seconds):
        limit = self.stopping.max_time
        return (
            limit is not None
            and seconds > limit
            and all(e.has_all_values for e in self.estimations)
        )

    @property
    def valued(self):
        """Numbers of the games on which the values stand: those without gaps, where there are."""
        numbers = range(len(self.estimations))
        whole = [i for i in numbers if self.estimations[i].has_all_values]
        return whole or [i for i in numbers if self.estimations[i].has_values]

    def result(self):
        """Values, standard errors and degrees of freedom, over the games that have values."""
        used = self.valued
        return combine([self.estimations[i] for i in used], [self.players[i] for i in used], self.n)

    def arrays(self):
        """Name -> array of everything needed to go on."""
        arrays = {**self.header, **self.stopping.arrays(), "turn": np.array(self._turn)}
        failed = sum(estimation.game.n_failed for estimation in self.estimations)
        arrays["n_failed"] = self.header["n_failed"] + failed
        for number, estimation in enumerate(self.estimations):
            arrays |= {f"{number}/{name}": x for name, x in estimation.arrays().items()}
        return arrays

    def restore(self, arrays):
        """Go on from `arrays`."""
        self._turn = int(arrays["turn"])
        self.stopping.restore(arrays)
        for number, estimation in enumerate(self.estimations):
            estimation.restore(part_of(arrays, number))

    def write(self):
        """Write the checkpoint."""
        try:
            write_arrays(self.checkpoint, self.arrays())
        except OSError as error:
            raise OSError(
                f"checkpoint={str(self.checkpoint)!r} could not be written: {error}"
            ) from error


def part_of(arrays, number):
    """The arrays of one game."""
    prefix = f"{number}/"
    return {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}
