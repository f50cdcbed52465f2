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
# Relative rounding error of the formulas; `clip_rows` keeps norms up to 1.
_ROUNDING = 1e-12


class Noise(NamedTuple):
    """Standard deviations of a release's noise, in the units of the rows.

    They are those on an entry of the mean, on a diagonal entry of the second moment (1
    / sqrt 2 times that off the diagonal), and on the number of rows (None if that is
    public).
    """

    mean: float
    moment: float
    count: float | None


def statistic_sensitivity(mean_weight, relation):
    """L2 sensitivity of the statistic of rows of norm at most 1: exact, rounded up.

    Replacing a row by another, both of norm 1 and with cosine c, changes the statistic
    by the squared distance ``2 w^2 (1 - c) + 2 (1 - c^2)``, which is largest at c =
    -w^2 / 2.
    """
    w2 = mean_weight**2
    if relation == "replace" and w2 <= 2:
        sensitivity = math.sqrt(2) * (1 + w2 / 2)
    elif relation == "replace":
        sensitivity = 2 * mean_weight
    elif relation == "add_remove":
        sensitivity = math.sqrt(w2 + 1 + COUNT_WEIGHT**2)
    else:
        sensitivity = math.sqrt(w2 + 1)
    return sensitivity * (1 + _ROUNDING)


def release_event(epsilon, delta, mean_weight, relation):
    """The event of a release with a guarantee; None without one."""
    if epsilon is None:
        return None
    sensitivity = statistic_sensitivity(mean_weight, relation)
    return calibrate_gaussian(epsilon, delta, sensitivity, relation)


def moment_statistic(rows, mean_weight, relation):
    """The exact statistic, as a vector: sums over rows (n, d) of norm at most 1."""
    sums = [mean_weight * rows.sum(axis=0), svec(rows.T @ rows)]
    if relation == "add_remove":
        sums.append([COUNT_WEIGHT * len(rows)])
    return np.concatenate(sums)


class Moments(NamedTuple):
    """Mean (d,), lower triangle of the second moment, and number of rows."""

    mean: np.ndarray
    moment: np.ndarray
    n_samples: int


def unpack(statistic, d, mean_weight, n_samples):
    """The `Moments` of a statistic of `n_samples` rows.

    ``n_samples=None`` estimates the number of rows from the noisy statistic, as at
    least 2. The sums over it may then be out of range, and are clipped, which is
    post-processing.
    """
    is_private_count = n_samples is None
    if is_private_count:
        n_samples = max(2, round(float(statistic[-1]) / COUNT_WEIGHT))
    size = d * (d + 1) // 2
    mean = statistic[:d] / mean_weight / n_samples
    moment = statistic[d : d + size] / svec_index(d)[2] / n_samples
    if is_private_count:
        mean = mean / max(1.0, np.linalg.norm(mean))
        moment = np.clip(moment, -1, 1)
    return Moments(mean, moment, n_samples)


def noise_of(relation, scale, mean_weight, n_samples, max_norm):
    """`Noise` of a release of n_samples rows with noise of `scale` on its sums."""
    mean = scale / (mean_weight * n_samples) * max_norm
    moment = scale / n_samples * max_norm**2
    count = scale / COUNT_WEIGHT if relation == "add_remove" else None
    return Noise(mean, moment, count)


def symmetric(triangles, d):
    """Symmetric matrices (..., d, d) from lower triangles (..., d (d + 1) / 2)."""
    rows, columns = np.tril_indices(d)
    matrices = np.empty((*triangles.shape[:-1], d, d))
    matrices[..., rows, columns] = triangles
    matrices[..., columns, rows] = triangles
    return matrices
