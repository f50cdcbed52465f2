"""Semivalues from the utilities of the prefixes of random permutations of the players."""

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
        return OrderMoments(count, mean, squares, self.bias + (bias - self.bias) / count)

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

        The mean variance over players counts as one more replicate, so that the error of a player
        whose contributions were all equal is not 0 (as in Agresti and Coull's interval).
        """
        if self.count < 2:
            return np.full(len(self.mean), np.inf)
        variance = self.squares / (self.count - 1)
        return (variance + variance.mean() / self.count) / self.count


@dataclass
class _Drawn:
    """Permutations of a round, and the known utilities of their prefixes.

    Prefixes are evaluated in steps of a few sizes each, for all permutations still active.
    """

    orders: np.ndarray
    positions: np.ndarray  # position of each player in each permutation
    utilities: np.ndarray
    steps: list  # arrays of sizes still to be evaluated
    alive: np.ndarray  # permutations that have not ended
    ends: np.ndarray  # size at which each permutation ended
    requested: tuple = ()  # permutations and sizes of the coalitions being evaluated
    start: int = 0  # number of known prefixes of the first step
    cost: int = 0
    added: int = 0  # number of permutations in the moments
    ended: bool = False  # whether all permutations have ended, truncated or not
    n_more: int = 0  # number of permutations by which the last replicate is extended


class OrderDesign(Design):
    """Replicates of permutations of the players; see `skvalue.samplers.draw_orders`.

    With ``truncation`` (a tolerance in units of utility) a permutation ends once the utilities of
    max(5, n / 20) successive prefixes are within the tolerance of the utility of all players. The
    remaining difference is split equally between the remaining players. If all later prefixes are
    within the tolerance too, each of these marginal contributions is wrong by at most twice the
    tolerance plus that equal part; `OrderMoments.bias` is the mean of this bound.

    The last replicate of a small budget is extended by a part of one more replicate, and by a copy
    of its first permutation in which a random stretch is shuffled: uniform too, at the cost of the
    prefixes that change.
    """

    def __init__(self, q, kind, truncation=None, **options):
        super().__init__(len(q), **options)
        self.kind, self.truncation = kind, truncation
        self.weights = self.n * q
        used = np.r_[0, q] + np.r_[q, 0] > 0  # prefixes of 0..n players whose utilities count
        self.sizes = np.flatnonzero(used[1:-1]) + 1
        self.stretch = max(5, -(-self.n // 20))  # successive prefixes checked for truncation
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
        stop = min(drawn.start + count, len(drawn.alive) * len(sizes))
        order, place = np.divmod(np.arange(drawn.start, stop), len(sizes))
        drawn.requested = drawn.alive[order], sizes[place]
        return prefix_masks(drawn.positions[drawn.requested[0]], drawn.requested[1])

    def _draw(self, blocks):
        """The permutations of some blocks."""
        kind, n = self.kind, self.n
        rngs = [self.random(block) for block in blocks]
        orders = [draw_orders(rng, n, kind) for rng in rngs]
        more, part = orders[-1][:0], ()  # more permutations, and prefixes that change in the last
        if self.rest and self.block + self.blocks_left == blocks.stop:
            count, rest = divmod(self.rest, len(self.sizes))
            picks = np.arange(count) * self.n_orders // max(count, 1)
            more = draw_orders(rngs[-1], n, kind)[picks]
            if rest:
                order, part = self._shuffled(rngs[-1], orders[-1][0], rest)
                more = np.concatenate([more, order[None]])
        orders = np.concatenate([*orders, more])
        utilities = np.zeros((len(orders), n + 1))
        utilities[:, 0], utilities[:, -1] = self.empty_utility, self.full
        step = len(self.sizes) if self.truncation is None else self.stretch
        steps = np.split(self.sizes, range(step, len(self.sizes), step))
        alive, ends = np.arange(len(orders)), np.full(len(orders), n)
        if len(part):  # evaluated last; the other prefixes of this permutation are then known
            alive, steps = alive[:-1], [*steps, part]
        drawn = _Drawn(orders, np.argsort(orders, axis=1), utilities, steps, alive, ends)
        drawn.n_more = len(more)
        return drawn

    def _shuffled(self, rng, order, count):
        """A copy of a permutation with a shuffled stretch, and the `count` prefixes that change."""
        edges = np.r_[0, self.sizes, self.n]
        first = rng.integers(len(self.sizes) - count + 1)
        stretch = slice(edges[first], edges[first + count + 1])
        order = order.copy()
        order[stretch] = rng.permutation(order[stretch])
        return order, edges[first + 1 : first + count + 1]

    def _tell(self, utilities):
        drawn, n_sizes = self._drawn, len(self._drawn.steps[0])
        drawn.utilities[drawn.requested] = utilities
        drawn.start, drawn.cost = drawn.start + len(utilities), drawn.cost + len(utilities)
        complete = drawn.start == len(drawn.alive) * n_sizes
        if self.truncation is None:
            if drawn.alive[0] == 0:
                self._add(drawn.start // n_sizes)
            elif complete:
                self._add(len(drawn.orders))
            if complete and len(drawn.steps) > 1:
                self._start_part()
        elif complete:
            self._truncate(drawn.steps.pop(0))
            drawn.start = 0
            drawn.ended = not drawn.steps or not len(drawn.alive)
        if drawn.added == len(drawn.orders):
            self._drawn = None

    def end_round(self):
        if self._drawn is None or not self._drawn.ended:
            return False
        self._add(len(self._drawn.orders))
        self._drawn = self._last = None
        return True

    def _truncate(self, sizes):
        """End the permutations whose utilities at these sizes are within the tolerance."""
        drawn, last = self._drawn, sizes[-1]
        if len(sizes) < self.stretch:
            return
        utilities = drawn.utilities[np.ix_(drawn.alive, sizes)]
        flat = (np.abs(utilities - self.full) <= self.truncation).all(axis=1)
        for order in drawn.alive[flat]:
            drawn.ends[order] = last
            reached = drawn.utilities[order, last]
            drawn.utilities[order, last:] = np.linspace(reached, self.full, self.n + 1 - last)
        drawn.alive = drawn.alive[~flat]

    def _start_part(self):
        """Continue with the changed prefixes of the last permutation; the others are known."""
        drawn = self._drawn
        drawn.steps.pop(0)
        drawn.alive, drawn.start = np.array([len(drawn.orders) - 1]), 0
        drawn.utilities[-1] = drawn.utilities[len(drawn.orders) - drawn.n_more - self.n_orders]

    def _add(self, n_known):
        """Add the complete blocks among the first `n_known` permutations."""
        drawn, moments, first, kept = self._drawn, self.moments, self._drawn.added, None
        ends = np.arange(self.n_orders, len(drawn.orders) - drawn.n_more + 1, self.n_orders)
        ends[-1] = len(drawn.orders)  # with the permutations that extend the last block
        ends = ends[(ends > first) & (ends <= n_known)]
        for number, end in enumerate(ends):
            if drawn.n_more and end == len(drawn.orders):
                kept = moments, self.block + number, self.n_evaluations + number * self.cost
            part = slice(drawn.added, end)
            orders, utilities = drawn.orders[part], drawn.utilities[part]
            x = prefix_marginals(orders, utilities, self.weights)
            moments = moments.add(x, self._bias(orders, utilities, drawn.ends[part]))
            drawn.added = end
        cost = len(ends) * self.cost + (self.rest if kept else 0)
        self._advance(moments, len(ends), drawn.cost if self.truncation else cost, kept)

    def _bias(self, orders, utilities, ends):
        bias = np.zeros(self.n)
        for order, prefix, end in zip(orders, utilities, ends):
            if end < self.n:
                missing = abs(prefix[-1] - prefix[end]) / (self.n - end)
                bias[order[end:]] += self.weights[end:] * (2 * self.truncation + missing)
        return bias / len(orders)

    def values(self):
        return self.moments.mean

    def variances(self):
        return self.moments.variances, np.full(self.n, max(self.moments.count - 1.0, 1.0))

    def reweighted(self, q):
        raise ValueError(
            "reweight needs sampler='stratified', 'subsets' or 'exact': of permutations only the "
            f"sums of marginal contributions are kept. Got {self.kind!r}."
        )

    @property
    def has_reliable_errors(self):
        return self.moments.count >= 10
