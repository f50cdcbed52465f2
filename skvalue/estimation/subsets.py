"""Semivalues from random subsets, each used for all players."""

from dataclasses import dataclass, replace

import numpy as np

from ..samplers import SizeStrata, draw_subsets, neyman_allocation
from .adjust import FEWEST, adjusted_moments, is_due
from .design import ENTRIES, ROUND, Design, Moments
from .record import Record

SUBSETS = 32  # coalitions per block
_PIECE = 4096  # coalitions that are drawn again at once
_PILOT = 4  # blocks before the first estimate of variances
_FEW = 4  # effective observations below which the variance of the whole stratum is used


@dataclass(frozen=True)
class SubsetMoments(Moments):
    """Weighted sums over the coalitions of each stratum, with and without every player.

    `inside` and `outside` of shape (5, n_strata, n): sums of a, a v, a^2, a^2 v and a^2 v^2 with
    importance weights a and utilities v. `pooled` of shape (3, n_strata): sums of 1, v and v^2.
    """

    inside: np.ndarray
    outside: np.ndarray
    pooled: np.ndarray

    def add(self, masks, labels, v, a_inside, a_outside):
        inside, outside, pooled = self.inside.copy(), self.outside.copy(), self.pooled.copy()
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            with_player = masks[rows].astype(np.float64)
            # No BLAS product, whose rounding may depend on the number of threads.
            for sums, a, weight in (
                (inside, a_inside[rows], with_player),
                (outside, a_outside[rows], 1.0 - with_player),
            ):
                terms = np.stack([a, a * v[rows], a**2, a**2 * v[rows], (a * v[rows]) ** 2])
                sums[:, label] += np.einsum("fm,mn->fn", terms, weight)
            pooled[:, label] += (len(rows), v[rows].sum(), (v[rows] ** 2).sum())
        return SubsetMoments(inside, outside, pooled)

    def merge(self, other):
        return SubsetMoments(
            self.inside + other.inside, self.outside + other.outside, self.pooled + other.pooled
        )

    @property
    def count(self):
        """Number of coalitions so far."""
        return int(self.pooled[0].sum())

    def pooled_variances(self):
        """Variance of the utilities of each stratum; infinite for less than two."""
        return self._pooled_mean()[1]

    def _pooled_mean(self):
        counts, sums, squares = self.pooled
        mean = sums / np.maximum(counts, 1)
        variance = (squares - counts * mean**2) / np.maximum(counts - 1, 1)
        return mean, np.where(counts > 1, np.maximum(variance, 0), np.inf)

    def means(self, side):
        """Mean utilities of each stratum with ("inside") or without every player.

        Where a stratum has no such coalition, the mean of the stratum.
        """
        a, av = getattr(self, side)[:2]
        return np.where(a > 0, av / np.where(a > 0, a, 1), self._pooled_mean()[0][:, None])

    def side_variances(self, side):
        """Squared standard errors of `means`, and their degrees of freedom.

        The squared error of a ratio of sums, ``sum a^2 (v - mean)^2 / (sum a)^2``, times
        m / (m - 1) with m = (sum a)^2 / sum a^2 effective observations.
        """
        a, _, a2, a2v, a2v2 = getattr(self, side)
        seen = a > 0
        effective = np.where(seen, a**2 / np.where(seen, a2, 1), 0.0)
        mean = self.means(side)
        variance = np.maximum(a2v2 - 2 * mean * a2v + mean**2 * a2, 0) / np.where(seen, a, 1) ** 2
        few = effective < _FEW
        pooled = self._pooled_mean()[1]
        known = np.isfinite(pooled)
        # The mean variance over strata counts as one more observation: utilities that are all
        # equal so far do not prove a variance of 0.
        typical = pooled[known].mean() if known.any() else 0.0
        variance = variance * effective / np.where(few, 1, effective - 1)
        variance = variance + typical / np.where(few, 1, effective) ** 2
        of_stratum = pooled[:, None] / np.maximum(effective, 1)
        freedom = np.maximum(np.where(few, self.pooled[0][:, None], effective) - 1, 1)
        return np.where(few, of_stratum, variance), freedom


class SubsetDesign(Design):
    """Random subsets of every size, each used for all players; see `skvalue.samplers.SizeStrata`.

    After the first few blocks, draws are allocated to strata by Neyman's rule.
    """

    cost = SUBSETS
    cuts = True

    def __init__(self, q, stratified, adjustment=None, **options):
        self.q, self.strata = q, SizeStrata.of(q, stratified)
        self.efficient = bool(np.allclose(q, 1 / len(q), rtol=1e-9))
        super().__init__(len(q), **options)
        self.record = Record()
        self.adjustment = adjustment  # an `Adjustment` of the values, or None
        self._fit = None  # number of coalitions, and the surrogate fitted on them

    def _no_moments(self):
        n_strata = self.strata.n_strata
        return SubsetMoments(*np.zeros((2, 5, n_strata, self.n)), np.zeros((3, n_strata)))

    def round_of(self, block):
        # Blocks 0-4, 4-8, 8-16, 16-32, then 32 per round: variances are estimated early.
        if block < _PILOT:
            return 0, _PILOT
        length = min(2 ** int(np.log2(block)), ROUND // SUBSETS)
        return block - block % length, block - block % length + length

    def _ask(self, blocks):
        first, last = self.round_of(self.block)
        if self.plan_first != first:
            self.plan, self.plan_first = self._allocate((last - first) * SUBSETS), first
        count = max(1, min(self.size, max(ENTRIES // self.n, SUBSETS)) // SUBSETS)
        self._drawn, size = [], SUBSETS if self.blocks_left else self.rest
        for block in blocks[:count]:
            labels = self.plan[(block - first) * SUBSETS :][:size]
            masks = draw_subsets(self.random(block), self.strata, labels)
            self._drawn.append((masks, labels))
        return np.concatenate([masks for masks, _ in self._drawn])

    def _allocate(self, count):
        """Strata of the coalitions of a round, interleaved evenly."""
        counts = neyman_allocation(self._stds(), count)
        labels = np.repeat(np.arange(len(counts)), counts)
        place = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
        return labels[np.argsort(place, kind="stable")]

    def _tell(self, utilities):
        moments, strata, gains = self.moments, self.strata, utilities - self.empty_utility
        for i, (masks, labels) in enumerate(self._drawn):
            sizes, v = masks.sum(axis=1), gains[i * SUBSETS :][:SUBSETS]
            moments = moments.add(masks, labels, v, strata.inside[sizes], strata.outside[sizes])
        labels = np.concatenate([labels for _, labels in self._drawn])
        self.record.write(self.moments.count, self.block, self.seed, labels, gains, SUBSETS)
        if self.adjustment is not None:
            masks = np.concatenate([masks for masks, _ in self._drawn])
            # By the first coalition, so that the masks need not be drawn again.
            self._cache[self.moments.count] = np.packbits(masks, axis=1)
        blocks, self._drawn = len(self._drawn), None
        kept = self._state if len(utilities) < blocks * SUBSETS else None
        self._advance(moments, blocks, len(utilities), kept)

    def drawn(self, known=0):
        """The coalitions in the moments, in order: masks, strata and gains, in pieces of blocks.

        Masks are not kept but drawn again. Blocks within the first ``known`` coalitions are left
        out. The pieces do not depend on the number of workers.
        """
        record, pieces = self.record, []
        most = max(1, min(_PIECE, ENTRIES // self.n) // SUBSETS)
        for seed, block, part in record.blocks(self.moments.count, SUBSETS):
            if part.stop <= known:
                continue
            masks = draw_subsets(self.random(block, seed), self.strata, record.labels[part])
            pieces.append((masks, record.labels[part], record.gains[part]))
            if len(pieces) == most:
                yield tuple(map(np.concatenate, zip(*pieces)))
                pieces = []
        if pieces:
            yield tuple(map(np.concatenate, zip(*pieces)))

    def _weights(self):
        return self.strata.inside_weight[:, None], self.strata.outside_weight[:, None]

    def _stds(self):
        """Standard deviation that one draw of each stratum adds to a value, over all players."""
        variances = np.zeros(self.strata.n_strata)
        with np.errstate(invalid="ignore"):  # 0 * inf for strata without coalitions
            for side, weight in zip(("inside", "outside"), self._weights()):
                variances += (weight**2 * self.moments.side_variances(side)[0]).mean(axis=1)
            stds = np.sqrt(variances * self.moments.pooled[0])
        return np.where(np.isfinite(stds), stds, np.nan)

    def values(self):
        (inside, outside), gain = self._weights(), self.full - self.empty_utility
        moments, *expected = self._sums()
        means = [moments.means(side) + mean for side, mean in zip(("inside", "outside"), expected)]
        values = (inside * means[0] - outside * means[1]).sum(axis=0)
        values += self.q[-1] * gain
        # The sum of Shapley values is known: all values are shifted equally to match it.
        return values + (gain - values.sum()) / self.n if self.efficient else values

    def variances(self):
        return self._variances(self._sums()[0])

    def _variances(self, moments):
        parts, degrees = [], []
        for side, weight in zip(("inside", "outside"), self._weights()):
            variances, freedom = moments.side_variances(side)
            with np.errstate(invalid="ignore"):
                parts.append(np.where(weight > 0, weight**2 * variances, 0.0))
            degrees.append(freedom)
        parts, degrees = np.concatenate(parts), np.concatenate(degrees)
        total = parts.sum(axis=0)
        finite = np.isfinite(total) & (total > 0)
        scaled = np.divide(parts, total, out=np.zeros_like(parts), where=finite)
        # Satterthwaite's degrees of freedom of a sum of variances.
        freedom = 1 / np.where(finite, (scaled**2 / degrees).sum(axis=0), 1.0)
        return total, np.maximum(freedom, 1.0)

    # Control variates -----------------------------------------------------------------------

    def _sums(self):
        """The moments, of residuals if adjusted, and what is added to the means of both sides."""
        if not self.is_adjusted:
            return self.moments, 0.0, 0.0
        fit = self.adjusted
        return fit.moments, fit.inside, fit.outside

    @property
    def is_adjusted(self):
        """Whether the values are those of `adjusted`."""
        fit = self.adjusted
        return fit is not None and bool(fit.ratio < self.adjustment.largest_ratio)

    @property
    def adjusted(self):
        """The estimate with control variates from all coalitions; None if there is none."""
        count = self.moments.count
        if self.adjustment is None or count < FEWEST:
            return None
        if self._fit is None or self._fit[0] != count:
            self._fit = count, self._adjust()
        return self._fit[1]

    def _adjust(self):
        """Fit surrogates on all coalitions."""
        adjustment, moments, count = self.adjustment, self.moments, self.moments.count
        packed = self._all_packed()

        def masks(rows):
            return np.unpackbits(packed[rows], axis=1, count=self.n).astype(bool)

        kinds = adjustment.kinds_for(self.n, count)
        if kinds not in self._cache:
            self._cache[kinds] = adjustment.make(self.strata, kinds), []
        controls, described = self._cache[kinds]
        piece = max(1, ENTRIES // self.n)
        for start in range(sum(map(len, described)), count, piece):
            described.append(controls.describe(masks(slice(start, min(start + piece, count)))))
        labels, variances = self.record.labels[:count].astype(np.int64), moments.pooled_variances()
        # What a squared residual of a coalition adds to the variance of the values, by stratum.
        known = np.isfinite(variances) & (variances > 0)
        stds, draws = np.nan_to_num(self._stds()), np.maximum(moments.pooled[0], 1)
        weights = np.where(known, stds**2 / np.where(known, variances, 1) / draws**2, 0.0)
        sample = masks, np.concatenate(described), labels, self.record.gains[:count]
        found = adjusted_moments(
            sample, self._no_moments(), self.strata, controls, weights, SUBSETS
        )
        left, plain = (self._variances(sums)[0].mean() for sums in (found.moments, moments))
        residual = np.where(known, found.moments.pooled_variances(), 1)
        r2 = 1 - residual / np.where(known, variances, 1)
        return replace(found, r2=r2, ratio=np.sqrt(left / plain) if plain > 0 else 1.0)

    def _all_packed(self):
        """Masks of all coalitions, as bits."""
        parts, count = [], 0
        while count in self._cache:
            parts.append(self._cache[count])
            count += len(parts[-1])
        if count < self.moments.count:
            drawn = [np.packbits(masks, axis=1) for masks, *_ in self.drawn(count)]
            parts, self._cache[count] = [*parts, *drawn], np.concatenate(drawn)
        return np.concatenate(parts)[: self.moments.count]

    @property
    def is_due(self):
        """Whether goals are checked now: with surrogates, where they are fitted again."""
        if self.adjustment is None:
            return True
        return is_due(self.round_of(max(self.block - 1, 0))[0] * SUBSETS, self.block * SUBSETS)

    @property
    def has_reliable_errors(self):
        return self.moments.count >= ROUND
