"""What every design does: ask for coalitions, and add up what their utilities tell."""

from abc import ABC, abstractmethod
from dataclasses import fields

import numpy as np

ROUND = 1024  # coalitions between two looks at the stopping rules, at least
ENTRIES = 2**25  # of the masks that are made at once
_BATCH = 4096  # coalitions of a question


class Moments:
    """Running sums: writing them to arrays and reading them. Adding to sums gives new ones."""

    def arrays(self):
        """Name -> array."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def of_arrays(cls, arrays):
        """The inverse of `arrays`; shares no memory with them."""
        kept = {field.name: arrays[field.name] for field in fields(cls)}
        return cls(**{name: x.item() if x.ndim == 0 else x.copy() for name, x in kept.items()})


class Design(ABC):
    """Coalitions to ask of one game, and the sums from which its values are computed.

    ``ask()`` gives masks of coalitions, or None if there are none left within the `limit`;
    ``tell(utilities)`` takes their utilities. The first coalition is that of all players. Others
    come in blocks of `cost` coalitions, drawn with random numbers of their own and added in their
    order, so that neither the number of workers nor an interruption changes a bit. Blocks of the
    same round are drawn together.

    Parameters
    ----------
    n : int
        Number of players.
    empty_utility : float
        Utility of the empty coalition.
    seed, number : int
        Seed, and what tells games with the same seed apart.
    size : int
        Coalitions of a question, at most.

    Attributes
    ----------
    limit : int or None
        Coalitions to ask for, the first one too.
    full : float or None
        Utility of all players, once known.
    block, asked : int
        Complete blocks, and the coalitions asked for them.
    moments : Moments
        The sums over these blocks.
    """

    exact = leave_one_out = False  # whether all coalitions that count are asked, or all but one
    n_blocks = total = None  # blocks and coalitions, where there is an end
    truncation = limit = None

    def __init__(self, n, empty_utility=0.0, seed=0, number=0, size=_BATCH):
        self.n, self.empty_utility, self.size = n, empty_utility, size
        self.seed, self.number = seed, number
        self.full, self.block, self.asked, self.moments = None, 0, 0, self._no_moments()
        self._drawn = None  # coalitions of the blocks that are not complete yet
        self._last = None  # the first block after the round under way
        # What is planned for the round that begins with the block `plan_first`.
        self.plan, self.plan_first = np.zeros(0, np.int64), -1

    # What a design writes -------------------------------------------------------------------

    @abstractmethod
    def _no_moments(self):
        """The sums over no block."""

    @abstractmethod
    def round_of(self, block):
        """First block of a round, and that of the next."""

    @abstractmethod
    def _ask(self, blocks):
        """Masks of the next coalitions of the blocks that are left of the round."""

    @abstractmethod
    def _tell(self, utilities):
        """Take the utilities of the masks; complete blocks are added to the moments."""

    @abstractmethod
    def values(self):
        """Values of the players."""

    @abstractmethod
    def variances(self):
        """Squared standard errors of the values, and their degrees of freedom."""

    @property
    @abstractmethod
    def settled(self):
        """Whether the variances can be believed."""

    def end_round(self):
        """Add a round that is complete and was not added yet; returns whether there was one."""
        return False

    def _advance(self, moments, blocks, asked):
        """Take sums with so many blocks and coalitions more."""
        # One statement, so that no interruption comes between.
        self.moments, self.block, self.asked = moments, self.block + blocks, self.asked + asked

    # What all have --------------------------------------------------------------------------

    def ask(self):
        """Masks of the next coalitions whose utilities are wanted, or None."""
        if self.full is None:
            return np.ones((1, self.n), dtype=bool)
        self.end_round()
        if self._last is None:
            self._last = self._end_of_round()
        return None if self._last is None else self._ask(range(self.block, self._last))

    def _end_of_round(self):
        """The first block after those that are left of the round within the limit, if any."""
        last = int(min(self.round_of(self.block)[1], self.block + self.blocks_left))
        return None if last == self.block else last

    def tell(self, utilities):
        """Take the utilities of the coalitions of `ask`."""
        utilities = np.asarray(utilities, dtype=np.float64)
        if not np.isfinite(utilities).all():
            worst = utilities[~np.isfinite(utilities)][0]
            raise ValueError(f"Utilities must be finite. Got {worst} for a coalition.")
        if self.full is None:
            self.full, self.asked = float(utilities[0]), 1
        else:
            self._tell(utilities)
            self._last = None if self.block == self._last else self._last

    @property
    def blocks_left(self):
        """Blocks that may follow within the limit; infinite without one."""
        if self.n_blocks is not None:
            return self.n_blocks - self.block
        if self.limit is None:
            return np.inf
        cost = self.cost
        if self.block and self.truncation:  # orders that cost less
            cost = (self.asked - 1) / self.moments.count
        return max(0, int((self.limit - max(self.asked, 1)) // max(cost, 1)))

    @property
    def planned(self):
        """Coalitions that will be asked within the limit; None without one."""
        first = int(self.full is None)
        if self.exact:
            return first + self.total - self.moments.count
        return None if self.limit is None else first + self.blocks_left * self.cost

    @property
    def between_rounds(self):
        """Whether the next question, if there is one, begins a round."""
        return self._last is None

    @property
    def has_values(self):
        """Whether there are values, of some players at least."""
        return self.moments.count > 0 if self.leave_one_out else self.has_all_values

    @property
    def has_all_values(self):
        """Whether there are values of all players."""
        return self.settled if self.exact else self.moments.count > 0

    def drop_unfinished(self):
        """Forget the coalitions of blocks that are not complete."""
        self._drawn = None

    def merge(self, other):
        """Add what a design with another seed has found."""
        self.moments = self.moments.merge(other.moments)
        self.asked += other.asked - 1

    def arrays(self):
        """Name -> array of all that the parameters do not say."""
        full = np.nan if self.full is None else self.full
        return {
            "full": np.array(full),
            "counts": np.array([self.block, self.asked]),
            "plan": self.plan,
            "plan_first": np.array(self.plan_first),
            **self.moments.arrays(),
        }

    def restore(self, arrays):
        """Resume from `arrays`."""
        full = float(arrays["full"])
        self.full = None if np.isnan(full) else full
        self.block, self.asked = (int(count) for count in arrays["counts"])
        self.plan, self.plan_first = arrays["plan"], int(arrays["plan_first"])
        self.moments = type(self.moments).of_arrays(arrays)
        within = self.round_of(self.block)[0] < self.block
        self._last = self._end_of_round() if within else None

    def random(self, block):
        """The random numbers of a block."""
        key = (self.number, block)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))
