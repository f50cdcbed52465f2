"""Semivalues from coalitions each of which tells the marginal contributions of all
players.

A coalition S of s players tells what those outside add to it (layer s), and what those
inside add to the rest (layer s - 1). With sizes drawn with probabilities ``pi``, layer
l is told to a player with probability ``rho_l = ((n - l) pi_l + (l + 1) pi_{l + 1}) /
n``, and the expectation of the contributions times ``q_l / rho_l`` is the semivalue
with probabilities q of layers. With ``pi_s = (s q_{s - 1} + (n - s) q_s) / (n + 1)``
all weights are 1 for the Shapley value.
"""

from copy import copy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..design import Design, Moments
from ..intervals import summed
from ..subsets import _is_shapley

_GROWTH, _LATER, _EARLY = (
    1.4,
    2.0,
    40,
)  # ratios of the edges of strata, below a size and from there
_RARE = (
    0.01  # strata of less than this fraction of a uniform size's probability are merged
)
_FEW = 20  # size from which the spread of contributions falls faster, at least
_NEVER = 1e-12  # probability within a stratum of sizes whose work does not count
_PAIRS = 32  # pairs of coalitions of a block, about
_STEP, _COALITION = 1 / 8, 150  # work of a step and of a coalition, in models trained
_PIECE = 2**21  # most contributions asked for at once
_LOGGED = 2**27  # most contributions kept for another semivalue
_LARGEST = 16  # of the variance, over that of a fit for another semivalue, for which it is refused


@dataclass(frozen=True)
class MarginalMoments(Moments):
    """Sums over the coalitions of each stratum, of shape (n_strata, n), and their
    numbers `draws`.

    `sums` of weighted contributions, `added` of the corrections in them, and `squares`
    of the differences within pairs, of which the mean over players is subtracted if the
    sum of all values is known.
    """

    sums: np.ndarray
    added: np.ndarray
    squares: np.ndarray
    draws: np.ndarray

    def add(self, labels, weights, answers, efficient):
        """Add pairs of coalitions of some strata: weights (m, n), answers (2, m, n)."""
        added = weights * answers[1]
        totals = weights * answers[0] + added
        differences = totals[::2] - totals[1::2]
        if efficient:  # the shift of all values removes what is common to them
            differences -= differences.mean(axis=1, keepdims=True)
        new = {name: array.copy() for name, array in self.arrays().items()}
        for label in np.unique(labels):
            own = labels == label
            new["sums"][label] += totals[own].sum(axis=0)
            new["added"][label] += added[own].sum(axis=0)
            new["squares"][label] += (differences[own[::2]] ** 2).sum(axis=0)
            new["draws"][label] += own.sum()
        return MarginalMoments(**new)

    def merge(self, other):
        ours, theirs = self.arrays(), other.arrays()
        return MarginalMoments(**{name: ours[name] + theirs[name] for name in ours})

    @property
    def count(self):
        """Number of coalitions so far."""
        return int(self.draws.sum())


class MarginalDesign(Design):
    """Pairs of coalitions in strata of sizes; `tell` takes contributions of all
    players.

    ``tell(answers)`` takes an array of shape (2, m, n): approximate contributions of
    the players, and corrections of these, see `corrections`. The two coalitions of a
    pair are drawn independently from the same narrow range of sizes, so that their
    differences estimate the variance without bias. Blocks hold the same numbers of
    pairs of every stratum, which are proportional to the standard deviation that is
    expected (the contributions' falls as 1 / (l + 2) over layers l, and faster where
    steps are taken) over the root of the work.

    Parameters
    ----------
    q : ndarray of shape (n,)
        Probabilities of the layers.
    n_trained : ndarray of int of shape (n + 1,)
        Number of players whose contributions to a coalition of every size are those of
        models trained for real.
    smooth : bool, default=True
        Whether the utility has derivatives. Else the standard deviation of the
        contributions falls as 1 / sqrt(l + 2): rows change the predictions of few
        points.
    **options
        As those of `Design`.
    """

    kept = ("labels", "packed", "totals")

    def __init__(self, q, n_trained, smooth=True, **options):
        n = len(q)
        self.q, self.n_trained, self.smooth = q, n_trained, smooth
        self.efficient = _is_shapley(q)
        sizes = np.arange(n + 1)
        self.probabilities = (sizes * np.r_[0.0, q] + (n - sizes) * np.r_[q, 0.0]) / (
            n + 1
        )
        self.edges = _edges(self.probabilities, n_trained)
        self.mass = np.add.reduceat(self.probabilities, self.edges[:-1])
        self._set_weights()
        self.pairs = self._pairs()
        self.cost = int(2 * (self.pairs * (1 + self._worst())).sum())
        super().__init__(n, **options)

    def _set_weights(self):
        n, p = len(self.q), self.probabilities
        told = (np.arange(n, 0, -1) * p[:-1] + np.arange(1, n + 1) * p[1:]) / n
        self.weights = np.where(told > 0, self.q / np.where(told > 0, told, 1), 0.0)

    def _worst(self):
        """Most models that a coalition of each stratum trains besides its own."""
        typical = self.probabilities > _NEVER * np.repeat(
            self.mass, np.diff(self.edges)
        )
        return np.maximum.reduceat(
            np.where(typical, self.n_trained, 0), self.edges[:-1]
        )

    def _terms(self):
        """Variance that one draw of each stratum is expected to add to a value, up to a
        factor."""
        sizes = np.arange(len(self.q) + 1)
        few = max(_FEW, 3 * np.argmax(self.n_trained < len(self.q)))
        fall = (sizes + 2) * (1 + sizes / few) if self.smooth else np.sqrt(sizes + 2)
        expected = (sizes > 0) / fall
        weights = np.r_[self.weights, self.weights[-1:]] * expected
        squares = np.add.reduceat(self.probabilities * weights**2, self.edges[:-1])
        return self.mass * squares

    def _pairs(self):
        work = _COALITION + self._worst() + _STEP * len(self.q)
        wanted = np.sqrt(self._terms() / work)
        return np.maximum(1, np.round(_PAIRS * wanted / wanted.sum())).astype(np.int64)

    def _no_moments(self):
        n_strata = len(self.mass)
        return MarginalMoments(
            *np.zeros((3, n_strata, self.n)), np.zeros(n_strata, np.int64)
        )

    def round_of(self, block):
        return block, block + 1

    def _ask(self, blocks):
        if self._drawn is None:
            self._drawn, self._told, self._answers = self._draw(), 0, []
        at_once = 2 * max(1, min(_PIECE // self.n, self.size) // 2)
        return self._drawn[1][self._told : self._told + at_once]

    def _draw(self):
        """Strata and masks of the coalitions of a block."""
        rng, labels, sizes = self.random(self.block), [], []
        for label, (count, first, last) in enumerate(
            zip(self.pairs, self.edges, self.edges[1:])
        ):
            cumulated = np.cumsum(self.probabilities[first:last])
            u = (
                (np.repeat(np.arange(count), 2) + rng.random(2 * count))
                / count
                * cumulated[-1]
            )
            drawn = first + np.searchsorted(cumulated, u, side="right")
            sizes.append(np.minimum(drawn, last - 1))
            labels.append(np.full(2 * count, label))
        labels, sizes = np.concatenate(labels), np.concatenate(sizes)
        return labels, rng.permuted(np.arange(self.n) < sizes[:, None], axis=1)

    def generators(self, count):
        """A random number generator for each of the next ``count`` coalitions."""
        return [self.random(self.block, self._told + i) for i in range(count)]

    def fits(self, masks):
        """Number of models trained for the contributions to some coalitions."""
        return int((1 + self.n_trained[masks.sum(axis=1)]).sum())

    def _tell(self, utilities):
        self._answers.append(utilities)
        self._told += utilities.shape[1]
        labels, masks = self._drawn
        if self._told < len(masks):
            return
        answers, weights = np.concatenate(self._answers, axis=1), self.weights_of(masks)
        moments, log = self.moments.add(labels, weights, answers, self.efficient), ()
        if moments.count * self.n <= _LOGGED:
            totals = answers.sum(axis=0).astype(np.float32)
            log = (*self.log, (labels, np.packbits(masks, axis=1), totals))
        self._drawn, self._answers = None, []
        self._advance(moments, 1, self.fits(masks), log)

    def weights_of(self, masks):
        """Weight of the contribution of every player to each coalition."""
        sizes = masks.sum(axis=1)[:, None]
        return self.weights[np.clip(np.where(masks, sizes - 1, sizes), 0, self.n - 1)]

    def values(self):
        values = self._mean(self.moments.sums)
        gain = self.full - self.empty_utility
        # The sum of Shapley values is known: all values are shifted equally to match
        # it.
        return values + (gain - values.sum()) / self.n if self.efficient else values

    @property
    def correction(self):
        """What the corrections added to the values."""
        return self._mean(self.moments.added)

    def _mean(self, sums):
        return (self.mass / np.maximum(self.moments.draws, 1)) @ sums

    def variances(self):
        counts = np.maximum(self.moments.draws, 1)[:, None]
        # One degree of freedom for every pair.
        return summed(
            (self.mass[:, None] / counts) ** 2 * self.moments.squares, counts / 2
        )

    def reweighted(self, q):
        if sum(len(labels) for labels, *_ in self.log) < self.moments.count:
            raise ValueError(
                "reweight needs the contributions to all coalitions, of which at most "
                f"{_LOGGED:,} are kept. Got {self.moments.count * self.n:,}."
            )
        other = copy(self)
        other.q, other.efficient = q, _is_shapley(q)
        own = MarginalDesign(q, self.n_trained, self.smooth)
        other._set_weights()
        never = (other.weights == 0) & (q > 0)
        drawn = (other._terms() / np.maximum(self.moments.draws, 1)).sum()
        best = (
            (own._terms() / own.pairs).sum()
            / 2
            * own.cost
            / max(self.n_evaluations - 1, 1)
        )
        if never.any() or drawn > _LARGEST * best:
            raise ValueError(
                "Coalitions of the sizes that this semivalue weights are drawn too rarely: their "
                f"variance is expected to be more than {_LARGEST} times that of a fit of its own."
            )
        other.moments = self._no_moments()
        logged, count = self.logged(), 2 * max(1, _PIECE // self.n // 2)
        for start in range(0, len(logged[0]), count):
            labels, packed, totals = (array[start : start + count] for array in logged)
            masks = np.unpackbits(packed, axis=1, count=self.n).view(bool)
            answers = np.stack([totals, np.zeros_like(totals)])
            weights = other.weights_of(masks)
            other.moments = other.moments.add(labels, weights, answers, other.efficient)
        return other, drawn, best

    @property
    def has_reliable_errors(self):
        return self.block > 1


def _edges(probabilities, n_trained):
    """First sizes of the strata, and the number of sizes: geometric, with the large
    ones apart."""
    n = len(probabilities) - 1
    edges = [0, 1]
    while edges[-1] <= n:
        ratio = _GROWTH if edges[-1] < _EARLY else _LATER
        edges.append(min(max(edges[-1] + 1, int(np.ceil(edges[-1] * ratio))), n + 1))
    # Where the steps begin, the work of a coalition changes.
    edges = np.unique(np.r_[edges, 1 + np.flatnonzero(np.diff(n_trained == n)), n + 1])
    kept, mass = [0], 0.0
    for first, last in pairwise(edges):
        mass += probabilities[first:last].sum()
        if mass > _RARE / (n + 1):
            kept.append(last)
            mass = 0.0
    kept[-1] = n + 1
    return np.array(kept)
