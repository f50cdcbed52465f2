"""The mechanism of a seller's release: statistic, sensitivity and noise.

All quantities are in units of the public radius R: rows have norm at most 1. The
release is one vector,

    T = sum over rows of (w x, svec(x x') [, k])  +  N(0, scale^2 I),

where svec is the lower triangle with off-diagonal entries times sqrt 2 (an isometry), w
is the weight of the mean, and the count k is released only if the number of rows is
private. One release of both moments needs less noise than two releases that split the
budget.
"""

import math
from typing import NamedTuple

import numpy as np

from ...privacy import calibrate_gaussian, svec, svec_index

COUNT_WEIGHT = 0.5
_ROUNDING = (
    1e-12  # relative rounding error of the formulas; `clip_rows` keeps norms up to 1
)


class Noise(NamedTuple):
    """Standard deviations of a release's noise, in the units of the rows."""

    mean: float  # on an entry of the mean
    moment: (
        float  # on a diagonal entry of the second moment; 1 / sqrt 2 times that off it
    )
    count: float | None  # on the number of rows; None if that is public


def statistic_sensitivity(mean_weight, relation):
    """L2 sensitivity of the statistic of rows of norm at most 1: exact, rounded up.

    Replacing a row by another, both of norm 1 and with cosine c, changes the statistic
    by the squared distance ``2 w^2 (1 - c) + 2 (1 - c^2)``, which is largest at c =
    -w^2 / 2.
    """
    w2 = mean_weight**2
    if relation == "replace":
        bound = math.sqrt(2) * (1 + w2 / 2) if w2 <= 2 else 2 * mean_weight
    else:
        bound = math.sqrt(
            w2 + 1 + (COUNT_WEIGHT**2 if relation == "add_remove" else 0.0)
        )
    return bound * (1 + _ROUNDING)


def release_event(epsilon, delta, mean_weight, relation):
    """The event of a release with a guarantee; None without one."""
    if epsilon is None:
        return None
    sensitivity = statistic_sensitivity(mean_weight, relation)
    return calibrate_gaussian(epsilon, delta, sensitivity, relation)


def moment_statistic(rows, mean_weight, relation):
    """The exact statistic: sums over rows of norm at most 1."""
    parts = [mean_weight * rows.sum(axis=0), svec(rows.T @ rows)]
    if relation == "add_remove":
        parts.append([COUNT_WEIGHT * len(rows)])
    return np.concatenate(parts)


def unpack(statistic, d, mean_weight, n_samples):
    """Mean, lower triangle of the second moment, and number of rows, from a statistic.

    ``n_samples=None`` estimates the number of rows from the noisy statistic, as at
    least 2. The sums over it may then be out of range, and are clipped, which is
    post-processing.
    """
    size, hidden = d * (d + 1) // 2, n_samples is None
    if hidden:
        n_samples = max(2, round(float(statistic[-1]) / COUNT_WEIGHT))
    mean = statistic[:d] / mean_weight / n_samples
    moment = statistic[d : d + size] / svec_index(d)[2] / n_samples
    if hidden:
        mean, moment = mean / max(1.0, np.linalg.norm(mean)), np.clip(moment, -1, 1)
    return mean, moment, n_samples


def noise_of(relation, scale, mean_weight, n_samples, max_norm):
    """`Noise` of a release of n_samples rows."""
    count = scale / COUNT_WEIGHT if relation == "add_remove" else None
    mean = scale / (mean_weight * n_samples) * max_norm
    return Noise(mean, scale / n_samples * max_norm**2, count)


def symmetric(moments, d):
    """Symmetric matrices (..., d, d) from their lower triangles (..., d (d + 1) /
    2)."""
    rows, columns = np.tril_indices(d)
    full = np.empty((*moments.shape[:-1], d, d))
    full[..., rows, columns] = full[..., columns, rows] = moments
    return full
