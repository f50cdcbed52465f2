"""Semivalues from coalitions each of which tells the contributions of all players.

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

from ..design import Design, Moments, is_shapley
from ..intervals import sum_variances

# Strata are ranges of sizes, whose edges grow by a ratio.
_SMALL_RATIO = 1.4  # up to a size
_LARGE_SIZE = 40
_LARGE_RATIO = 2.0  # from there on
_RARE = 0.01  # of a uniform size's probability: less probable strata are merged

# The spread of contributions falls faster from this size on, at least.
_STEP_SIZE = 20

_STEP_WORK = 1 / 8  # of a step, in models trained
_COALITION_WORK = 150  # of a coalition, in models trained

# A size that has at most this fraction of its stratum's probability does not count for
# the work of the stratum.
_NEGLIGIBLE = 1e-12

_N_PAIRS = 32  # pairs of coalitions of a block, about
_MAX_AT_ONCE = 2**21  # contributions asked for at once
_MAX_LOGGED = 2**27  # contributions kept for another semivalue

# Largest variance of another semivalue, over that of a fit of its own.
_MAX_RATIO = 16


@dataclass(frozen=True)
class MarginalMoments(Moments):
    """Sums over the coalitions of each stratum.

    Parameters
    ----------
    sums, added : ndarrays of shape (n_strata, n)
        Sums of weighted contributions, and of the corrections in them.
    squares : ndarray of shape (n_strata, n)
        Sums of squared differences within pairs, of which the mean over players is
        subtracted if the sum of all values is known.
    draws : ndarray of int of shape (n_strata,)
        Numbers of coalitions.
    """

    sums: np.ndarray
    added: np.ndarray
    squares: np.ndarray
    draws: np.ndarray

    def add(self, labels, weights, answers, efficient):
        """The sums with more pairs of coalitions.

        ``labels`` (m,) are the strata of the coalitions, ``weights`` (m, n) and
        ``answers`` (2, m, n) those of all players. If the values are ``efficient``,
        their sum is known.
        """
        contributions, corrections = answers
        added = weights * corrections
        totals = weights * contributions + added
        differences = totals[::2] - totals[1::2]
        if efficient:  # the shift of all values removes what is common to them
            differences -= differences.mean(axis=1, keepdims=True)

        sums = {name: array.copy() for name, array in self.arrays().items()}
        for label in np.unique(labels):
            in_stratum = labels == label
            sums["sums"][label] += totals[in_stratum].sum(axis=0)
            sums["added"][label] += added[in_stratum].sum(axis=0)
            sums["squares"][label] += (differences[in_stratum[::2]] ** 2).sum(axis=0)
            sums["draws"][label] += in_stratum.sum()
        return MarginalMoments(**sums)

    def merge(self, other):
        return MarginalMoments(
            sums=self.sums + other.sums,
            added=self.added + other.added,
            squares=self.squares + other.squares,
            draws=self.draws + other.draws,
        )

    @property
    def count(self):
        """Number of coalitions so far."""
        return int(self.draws.sum())


@dataclass
class _PendingBlock:
    """The coalitions of a block, and the answers to the first ones.

    Parameters
    ----------
    labels : ndarray of int of shape (m,)
        Their strata; pairs follow each other.
    masks : ndarray of bool of shape (m, n)
        The coalitions.
    answers : list of ndarrays of shape (2, m_tile, n)
        What `tell` received.
    """

    labels: np.ndarray
    masks: np.ndarray
    answers: list

    @property
    def n_answered(self):
        """Number of coalitions whose contributions are known."""
        return sum(answers.shape[1] for answers in self.answers)


class MarginalDesign(Design):
    """Pairs of coalitions in strata of sizes, with contributions of all players.

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

    Attributes
    ----------
    probabilities : ndarray of shape (n + 1,)
        Probabilities of sizes.
    edges : ndarray of int of shape (n_strata + 1,)
        First size of each stratum, and n + 1.
    mass : ndarray of shape (n_strata,)
        Probabilities of the strata.
    pairs : ndarray of int of shape (n_strata,)
        Pairs of coalitions of a block.
    weights : ndarray of shape (n,)
        Weight of the contributions of each layer.
    """

    log_names = ("labels", "packed", "totals")

    def __init__(self, q, n_trained, smooth=True, **options):
        n = len(q)
        self.q = q
        self.n_trained = n_trained
        self.smooth = smooth
        self.efficient = is_shapley(q)

        sizes = np.arange(n + 1)
        weighted = sizes * np.r_[0.0, q] + (n - sizes) * np.r_[q, 0.0]
        self.probabilities = weighted / (n + 1)
        self.edges = _stratum_edges(self.probabilities, n_trained)
        self.mass = np.add.reduceat(self.probabilities, self.edges[:-1])
        self.weights = _layer_weights(q, self.probabilities)

        most_trained = self._most_trained()
        self.pairs = self._allocate_pairs(most_trained)
        self.cost = int(2 * (self.pairs * (1 + most_trained)).sum())
        super().__init__(n, **options)

    def _most_trained(self):
        """Most models that a coalition of each stratum trains besides its own."""
        of_stratum = np.repeat(self.mass, np.diff(self.edges))
        is_typical = self.probabilities > _NEGLIGIBLE * of_stratum
        n_trained = np.where(is_typical, self.n_trained, 0)
        return np.maximum.reduceat(n_trained, self.edges[:-1])

    def _expected_terms(self):
        """Variance that a draw of each stratum is expected to add, up to a factor."""
        n = len(self.q)
        sizes = np.arange(n + 1)
        if self.smooth:
            first_step = np.argmax(self.n_trained < n)
            fall = (sizes + 2) * (1 + sizes / max(_STEP_SIZE, 3 * first_step))
        else:
            fall = np.sqrt(sizes + 2)

        # A size s has the weight of layer s, that of the players outside; the coalition
        # of all has none and takes the last. The empty coalition has no variance.
        weights = np.r_[self.weights, self.weights[-1:]]
        stds = weights * ((sizes > 0) / fall)
        squares = np.add.reduceat(self.probabilities * stds**2, self.edges[:-1])
        return self.mass * squares

    def _allocate_pairs(self, most_trained):
        """Pairs of each stratum in a block, by Neyman's rule with work."""
        work = _COALITION_WORK + most_trained + _STEP_WORK * len(self.q)
        wanted = np.sqrt(self._expected_terms() / work)
        n_pairs = np.round(_N_PAIRS * wanted / wanted.sum())
        return np.maximum(1, n_pairs).astype(np.int64)

    def _no_moments(self):
        shape = (len(self.mass), self.n)
        return MarginalMoments(
            sums=np.zeros(shape),
            added=np.zeros(shape),
            squares=np.zeros(shape),
            draws=np.zeros(len(self.mass), np.int64),
        )

    # Drawing --------------------------------------------------------------------------

    def round_of(self, block):
        return block, block + 1

    def _ask(self, blocks):
        if self._pending is None:
            self._pending = self._draw()
        n_pairs = min(_MAX_AT_ONCE // self.n, self.size) // 2
        start = self._pending.n_answered
        return self._pending.masks[start : start + 2 * max(1, n_pairs)]

    def _draw(self):
        """The coalitions of a block."""
        rng = self.random(self.block)
        labels = []
        sizes = []
        for label, n_pairs in enumerate(self.pairs):
            # The sizes of pairs are stratified, those within a pair independent.
            first, last = self.edges[label : label + 2]
            cumulated = np.cumsum(self.probabilities[first:last])
            pair = np.repeat(np.arange(n_pairs), 2)
            u = (pair + rng.random(2 * n_pairs)) / n_pairs * cumulated[-1]
            drawn = first + np.searchsorted(cumulated, u, side="right")
            sizes.append(np.minimum(drawn, last - 1))
            labels.append(np.full(2 * n_pairs, label))
        sizes = np.concatenate(sizes)
        masks = rng.permuted(np.arange(self.n) < sizes[:, None], axis=1)
        return _PendingBlock(np.concatenate(labels), masks, answers=[])

    def generators(self, count):
        """A random number generator for each of the next ``count`` coalitions."""
        start = self._pending.n_answered
        return [self.random(self.block, start + i) for i in range(count)]

    def fits(self, masks):
        """Number of models trained for the contributions to some coalitions."""
        return int((1 + self.n_trained[masks.sum(axis=1)]).sum())

    def _tell(self, utilities):
        pending = self._pending
        pending.answers.append(utilities)
        if pending.n_answered < len(pending.masks):
            return

        labels = pending.labels
        masks = pending.masks
        answers = np.concatenate(pending.answers, axis=1)
        weights = self.weights_of(masks)
        moments = self.moments.add(labels, weights, answers, self.efficient)
        log = ()
        if moments.count * self.n <= _MAX_LOGGED:
            totals = answers.sum(axis=0).astype(np.float32)
            log = (*self.log, (labels, np.packbits(masks, axis=1), totals))
        self._pending = None
        self._advance(moments, 1, self.fits(masks), log)

    def weights_of(self, masks):
        """Weight of the contribution of every player to each coalition, (m, n)."""
        sizes = masks.sum(axis=1)[:, None]
        layers = np.where(masks, sizes - 1, sizes)
        return self.weights[np.clip(layers, 0, self.n - 1)]

    # Values and their errors ----------------------------------------------------------

    def values(self):
        values = self._mean_of(self.moments.sums)
        if not self.efficient:
            return values
        # The sum of Shapley values is known: all are shifted equally to match it.
        gain = self.full - self.empty_utility
        return values + (gain - values.sum()) / self.n

    @property
    def correction(self):
        """What the corrections added to the values."""
        return self._mean_of(self.moments.added)

    def _mean_of(self, sums):
        """Means over all coalitions, (n,), from the sums over each stratum."""
        return (self.mass / np.maximum(self.moments.draws, 1)) @ sums

    def variances(self):
        n_draws = np.maximum(self.moments.draws, 1)[:, None]
        variances = (self.mass[:, None] / n_draws) ** 2 * self.moments.squares
        # One degree of freedom for every pair.
        return sum_variances(variances, n_draws / 2)

    @property
    def has_reliable_errors(self):
        return self.block > 1

    def reweighted(self, q):
        n_logged = sum(len(labels) for labels, *_ in self.log)
        if n_logged < self.moments.count:
            raise ValueError(
                "reweight needs the contributions to all coalitions, of which at most "
                f"{_MAX_LOGGED:,} are kept. Got {self.moments.count * self.n:,}."
            )
        design = copy(self)
        design.q = q
        design.efficient = is_shapley(q)
        design.weights = _layer_weights(q, self.probabilities)

        # The variance to expect, and that of a fit of its own of as many models.
        terms = design._expected_terms()
        variance = (terms / np.maximum(self.moments.draws, 1)).sum()
        own_design = MarginalDesign(q, self.n_trained, self.smooth)
        n_draws = 2 * own_design.pairs  # of a block
        of_block = (own_design._expected_terms() / n_draws).sum()
        n_models = max(self.n_evaluations - 1, 1)  # besides that of all players
        own_variance = of_block * own_design.cost / n_models
        is_never_drawn = (design.weights == 0) & (q > 0)
        if is_never_drawn.any() or variance > _MAX_RATIO * own_variance:
            raise ValueError(
                "Coalitions of the sizes that this semivalue weights are drawn too "
                "rarely: their variance is expected to be more than "
                f"{_MAX_RATIO} times that of a fit of its own."
            )

        # What is kept of answers is their sum: corrections are in the contributions.
        design.moments = self._no_moments()
        labels, packed, totals = self.logged()
        tile_size = 2 * max(1, _MAX_AT_ONCE // self.n // 2)
        for start in range(0, len(labels), tile_size):
            tile = slice(start, start + tile_size)
            masks = np.unpackbits(packed[tile], axis=1, count=self.n).view(bool)
            answers = np.stack([totals[tile], np.zeros_like(totals[tile])])
            weights = design.weights_of(masks)
            design.moments = design.moments.add(
                labels[tile], weights, answers, design.efficient
            )
        return design, variance, own_variance


def _layer_weights(q, probabilities):
    """Weights ``q_l / rho_l`` of the layers, (n,); 0 for those that are never drawn."""
    n = len(q)
    layers = np.arange(n)
    rho = (n - layers) * probabilities[:-1] + (layers + 1) * probabilities[1:]
    rho = rho / n
    return np.where(rho > 0, q / np.where(rho > 0, rho, 1), 0.0)


def _stratum_edges(probabilities, n_trained):
    """First sizes of the strata, and the number of sizes, (n_strata + 1,).

    The edges are geometric, with the large ones apart.
    """
    n = len(probabilities) - 1
    edges = [0, 1]
    while edges[-1] <= n:
        ratio = _SMALL_RATIO if edges[-1] < _LARGE_SIZE else _LARGE_RATIO
        edge = max(edges[-1] + 1, int(np.ceil(edges[-1] * ratio)))
        edges.append(min(edge, n + 1))

    # Where the steps begin, the work of a coalition changes.
    changes = 1 + np.flatnonzero(np.diff(n_trained == n))
    edges = np.unique(np.r_[edges, changes, n + 1])

    # Rare strata are merged with the next one.
    merged = [0]
    mass = 0.0
    for first, last in pairwise(edges):
        mass += probabilities[first:last].sum()
        if mass > _RARE / (n + 1):
            merged.append(last)
            mass = 0.0
    merged[-1] = n + 1
    return np.array(merged)
