"""What a sampler asks, in blocks, and what it makes of the answers.

A design has ``round(block)`` (the blocks from which to which are drawn together), ``cost`` (the
coalitions of a block), ``n_blocks`` (None: no end), ``empty()`` moments, ``play`` (a generator that
asks for the utilities of blocks and yields, after every question, the moments of the blocks that
are complete, their number, and the coalitions asked for them),
``values`` and ``variances`` of moments.
"""

import numpy as np

from ..samplers import (
    SizeStrata,
    draw_orders,
    draw_subsets,
    neyman_allocation,
    prefix_marginals,
    prefix_masks,
)
from ..semivalues import tabulated_semivalue
from .moments import OrderMoments, SubsetMoments, TableMoments

ROUND = 1024  # coalitions between two looks at the stopping rules, at least
SUBSETS = 32  # coalitions of a block of subsets
_PILOT = 4  # blocks of subsets before the first look at their variances
_ENTRIES = 2**25  # of the masks that are made at once


class OrderDesign:
    """Replicates of orders of the players; see `skvalue.samplers.draw_orders`.

    With ``truncation`` (a tolerance in units of utility) an order ends where the utilities of as
    many prefixes in a row as a twentieth of the players, at least 5, are within it of the utility
    of all. What is missing to the utility of all is shared equally by those who did not join. If
    the utilities of all later prefixes are within the tolerance, too, each of these marginal
    contributions is off by at most twice the tolerance and the share; `OrderMoments.bias` is the
    mean of that.
    """

    n_blocks = None

    def __init__(self, q, kind, truncation=None):
        self.n, self.kind, self.truncation = len(q), kind, truncation
        self.weights = self.n * q
        used = np.r_[0, q] + np.r_[q, 0] > 0  # prefixes of 0..n players whose utilities count
        self.sizes = np.flatnonzero(used[1:-1]) + 1
        self.n_orders = len(draw_orders(np.random.default_rng(0), self.n, kind))
        self.cost = self.n_orders * len(self.sizes)
        self.round_size = max(1, ROUND // max(self.cost, 1))

    def empty(self):
        return OrderMoments.empty(self.n)

    def round(self, block):
        first = block - block % self.round_size
        return first, first + self.round_size

    def play(self, moments, blocks, seeds, ask, ends, _plan):
        orders = np.concatenate([draw_orders(seeds(block), self.n, self.kind) for block in blocks])
        utilities = np.zeros((len(orders), self.n + 1))
        utilities[:, 0], utilities[:, -1] = ends
        cuts = np.full(len(orders), self.n)
        positions = np.argsort(orders, axis=1)
        fill = self._fill if self.truncation is None else self._fill_until_flat
        complete = 0
        for orders_done, asked in fill(positions, utilities, cuts, ask, ends[1]):
            while (complete + 1) * self.n_orders <= orders_done:
                part = slice(complete * self.n_orders, (complete + 1) * self.n_orders)
                bias = self._bias(orders[part], utilities[part], cuts[part])
                x = prefix_marginals(orders[part], utilities[part], self.weights)
                moments = moments.add(x, bias)
                complete += 1
            yield moments, complete, asked if self.truncation else complete * self.cost

    def _fill(self, positions, utilities, _cuts, ask, _full):
        """Utilities of all prefixes, order by order."""
        n_sizes, total = len(self.sizes), len(positions) * len(self.sizes)
        limit, done = max(1, _ENTRIES // self.n), 0
        if total == 0:
            yield len(positions), 0
        while done < total:
            order, place = np.divmod(
                np.arange(done, min(done + min(ask.size, limit), total)), n_sizes
            )
            sizes = self.sizes[place]
            utilities[order, sizes] = ask(prefix_masks(positions[order], sizes))
            done += len(order)
            yield done // n_sizes, done

    def _fill_until_flat(self, positions, utilities, cuts, ask, full):
        """Utilities of prefixes, a few sizes of all orders at a time, until they are flat."""
        step, limit = max(5, -(-self.n // 20)), max(1, _ENTRIES // self.n)
        alive, asked = np.arange(len(positions)), 0
        for sizes in np.split(self.sizes, range(step, len(self.sizes), step)):
            for part in _parts(len(alive) * len(sizes), min(ask.size, limit)):
                order, place = np.divmod(part, len(sizes))
                masks = prefix_masks(positions[alive[order]], sizes[place])
                utilities[alive[order], sizes[place]] = ask(masks)
                asked += len(part)
                yield 0, 0
            near = np.abs(utilities[np.ix_(alive, sizes)] - full) <= self.truncation
            flat = near.all(axis=1) if len(sizes) == step else np.zeros(len(alive), dtype=bool)
            last = sizes[-1]
            for order in alive[flat]:
                cuts[order] = last
                utilities[order, last:] = np.linspace(
                    utilities[order, last], full, self.n + 1 - last
                )
            alive = alive[~flat]
        yield len(positions), asked

    def _bias(self, orders, utilities, cuts):
        bias = np.zeros(self.n)
        for order, prefix, cut in zip(orders, utilities, cuts):
            if cut < self.n:
                share = abs(prefix[-1] - prefix[cut]) / (self.n - cut)
                bias[order[cut:]] += self.weights[cut:] * (2 * self.truncation + share)
        return bias / len(orders)

    def plan(self, _moments, _block):
        return None

    def values(self, moments, _ends):
        return moments.mean

    def variances(self, moments):
        return moments.variances, moments.freedom

    def settled(self, moments):
        """Whether there are enough replicates to believe the variances."""
        return moments.count >= 10


class SubsetDesign:
    """Random subsets of every size, each used for all players; see `skvalue.samplers.SizeStrata`.

    From the first few blocks on, draws are allotted to strata by Neyman's rule.
    """

    n_blocks = None
    cost = SUBSETS

    def __init__(self, q, stratified):
        self.n, self.q, self.stratified = len(q), q, stratified
        self.strata = SizeStrata.of(q, stratified)
        self.efficient = bool(np.allclose(q, 1 / self.n, rtol=1e-9))

    def empty(self):
        return SubsetMoments.empty(self.n, self.strata.n_strata)

    def round(self, block):
        """0-4, 4-8, 8-16, then blocks by 32: looks at the variances come early first."""
        longest = ROUND // SUBSETS
        if block < _PILOT:
            return 0, _PILOT
        length = min(2 ** int(np.log2(block)), longest)
        return block - block % length, block - block % length + length

    def plan(self, moments, block):
        """Strata of the coalitions of a round, spread so that any part of it is like the whole."""
        first, last = self.round(block)
        counts = neyman_allocation(self._spread(moments), (last - first) * SUBSETS)
        labels = np.repeat(np.arange(len(counts)), counts)
        place = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
        return labels[np.argsort(place, kind="stable")]

    def play(self, moments, blocks, seeds, ask, ends, plan):
        first = self.round(blocks[0])[0]
        labels = [plan[(b - first) * SUBSETS :][:SUBSETS] for b in blocks]
        limit = max(1, min(ask.size, max(_ENTRIES // self.n, SUBSETS)) // SUBSETS)
        complete = 0
        for start in range(0, len(blocks), limit):
            some = range(start, min(start + limit, len(blocks)))
            drawn = [draw_subsets(seeds(blocks[i]), self.strata, labels[i]) for i in some]
            utilities = ask(np.concatenate(drawn)) - ends[0]
            for i, masks in zip(some, drawn):
                sizes = masks.sum(axis=1)
                v = utilities[(i - start) * SUBSETS :][:SUBSETS]
                moments = moments.add(
                    masks, labels[i], v, self.strata.inside[sizes], self.strata.outside[sizes]
                )
                complete += 1
            yield moments, complete, complete * SUBSETS

    def _shares(self):
        return self.strata.inside_share[:, None], self.strata.outside_share[:, None]

    def _spread(self, moments):
        """Standard deviation that one draw adds to a value, in the mean over players."""
        variances = np.zeros(self.strata.n_strata)
        with np.errstate(invalid="ignore"):  # 0 * inf, where nothing is known
            for side, share in zip(("inside", "outside"), self._shares()):
                variances += (share**2 * moments.side_variances(side)[0]).mean(axis=1)
            spread = np.sqrt(variances * moments.pooled[0])
        return np.where(np.isfinite(spread), spread, np.nan)

    def values(self, moments, ends):
        inside, outside = self._shares()
        gain = ends[1] - ends[0]
        values = (inside * moments.means("inside") - outside * moments.means("outside")).sum(axis=0)
        values += self.q[-1] * gain
        # The Shapley values' sum is known: all are moved by the same to have it.
        return values + (gain - values.sum()) / self.n if self.efficient else values

    def variances(self, moments):
        parts, weights = [], []
        for side, share in zip(("inside", "outside"), self._shares()):
            variances, freedom = moments.side_variances(side)
            with np.errstate(invalid="ignore"):
                parts.append(np.where(share > 0, share**2 * variances, 0.0))
            weights.append(freedom)
        parts, weights = np.concatenate(parts), np.concatenate(weights)
        total = parts.sum(axis=0)
        finite = np.isfinite(total) & (total > 0)
        scaled = np.divide(parts, total, out=np.zeros_like(parts), where=finite)
        # Satterthwaite's degrees of freedom of a sum of variances.
        freedom = 1 / np.where(finite, (scaled**2 / weights).sum(axis=0), 1.0)
        return total, np.maximum(freedom, 1.0)

    def settled(self, moments):
        return moments.count >= ROUND


class ExactDesign:
    """All coalitions that count: 2^n of them, or for leave-one-out n."""

    def __init__(self, q):
        self.n, self.q = len(q), q
        self.leave_one_out = bool(q[-1] == 1.0)
        self.total = self.n if self.leave_one_out else 2**self.n
        self.cost = min(ROUND, self.total)
        self.n_blocks = -(-self.total // self.cost)

    def empty(self):
        return TableMoments(0, np.full(self.total, np.nan))

    def round(self, block):
        return block, block + 1

    def plan(self, _moments, _block):
        return None

    def play(self, moments, blocks, _seeds, ask, _ends, _plan):
        before, size = moments.count, min(ask.size, max(1, _ENTRIES // self.n))
        for number, block in enumerate(blocks):
            start, stop = moments.count, min((block + 1) * self.cost, self.total)
            for part in _parts(stop - start, size):
                codes = start + part
                if self.leave_one_out:
                    masks = np.arange(self.n) != codes[:, None]
                else:
                    masks = (codes[:, None] >> np.arange(self.n)) % 2 == 1
                moments = moments.add(ask(masks))
                yield moments, number + (moments.count == stop), moments.count - before

    def values(self, moments, ends):
        if self.leave_one_out:
            return np.where(self._is_known(moments), ends[1] - moments.utilities, np.nan)
        if moments.count < self.total:
            return np.full(self.n, np.nan)
        return tabulated_semivalue(moments.utilities, lambda _n: self.q)

    def variances(self, moments):
        return np.where(self._is_known(moments), 0.0, np.inf), np.full(self.n, np.inf)

    def _is_known(self, moments):
        """Players whose values are known: by leave-one-out each from one coalition."""
        if self.leave_one_out:
            return np.arange(self.n) < moments.count
        return np.full(self.n, moments.count == self.total)

    def settled(self, moments):
        return moments.count == self.total


def _parts(n, size):
    """``range(n)`` in arrays of at most ``size``."""
    return (np.arange(start, min(start + size, n)) for start in range(0, n, size))
