"""Semivalues from the utilities of the prefixes of random permutations of the
players."""

from dataclasses import dataclass

import numpy as np

from ..samplers import draw_orders, prefix_marginals, prefix_masks
from .design import ENTRIES, ROUND, Design, Moments


@dataclass(frozen=True)
class OrderMoments(Moments):
    """Mean and squared deviations over independent replicates (Welford)."""

    count: int  # replicates
    mean: np.ndarray
    squares: np.ndarray  # sum of squared deviations from the mean
    bias: np.ndarray  # mean bound on the bias of truncation

    def add(self, x, bias):
        count = self.count + 1
        step = x - self.mean
        mean = self.mean + step / count
        squares = self.squares + step * (x - mean)
        return OrderMoments(
            count, mean, squares, self.bias + (bias - self.bias) / count
        )

    def merge(self, other):
        count = self.count + other.count
        if count == 0:
            return self
        step, fraction = other.mean - self.mean, other.count / count
        return OrderMoments(
            count,
            self.mean + step * fraction,
            self.squares + other.squares + step**2 * (self.count * fraction),
            self.bias + (other.bias - self.bias) * fraction,
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
class _Drawn:
    """Permutations of a round, and the known utilities of their prefixes.

    Prefixes are evaluated in steps of a few sizes each, for all permutations still
    active.
    """

    orders: np.ndarray
    positions: np.ndarray  # position of each player in each permutation
    utilities: np.ndarray
    steps: list  # arrays of sizes still to be evaluated
    active: np.ndarray  # permutations that have not ended
    ends: np.ndarray  # size at which each permutation ended
    requested: tuple = ()  # permutations and sizes of the coalitions being evaluated
    start: int = 0  # number of known prefixes of the first step
    cost: int = 0
    added: int = 0  # number of permutations in the moments


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
        self.kind, self.truncation = kind, truncation
        self.weights = self.n * q
        used = (
            np.r_[0, q] + np.r_[q, 0] > 0
        )  # prefixes of 0..n players whose utilities count
        self.sizes = np.flatnonzero(used[1:-1]) + 1
        self.stretch = max(
            5, -(-self.n // 20)
        )  # successive prefixes checked for truncation
        self.n_orders = len(draw_orders(np.random.default_rng(0), self.n, kind))
        self.cost = self.n_orders * len(self.sizes)
        self.round_size = max(1, ROUND // max(self.cost, 1))

    def _no_moments(self):
        return OrderMoments(0, *np.zeros((3, self.n)))

    def round_of(self, block):
        first = block - block % self.round_size
        return first, first + self.round_size

    def _ask(self, blocks):
        if self._drawn is None:
            self._drawn = self._draw(blocks)
        drawn = self._drawn
        sizes, count = drawn.steps[0], min(self.size, max(1, ENTRIES // self.n))
        stop = min(drawn.start + count, len(drawn.active) * len(sizes))
        order, place = np.divmod(np.arange(drawn.start, stop), len(sizes))
        drawn.requested = drawn.active[order], sizes[place]
        return prefix_masks(drawn.positions[drawn.requested[0]], drawn.requested[1])

    def _draw(self, blocks):
        """The permutations of some blocks."""
        orders = [
            draw_orders(self.random(block), self.n, self.kind) for block in blocks
        ]
        orders = np.concatenate(orders)
        utilities = np.zeros((len(orders), self.n + 1))
        utilities[:, 0], utilities[:, -1] = self.empty_utility, self.full
        step = len(self.sizes) if self.truncation is None else self.stretch
        steps = np.split(self.sizes, range(step, len(self.sizes), step))
        active, ends = np.arange(len(orders)), np.full(len(orders), self.n)
        return _Drawn(
            orders, np.argsort(orders, axis=1), utilities, steps, active, ends
        )

    def _tell(self, utilities):
        drawn, n_sizes = self._drawn, len(self._drawn.steps[0])
        drawn.utilities[drawn.requested] = utilities
        drawn.start, drawn.cost = (
            drawn.start + len(utilities),
            drawn.cost + len(utilities),
        )
        if self.truncation is None:
            self._add(drawn.start // n_sizes)
        elif drawn.start == len(drawn.active) * n_sizes:
            self._truncate(drawn.steps.pop(0))
            drawn.start = 0
            # The permutations that end first would bias the values: a round is added as
            # a whole.
            if not drawn.steps or not len(drawn.active):
                self._add(len(drawn.orders))
        if drawn.added == len(drawn.orders):
            self._drawn = None

    def _truncate(self, sizes):
        """End the permutations whose utilities at these sizes are within the
        tolerance."""
        drawn, last = self._drawn, sizes[-1]
        if len(sizes) < self.stretch:
            return
        utilities = drawn.utilities[np.ix_(drawn.active, sizes)]
        flat = (np.abs(utilities - self.full) <= self.truncation).all(axis=1)
        for order in drawn.active[flat]:
            drawn.ends[order] = last
            reached = drawn.utilities[order, last]
            drawn.utilities[order, last:] = np.linspace(
                reached, self.full, self.n + 1 - last
            )
        drawn.active = drawn.active[~flat]

    def _add(self, n_known):
        """Add the complete blocks among the first `n_known` permutations."""
        drawn, moments = self._drawn, self.moments
        starts = range(drawn.added, n_known - self.n_orders + 1, self.n_orders)
        for start in starts:
            part = slice(start, start + self.n_orders)
            orders, utilities = drawn.orders[part], drawn.utilities[part]
            x = prefix_marginals(orders, utilities, self.weights)
            moments = moments.add(x, self._bias(orders, utilities, drawn.ends[part]))
        drawn.added += len(starts) * self.n_orders
        cost = drawn.cost if self.truncation else len(starts) * self.cost
        self._advance(moments, len(starts), cost)

    def _bias(self, orders, utilities, ends):
        bias = np.zeros(self.n)
        for order, prefix, end in zip(orders, utilities, ends):
            if end < self.n:
                missing = abs(prefix[-1] - prefix[end]) / (self.n - end)
                bias[order[end:]] += self.weights[end:] * (
                    2 * self.truncation + missing
                )
        return bias / len(orders)

    def values(self):
        return self.moments.mean

    @property
    def bias(self):
        """Bound of the bias of truncation."""
        return self.moments.bias

    def variances(self):
        return self.moments.variances, np.full(
            self.n, max(self.moments.count - 1.0, 1.0)
        )

    def reweighted(self, q):
        raise ValueError(
            "reweight needs sampler='stratified', 'subsets' or 'exact': of permutations only the "
            f"sums of marginal contributions are kept. Got {self.kind!r}."
        )

    @property
    def has_reliable_errors(self):
        return self.moments.count >= 10
