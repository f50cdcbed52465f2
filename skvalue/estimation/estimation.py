"""The semivalue of one game, estimated block by block."""

import numpy as np
from joblib import effective_n_jobs

from ..samplers import ORDERS
from ..semivalues import size_weights
from .designs import ExactDesign, OrderDesign, SubsetDesign

SAMPLERS = (*ORDERS, "subsets", "stratified", "exact")
EXACT_LIMIT = 20  # players of whom all coalitions are enumerated

_FEW = 2**12  # coalitions that are enumerated without being asked to
_SEGMENT = 64  # coalitions asked at once of a game that fits one by one, at least
_BATCH = 4096  # ... of any other


def choose_sampler(semivalue, n, limit=None):
    """The sampler for n players and at most ``limit`` coalitions (None: any number).

    All coalitions that count, where they are few; uniform subsets for Banzhaf values; else subsets
    stratified by size, or an order where there is no room for a block of them, but for an order.

    Examples
    --------
    >>> choose_sampler("shapley", 10), choose_sampler("leave-one-out", 1000)
    ('exact', 'exact')
    >>> choose_sampler("shapley", 100), choose_sampler("banzhaf", 100)
    ('stratified', 'subsets')
    """
    limit = np.inf if limit is None else limit
    if size_weights(semivalue, n)[-1] == 1.0 or 2**n <= min(limit - 1, _FEW):
        return "exact"
    if max(limit, n - 1) <= SubsetDesign.cost:
        return "permutation"
    return "subsets" if isinstance(semivalue, str) and semivalue == "banzhaf" else "stratified"


def make_design(sampler, semivalue, n, truncation=None):
    """The design of a sampler by name.

    Raises ValueError where it needs more coalitions than can be enumerated.
    """
    q = size_weights(semivalue, n)
    if sampler == "exact" or n == 1:
        if n > EXACT_LIMIT and q[-1] != 1.0:
            raise ValueError(
                f"sampler='exact' enumerates the 2^n coalitions of at most {EXACT_LIMIT} players. "
                f"Got {n} players."
            )
        return ExactDesign(q)
    if sampler in ORDERS:
        return OrderDesign(q, sampler, truncation)
    return SubsetDesign(q, stratified=sampler == "stratified")


class Estimation:
    """A game, a design, and how far they have got.

    Parameters
    ----------
    game : Game
        The game.
    design : OrderDesign, SubsetDesign or ExactDesign
        What is asked of it.
    entropy : int
        Seed; every block has a stream of its own.
    number : int, default=0
        Tells games with the same seed apart.

    Attributes
    ----------
    full : float or None
        Utility of all players, once asked.
    block, asked : int
        Blocks complete, and coalitions asked for them.
    moments : Moments
        What the blocks add up to.
    """

    def __init__(self, game, design, entropy, number=0):
        self.game, self.design, self.entropy, self.number = game, design, entropy, number
        self.full, self.block, self.asked, self.moments = None, 0, 0, design.empty()
        self.questions = 0  # coalitions asked since this object was made, of unfinished blocks too
        self._plan = None  # of the round under way, with its first block
        workers = effective_n_jobs(getattr(game, "n_jobs", None))
        self.size = max(_SEGMENT, 16 * workers) if game.solver == "loop" else _BATCH

    # What `advance` asks ----------------------------------------------------------------------

    def __call__(self, masks):
        utilities = np.asarray(self.game.utility(masks), dtype=np.float64)
        if not np.isfinite(utilities).all():
            raise ValueError(
                "Utilities must be finite. Got "
                f"{utilities[~np.isfinite(utilities)][0]} for a coalition."
            )
        self.questions += len(utilities)
        return utilities

    def _seeds(self, block):
        key = (self.number, block)
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=key))

    @property
    def ends(self):
        """Utilities of nobody and of all."""
        return self.game.empty_utility, self.full

    def blocks_within(self, limit):
        """Blocks that can follow with at most ``limit`` coalitions in all; None: no limit."""
        rest = np.inf if self.design.n_blocks is None else self.design.n_blocks - self.block
        if limit is None or rest < np.inf:
            return rest
        cost = self.design.cost
        if self.block and getattr(self.design, "truncation", None):  # orders that cost less
            cost = (self.asked - 1) / self.moments.count
        return max(0, int((limit - max(self.asked, 1)) // max(cost, 1)))

    def planned(self, limit):
        """Coalitions that are still to be asked within the limit; None: no end."""
        first = int(self.full is None)
        if self.exact:
            return first + self.design.total - self.moments.count
        blocks = self.blocks_within(limit)
        return None if blocks == np.inf else first + blocks * self.design.cost

    def advance(self, limit=None):
        """Play to the end of the round, at most; yields after every question."""
        if self.full is None:
            everybody = np.ones((1, self.game.n_players), dtype=bool)
            self.full, self.asked = float(self(everybody)[0]), 1
            yield
        first, last = self.design.round(self.block)
        if self._plan is None or self._plan[0] != first:
            self._plan = first, self.design.plan(self.moments, first)
        start, asked = self.block, self.asked
        blocks = list(range(start, int(min(last, start + self.blocks_within(limit)))))
        if not blocks:
            return
        play = self.design.play(self.moments, blocks, self._seeds, self, self.ends, self._plan[1])
        for moments, complete, cost in play:
            self.moments, self.block, self.asked = moments, start + complete, asked + cost
            yield

    def ended_a_round_since(self, block):
        """Whether the blocks that were complete since then end with a round."""
        return self.block > block and self.design.round(self.block)[0] == self.block

    # What has come of it ----------------------------------------------------------------------

    @property
    def exact(self):
        """Whether all coalitions that count are asked."""
        return isinstance(self.design, ExactDesign)

    @property
    def has_values(self):
        """Whether there are values to speak of, of some players at least."""
        gaps = self.exact and self.design.leave_one_out
        return self.moments.count > 0 if gaps else self.has_all_values

    @property
    def has_all_values(self):
        """Whether there are values of all players."""
        return self.settled if self.exact else self.moments.count > 0

    def values(self):
        """Values of the players."""
        return self.design.values(self.moments, self.ends)

    def variances(self):
        """Squared standard errors of the values, and their degrees of freedom."""
        return self.design.variances(self.moments)

    @property
    def settled(self):
        """Whether the variances can be believed."""
        return self.design.settled(self.moments)

    def merge(self, other):
        """Add what an estimation with another seed has found."""
        self.moments = self.moments.merge(other.moments)
        self.asked += other.asked - 1

    # To arrays and back -----------------------------------------------------------------------

    def arrays(self):
        """Name -> array of all that is not given by the game, the design and the seed."""
        plan = np.zeros(0, np.int64) if self._plan is None else self._plan[1]
        return {
            "full": np.array(np.nan if self.full is None else self.full),
            "counts": np.array([self.block, self.asked, -1 if plan is None else len(plan)]),
            "plan": np.zeros(0, np.int64) if plan is None else plan,
            "plan_first": np.array(-1 if self._plan is None else self._plan[0]),
            **self.moments.arrays(),
        }

    def restore(self, arrays):
        """Go on from `arrays`."""
        full = float(arrays["full"])
        self.full = None if np.isnan(full) else full
        self.block, self.asked, n_plan = (int(count) for count in arrays["counts"])
        first = int(arrays["plan_first"])
        if first >= 0:
            self._plan = first, (None if n_plan < 0 else arrays["plan"])
        self.moments = type(self.moments).of_arrays(arrays)


def combine(estimations, players, n):
    """Mean over games of the values of n players, who play in some of them each.

    Parameters
    ----------
    estimations : list of Estimation
        The games; all of them have values.
    players : list of (ndarray of int or None)
        Who plays in each game; None: all.
    n : int
        Number of players.

    Returns
    -------
    values, errors, freedom : ndarrays of shape (n,)
        Values, their standard errors, and the degrees of freedom of these.
    """
    share = 1 / len(estimations)
    values, variances, spread = np.zeros(n), np.zeros(n), np.zeros(n)
    parts = []
    for estimation, rows in zip(estimations, players):
        rows = slice(None) if rows is None else rows
        variance, freedom = estimation.variances()
        values[rows] += share * estimation.values()
        variances[rows] += share**2 * variance
        parts.append((rows, share**2 * variance, freedom))
    with np.errstate(invalid="ignore", divide="ignore"):
        for rows, variance, freedom in parts:  # shares, whose squares no unit makes overflow
            ratio = np.where(variance > 0, variance / variances[rows], 0.0)
            spread[rows] += ratio**2 / freedom
        freedom = np.where(variances > 0, 1 / spread, np.inf)
    return values, np.sqrt(variances), np.where(np.isnan(freedom), 1.0, freedom)
