"""Sizes of values estimated from noisy counts in balls.

All functions use released counts, public validation points and the scale of the noise
only, so they cost no privacy. Counts in balls near each other are similar, and their
scale is unknown. They are drawn from the posterior under this prior:

- the number of rows in a ball is a Gaussian process ``tau b + s g(v)`` over the points
  v, with b standard normal and the covariance of g ``exp(-distance / radius)``; tau and
  s <= tau are log-uniform from 1 to a million;
- the fraction of these rows whose label is not that of the point is ``a + b m(v)``,
  where m(v) is the fraction of other labels among the public points near v, plus a
  Gaussian process over the points with the same label. Whether a = 0 (no wrong labels),
  and how large the process is, follow from the marginal likelihood, so that clean
  labels give counts near zero, and not half the noise;
- counts are not negative, and those of one label at most those of all.

Sizes of values vary by orders of magnitude, so means are taken of their logarithms. One
factor then makes the total of the values of all rows that of the draws.
"""

from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from ...semivalues import absence_moments, check_semivalue

_SCALES = 10.0 ** np.arange(0, 6.01, 0.5)
_NUGGET = (
    1e-6  # fraction of signal without smoothness, so that exact counts are reproduced
)
_N_DRAWS = 64
_TABLE = 10_000  # values are tabulated up to this count at least
# Fractions of rows with another label: the constant, the multiple of the fraction among
# the public points near, the widths of "near" in radii, and the standard deviation of
# the process.
_CONSTANT = np.array(
    [0, 0.005, 0.015, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.45, 0.65]
)
_MULTIPLE = np.array([0, 1 / 3, 2 / 3, 1])
_WIDTHS = (1, 0.5, 0.25)
_PROCESS = np.array([0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64])
_PSEUDO = 0.25  # points of the labels' frequencies that are added to those near a point
_SPREAD = (
    6  # variance of counts of rows drawn at random, in variances of independent rows
)


class Basis:
    """Eigenvectors and eigenvalues of a covariance, scaled to mean variance 1.

    ``kernel`` (n, n_landmarks) holds the columns of the covariance at positions
    ``landmarks``. With fewer landmarks than points it is a Nystrom approximation.
    """

    def __init__(self, kernel, landmarks):
        n = len(kernel)
        kernel = kernel / max(
            np.mean(kernel[landmarks, np.arange(len(landmarks))]), 1e-300
        )
        weights, vectors = np.linalg.eigh(kernel[landmarks])
        if len(landmarks) < n:
            keep = weights > 1e-8 * weights[-1]
            features = kernel @ (vectors[:, keep] / np.sqrt(weights[keep]))
            weights, rotation = np.linalg.eigh(features.T @ features)
            keep = weights > 1e-8 * weights[-1]
            weights = weights[keep]
            vectors = features @ (rotation[:, keep] / np.sqrt(weights))
        self.weights = np.maximum(weights, 0) + _NUGGET
        self.vectors = vectors


def smoothing_basis(distances, landmarks, reach):
    """Basis of the covariance ``exp(-distance / reach)``; parameters as in
    `public_geometry`."""
    return Basis(np.exp(-distances / max(reach, 1e-12)), landmarks)


def _evidence(y, basis, noise):
    """Log marginal likelihood for each s (0 and the scales) and tau >= s; else -inf."""
    z, one = basis.vectors.T @ y, basis.vectors.sum(axis=0)
    n_rest = len(y) - len(z)
    scales = np.concatenate([[0.0], _SCALES])
    var = scales[:, None] ** 2 * basis.weights + noise**2
    rest = scales**2 * _NUGGET + noise**2
    y_rest, one_rest = max(y @ y - z @ z, 0) * (n_rest > 0), max(len(y) - one @ one, 0)
    quad = (z**2 / var).sum(axis=1) + y_rest / rest
    logdet = np.log(var).sum(axis=1) + n_rest * np.log(rest)
    ones = ((one**2 / var).sum(axis=1) + one_rest * (n_rest > 0) / rest)[
        :, None
    ] * _SCALES**2
    cross = ((one * z / var).sum(axis=1) + (y.sum() - one @ z) * (n_rest > 0) / rest)[
        :, None
    ]
    logs = -0.5 * (
        quad[:, None]
        - (cross * _SCALES) ** 2 / (1 + ones)
        + logdet[:, None]
        + np.log1p(ones)
    )
    return np.where(scales[:, None] <= _SCALES, logs, -np.inf)


def posterior_draws(y, basis, noise, rng, n_draws=_N_DRAWS):
    """Draws (n_draws, n) of the process given ``y``, the process plus normal noise."""
    logs = _evidence(y, basis, noise)
    likelihoods = np.exp(logs - logs.max()).ravel()
    levels = (np.arange(n_draws) + 0.5) / n_draws
    cumulative = np.cumsum(likelihoods / likelihoods.sum())
    picked = np.searchsorted(cumulative, levels * cumulative[-1])
    scale, level = np.unravel_index(picked, logs.shape)
    s, tau = np.concatenate([[0.0], _SCALES])[scale, None], _SCALES[level, None]
    # Draws from the prior, each corrected by its residual from the data (Matheron's
    # rule).
    first, second, third = rng.standard_normal((3, n_draws, len(basis.weights)))
    one, z = basis.vectors.sum(axis=0), basis.vectors.T @ y
    field = tau * third[:, :1] * one + s * np.sqrt(basis.weights) * first
    var = s**2 * basis.weights + noise**2
    resid = (z - field - noise * second) / var
    shift = (
        tau**2
        * (resid @ one)[:, None]
        / (1 + tau**2 * (one**2 / var).sum(axis=1)[:, None])
    )
    resid = resid - one / var * shift
    field = field + s**2 * basis.weights * resid + tau**2 * (resid @ one)[:, None] * one
    draws = field @ basis.vectors.T
    if len(z) < len(y):
        gain = s**2 * _NUGGET / (s**2 * _NUGGET + noise**2)
        draws += gain * (y - basis.vectors @ z)
    return draws


def positive_draws(draws):
    """Map draws of normal distributions to these distributions truncated at zero, by
    column."""
    mean, std = draws.mean(axis=0), draws.std(axis=0) + 1e-9
    below = ndtr(-mean / std)
    level = below + ndtr((draws - mean) / std) * (1 - below)
    # Far above zero truncation has no effect; far below, quantiles lose all their
    # digits.
    cut = mean + std * ndtri(np.clip(level, 1e-12, 1 - 1e-12))
    return np.maximum(np.where(mean > 4 * std, draws, cut), 0.0)


def other_fractions(labels, near, landmarks):
    """Fraction of other labels among the public points near each, for each width of
    "near"."""
    others = labels[:, None] != labels[landmarks]
    prior, found = np.mean(labels[:, None] != labels, axis=1), []
    for width in _WIDTHS:
        weights = near ** (1 / width)
        weights[landmarks, np.arange(len(landmarks))] = 0  # not the point itself
        total = (weights * others).sum(axis=1) + _PSEUDO * prior
        found.append(total / (weights.sum(axis=1) + _PSEUDO))
    return np.array(found)


class CountModel:
    """The posterior of the counts in balls around public points.

    ``noisy`` (2, n_validation) are the released counts of rows with and without the
    label of each point, ``noise`` is the standard deviation of their noise, and
    ``labels`` are those of the points; the other parameters are as in
    `public_geometry`.
    """

    def __init__(self, noisy, noise, labels, distances, landmarks, reach):
        near = np.exp(-distances / max(reach, 1e-12))
        self._noise, self._basis = noise, smoothing_basis(distances, landmarks, reach)
        self._mean = np.maximum(
            self._totals(noisy, np.random.default_rng(0)).mean(axis=0), 1.0
        )
        self._scale = np.sqrt(np.mean(self._mean**2))
        weights, same = self._mean / self._scale, labels[:, None] == labels[landmarks]
        self._process = Basis(
            near * same * weights[:, None] * weights[landmarks], landmarks
        )
        others = other_fractions(labels, near, landmarks)
        grid = _CONSTANT[:, None, None, None] + _MULTIPLE[:, None, None] * others
        self._fractions = np.minimum(grid, 1).reshape(-1, len(near))

    def _totals(self, noisy, rng, n_draws=_N_DRAWS):
        """Draws of the numbers of rows in the balls."""
        total = np.sum(noisy, axis=0, dtype=float)
        return positive_draws(
            posterior_draws(total, self._basis, np.sqrt(2) * self._noise, rng, n_draws)
        )

    def draws(self, noisy, rng, n_draws=_N_DRAWS):
        """Draws of the counts with and without the labels, (2, n_draws,
        n_validation)."""
        gap, totals = (
            np.subtract(*noisy, dtype=float),
            self._totals(noisy, rng, n_draws),
        )
        unit = self._scale**2 * self._process.weights
        spread, fraction = self._picked(gap, totals, unit, rng)
        expected = totals * self._fractions[fraction]
        # Given a total, the other count is (total - gap) / 2 with the noise of half the
        # gap. Draws from the prior are corrected by their residuals from the data
        # (Matheron's rule).
        variance, noise = spread[:, None] * unit, self._noise**2 / 2
        field, error = rng.standard_normal((2, n_draws, len(unit)))
        field, residual = np.sqrt(variance) * field, (totals - gap) / 2 - expected
        inside = residual @ self._process.vectors
        field += (
            variance * (inside - field - np.sqrt(noise) * error) / (variance + noise)
        )
        nugget = spread[:, None] * self._scale**2 * _NUGGET
        rest = residual - inside @ self._process.vectors.T
        other = (
            expected
            + field @ self._process.vectors.T
            + nugget / (nugget + noise) * rest
        )
        other = np.clip(other, 0, totals)
        return np.stack([totals - other, other])

    def _picked(self, gap, totals, unit, rng):
        """Draws of the variance of the process, and of the index of the fraction."""
        mean = self._mean.mean()
        average = self._fractions @ self._mean / self._mean.sum()
        # Which rows are in the data is random, too.
        least = _SPREAD * average * np.maximum(1 - average, 0) / mean
        residual = (self._mean - gap) / 2 - self._mean * self._fractions
        squares = (residual @ self._process.vectors) ** 2
        noise = self._noise**2 / 2 + totals.var(axis=0).mean() / 4
        variances, logs = _PROCESS[:, None] ** 2 + least, []
        for variance in variances:
            total = variance[:, None] * unit + noise
            logs.append(-0.5 * (squares / total + np.log(total)).sum(axis=1))
        logs, n = np.array(logs), len(totals)
        cumulative = np.cumsum(np.exp(logs - logs.max()))
        levels = (rng.permutation(n) + 0.5) / n * cumulative[-1]
        which, fraction = np.unravel_index(
            np.searchsorted(cumulative, levels), logs.shape
        )
        return variances[which, fraction], fraction


@lru_cache(maxsize=4)
def _tables(semivalue, table):
    """Weights of coalitions without and with other neighbours, for 0, ..., table + 1
    neighbours."""
    moments = absence_moments(semivalue, table + 2)[: table + 1]
    alone = np.concatenate([moments[:1], moments])
    mean = np.cumsum(moments) / np.arange(1, table + 2)
    return alone, np.concatenate([[0.0], mean - moments])


def real_neighbour_values(same, other, n_classes, semivalue="shapley", table=_TABLE):
    """`neighbour_values` for real counts, which include the neighbour that is valued.

    Terms that depend only on the number of neighbours are interpolated up to ``table``
    neighbours, and fall as the inverse of their number beyond.
    """
    alone, joined = _tables(check_semivalue(semivalue), table)
    c = same + other
    inside = np.minimum(c, table)
    lower = inside.astype(np.int64)
    part = inside - lower
    shrink = np.minimum(table / np.maximum(c, 1), 1.0)
    alone = ((1 - part) * alone[lower] + part * alone[lower + 1]) * shrink
    joined = ((1 - part) * joined[lower] + part * joined[lower + 1]) * shrink
    others = np.maximum(c - 1, 1e-12)
    if_same = np.clip((same - 1) / others, 0, 1)
    if_other = np.clip(same / others, 0, 1)
    value_same = (1 - 1 / n_classes) * alone + (1 - if_same) * joined
    return value_same, -alone / n_classes - if_other * joined


def size_draws(posterior, n_classes, semivalue="shapley", joins=False):
    """Values of both kinds of neighbours for each draw of the counts, (2, n_draws,
    n_validation).

    ``joins``: the neighbour is not among the rows counted.
    """
    same, other = posterior
    # Powers of two, so that few tables are computed. Counts beyond a million are
    # approximated.
    largest = max(same.max(), other.max()) + 1
    table = 1 << int(np.clip(largest, _TABLE, 2**20) - 1).bit_length()
    rule = n_classes, semivalue, table
    value_same, _ = real_neighbour_values(np.maximum(same + joins, 1), other, *rule)
    _, value_other = real_neighbour_values(same, np.maximum(other + joins, 1), *rule)
    # Sizes near 0, which some semivalues have, are clipped: their logarithms are taken.
    least = 1e-3 / np.maximum(same + other, 1)
    return np.stack([np.maximum(value_same, least), np.minimum(value_other, -least)])


def value_sizes(posterior, sizes):
    """Values of both kinds of neighbours at each validation point, from those of each
    draw.

    Geometric means over the draws, times the factor, at most 1, which makes the mean
    log of the total size of the values of all rows that of the draws.
    """
    sizes = np.abs(sizes)
    means = np.exp(np.log(sizes).mean(axis=1, keepdims=True))
    mass = np.maximum((posterior * sizes).sum(axis=(0, 2)), 1e-300)
    claimed = np.maximum((posterior * means).sum(axis=(0, 2)), 1e-300)
    factor = min(1.0, np.exp(np.log(mass / claimed).mean()))
    return factor * means[0, 0], -factor * means[1, 0]
