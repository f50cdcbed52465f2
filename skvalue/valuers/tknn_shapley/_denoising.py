"""Sizes of values estimated from noisy counts in balls: smoothing and shrinkage.

All functions use released counts, public validation points and the scale of the noise only, so they
cost no privacy. The counts of balls near each other are similar, and their scale is unknown. The
estimates are posterior means under this prior:

- the number of rows in a ball, and the number with the label of the point minus the number without,
  are Gaussian processes ``tau b + s g(v)`` over the points v, with b standard normal and the
  covariance of g ``exp(-distance / length)``, for the difference times the factor of
  `smoothing_bases`;
- tau and s <= tau are log-uniform from 1 to a million, so that a difference much smaller than the
  noise is shrunk to zero, and a scale much larger than the noise is kept; the length is one of a
  few fractions of the radius. All of them are averaged over, weighted by marginal likelihood;
- counts are not negative: posterior draws are mapped to normal distributions truncated at zero.

Sizes of values vary by orders of magnitude, so means are taken of their logarithms. The prior mean
of the logarithms is replaced by log 1/2, a size that uses no private count, in proportion to the
prior variance that the release has left; the posterior shrinks differences between balls by itself.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ...semivalues import absence_moments

_SCALES = 10.0 ** np.arange(0, 6.01, 0.5)
_LENGTHS = (0.1, 0.3, 0.9)  # in units of the radius
_NUGGET = 1e-6  # fraction of signal without smoothness, so that exact counts are reproduced
_N_DRAWS = 64
# Estimates are used if the release leaves less than this fraction of the prior variance of logs, or
# if the sum of the counts is more than this many standard deviations of its noise.
_MAX_LEFT, _MIN_SIGNAL = 0.25, 3.0
_TABLE = 10_000  # values are tabulated up to this count at least


class Basis:
    """Eigenvectors and eigenvalues of a covariance, scaled to mean variance 1.

    ``kernel`` (n, n_landmarks) holds the columns of the covariance at positions ``landmarks``. With
    fewer landmarks than points it is a Nystrom approximation.
    """

    def __init__(self, kernel, landmarks):
        n = len(kernel)
        kernel = kernel / max(np.mean(kernel[landmarks, np.arange(len(landmarks))]), 1e-300)
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

    def with_signs(self, signs):
        """The basis of the covariance times ``signs signs^T``, for signs of 1 and -1."""
        other = object.__new__(Basis)
        other.weights, other.vectors = self.weights, self.vectors * signs[:, None]
        return other


def smoothing_bases(distances, landmarks, reach, labels, n_classes):
    """Bases, one for each length, of the covariances of total counts and of differences of counts.

    ``distances``, ``landmarks``, ``reach``: see `public_geometry`. If the counts of the C classes
    are independent processes with covariance K, the difference between the count of the label of
    the point and that of all others has the covariance K times ``(4 [same label] - 4 + C) / C``.
    """
    total, difference = [], []
    same_label = labels[:, None] == labels[landmarks]
    mixed = np.where(same_label, 1.0, (n_classes - 4) / n_classes)
    for length in _LENGTHS:
        kernel = np.exp(-distances / max(length * reach, 1e-12))
        total.append(Basis(kernel, landmarks))
        if n_classes == 2:
            difference.append(total[-1].with_signs(2.0 * labels - 1))
        else:
            difference.append(Basis(kernel * mixed, landmarks))
    return total, difference


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
    ones = ((one**2 / var).sum(axis=1) + one_rest * (n_rest > 0) / rest)[:, None] * _SCALES**2
    cross = ((one * z / var).sum(axis=1) + (y.sum() - one @ z) * (n_rest > 0) / rest)[:, None]
    logs = -0.5 * (
        quad[:, None] - (cross * _SCALES) ** 2 / (1 + ones) + logdet[:, None] + np.log1p(ones)
    )
    return np.where(scales[:, None] <= _SCALES, logs, -np.inf)


def posterior_draws(y, bases, noise, rng, n_draws=_N_DRAWS):
    """Draws (n_draws, n) of the process given ``y`` (process plus noise), and of its prior.

    ``bases``: covariances, equally likely a priori; ``noise``: standard deviation. Both kinds of
    draws use the same random numbers, so that they are equal if the noise is very large.
    """
    logs = np.array([_evidence(y, basis, noise) for basis in bases])
    likelihoods = np.exp(logs - logs.max())
    shape, levels = likelihoods.shape, (np.arange(n_draws) + 0.5) / n_draws
    normal = rng.standard_normal((3, n_draws, len(y)))
    draws = []
    for weights, data in ((likelihoods, True), (np.isfinite(logs), False)):
        cumulative = np.cumsum(weights.ravel() / weights.sum())
        picked = np.searchsorted(cumulative, levels * cumulative[-1])
        draws.append(_draw(y, bases, noise, normal, np.unravel_index(picked, shape), data))
    return draws


def _draw(y, bases, noise, normal, models, data):
    out = np.empty((len(models[0]), len(y)))
    for number, basis in enumerate(bases):
        chosen = np.flatnonzero(models[0] == number)
        if not len(chosen):
            continue
        rank = len(basis.weights)
        s = np.concatenate([[0.0], _SCALES])[models[1][chosen], None]
        tau = _SCALES[models[2][chosen], None]
        one = basis.vectors.sum(axis=0)
        first, second, third = (part[chosen, :rank] for part in normal)
        field = tau * third[:, :1] * one + s * np.sqrt(basis.weights) * first
        if data:  # a prior draw, corrected by its residual from the data (Matheron's rule)
            z = basis.vectors.T @ y
            var = s**2 * basis.weights + noise**2
            resid = (z - field - noise * second) / var
            shift = tau**2 * (resid @ one)[:, None] / (1 + tau**2 * (one**2 / var).sum(1)[:, None])
            resid = resid - one / var * shift
            field = field + s**2 * basis.weights * resid + tau**2 * (resid @ one)[:, None] * one
        out[chosen] = field @ basis.vectors.T
        if data and rank < len(y):
            gain = s**2 * _NUGGET / (s**2 * _NUGGET + noise**2)
            out[chosen] += gain * (y - basis.vectors @ z)
    return out


def positive_draws(draws):
    """Map draws of normal distributions to these distributions truncated at zero, by column."""
    mean, std = draws.mean(axis=0), draws.std(axis=0) + 1e-9
    below = ndtr(-mean / std)
    level = below + ndtr((draws - mean) / std) * (1 - below)
    # Far above zero truncation has no effect; far below, quantiles lose all their digits.
    cut = mean + std * ndtri(np.clip(level, 1e-12, 1 - 1e-12))
    return np.maximum(np.where(mean > 4 * std, draws, cut), 0.0)


class Posterior(NamedTuple):
    """Posterior draws (n_draws, n_validation) of the counts with and without the point's label."""

    same: np.ndarray
    other: np.ndarray
    prior: tuple  # prior draws of the same
    largest: int  # largest count that was released
    signal: float  # sum of the released counts, in standard deviations of its noise


def count_posterior(
    noisy, noise, distances, landmarks, reach, labels, n_classes, n_draws=_N_DRAWS, seed=0
):
    """Posterior of the counts in balls, given ``noisy`` counts, (2, n_validation).

    ``noise`` is the standard deviation of their noise; other parameters as in `smoothing_bases`.
    The seed is fixed and not secret.
    """
    rng = np.random.default_rng(seed)
    total, difference = smoothing_bases(distances, landmarks, reach, labels, n_classes)
    same, other = np.asarray(noisy, dtype=float)
    sum_noise = np.sqrt(2) * noise
    sums = posterior_draws(same + other, total, sum_noise, rng, n_draws)
    gaps = posterior_draws(same - other, difference, sum_noise, rng, n_draws)
    order = rng.permutation(n_draws)
    posterior, prior = (
        tuple(positive_draws((c + sign * d[order]) / 2) for sign in (1, -1))
        for c, d in zip(sums, gaps)
    )
    signal = (same + other).sum() / (np.sqrt(len(same)) * sum_noise)
    return Posterior(*posterior, prior, int(max(same.max(), other.max(), 0)), float(signal))


@lru_cache(maxsize=4)
def _tables(semivalue, table):
    """Weights of coalitions without and with other neighbours, for 0, ..., table + 1 neighbours."""
    moments = absence_moments(semivalue, table + 2)[: table + 1]
    alone = np.concatenate([moments[:1], moments])
    mean = np.cumsum(moments) / np.arange(1, table + 2)
    return alone, np.concatenate([[0.0], mean - moments])


def real_neighbour_values(same, other, n_classes, semivalue="shapley", table=_TABLE):
    """`neighbour_values` for real counts, which include the neighbour that is valued.

    Terms that depend only on the number of neighbours are interpolated up to ``table`` neighbours,
    and fall as the inverse of their number beyond.
    """
    semivalue = semivalue if isinstance(semivalue, str) else tuple(semivalue)
    alone, joined = _tables(semivalue, int(table))
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


def _log_sizes(same, other, n_classes, semivalue, table, joins):
    """Log sizes of both values: of a row that is among those counted, or of one that joins."""
    if joins:
        pairs = ((same + 1, other), (same, other + 1))
    else:
        pairs = ((np.maximum(same, 1), other), (same, np.maximum(other, 1)))
    value_same, _ = real_neighbour_values(*pairs[0], n_classes, semivalue, table)
    _, value_other = real_neighbour_values(*pairs[1], n_classes, semivalue, table)
    # Sizes near 0, which some semivalues have, are clipped before their logarithms are taken.
    return np.log(np.maximum([value_same, -value_other], 1e-3 / np.maximum(same + other, 1)))


def value_sizes(posterior, n_classes, semivalue="shapley", joins=False):
    """Values of both kinds of neighbours at each validation point: posterior geometric means.

    ``left`` times the prior mean of their logarithms, relative to log 1/2, is subtracted, where
    ``left`` is the fraction of the prior variance that the release left. The result is shrunk to
    1/2 where the signal is weak. ``joins``: the neighbour is not among the rows counted.
    """
    # Powers of two, so that few tables are computed. Counts beyond a million are approximated.
    table = 1 << int(np.clip(posterior.largest + 1, _TABLE, 2**20) - 1).bit_length()
    logs, before = (
        _log_sizes(*draws, n_classes, semivalue, table, joins)
        for draws in ((posterior.same, posterior.other), posterior.prior)
    )
    left = logs.var(axis=1).mean() / max(before.var(axis=1).mean(), 1e-300)
    left, half = min(left, 1.0), np.log(0.5)
    change = (logs.mean(axis=1) - half) - left * (before.mean(axis=1) - half)
    # Where `left` is large: nothing up to a signal of 3, everything from 6 on.
    kept = np.clip(max(1 - left / _MAX_LEFT, posterior.signal / _MIN_SIGNAL - 1), 0.0, 1.0)
    value_same, value_other = np.exp(half + kept * change)
    return value_same, -value_other
