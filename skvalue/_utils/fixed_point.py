"""Sums of weights in fixed point: of integers, which are exact in any order.

Devices add in different orders, and threads in an order that depends on their number.
Sums of the same weights that are rounded on the way differ in their last digits.
"""

import numpy as np

# Sums of weights are below 2**61: integers have 63 bits.
_BITS = 61


def to_integers(weights, unit):
    """Weights as the nearest multiples of a unit, a power of two."""
    return np.rint(weights / unit).astype(np.int64)


def unit_of(weights):
    """The smallest unit in which no sum of weights overflows, a power of two.

    A sum has at most one of the weights (n_labels, n_points) of each point. Rounding
    to the unit changes it by at most ``n_points * 2**-61`` of the largest sum.
    """
    largest = np.abs(weights).max(axis=0, initial=0.0).sum()
    _, exponent = np.frexp(largest)
    # Powers of two that are normal numbers, and whose inverses are.
    return 2.0 ** int(np.clip(exponent - _BITS, -1022, 1022))


def exact_sum(integer_sum, weights):
    """What a function sums of integers, of weights (n_labels, n_points)."""
    unit = unit_of(weights)
    return integer_sum(to_integers(weights, unit)) * unit
