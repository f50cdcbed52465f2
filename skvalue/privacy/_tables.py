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

import numpy as np

_UNIT = 192  # weights are multiples of 2^-192
_TAIL = 140  # tables end where the weight falls below 2^-140
_WIDEST = 1000  # largest scale with a single table
_LOW, _ALL = (1 << 64) - 1, (1 << 128) - 1


def discrete_gaussian(scale, size, random_bytes):
    """`size` draws of Pr[x] proportional to exp(-x^2 / (2 scale^2)).

    Beyond scale 1000 a draw is ``x + k y`` with x of scale 3 k and y of the remaining
    scale. It has these probabilities up to a factor within 1 +- 4 exp(-2 pi^2 v), v = 1
    / (1/9 + 1/y_scale^2) > 8.9, so up to a relative 2^-250 (Poisson summation over y).
    """
    if scale <= _WIDEST:
        return _draw(_gaussian_table(scale), size, random_bytes)
    factor = math.ceil(scale / _WIDEST)
    fine = 3.0 * factor
    coarse = math.sqrt((scale - fine) * (scale + fine)) / factor
    x = discrete_gaussian(fine, size, random_bytes)
    return x + factor * _draw(_gaussian_table(coarse), size, random_bytes)


def _exponential(negative_power):
    """exp of a negative `decimal.Decimal`, as an integer in units of 2^-192."""
    return int(negative_power.exp() * (1 << _UNIT))


@lru_cache(maxsize=32)
def _gaussian_table(scale):
    with decimal.localcontext(prec=100):
        rate = -1 / (2 * decimal.Decimal(scale) ** 2)
        ratio, shrink = _exponential(rate), _exponential(2 * rate)
    weights = [1 << _UNIT]
    while weights[-1] >> (_UNIT - _TAIL):
        weights.append((weights[-1] * ratio) >> _UNIT)
        ratio = (ratio * shrink) >> _UNIT
    return (*_thresholds(weights[:0:-1] + weights), 1 - len(weights))


def _thresholds(weights):
    """High and low words of the cumulative weights in units of 2^-128, without the last
    one."""
    total = sum(weights)
    thresholds = [
        min((running << 128) // total, _ALL) for running in accumulate(weights[:-1])
    ]
    high, low = (
        [part >> 64 for part in thresholds],
        [part & _LOW for part in thresholds],
    )
    return np.array(high, dtype=np.uint64), np.array(low, dtype=np.uint64)


def _draw(table, size, random_bytes):
    high, low, first = table
    words = np.frombuffer(random_bytes(16 * size), dtype="<u8").astype(np.uint64)
    words_high, words_low = words[:size], words[size:]
    below = np.searchsorted(high, words_high, side="left")
    upto = np.searchsorted(high, words_high, side="right")
    # Equal high words are rare except in the far tails, where several thresholds have
    # the same one.
    for i in np.flatnonzero(below < upto):
        below[i] += np.searchsorted(low[below[i] : upto[i]], words_low[i], side="right")
    return below.astype(np.int64) + first
