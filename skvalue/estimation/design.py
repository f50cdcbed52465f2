"""Base class of designs: they request coalitions and keep running sums of the utilities."""

from abc import ABC, abstractmethod
from dataclasses import fields

import numpy as np

ROUND = 1024  # fewest coalitions between two checks of the stopping rules
ENTRIES = 2**25  # most entries of the masks made at once
_BATCH = 4096  # coalitions per call of `ask`


class Moments:
    """Immutable running sums, which can be written to arrays and read back."""

    def arrays(self):
        """Name -> array."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def of_arrays(cls, arrays):
        """The inverse of `arrays`; copies them."""
        kept = {field.name: arrays[field.name] for field in fields(cls)}
        return cls(**{name: x.item() if x.ndim == 0 else x.copy() for name, x in kept.items()})


class Design(ABC):
    """Coalitions of one game to evaluate, and the sums from which its values are computed.

    ``ask()`` returns masks of coalitions, or None at the end; ``tell(utilities)`` adds their
    utilities. The first coalition holds all players. The others come in blocks of `cost`
    coalitions, each drawn with its own random numbers, and blocks are added in order. If complete
    blocks would use less than `least` coalitions, the last block is cut or extended such that
    `limit` coalitions are evaluated; a run that resumes draws it again.
    """

    exact = leave_one_out = False  # all coalitions are enumerated, or those of leave-one-out
    n_blocks = total = None  # numbers of blocks and coalitions, if they are finite
    truncation = None
    cuts = False  # whether a block that is cut may follow the complete ones
    adjusted = None  # an estimate with control variates, see `SubsetDesign`
    is_adjusted = False  # whether the values use it
    is_due = True  # whether goals are checked after this round
    record = None  # the coalitions in the moments, if it is kept, see `Record`
    limit, least = None, 0  # most and fewest coalitions to evaluate, with the first one

    def __init__(self, n, empty_utility=0.0, seed=0, number=0, size=_BATCH):
        self.n, self.empty_utility, self.size = n, empty_utility, size
        self.seed, self.number = seed, number
        # Utility of all players; number of complete blocks, of their coalitions, and their sums.
        self.full, self.block, self.n_evaluations, self.moments = None, 0, 0, self._no_moments()
        self._drawn = None  # coalitions of incomplete blocks
        self._cache = {}  # of what can be computed again
        self._last = None  # the first block after the current round
        self._kept = None  # sums and counts before a block that was cut or extended
        # The allocation of the round that starts with the block `plan_first`.
        self.plan, self.plan_first = np.zeros(0, np.int64), -1

    # What a design implements ---------------------------------------------------------------

    @abstractmethod
    def _no_moments(self):
        """The sums over zero blocks."""

    @abstractmethod
    def round_of(self, block):
        """The first block of the round of a block, and the first of the next round."""

    @abstractmethod
    def _ask(self, blocks):
        """Masks of the next coalitions of the remaining blocks of the round."""

    @abstractmethod
    def _tell(self, utilities):
        """Receive the utilities of the masks; complete blocks are added to the moments."""

    @abstractmethod
    def values(self):
        """Values of the players."""

    @abstractmethod
    def variances(self):
        """Squared standard errors of the values, and their degrees of freedom."""

    @abstractmethod
    def reweighted(self, q):
        """The same coalitions for the semivalue with probabilities ``q`` of sizes.

        Returns the design and the expected variances of a value, a mean over players: of this
        design, and of a fit of that semivalue with as many coalitions. Raises ValueError if the
        semivalue needs other coalitions.
        """

    @property
    @abstractmethod
    def has_reliable_errors(self):
        """Whether there are enough blocks for the variances to be reliable."""

    def end_round(self):
        """Add a complete round that has not been added yet; returns whether there was one."""
        return False

    def _advance(self, moments, blocks, count, kept=None):
        """Set the sums, and increase the counts of blocks and coalitions.

        ``kept`` are the sums and counts from which a run resumes, if not from these.
        """
        state = moments, self.block + blocks, self.n_evaluations + count
        # One assignment, so that no interruption leaves a part of it undone.
        self._kept, (self.moments, self.block, self.n_evaluations) = kept, state

    @property
    def _state(self):
        return self.moments, self.block, self.n_evaluations

    # What all designs have ------------------------------------------------------------------

    def ask(self):
        """Masks of the next coalitions to evaluate, or None at the end."""
        if self.full is None:
            return np.ones((1, self.n), dtype=bool)
        self.end_round()
        if self._last is None:
            self._last = self._end_of_round()
        return None if self._last is None else self._ask(range(self.block, self._last))

    def _end_of_round(self):
        """The block after the last one of the round within the limit; None if there is none."""
        last = int(min(self.round_of(self.block)[1], self.block + self.blocks_left))
        if last == self.block:
            return last + 1 if self.cuts and self.rest else None
        return last

    def tell(self, utilities):
        """Receive the utilities of the coalitions of `ask`."""
        utilities = np.asarray(utilities, dtype=np.float64)
        if not np.isfinite(utilities).all():
            worst = utilities[~np.isfinite(utilities)][0]
            raise ValueError(f"Utilities must be finite. Got {worst} for a coalition.")
        if self.full is None:
            self.full, self.n_evaluations = float(utilities[0]), 1
        else:
            self._tell(utilities)
            if self.block == self._last and self._drawn is None:
                self._last = None

    @property
    def blocks_left(self):
        """Number of complete blocks left within the limit; infinite without a limit."""
        if self.n_blocks is not None:
            return self.n_blocks - self.block
        if self.limit is None:
            return np.inf
        # Truncated permutations cost less, but only a round that ends within the limit counts.
        return max(0, int((self.limit - max(self.n_evaluations, 1)) // max(self.cost, 1)))

    @property
    def rest(self):
        """Number of coalitions left after the complete blocks; 0 if these use enough."""
        if self.limit is None or self.exact or self.truncation or not self.cost:
            return 0
        used = max(self.n_evaluations, 1) + self.blocks_left * self.cost
        return 0 if used >= self.least else max(0, self.limit - used)

    @property
    def planned(self):
        """Number of coalitions left to evaluate within the limit; None without a limit."""
        first = int(self.full is None)
        if self.exact:
            return first + self.total - self.moments.count
        return None if self.limit is None else first + self.blocks_left * self.cost + self.rest

    @property
    def between_rounds(self):
        """Whether the next call of `ask` starts a round."""
        return self._last is None

    @property
    def has_values(self):
        """Whether there are values of at least some players."""
        return self.moments.count > 0 if self.leave_one_out else self.has_all_values

    @property
    def has_all_values(self):
        """Whether there are values of all players."""
        return self.has_reliable_errors if self.exact else self.moments.count > 0

    def drop_unfinished(self):
        """Drop the coalitions of incomplete blocks."""
        self._drawn = None

    def forget(self):
        """Drop what can be computed again from the record."""
        self._cache = {}

    def merge(self, other):
        """Add the sums of a design with another seed."""
        if self.record is not None:
            self.record.append(self.moments.count, other.record, other.moments.count)
        self.moments, self._kept = self.moments.merge(other.moments), None
        self.n_evaluations += other.n_evaluations - 1

    def arrays(self):
        """Name -> array of the state, without the parameters."""
        full = np.nan if self.full is None else self.full
        moments, *counts = self._kept or self._state
        return {
            "full": np.array(full),
            "counts": np.array(counts),
            "plan": self.plan,
            "plan_first": np.array(self.plan_first),
            **moments.arrays(),
            **({} if self.record is None else self.record.arrays(moments.count)),
        }

    def restore(self, arrays):
        """Resume from `arrays`."""
        full = float(arrays["full"])
        self.full = None if np.isnan(full) else full
        self.block, self.n_evaluations = (int(count) for count in arrays["counts"])
        self.plan, self.plan_first = arrays["plan"], int(arrays["plan_first"])
        self.moments = type(self.moments).of_arrays(arrays)
        if self.record is not None:
            self.record = type(self.record).of_arrays(arrays)
        within = self.round_of(self.block)[0] < self.block
        self._last = self._end_of_round() if within else None

    def random(self, block, seed=None):
        """The random number generator of a block, by default of the design's seed."""
        key, seed = (self.number, block), self.seed if seed is None else seed
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
