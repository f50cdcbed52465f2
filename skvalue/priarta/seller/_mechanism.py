"""How a seller's moments are made private: statistic, sensitivity, noise, cost.

Everything is in units of the public radius R: rows have norm at most 1. The central mechanism
releases one vector,

    T = sum over rows of (w x, svec(x x') [, k])  +  N(0, scale^2 I),

where svec is the lower triangle with off-diagonal entries times sqrt 2 (an isometry), w is the
weight of the mean, and the count stands there only where the number of rows is private. One release
of both moments needs less noise than two that share the budget.
"""

import math

import numpy as np

from ...privacy import (
    GaussianEvent,
    OpaqueEvent,
    calibrate_gaussian,
    get_epsilon,
    svec,
    svec_index,
)

__all__ = [
    "COUNT_WEIGHT",
    "amplified",
    "calibrated_scale",
    "claimed_event",
    "moment_statistic",
    "noise_levels",
    "row_sensitivity",
    "statistic_sensitivity",
    "unpack",
]

COUNT_WEIGHT = 0.5
_ROUNDING = 1e-12  # relative; of the formulas below: no row is longer than 1, see `clip_rows`


def statistic_sensitivity(mean_weight, relation):
    """L2 sensitivity of the statistic of rows of norm at most 1, exact.

    For rows x, y of norm 1 and cosine c, replacing one by the other moves the statistic by
    ``2 w^2 (1 - c) + 2 (1 - c^2)``, squared, which is largest at c = -w^2 / 2.

    Parameters
    ----------
    mean_weight : float
        The weight w.
    relation : {"null", "add_remove", "replace"}
        Neighbouring relation.

    Returns
    -------
    sensitivity : float
        Rounded up.

    Examples
    --------
    >>> round(statistic_sensitivity(1.0, "replace") / 2**0.5, 9)
    1.5
    """
    w2 = mean_weight**2
    if relation == "replace":
        bound = math.sqrt(2) * (1 + w2 / 2) if w2 <= 2 else 2 * mean_weight
    else:
        bound = math.sqrt(w2 + 1 + (COUNT_WEIGHT**2 if relation == "add_remove" else 0.0))
    return bound * (1 + _ROUNDING)


def row_sensitivity(relation):
    """L2 sensitivity of one row of norm at most 1, where noise is on every row.

    Parameters
    ----------
    relation : {"null", "replace"}
        Neighbouring relation.

    Returns
    -------
    sensitivity : float
        Rounded up.
    """
    return (2.0 if relation == "replace" else 1.0) * (1 + _ROUNDING)


def moment_statistic(rows, mean_weight, relation):
    """The statistic of the central mechanism, without noise.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, d)
        Rows of norm at most 1.
    mean_weight : float
        The weight w.
    relation : {"null", "add_remove", "replace"}
        Neighbouring relation.

    Returns
    -------
    statistic : ndarray of shape (n_entries,)
        Sums over the rows.
    """
    parts = [mean_weight * rows.sum(axis=0), svec(rows.T @ rows)]
    if relation == "add_remove":
        parts.append([COUNT_WEIGHT * len(rows)])
    return np.concatenate(parts)


def unpack(statistic, d, mean_weight, n_samples):
    """Mean and packed second moment from the statistic.

    Parameters
    ----------
    statistic : ndarray of shape (n_entries,)
        As in `moment_statistic`, perhaps with noise.
    d : int
        Number of dimensions.
    mean_weight : float
        The weight w.
    n_samples : int or None
        Number of rows; None takes it from the statistic.

    Returns
    -------
    mean : ndarray of shape (d,)
        Mean of the rows.
    moment : ndarray of shape (d * (d + 1) // 2,)
        Lower triangle of the mean of x x'.
    n_samples : int
        Number of rows, at least 2.
    """
    size = d * (d + 1) // 2
    if n_samples is None:
        n_samples = max(2, round(float(statistic[-1]) / COUNT_WEIGHT))
    moment = statistic[d : d + size] / svec_index(d)[2]
    return statistic[:d] / mean_weight / n_samples, moment / n_samples, n_samples


def amplified(epsilon, delta, rate):
    """What a mechanism on a secret sample may cost, so that the rows see (epsilon, delta).

    Sampling a fixed number of rows without replacement at a rate g, in secret, turns (e, d) into
    ``(log(1 + g (exp(e) - 1)), g d)`` under replacement of a row.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee wanted.
    rate : float
        In (0, 1].

    Returns
    -------
    epsilon, delta : float
        Of the mechanism.

    References
    ----------
    B. Balle, G. Barthe, M. Gaboardi: "Privacy Amplification by Subsampling: Tight Analyses via
    Couplings and Divergences", NeurIPS 2018, Theorem 9.

    Examples
    --------
    >>> amplified(0.8, 1e-5, 0.1)[0] > 2
    True
    """
    larger = epsilon + math.log(-math.expm1(-epsilon) / rate + math.exp(-epsilon))
    return min(epsilon, larger) if rate == 1 else larger, min(delta / rate, 1 - 1e-9)


def calibrated_scale(epsilon, delta, sensitivity, relation, rate):
    """Noise scale for a guarantee.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee for all rows of the seller.
    sensitivity : float
        L2 sensitivity.
    relation : {"null", "add_remove", "replace"}
        Neighbouring relation.
    rate : float or None
        Share of the rows in a secret sample; None where there is no secret sample.

    Returns
    -------
    scale : float
        Standard deviation of the noise, never too small.
    """
    if rate is not None:
        epsilon, delta = amplified(epsilon, delta, rate)
    return calibrate_gaussian(epsilon, delta, sensitivity, relation).scale


def claimed_event(scale, sensitivity, relation, rate, delta):
    """What was released, for accounting.

    Parameters
    ----------
    scale, sensitivity : float
        Of the noise; of what it is on.
    relation : {"null", "add_remove", "replace"}
        Neighbouring relation.
    rate : float or None
        As in `calibrated_scale`.
    delta : float
        Delta of the guarantee, at which a sampled release is stated.

    Returns
    -------
    event : GaussianEvent or OpaqueEvent
        The event.
    """
    event = GaussianEvent(scale, sensitivity, relation)
    if rate is None:
        return event
    inner = get_epsilon(event, min(delta / rate, 1 - 1e-9))
    # log(1 + g (exp(e) - 1)) without overflow
    outer = inner + math.log(rate + (1 - rate) * math.exp(-inner))
    return OpaqueEvent(max(outer, 1e-12) * (1 + _ROUNDING), delta, relation)


def noise_levels(mechanism, scale, mean_weight, n_samples, d):
    """Standard deviations of the noise in a summary.

    Parameters
    ----------
    mechanism : {"central", "local", "paper", "none"}
        How the noise came in.
    scale : float
        Its scale, in units of the radius.
    mean_weight : float
        The weight w.
    n_samples : int
        Number of rows.
    d : int
        Number of dimensions.

    Returns
    -------
    mean_noise : float
        On an entry of the mean.
    moment_noise : float
        On a diagonal entry of the second moment; off the diagonal it is 1 / sqrt 2 times that.
    """
    if mechanism in ("local", "paper"):
        return (
            scale / math.sqrt(n_samples),
            scale * math.sqrt(2 * (scale**2 + 2 / d) / n_samples),
        )
    return scale / (mean_weight * n_samples), scale / n_samples
