"""Running sums from which values and their standard errors are computed. All are immutable: an
interruption in the middle of an update loses the update, not the sums."""

from dataclasses import dataclass, fields, replace

import numpy as np

_FEW = 4  # observations below which a variance is taken from the whole stratum


class Moments:
    """What all kinds of sums share: being written to arrays and read from them."""

    def arrays(self):
        """Name -> array."""
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def of_arrays(cls, arrays):
        """The inverse of `arrays`."""
        kept = {field.name: arrays[field.name] for field in fields(cls)}
        return cls(**{name: x.item() if x.ndim == 0 else x for name, x in kept.items()})


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

    @classmethod
    def empty(cls, n):
        return cls(0, np.zeros(n), np.zeros(n), np.zeros(n))

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

    @property
    def freedom(self):
        """Degrees of freedom of the variances."""
        return np.full(len(self.mean), max(self.count - 1.0, 1.0))


@dataclass(frozen=True)
class SubsetMoments(Moments):
    """Weighted sums over the coalitions of each stratum, with and without every player.

    Attributes
    ----------
    inside, outside : ndarrays of shape (5, n_strata, n)
        Sums of a, a v, a^2, a^2 v and a^2 v^2 over the coalitions with, or without, the player;
        a is a coalition's importance weight and v its utility.
    pooled : ndarray of shape (3, n_strata)
        Number of coalitions, sum of v and of v^2.
    """

    inside: np.ndarray
    outside: np.ndarray
    pooled: np.ndarray

    @classmethod
    def empty(cls, n, n_strata):
        sums = np.zeros((5, n_strata, n))
        return cls(sums, sums, np.zeros((3, n_strata)))

    def add(self, masks, labels, v, a_inside, a_outside):
        inside, outside, pooled = self.inside.copy(), self.outside.copy(), self.pooled.copy()
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            with_player = masks[rows].astype(np.float64)
            # Not a BLAS product, whose bits may depend on the number of threads.
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
        """Coalitions so far."""
        return int(self.pooled[0].sum())

    def _pooled_mean(self):
        counts, sums, squares = self.pooled
        mean = sums / np.maximum(counts, 1)
        variance = (squares - counts * mean**2) / np.maximum(counts - 1, 1)
        return mean, np.where(counts > 1, np.maximum(variance, 0), np.inf)

    def means(self, side):
        """Means over the coalitions of a stratum with ("inside") or without a player.

        Of a player of whom there is none, the mean of the stratum.
        """
        a, av = getattr(self, side)[:2]
        return np.where(a > 0, av / np.where(a > 0, a, 1), self._pooled_mean()[0][:, None])

    def side_variances(self, side):
        """Squared standard errors of `means`, and their degrees of freedom.

        The error of a ratio of sums, ``sum a^2 (v - mean)^2 / (sum a)^2``, times m / (m - 1) with
        m = (sum a)^2 / sum a^2 effective observations.
        """
        a, _, a2, a2v, a2v2 = getattr(self, side)
        seen = a > 0
        effective = np.where(seen, a**2 / np.where(seen, a2, 1), 0.0)
        mean = self.means(side)
        spread = np.maximum(a2v2 - 2 * mean * a2v + mean**2 * a2, 0) / np.where(seen, a, 1) ** 2
        few = effective < _FEW
        pooled = self._pooled_mean()[1]
        known = np.isfinite(pooled)
        # One more observation, with the deviation that there is in the mean stratum: coalitions
        # that have all been equal so far need not be.
        typical = pooled[known].mean() if known.any() else 0.0
        own = spread * effective / np.where(few, 1, effective - 1)
        own = own + typical / np.where(few, 1, effective) ** 2
        of_stratum = pooled[:, None] / np.maximum(effective, 1)
        freedom = np.maximum(np.where(few, self.pooled[0][:, None], effective) - 1, 1)
        return np.where(few, of_stratum, own), freedom


@dataclass(frozen=True)
class TableMoments(Moments):
    """Utilities of coalitions in a fixed order, as far as they are known.

    Attributes
    ----------
    count : int
        Utilities known.
    utilities : ndarray
        All of them, NaN where unknown.
    """

    count: int
    utilities: np.ndarray

    def add(self, utilities):
        filled = self.utilities.copy() if self.count == 0 else self.utilities
        filled[self.count : self.count + len(utilities)] = utilities
        return replace(self, count=self.count + len(utilities), utilities=filled)
