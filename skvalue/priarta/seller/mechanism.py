"""The mechanism of a seller's release: statistic, sensitivity and noise.

Rows are centred on the buyer's mean and clipped to a radius R; all quantities are in
units of R, where rows have norm at most 1. The moments are one vector,

    T = sum over rows of (w x, svec(x x'), |x|^2 [, k])  +  N(0, scale^2 I),

where svec is the lower triangle with off-diagonal entries times sqrt 2 (an isometry), w
is the weight of the mean, and the count k is released only if the number of rows is
private. One release of all moments needs less noise than several that split the budget;
if rows are replaced, the trace, the sum of |x|^2, costs nothing.

If the radius is the seller's own, noisy counts of norms come before (`own_radius`).
They have the same noise, so that all vectors together are one Gaussian release.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from ..._utils.sums import rounding_of_sums, sum_of_blocks
from ...exceptions import ParameterError
from ...privacy import calibrate_gaussian, on_grid, svec, svec_index

COUNT_WEIGHT = 0.5
MAX_EPSILON = 1e6  # of a summary
MIN_NOISE = 1e-3  # with less, epsilon is too large to compute
_BLOCK = 256  # rows of a matrix product

# One row may change how sums are rounded. The margin of the sensitivity does not tell
# the number of rows, which can be private: it is that of a hundred million.
MAX_ROWS = 10**8
_ROUNDING = rounding_of_sums(MAX_ROWS, _BLOCK)

# The search of a seller's own radius: number of noisy counts, range of the median norm
# in units of the buyer's, fraction of mu^2, and margin of the radius.
N_RADIUS_COUNTS = 6
_LOWEST_MEDIAN = 0.5
_HIGHEST_MEDIAN = 64.0
_RADIUS_BUDGET = 0.2
_RADIUS_MARGIN = 1.1


class Noise(NamedTuple):
    """Standard deviations of a release's noise, in the units of the rows.

    They are those on an entry of the mean, on a diagonal entry of the second moment (1
    / sqrt 2 times that off the diagonal) apart from its trace, on the trace, and on the
    number of rows (None if that is public).
    """

    mean: float
    moment: float
    trace: float
    count: float | None


def statistic_sensitivity(mean_weight, relation):
    """L2 sensitivity of the statistic of rows of norm at most 1.

    It is exact, but for the margin for the rounding of sums of up to `MAX_ROWS` rows,
    7e-6 of it. No row is larger than it, as this margin requires.

    Replacing a row of norm 1 by one of norm b, with cosine c, changes the statistic by
    the squared distance ``w^2 (1 + b^2 - 2 b c) + 1 + b^4 - 2 b^2 c^2 + (1 - b^2)^2``,
    which is largest at ``c = -min(w^2 / (2 b), 1)``. From ``b = w^2 / 2`` on, it is
    then convex in b^2, and larger by ``(1 - b^2) (w^2 + 2 b^2)`` at b = 1. Below, it is
    ``w^2 (1 + b)^2 + 2 (1 - b^2)^2``; where that is largest, ``w^2 = 4 b (1 - b)``, it
    is ``2 (1 - b) (1 + b)^3``, less than at b = 1. So rows of norm 1 are farthest
    apart, and the trace, in which they do not differ, costs nothing.
    """
    w2 = mean_weight**2
    if relation == "replace" and w2 <= 2:
        sensitivity = math.sqrt(2) * (1 + w2 / 2)
    elif relation == "replace":
        sensitivity = 2 * mean_weight
    elif relation == "add_remove":
        sensitivity = math.sqrt(w2 + 2 + COUNT_WEIGHT**2)
    else:
        sensitivity = math.sqrt(w2 + 2)
    return sensitivity * (1 + _ROUNDING)


def release_sensitivity(mean_weight, relation, n_radius_counts):
    """L2 sensitivity of all vectors of a release, with the counts before the moments.

    Each vector may depend on those released before it: their squared sensitivities add
    up, since they have the same Gaussian noise.
    """
    sensitivity = statistic_sensitivity(mean_weight, relation)
    if n_radius_counts:
        sensitivity /= math.sqrt(1 - _RADIUS_BUDGET)
    return sensitivity


def release_event(epsilon, delta, mean_weight, relation, n_radius_counts=0):
    """The event of a release with a guarantee; None without one.

    Raises ValueError if a `Summary` could not state it.
    """
    if epsilon is None:
        return None
    sensitivity = release_sensitivity(mean_weight, relation, n_radius_counts)
    event = calibrate_gaussian(epsilon, delta, sensitivity, relation)
    if epsilon >= MAX_EPSILON or event.scale < MIN_NOISE:
        raise ParameterError(
            "epsilon",
            f"must be below {MAX_EPSILON:g}, with noise of at least {MIN_NOISE:g} in "
            "units of the radius: one that is above 20 protects nothing. Got "
            f"{epsilon!r}.",
        )
    return event


# The radius ---------------------------------------------------------------------------


def n_radius_counts(model):
    """Number of noisy counts by which a seller of a model chooses its radius."""
    return N_RADIUS_COUNTS if model.has_own_radius else 0


def half_surplus(norms, threshold):
    """Half the surplus of rows with norms up to a threshold over those above it.

    Null rows have the norm NaN, and add nothing.
    """
    return 0.5 * (np.sum(norms <= threshold) - np.sum(norms > threshold))


def surplus_sensitivity(relation):
    """Sensitivity of `half_surplus`: a row adds half of +1, -1 or 0."""
    return 1.0 if relation == "replace" else 0.5


def surplus_weight(mean_weight, relation):
    """Weight of `half_surplus` at which all counts have their fraction of mu^2."""
    moments = statistic_sensitivity(mean_weight, relation)
    counts = moments * math.sqrt(_RADIUS_BUDGET / (1 - _RADIUS_BUDGET))
    return counts / math.sqrt(N_RADIUS_COUNTS) / surplus_sensitivity(relation)


def own_radius(norms, model, relation, draw):
    """A seller's radius from noisy counts: the median of its norms, and a margin.

    The logarithm of the median is bisected, from half of the buyer's median to 64 times
    it. The radius is to the median as the buyer's is, and a tenth larger.

    Parameters
    ----------
    norms : ndarray of shape (n_samples,)
        Distances of the rows from the buyer's mean; NaN for null rows.
    model : BuyerModel
        The buyer's model, with a `median_norm`.
    relation : str
        The neighbouring relation.
    draw : callable
        The opened source of noise of the release.

    Returns
    -------
    radius : float
        One of `own_radii`.
    """
    weight = surplus_weight(model.mean_weight, relation)
    cell = 0
    n_cells = 2**N_RADIUS_COUNTS
    for step in range(N_RADIUS_COUNTS):
        n_cells //= 2
        threshold = model.median_norm * _relative_median(cell + n_cells)
        surplus = weight * half_surplus(norms, threshold)
        noisy = on_grid(surplus + draw((1,), (0, step))[0], draw.scale)
        if noisy < 0:
            cell += n_cells
    return float(own_radii(model)[cell])


def radius_log_probabilities(norms, model, relation, scale):
    """Logarithms of the probabilities of all `own_radii`, for norms (n_samples,)."""
    weight = surplus_weight(model.mean_weight, relation)
    log_probabilities = np.zeros(2**N_RADIUS_COUNTS)
    n_cells = len(log_probabilities)
    while n_cells > 1:
        half = n_cells // 2
        for cell in range(0, len(log_probabilities), n_cells):
            threshold = model.median_norm * _relative_median(cell + half)
            surplus = weight * half_surplus(norms, threshold) / scale
            log_probabilities[cell : cell + half] += norm.logcdf(surplus)
            log_probabilities[cell + half : cell + n_cells] += norm.logcdf(-surplus)
        n_cells = half
    return log_probabilities


def own_radii(model):
    """All radii that `own_radius` can find, by the cell of the median."""
    cells = np.arange(2**N_RADIUS_COUNTS) + 0.5
    ratio = model.max_norm / model.median_norm
    medians = model.median_norm * _relative_median(cells)
    return _RADIUS_MARGIN * ratio * medians


def typical_radius(model):
    """The radius of a private seller whose rows are like the buyer's."""
    if not model.has_own_radius:
        return model.max_norm
    cells = np.arange(2**N_RADIUS_COUNTS)
    own_cell = np.flatnonzero(_relative_median(cells) <= 1)[-1]
    return float(own_radii(model)[own_cell])


def _relative_median(cell):
    """The median, in units of the buyer's, at the lower end of a cell of its search."""
    fraction = cell / 2**N_RADIUS_COUNTS
    return _LOWEST_MEDIAN * (_HIGHEST_MEDIAN / _LOWEST_MEDIAN) ** fraction


# The moments --------------------------------------------------------------------------


def moment_statistic(rows, mean_weight, relation):
    """The statistic as a vector: sums over rows (n, d) of norm at most 1.

    In blocks, so that their rounding is within the margin of the sensitivity.
    """
    total = sum_of_blocks(len(rows), lambda block: rows[block].sum(axis=0), _BLOCK)
    products = sum_of_blocks(
        len(rows), lambda block: rows[block].T @ rows[block], _BLOCK
    )
    sums = [mean_weight * total, svec(products), [math.fsum(np.diag(products))]]
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

    The trace is released twice, by itself and as the sum of the diagonal, whose noise
    has d times its variance: their weighted mean is a sufficient statistic.

    ``n_samples=None`` estimates the number of rows from the noisy statistic, as at
    least 2. The sums over it may then be out of range, and are clipped, which is
    post-processing.
    """
    is_private_count = n_samples is None
    if is_private_count:
        n_samples = max(2, round(float(statistic[-1]) / COUNT_WEIGHT))
    size = d * (d + 1) // 2
    mean = statistic[:d] / mean_weight / n_samples
    rows, columns, weights = svec_index(d)
    triangle = statistic[d : d + size] / weights
    is_diagonal = rows == columns
    excess = statistic[d + size] - triangle[is_diagonal].sum()
    triangle[is_diagonal] += excess / (d + 1)
    moment = triangle / n_samples
    if is_private_count:
        mean = mean / max(1.0, np.linalg.norm(mean))
        moment = np.clip(moment, -1, 1)
    return Moments(mean, moment, n_samples)


def isotropic_statistic(moments, mean_weight, max_norm):
    """A sufficient statistic of `Moments`, as a vector with noise of equal scale.

    It is the statistic without the count, with the two traces as one entry.
    """
    d = len(moments.mean)
    rows, columns, weights = svec_index(d)
    vector = moments.n_samples / max_norm**2 * moments.moment * weights
    is_diagonal = rows == columns
    # The mean of the two traces is sqrt(d + 1) times as exact as another direction.
    share = vector[is_diagonal].sum() / d
    vector[is_diagonal] += (math.sqrt(d + 1) - 1) * share
    sums = moments.n_samples / max_norm * moments.mean
    return np.concatenate([mean_weight * sums, vector])


def exact_moments(rows):
    """The `Moments` of centred rows (n, d), in their own units."""
    n = len(rows)
    weights = svec_index(rows.shape[1])[2]
    return Moments(rows.mean(axis=0), svec(rows.T @ rows) / weights / n, n)


def noise_of(relation, scale, mean_weight, n_samples, n_dimensions, max_norm):
    """`Noise` of a release of n_samples rows with noise of `scale` on its sums."""
    d = n_dimensions
    mean = scale / (mean_weight * n_samples) * max_norm
    moment = scale / n_samples * max_norm**2
    trace = moment * math.sqrt(d / (d + 1))
    count = scale / COUNT_WEIGHT if relation == "add_remove" else None
    return Noise(mean, moment, trace, count)


def symmetric(triangles, d):
    """Symmetric matrices (..., d, d) from lower triangles (..., d (d + 1) / 2)."""
    rows, columns = np.tril_indices(d)
    matrices = np.empty((*triangles.shape[:-1], d, d))
    matrices[..., rows, columns] = triangles
    matrices[..., columns, rows] = triangles
    return matrices
