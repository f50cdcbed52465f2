"""Exact privacy profile of discrete Gaussian noise on counts.

Between neighbours at most M coordinates change by at most k each; the worst case is
that M change by exactly k (the noise is log-concave, so smaller changes have a smaller
delta). With P, Q the two distributions of the released coordinates y, ``log P/Q = k (2
Y - M k) / (2 s^2)`` depends only on Y = sum y, hence

    delta(eps) = Pr[S >= t - M k] - e^eps Pr[S >= t],   t = floor(eps s^2 / k + M k / 2) + 1,

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
_SINGLE_FROM = 2.5
# From this standard deviation on, sums over the lattice are computed as integrals with
# two Euler-Maclaurin corrections; the next one is below 1e-14 of the sum.
_SMOOTH_FROM = 200.0
_REACH = 14.0  # standard deviations; the mass beyond is below 1e-42


@lru_cache(maxsize=8)
def _tail_table(contributions, scale):
    """Radius r and Pr[S >= y] for y in -r..r."""
    single = contributions == 1 or scale >= _SINGLE_FROM
    width = scale * math.sqrt(contributions) if single else scale
    radius = math.ceil(_REACH * width) + 2
    pmf = np.exp(-0.5 * (np.arange(-radius, radius + 1) / width) ** 2)
    pmf /= pmf.sum()
    if not single:
        pmf = _power(pmf, contributions, scale)
        radius = len(pmf) // 2
    return radius, np.cumsum(pmf[::-1])[::-1]


def _power(pmf, count, scale):
    """Distribution of the sum of ``count`` copies, cut where the mass is below
    1e-42."""
    if count == 1:
        return pmf
    half = _power(pmf, count // 2, scale)
    total = np.convolve(half, half)
    if count % 2:
        total = np.convolve(total, pmf)
    middle, reach = len(total) // 2, math.ceil(_REACH * scale * math.sqrt(count)) + 2
    return total[max(middle - reach, 0) : middle + reach + 1]


def _tail(y, contributions, scale):
    """Pr[S >= y] for integers y."""
    width = scale * math.sqrt(contributions)
    if width >= _SMOOTH_FROM and scale >= _SINGLE_FROM:
        z = (y - 0.5) / width
        density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
        first, third = -z / width**2, (3 * z - z**3) / width**4
        return ndtr(-z) + density * (first / 24 - 7 * third / 5760)
    radius, tails = _tail_table(contributions, scale)
    inside = np.clip(y, -radius, radius + 1).astype(np.int64) + radius
    return np.append(tails, 0.0)[inside]


def lattice_delta(epsilon, scale, contributions, step=1):
    """Exact delta at every epsilon (of any sign) of discrete Gaussian noise on
    counts."""
    epsilon = np.asarray(epsilon, dtype=float)
    shift = contributions * step
    threshold = np.floor(epsilon * scale**2 / step + shift / 2) + 1
    gained = _tail(threshold - shift, contributions, scale)
    paid = _tail(threshold, contributions, scale)
    with np.errstate(divide="ignore"):
        return np.maximum(gained - np.exp(epsilon + np.log(paid)), 0.0)
