"""The mechanism of a seller's release: statistic, sensitivity, noise and privacy loss.

All quantities are in units of the public radius R: rows have norm at most 1. The central mechanism
releases one vector,

    T = sum over rows of (w x, svec(x x') [, k])  +  N(0, scale^2 I),

where svec is the lower triangle with off-diagonal entries times sqrt 2 (an isometry), w is the
weight of the mean, and the count k is released only if the number of rows is private. One release
of both moments needs less noise than two releases that split the budget.
"""

import math
from typing import NamedTuple

import numpy as np

from ...privacy import GaussianEvent, OpaqueEvent, calibrate_gaussian, get_epsilon, svec, svec_index

COUNT_WEIGHT = 0.5
_ROUNDING = 1e-12  # relative rounding error of the formulas; `clip_rows` keeps norms up to 1


class Noise(NamedTuple):
    """Standard deviations of a release's noise, in the units of the rows."""

    mean: float  # on an entry of the mean
    moment: float  # on a diagonal entry of the second moment; 1 / sqrt 2 times that off it
    count: float | None  # on the number of rows; None if that is public


def statistic_sensitivity(mean_weight, relation):
    """L2 sensitivity of the statistic of rows of norm at most 1: exact, rounded up.

    Replacing a row by another, both of norm 1 and with cosine c, changes the statistic by the
    squared distance ``2 w^2 (1 - c) + 2 (1 - c^2)``, which is largest at c = -w^2 / 2.
    """
    w2 = mean_weight**2
    if relation == "replace":
        bound = math.sqrt(2) * (1 + w2 / 2) if w2 <= 2 else 2 * mean_weight
    else:
        bound = math.sqrt(w2 + 1 + (COUNT_WEIGHT**2 if relation == "add_remove" else 0.0))
    return bound * (1 + _ROUNDING)


def row_sensitivity(relation):
    """L2 sensitivity of one row of norm at most 1, for noise on every row; rounded up."""
    return (2.0 if relation == "replace" else 1.0) * (1 + _ROUNDING)


def sensitivity_of(mechanism, mean_weight, relation):
    """L2 sensitivity of the quantity that a mechanism adds noise to."""
    if mechanism == "local":
        return row_sensitivity(relation)
    return statistic_sensitivity(mean_weight, relation)


def moment_statistic(rows, mean_weight, relation):
    """The exact statistic of the central mechanism: sums over rows of norm at most 1."""
    parts = [mean_weight * rows.sum(axis=0), svec(rows.T @ rows)]
    if relation == "add_remove":
        parts.append([COUNT_WEIGHT * len(rows)])
    return np.concatenate(parts)


def unpack(statistic, d, mean_weight, n_samples):
    """Mean, lower triangle of the second moment, and number of rows, from a noisy statistic.

    ``n_samples=None`` estimates the number of rows from the statistic, as at least 2.
    """
    size = d * (d + 1) // 2
    if n_samples is None:
        n_samples = max(2, round(float(statistic[-1]) / COUNT_WEIGHT))
    moment = statistic[d : d + size] / svec_index(d)[2]
    return statistic[:d] / mean_weight / n_samples, moment / n_samples, n_samples


def amplified(epsilon, delta, rate):
    """(epsilon, delta) of a mechanism on a secret sample, such that all rows have the given ones.

    Secret sampling of a fixed number of rows without replacement, at a rate g, changes (e, d) to
    ``(log(1 + g (exp(e) - 1)), g d)`` under replacement of a row (Balle, Barthe and Gaboardi,
    NeurIPS 2018, Theorem 9).
    """
    larger = epsilon + math.log(-math.expm1(-epsilon) / rate + math.exp(-epsilon))
    return min(epsilon, larger) if rate == 1 else larger, min(delta / rate, 1 - 1e-9)


def calibrated_scale(epsilon, delta, sensitivity, relation, rate):
    """Noise scale for a guarantee, rounded up; `rate` is that of a secret sample, or None."""
    if rate is not None:
        epsilon, delta = amplified(epsilon, delta, rate)
    return calibrate_gaussian(epsilon, delta, sensitivity, relation).scale


def claimed_event(scale, sensitivity, relation, rate, delta):
    """Privacy event of a release; for a secret sample its (epsilon, delta) at this `delta`."""
    event = GaussianEvent(scale, sensitivity, relation)
    if rate is None:
        return event
    inner = get_epsilon(event, min(delta / rate, 1 - 1e-9))
    # log(1 + g (exp(e) - 1)) without overflow
    outer = inner + math.log(rate + (1 - rate) * math.exp(-inner))
    return OpaqueEvent(max(outer, 1e-12) * (1 + _ROUNDING), delta, relation)


def noise_of(mechanism, relation, scale, mean_weight, n_samples, d, max_norm):
    """`Noise` of a release of n_samples rows of d entries; `max_norm` is None without noise."""
    radius = max_norm or 0.0
    if mechanism == "local":
        return Noise(
            scale / math.sqrt(n_samples) * radius,
            scale * math.sqrt(2 * (scale**2 + 2 / d) / n_samples) * radius**2,
            None,
        )
    count = scale / COUNT_WEIGHT if relation == "add_remove" else None
    return Noise(scale / (mean_weight * n_samples) * radius, scale / n_samples * radius**2, count)
