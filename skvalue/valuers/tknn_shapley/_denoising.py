"""What noisy counts in balls say about the sizes of values: smoothing and shrinkage.

Everything here works on released counts, the public validation points and the known noise, so that
it costs no privacy. A ball's counts resemble those of the balls near by, and nothing is known of
their scale beforehand; both are said by a prior, and what is returned are means under the
posterior:

- the number of rows in a ball, and by how much those with the point's label outnumber the others,
  are Gaussian processes, ``tau b + s g(v)`` with b standard normal and g of covariance
  ``exp(-distance / length)`` times 1, or for the difference times what independent classes imply;
- tau and s <= tau are log-uniform from 1 to a million, so that a difference that the noise drowns
  is shrunk to none, and any scale that shows through the noise is believed; the length is one of
  a few shares of the balls' radius. All of them are averaged over, by marginal likelihood;
- counts are not negative: draws of the posterior are mapped to its normal laws cut off at zero.

Sizes of values differ by orders of magnitude, so the mean is taken of their logarithms. What the
prior says of their common scale is taken off as far as the release left them as uncertain as they
were before, in favour of one half, the size that needs no private count; how sizes differ between
balls is left to the posterior, which shrinks that itself.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ...semivalues import absence_moments

_SCALES = 10.0 ** np.arange(0, 6.01, 0.5)
_LENGTHS = (0.1, 0.3, 0.9)  # in radii
_NUGGET = 1e-6  # share of unsmooth signal, which makes exact counts come out exactly
_N_DRAWS = 64
_VAGUE = 0.25  # share of the prior variance of logarithms that a release may leave
_FAINT = 3.0  # standard deviations of noise in the sum of counts that say nothing
_TABLE = 10_000  # counts up to which values are tabled, where none larger was released


class Basis:
    """Eigenvectors and eigenvalues of a covariance of mean variance 1.

    Beyond as many landmarks as columns were given, eigenvectors are those of the Nystrom
    approximation, and what is orthogonal to them counts as unsmooth.

    Parameters
    ----------
    kernel : ndarray of shape (n, n_landmarks)
        Columns of the covariance.
    landmarks : ndarray of shape (n_landmarks,)
        Their positions.
    """

    def __init__(self, kernel, landmarks):
        n = len(kernel)
        kernel = kernel / max(np.mean(kernel[landmarks, np.arange(len(landmarks))]), 1e-300)
        weights, vectors = np.linalg.eigh(kernel[landmarks])
        if len(landmarks) < n:
            keep = weights > 1e-8 * weights[-1]
            features = kernel @ (vectors[:, keep] / np.sqrt(weights[keep]))
            weights, rotation = np.linalg.eigh(features.T @ features)
            keep = weights > 1e-8 * weights[-1]
            weights = weights[keep]
            vectors = features @ (rotation[:, keep] / np.sqrt(weights))
        self.weights = np.maximum(weights, 0) + _NUGGET
        self.vectors = vectors

    def turned(self, signs):
        """The basis of ``signs signs^T`` times the covariance, for signs of 1 and -1."""
        other = object.__new__(Basis)
        other.weights, other.vectors = self.weights, self.vectors * signs[:, None]
        return other


def smoothing_bases(distances, landmarks, reach, labels, n_classes):
    """Bases of the covariances of ball sizes, and of differences of label counts.

    With counts of classes that are independent processes of one covariance K, the difference
    between the count of the point's own label and that of all others has the covariance K times
    ``(4 [same label] - 4 + C) / C``.

    Parameters
    ----------
    distances : ndarray of shape (n_validation, n_landmarks)
        Distances between validation points, in a geometry in which ``exp(-d)`` is a covariance.
    landmarks : ndarray of shape (n_landmarks,)
        Positions of the columns of distances.
    reach : float
        Radius of the balls in the same geometry.
    labels : ndarray of shape (n_validation,)
        Codes of the classes.
    n_classes : int
        Number of classes C.

    Returns
    -------
    total, difference : lists of Basis
        One for each length.
    """
    total, difference = [], []
    alike = labels[:, None] == labels[landmarks]
    mixed = np.where(alike, 1.0, (n_classes - 4) / n_classes)
    for length in _LENGTHS:
        kernel = np.exp(-distances / max(length * reach, 1e-12))
        total.append(Basis(kernel, landmarks))
        if n_classes == 2:
            difference.append(total[-1].turned(2.0 * labels - 1))
        else:
            difference.append(Basis(kernel * mixed, landmarks))
    return total, difference


def _evidence(y, basis, noise):
    """Logarithm of the marginal likelihood for every s (0 and the scales) and tau <= s."""
    z, one = basis.vectors.T @ y, basis.vectors.sum(axis=0)
    n_rest = len(y) - len(z)
    scales = np.concatenate([[0.0], _SCALES])
    var = scales[:, None] ** 2 * basis.weights + noise**2
    rest = scales**2 * _NUGGET + noise**2
    y_rest, one_rest = max(y @ y - z @ z, 0) * (n_rest > 0), max(len(y) - one @ one, 0)
    quad = (z**2 / var).sum(axis=1) + y_rest / rest
    logdet = np.log(var).sum(axis=1) + n_rest * np.log(rest)
    ones = ((one**2 / var).sum(axis=1) + one_rest * (n_rest > 0) / rest)[:, None] * _SCALES**2
    cross = ((one * z / var).sum(axis=1) + (y.sum() - one @ z) * (n_rest > 0) / rest)[:, None]
    logs = -0.5 * (
        quad[:, None] - (cross * _SCALES) ** 2 / (1 + ones) + logdet[:, None] + np.log1p(ones)
    )
    return np.where(scales[:, None] <= _SCALES, logs, -np.inf)


def posterior_draws(y, bases, noise, rng, n_draws=_N_DRAWS):
    """Draws of the process given noisy sums, and draws of its prior from the same random numbers.

    Parameters
    ----------
    y : ndarray of shape (n,)
        The process plus noise.
    bases : list of Basis
        Its covariances, equally likely beforehand.
    noise : float
        Standard deviation of the noise.
    rng : Generator
        Source of the draws.
    n_draws : int
        Number of draws.

    Returns
    -------
    posterior, prior : ndarrays of shape (n_draws, n)
        The draws; they are the same where the noise drowns everything.
    """
    logs = np.array([_evidence(y, basis, noise) for basis in bases])
    chances = np.exp(logs - logs.max())
    shape, levels = chances.shape, (np.arange(n_draws) + 0.5) / n_draws
    normal = rng.standard_normal((3, n_draws, len(y)))
    draws = []
    for weights, data in ((chances, True), (np.isfinite(logs), False)):
        share = np.cumsum(weights.ravel() / weights.sum())
        picked = np.searchsorted(share, levels * share[-1])
        draws.append(_draw(y, bases, noise, normal, np.unravel_index(picked, shape), data))
    return draws


def _draw(y, bases, noise, normal, models, data):
    out = np.empty((len(models[0]), len(y)))
    for number, basis in enumerate(bases):
        mine = np.flatnonzero(models[0] == number)
        if not len(mine):
            continue
        rank = len(basis.weights)
        s = np.concatenate([[0.0], _SCALES])[models[1][mine], None]
        tau = _SCALES[models[2][mine], None]
        one = basis.vectors.sum(axis=0)
        first, second, third = (part[mine, :rank] for part in normal)
        field = tau * third[:, :1] * one + s * np.sqrt(basis.weights) * first
        if data:  # a draw of the prior, corrected by what data like it would have said (Matheron)
            z = basis.vectors.T @ y
            var = s**2 * basis.weights + noise**2
            lack = (z - field - noise * second) / var
            shift = tau**2 * (lack @ one)[:, None] / (1 + tau**2 * (one**2 / var).sum(1)[:, None])
            lack = lack - one / var * shift
            field = field + s**2 * basis.weights * lack + tau**2 * (lack @ one)[:, None] * one
        out[mine] = field @ basis.vectors.T
        if data and rank < len(y):
            gain = s**2 * _NUGGET / (s**2 * _NUGGET + noise**2)
            out[mine] += gain * (y - basis.vectors @ z)
    return out


def positive_draws(draws):
    """Draws of normal laws mapped to the same laws cut off at zero, column by column."""
    mean, deviation = draws.mean(axis=0), draws.std(axis=0) + 1e-9
    below = ndtr(-mean / deviation)
    level = below + ndtr((draws - mean) / deviation) * (1 - below)
    # Far above zero nothing is cut off; far below it the quantile has no digits left.
    cut = mean + deviation * ndtri(np.clip(level, 1e-12, 1 - 1e-12))
    return np.maximum(np.where(mean > 4 * deviation, draws, cut), 0.0)


class Posterior(NamedTuple):
    """Draws of the counts given what was released, and of their prior.

    Attributes
    ----------
    same, other : ndarrays of shape (n_draws, n_validation)
        Draws of the counts with and without the validation point's label.
    prior : tuple of two ndarrays
        The same of the prior.
    largest : int
        Largest count that was released.
    loudness : float
        Sum of the released counts, in standard deviations of its noise.
    """

    same: np.ndarray
    other: np.ndarray
    prior: tuple
    largest: int
    loudness: float


def count_posterior(
    noisy, noise, distances, landmarks, reach, labels, n_classes, n_draws=_N_DRAWS, seed=0
):
    """Posterior of the counts in balls, given noisy ones.

    Parameters
    ----------
    noisy : ndarray of shape (2, n_validation)
        Released numbers of rows in every ball with and without the validation point's label.
    noise : float
        Standard deviation of their noise.
    distances, landmarks, reach, labels, n_classes
        As in `smoothing_bases`.
    n_draws, seed : int
        Number of draws, and what they are drawn from: nothing secret, and the same every time.

    Returns
    -------
    posterior : Posterior
        Draws of the counts.
    """
    rng = np.random.default_rng(seed)
    total, difference = smoothing_bases(distances, landmarks, reach, labels, n_classes)
    same, other = np.asarray(noisy, dtype=float)
    spread = np.sqrt(2) * noise
    sums = posterior_draws(same + other, total, spread, rng, n_draws)
    gaps = posterior_draws(same - other, difference, spread, rng, n_draws)
    order = rng.permutation(n_draws)
    posterior, prior = (
        tuple(positive_draws((c + sign * d[order]) / 2) for sign in (1, -1))
        for c, d in zip(sums, gaps)
    )
    loudness = (same + other).sum() / (np.sqrt(len(same)) * spread)
    return Posterior(*posterior, prior, int(max(same.max(), other.max(), 0)), float(loudness))


@lru_cache(maxsize=4)
def _tables(semivalue, table):
    """Weights of an empty ball and of one with others, for 0, ..., table + 1 neighbours."""
    moments = absence_moments(semivalue, table + 2)[: table + 1]
    alone = np.concatenate([moments[:1], moments])
    mean = np.cumsum(moments) / np.arange(1, table + 2)
    return alone, np.concatenate([[0.0], mean - moments])


def real_neighbour_values(same, other, n_classes, semivalue="shapley", table=_TABLE):
    """`neighbour_values` for counts that need not be integers.

    What depends on the number of neighbours alone is interpolated; beyond ``table`` neighbours it
    falls as their inverse.

    Parameters
    ----------
    same, other : ndarrays
        Numbers of neighbours with and without the label, the one that is valued included.
    n_classes : int
        Number of classes.
    semivalue : str or tuple, default="shapley"
        The semivalue.
    table : int, default=10000
        Largest number of neighbours that is tabled.

    Returns
    -------
    agree, differ : ndarrays
        Values of a neighbour with the label, and without; equal to those of `neighbour_values` at
        integers where there is such a neighbour.
    """
    alone, joined = _tables(
        semivalue if isinstance(semivalue, str) else tuple(semivalue), int(table)
    )
    c = same + other
    inside = np.minimum(c, table)
    lower = inside.astype(np.int64)
    part = inside - lower
    shrink = np.minimum(table / np.maximum(c, 1), 1.0)
    alone = ((1 - part) * alone[lower] + part * alone[lower + 1]) * shrink
    joined = ((1 - part) * joined[lower] + part * joined[lower + 1]) * shrink
    others = np.maximum(c - 1, 1e-12)
    ours = np.clip((same - 1) / others, 0, 1)
    theirs = np.clip(same / others, 0, 1)
    return (1 - 1 / n_classes) * alone + (1 - ours) * joined, -alone / n_classes - theirs * joined


def _log_sizes(same, other, n_classes, semivalue, table, joins):
    """Logarithms of the sizes of both values: of rows that are counted, or of one that joins."""
    if joins:
        pairs = ((same + 1, other), (same, other + 1))
    else:
        pairs = ((np.maximum(same, 1), other), (same, np.maximum(other, 1)))
    agree, _ = real_neighbour_values(*pairs[0], n_classes, semivalue, table)
    _, differ = real_neighbour_values(*pairs[1], n_classes, semivalue, table)
    # Some semivalues have sizes of (nearly) 0 next to some of 1/c, and no use for their logarithms.
    return np.log(np.maximum([agree, -differ], 1e-3 / np.maximum(same + other, 1)))


def value_sizes(posterior, n_classes, semivalue="shapley", joins=False):
    """Values of both kinds of neighbours at every validation point, given noisy counts.

    Geometric means over the posterior. With ``left`` the share of the prior variance of their
    logarithms that the release left, logarithms less that of 1/2 are taken off ``left`` times what
    they are in the prior. What comes of that is believed in full where the released counts sum up
    to six standard deviations of the noise in their sum; down to three of them, in part; and below,
    sizes are 1/2, as in the public baseline, unless less than a quarter is left.

    Parameters
    ----------
    posterior : Posterior
        Draws of the counts.
    n_classes : int
        Number of classes.
    semivalue : str or tuple, default="shapley"
        The semivalue.
    joins : bool, default=False
        Whether the neighbour comes on top of the counts; else it is one of those counted, if
        anybody is.

    Returns
    -------
    agree, differ : ndarrays of shape (n_validation,)
        The values.
    """
    # Powers of two, so that few tables are made. Counts beyond a million are approximated.
    table = 1 << int(np.clip(posterior.largest + 1, _TABLE, 2**20) - 1).bit_length()
    logs, before = (
        _log_sizes(*draws, n_classes, semivalue, table, joins)
        for draws in ((posterior.same, posterior.other), posterior.prior)
    )
    left = logs.var(axis=1).mean() / max(before.var(axis=1).mean(), 1e-300)
    left, half = min(left, 1.0), np.log(0.5)
    news = (logs.mean(axis=1) - half) - left * (before.mean(axis=1) - half)
    believed = np.clip(max(1 - left / _VAGUE, posterior.loudness / _FAINT - 1), 0.0, 1.0)
    agree, differ = np.exp(half + believed * news)
    return agree, -differ
