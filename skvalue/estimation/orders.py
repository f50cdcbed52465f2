"""Semivalues from the utilities along random orders of the players."""

from dataclasses import dataclass

import numpy as np

from ..samplers import draw_orders, prefix_marginals, prefix_masks
from .design import ENTRIES, ROUND, Design, Moments


@dataclass(frozen=True)
class OrderMoments(Moments):
    """Mean and squared deviations over independent replicates (Welford).

    Attributes
    ----------
    count : int
        Replicates.
    mean, squares, bias : ndarrays of shape (n,)
        Their mean, the sum of squared deviations from it, and the mean bound of what truncation
        may have moved.
    """

    count: int
    mean: np.ndarray
    squares: np.ndarray
    bias: np.ndarray

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
        step, share = other.mean - self.mean, other.count / count
        return OrderMoments(
            count,
            self.mean + step * share,
            self.squares + other.squares + step**2 * (self.count * share),
            self.bias + (other.bias - self.bias) * share,
        )

    @property
    def variances(self):
        """Squared standard errors; infinite where one replicate cannot tell.

        One more replicate is counted, whose deviation is that of the mean player: who has not been
        seen to matter may yet do so (as in the interval of Agresti and Coull for proportions).
        """
        if self.count < 2:
            return np.full(len(self.mean), np.inf)
        own = self.squares / (self.count - 1)
        return (own + own.mean() / self.count) / self.count


@dataclass
class _Drawn:
    """Orders of a round, and the utilities of their prefixes as far as they are known.

    Prefixes are asked for in steps of a few sizes each, of all orders that have not ended.
    """

    orders: np.ndarray
    positions: np.ndarray  # place of each player in each order
    utilities: np.ndarray
    steps: list  # arrays of sizes that are still to be asked for
    alive: np.ndarray  # orders that have not ended
    ends: np.ndarray  # size at which each order ended
    asked: tuple = ()  # orders and sizes of the question
    start: int = 0  # prefixes of the first step that are known
    cost: int = 0
    added: int = 0  # orders in the moments
    ended: bool = False  # whether all orders have ended, early or not


class OrderDesign(Design):
    """Replicates of orders of the players; see `skvalue.samplers.draw_orders`.

    With ``truncation`` (a tolerance in units of utility) an order ends where the utilities of as
    many prefixes in a row as a twentieth of the players, at least 5, are within it of the utility
    of all. What is missing to the utility of all is split equally between those who did not join.
    If the utilities of all later prefixes are within the tolerance, too, each of these marginal
    contributions is off by at most twice the tolerance and that part; `OrderMoments.bias` is the
    mean of that.
    """

    def __init__(self, q, kind, truncation=None, **options):
        super().__init__(len(q), **options)
        self.kind, self.truncation = kind, truncation
        self.weights = self.n * q
        used = np.r_[0, q] + np.r_[q, 0] > 0  # prefixes of 0..n players whose utilities count
        self.sizes = np.flatnonzero(used[1:-1]) + 1
        self.stretch = max(5, -(-self.n // 20))  # sizes at which an order that ends is flat
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
        drawn.asked = drawn.alive[order], sizes[place]
        return prefix_masks(drawn.positions[drawn.asked[0]], drawn.asked[1])

    def _draw(self, blocks):
        """The orders of some blocks."""
        kind, n = self.kind, self.n
        orders = np.concatenate([draw_orders(self.random(block), n, kind) for block in blocks])
        utilities = np.zeros((len(orders), n + 1))
        utilities[:, 0], utilities[:, -1] = self.empty_utility, self.full
        step = len(self.sizes) if self.truncation is None else self.stretch
        steps = np.split(self.sizes, range(step, len(self.sizes), step))
        alive, ends = np.arange(len(orders)), np.full(len(orders), n)
        return _Drawn(orders, np.argsort(orders, axis=1), utilities, steps, alive, ends)

    def _tell(self, utilities):
        drawn, n_sizes = self._drawn, len(self._drawn.steps[0])
        drawn.utilities[drawn.asked] = utilities
        drawn.start, drawn.cost = drawn.start + len(utilities), drawn.cost + len(utilities)
        if self.truncation is None:
            self._add(drawn.start // n_sizes)
        elif drawn.start == len(drawn.alive) * n_sizes:
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
        """End the orders whose utilities are flat at these sizes."""
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

    def _add(self, n_known):
        """Add the complete blocks among the first orders, whose utilities are known."""
        drawn, moments, first = self._drawn, self.moments, self._drawn.added
        drawn.added = n_known - n_known % self.n_orders
        for start in range(first, drawn.added, self.n_orders):
            part = slice(start, start + self.n_orders)
            orders, utilities = drawn.orders[part], drawn.utilities[part]
            x = prefix_marginals(orders, utilities, self.weights)
            moments = moments.add(x, self._bias(orders, utilities, drawn.ends[part]))
        blocks = (drawn.added - first) // self.n_orders
        cost = blocks * self.cost if self.truncation is None else drawn.cost
        self._advance(moments, blocks, cost)

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

    @property
    def settled(self):
        return self.moments.count >= 10
