"""Exact privacy profile of discrete Gaussian noise on counts.

Between neighbours at most M coordinates change by at most k each; the worst case is
that M change by exactly k (the noise is log-concave, so smaller changes have a smaller
delta). With P, Q the two distributions of the released coordinates y,

    log P/Q = k (2 Y - M k) / (2 s^2)

depends only on Y = sum y, hence

    delta(eps) = Pr[S >= t - M k] - e^eps Pr[S >= t],
    t = floor(eps s^2 / k + M k / 2) + 1,

with S the sum of M independent discrete Gaussians of scale s.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

# From this scale on, the sum of M discrete Gaussians of scale s is the discrete
# Gaussian of scale s sqrt(M) up to a pointwise relative error below 5 M exp(-pi^2 s^2)
# < 1e-26 M (Kairouz, Liu and Steinke, "The Distributed Discrete Gaussian Mechanism",
# ICML 2021, Theorem 11).
_MIN_WIDE_SCALE = 2.5

# From this standard deviation on, sums over the lattice are computed as integrals with
# two Euler-Maclaurin corrections; the next one is below 1e-14 of the sum.
_MIN_SMOOTH_STD = 200.0

_N_STDS = 14.0  # half the width of a table; the mass beyond is below 1e-42


@lru_cache(maxsize=8)
def _tail_table(contributions, scale):
    """Radius r, and Pr[S >= y] for y in -r..r."""
    is_one_gaussian = contributions == 1 or scale >= _MIN_WIDE_SCALE
    std = scale * math.sqrt(contributions) if is_one_gaussian else scale
    radius = math.ceil(_N_STDS * std) + 2
    pmf = np.exp(-0.5 * (np.arange(-radius, radius + 1) / std) ** 2)
    pmf /= pmf.sum()
    if not is_one_gaussian:
        pmf = _pmf_of_sum(pmf, contributions, scale)
        radius = len(pmf) // 2
    return radius, np.cumsum(pmf[::-1])[::-1]


def _pmf_of_sum(pmf, count, scale):
    """Distribution of the sum of ``count`` copies, cut where its mass is tiny."""
    if count == 1:
        return pmf
    half = _pmf_of_sum(pmf, count // 2, scale)
    total = np.convolve(half, half)
    if count % 2:
        total = np.convolve(total, pmf)
    center = len(total) // 2
    radius = math.ceil(_N_STDS * scale * math.sqrt(count)) + 2
    return total[max(center - radius, 0) : center + radius + 1]


def _tail(y, contributions, scale):
    """Pr[S >= y] for an array of whole numbers y."""
    std = scale * math.sqrt(contributions)
    if std >= _MIN_SMOOTH_STD and scale >= _MIN_WIDE_SCALE:
        z = (y - 0.5) / std
        density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        first_derivative = -z / std**2
        third_derivative = (3 * z - z**3) / std**4
        return ndtr(-z) + density * (
            first_derivative / 24 - 7 * third_derivative / 5760
        )
    # Beyond the table the tail is that of its first entry, 1, or 0.
    radius, tails = _tail_table(contributions, scale)
    places = np.clip(y, -radius, radius + 1).astype(np.int64) + radius
    return np.append(tails, 0.0)[places]


@np.errstate(under="ignore")
def lattice_delta(epsilon, scale, contributions, step=1):
    """Exact delta of discrete Gaussian noise on counts.

    ``epsilon`` is a number, or an array of numbers of any sign.
    """
    epsilon = np.asarray(epsilon, dtype=float)
    shift = contributions * step
    threshold = np.floor(epsilon * scale**2 / step + shift / 2) + 1
    tail = _tail(threshold - shift, contributions, scale)
    neighbour_tail = _tail(threshold, contributions, scale)
    # exp(epsilon) alone may overflow; the logarithm of a tail of 0 is -inf.
    with np.errstate(divide="ignore"):
        return np.maximum(tail - np.exp(epsilon + np.log(neighbour_tail)), 0.0)
