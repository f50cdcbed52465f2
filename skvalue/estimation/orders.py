"""Semivalues from the utilities of the prefixes of random permutations."""

from dataclasses import dataclass

import numpy as np

from ..samplers import draw_orders, prefix_marginals, prefix_masks
from .design import ENTRIES, ROUND, Design, Moments


@dataclass(frozen=True)
class OrderMoments(Moments):
    """Means over independent replicates, and squared deviations (Welford).

    Parameters
    ----------
    count : int
        Number of replicates.
    mean : ndarray of shape (n,)
        Mean contributions.
    squares : ndarray of shape (n,)
        Sums of squared deviations from the mean.
    bias : ndarray of shape (n,)
        Mean bound on the bias of truncation.
    """

    count: int
    mean: np.ndarray
    squares: np.ndarray
    bias: np.ndarray

    def add(self, contributions, bias):
        """The moments with one more replicate: its contributions (n,) and bound."""
        count = self.count + 1
        step = contributions - self.mean
        mean = self.mean + step / count
        return OrderMoments(
            count=count,
            mean=mean,
            squares=self.squares + step * (contributions - mean),
            bias=self.bias + (bias - self.bias) / count,
        )

    def merge(self, other):
        count = self.count + other.count
        if count == 0:
            return self
        step = other.mean - self.mean
        fraction = other.count / count
        between = step**2 * (self.count * fraction)
        return OrderMoments(
            count=count,
            mean=self.mean + step * fraction,
            squares=self.squares + other.squares + between,
            bias=self.bias + (other.bias - self.bias) * fraction,
        )

    @property
    def variances(self):
        """Squared standard errors; infinite for one replicate.

        The mean variance over players counts as one more replicate, so that the error
        of a player whose contributions were all equal is not 0 (as in Agresti and
        Coull's interval).
        """
        if self.count < 2:
            return np.full(len(self.mean), np.inf)
        variance = self.squares / (self.count - 1)
        return (variance + variance.mean() / self.count) / self.count


@dataclass
class PendingRound:
    """Permutations of a round, and the known utilities of their prefixes.

    Prefixes are evaluated in steps of a few sizes each, for all permutations still
    active.

    Parameters
    ----------
    orders, positions : ndarrays of int of shape (n_orders, n)
        The permutations, and the position of each player in them.
    utilities : ndarray of shape (n_orders, n + 1)
        Utilities of the prefixes of 0, ..., n players.
    steps : list of ndarrays of int
        Sizes still to be evaluated.
    active : ndarray of int
        Permutations that have not ended.
    ends : ndarray of int of shape (n_orders,)
        Size at which each permutation ended.
    requested : tuple of ndarrays of int, default=()
        Permutations and sizes of the coalitions being evaluated.
    n_known : int, default=0
        Number of known prefixes of the first step.
    n_evaluated : int, default=0
        Number of coalitions evaluated.
    n_added : int, default=0
        Number of permutations in the moments.
    """

    orders: np.ndarray
    positions: np.ndarray
    utilities: np.ndarray
    steps: list
    active: np.ndarray
    ends: np.ndarray
    requested: tuple = ()
    n_known: int = 0
    n_evaluated: int = 0
    n_added: int = 0


class OrderDesign(Design):
    """Replicates of permutations of the players; see `skvalue.samplers.draw_orders`.

    With ``truncation`` (a tolerance in units of utility) a permutation ends once the
    utilities of max(5, n / 20) successive prefixes are within the tolerance of the
    utility of all players. The remaining difference is split equally between the
    remaining players. If all later prefixes are within the tolerance too, each of these
    marginal contributions is wrong by at most twice the tolerance plus that equal part;
    `OrderMoments.bias` is the mean of this bound.
    """

    def __init__(self, q, kind, truncation=None, **options):
        super().__init__(len(q), **options)
        self.kind = kind
        self.truncation = truncation
        self.weights = self.n * q

        # Sizes of the prefixes whose utilities count.
        is_weighted = np.r_[0, q] + np.r_[q, 0] > 0  # of 0, ..., n players
        self.sizes = np.flatnonzero(is_weighted[1:-1]) + 1

        self.stretch = max(5, -(-self.n // 20))  # prefixes checked for truncation
        self.n_orders = len(draw_orders(np.random.default_rng(0), self.n, kind))
        self.cost = self.n_orders * len(self.sizes)
        self.round_size = max(1, ROUND // max(self.cost, 1))

    def _no_moments(self):
        mean, squares, bias = np.zeros((3, self.n))
        return OrderMoments(count=0, mean=mean, squares=squares, bias=bias)

    def round_of(self, block):
        first = block - block % self.round_size
        return first, first + self.round_size

    # Drawing --------------------------------------------------------------------------

    def _ask(self, blocks):
        if self._pending is None:
            self._pending = self._draw(blocks)
        pending = self._pending
        sizes = pending.steps[0]
        n_coalitions = min(self.size, max(1, ENTRIES // self.n))
        stop = min(pending.n_known + n_coalitions, len(pending.active) * len(sizes))
        order, place = np.divmod(np.arange(pending.n_known, stop), len(sizes))
        orders = pending.active[order]
        pending.requested = orders, sizes[place]
        return prefix_masks(pending.positions[orders], sizes[place])

    def _draw(self, blocks):
        """The permutations of some blocks."""
        orders = np.concatenate(
            [draw_orders(self.random(block), self.n, self.kind) for block in blocks]
        )
        utilities = np.zeros((len(orders), self.n + 1))
        utilities[:, 0] = self.empty_utility
        utilities[:, -1] = self.full
        step = len(self.sizes) if self.truncation is None else self.stretch
        return PendingRound(
            orders=orders,
            positions=np.argsort(orders, axis=1),
            utilities=utilities,
            steps=np.split(self.sizes, range(step, len(self.sizes), step)),
            active=np.arange(len(orders)),
            ends=np.full(len(orders), self.n),
        )

    def _tell(self, utilities):
        pending = self._pending
        n_sizes = len(pending.steps[0])
        pending.utilities[pending.requested] = utilities
        pending.n_known += len(utilities)
        pending.n_evaluated += len(utilities)
        if self.truncation is None:
            self._add(pending.n_known // n_sizes)
        elif pending.n_known == len(pending.active) * n_sizes:
            self._truncate(pending.steps.pop(0))
            pending.n_known = 0
            # The permutations that end first would bias the values: a round is added as
            # a whole.
            if not pending.steps or not len(pending.active):
                self._add(len(pending.orders))
        if pending.n_added == len(pending.orders):
            self._pending = None

    def _truncate(self, sizes):
        """End the permutations whose utilities at these sizes are within tolerance."""
        if len(sizes) < self.stretch:
            return
        pending = self._pending
        utilities = pending.utilities[np.ix_(pending.active, sizes)]
        is_flat = (np.abs(utilities - self.full) <= self.truncation).all(axis=1)
        end = sizes[-1]
        for order in pending.active[is_flat]:
            pending.ends[order] = end
            reached = pending.utilities[order, end]
            pending.utilities[order, end:] = np.linspace(
                reached, self.full, self.n + 1 - end
            )
        pending.active = pending.active[~is_flat]

    def _add(self, n_known):
        """Add the complete blocks among the first `n_known` permutations."""
        pending = self._pending
        moments = self.moments
        starts = range(pending.n_added, n_known - self.n_orders + 1, self.n_orders)
        for start in starts:
            block = slice(start, start + self.n_orders)
            orders = pending.orders[block]
            utilities = pending.utilities[block]
            contributions = prefix_marginals(orders, utilities, self.weights)
            bias = self._bias_bound(orders, utilities, pending.ends[block])
            moments = moments.add(contributions, bias)
        pending.n_added += len(starts) * self.n_orders
        n_coalitions = len(starts) * self.cost
        if self.truncation is not None:
            n_coalitions = pending.n_evaluated
        self._advance(moments, len(starts), n_coalitions)

    def _bias_bound(self, orders, utilities, ends):
        """Bound on the bias of truncation of the contributions of a block, (n,)."""
        bias = np.zeros(self.n)
        for order, prefixes, end in zip(orders, utilities, ends):
            if end < self.n:
                equal_part = abs(prefixes[-1] - prefixes[end]) / (self.n - end)
                bound = 2 * self.truncation + equal_part
                bias[order[end:]] += self.weights[end:] * bound
        return bias / len(orders)

    # Values and their errors ----------------------------------------------------------

    def values(self):
        return self.moments.mean

    @property
    def bias(self):
        """Bound of the bias of truncation."""
        return self.moments.bias

    def variances(self):
        freedom = max(self.moments.count - 1.0, 1.0)
        return self.moments.variances, np.full(self.n, freedom)

    def reweighted(self, q):
        raise ValueError(
            "reweight needs sampler='stratified', 'subsets' or 'exact': of "
            "permutations only the sums of marginal contributions are kept. Got "
            f"{self.kind!r}."
        )

    @property
    def has_reliable_errors(self):
        return self.moments.count >= 10
