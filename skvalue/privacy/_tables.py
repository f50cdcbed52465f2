"""Integer noise by tables of 128-bit thresholds, from any source of random bytes.

A draw is the number of thresholds at or below a uniform 128-bit integer. Weights are
integers in units of 2^-192, computed by integer recurrences from one correctly rounded
exponential, so the distribution of a draw is within 2^-100 of the stated one in total
variation. The time of a draw is not constant.
"""

import decimal
import math
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

_UNIT_BITS = 192  # weights are multiples of 2^-192
_TAIL_BITS = 140  # tables end where the weight falls below 2^-140
_MAX_TABLE_SCALE = 1000  # largest scale with a single table
_LOW_WORD = (1 << 64) - 1
_MAX_UNIFORM = (1 << 128) - 1


class _Table(NamedTuple):
    """Thresholds of the draws of a distribution over whole numbers.

    Parameters
    ----------
    high, low : ndarray of uint64 of shape (n_values - 1,)
        High and low words of the cumulative weights in units of 2^-128, without the
        last one.
    first : int
        The smallest value.
    """

    high: np.ndarray
    low: np.ndarray
    first: int


def discrete_gaussian(scale, size, random_bytes):
    """`size` draws of Pr[x] proportional to exp(-x^2 / (2 scale^2)).

    Beyond scale 1000 a draw is ``x + k y`` with x of scale 3 k and y of the remaining
    scale. It has these probabilities up to a factor within 1 +- 4 exp(-2 pi^2 v), v = 1
    / (1/9 + 1/y_scale^2) > 8.9, so up to a relative 2^-250 (Poisson summation over y).
    """
    if scale <= _MAX_TABLE_SCALE:
        return _draw(_gaussian_table(scale), size, random_bytes)
    factor = math.ceil(scale / _MAX_TABLE_SCALE)
    fine_scale = 3.0 * factor
    coarse_scale = math.sqrt((scale - fine_scale) * (scale + fine_scale)) / factor
    fine = discrete_gaussian(fine_scale, size, random_bytes)
    coarse = _draw(_gaussian_table(coarse_scale), size, random_bytes)
    return fine + factor * coarse


def _exponential(negative_power):
    """exp of a negative `decimal.Decimal`, as an integer in units of 2^-192."""
    return int(negative_power.exp() * (1 << _UNIT_BITS))


@lru_cache(maxsize=32)
def _gaussian_table(scale):
    # exp(-(x + 1)^2 r) is exp(-x^2 r) times a ratio, which shrinks by one factor.
    with decimal.localcontext(prec=100):
        rate = -1 / (2 * decimal.Decimal(scale) ** 2)
        ratio = _exponential(rate)
        shrinkage = _exponential(2 * rate)
    weights = [1 << _UNIT_BITS]
    while weights[-1] >> (_UNIT_BITS - _TAIL_BITS):
        weights.append((weights[-1] * ratio) >> _UNIT_BITS)
        ratio = (ratio * shrinkage) >> _UNIT_BITS

    high, low = _thresholds(weights[:0:-1] + weights)
    return _Table(high, low, first=1 - len(weights))


def _thresholds(weights):
    """High and low words of the cumulative weights, without the last one."""
    total = sum(weights)
    thresholds = [
        min((cumulative << 128) // total, _MAX_UNIFORM)
        for cumulative in accumulate(weights[:-1])
    ]
    high = [threshold >> 64 for threshold in thresholds]
    low = [threshold & _LOW_WORD for threshold in thresholds]
    return np.array(high, dtype=np.uint64), np.array(low, dtype=np.uint64)


def _draw(table, size, random_bytes):
    words = np.frombuffer(random_bytes(16 * size), dtype="<u8").astype(np.uint64)
    high = words[:size]
    low = words[size:]
    n_below = np.searchsorted(table.high, high, side="left")
    n_up_to = np.searchsorted(table.high, high, side="right")

    # Equal high words are rare except in the far tails, where several thresholds have
    # the same one: then the low words decide.
    for i in np.flatnonzero(n_below < n_up_to):
        equal = table.low[n_below[i] : n_up_to[i]]
        n_below[i] += np.searchsorted(equal, low[i], side="right")
    return n_below.astype(np.int64) + table.first
