"""Estimates of sellers' moments, and the buyer's scores, from noisy moments."""

from typing import NamedTuple

import numpy as np

from ..seller import symmetric
from ._shrinkage import priors_of, shrink_moments
from .metrics import factored_wasserstein, psd_factor, symmetric_kl

METRICS = ("wasserstein", "kl")
# Fraction of the buyer's mean variance, for divergences of singular covariances.
_RIDGE = 0.01


class Buyer:
    """The buyer's moments around its centre, its metric, and priors of sellers.

    They are computed from its centred and clipped rows (n, d). `seed` is for all
    simulations.
    """

    def __init__(self, rows, max_norm, metric, seed):
        self.max_norm = max_norm
        self.metric = metric
        self.seed = seed
        self.n_samples = len(rows)
        self.mean = rows.mean(axis=0)
        self.covariance = np.atleast_2d(np.cov(rows.T))
        self.factor = psd_factor(self.covariance)
        self.ridge = _RIDGE * np.trace(self.covariance) / len(self.mean)
        self.priors = priors_of(rows, seed)

    def score(self, mean, factor):
        """Scores (k,) of means (k, d) and factors of covariances (k, d, d)."""
        if self.metric == "wasserstein":
            return factored_wasserstein(self.mean, self.factor, mean, factor)
        covariance = factor @ np.swapaxes(factor, -1, -2)
        return symmetric_kl(
            self.mean, self.covariance, mean, covariance, ridge=self.ridge
        )


class NoisyMoments(NamedTuple):
    """Moments of k sellers around the buyer's centre, with noise.

    They are the means (k, d), the unbiased second moments (k, d, d), the numbers of
    rows (k,), and the standard deviations (k, 2) of the noise on an entry of the mean
    and on the diagonal of the second moment.
    """

    means: np.ndarray
    moments: np.ndarray
    n_samples: np.ndarray
    noise: np.ndarray


class Estimates(NamedTuple):
    """Estimated means (k, d) of k sellers, and factors (k, d, d) of covariances."""

    mean: np.ndarray
    factor: np.ndarray

    @property
    def covariance(self):
        """Covariances, (k, d, d)."""
        return self.factor @ np.swapaxes(self.factor, -1, -2)


def estimate(buyer, released, shrink):
    """`Estimates` of the moments of sellers, from `NoisyMoments`.

    `shrink` shrinks towards the buyer's moments. Covariances are made positive
    semidefinite, and moments are bounded as for rows within the radius.
    """
    means, moments, n_samples, noise = released
    d = means.shape[1]
    covariances = moments - means[:, :, None] * means[:, None, :]
    # The squared noise of the mean biases the covariance.
    covariances[:, range(d), range(d)] += noise[:, :1] ** 2
    is_noisy = noise.min(axis=1) > 0
    if shrink and is_noisy.any():
        means = means.copy()
        means[is_noisy], covariances[is_noisy] = shrink_moments(
            (buyer.mean, buyer.covariance),
            means[is_noisy],
            moments[is_noisy],
            noise[is_noisy],
            priors=buyer.priors,
            radius=buyer.max_norm,
        )

    # The unbiased covariance of two opposite rows has trace 2 max_norm^2.
    factor = psd_factor(covariances * (n_samples / (n_samples - 1))[:, None, None])
    means = means * _shrink_to(means, buyer.max_norm, 1)[:, None]
    shrinkage = _shrink_to(factor, 2**0.5 * buyer.max_norm, (1, 2))
    factor = factor * shrinkage[:, None, None]
    return Estimates(means, factor)


def _shrink_to(array, radius, axis):
    """Factors at most 1 that scale Euclidean norms down to a radius."""
    return radius / np.maximum(np.sqrt((array**2).sum(axis=axis)), radius)


def estimate_summaries(buyer, summaries, shrink):
    """`Estimates` of a list of summaries."""
    d = len(buyer.mean)
    n_entries = d * (d + 1) // 2
    # The reshapes are for an empty list.
    means = np.array([summary.mean for summary in summaries])
    triangles = np.array([summary.moment for summary in summaries])
    n_samples = np.array([summary.n_samples for summary in summaries], dtype=float)
    noise = np.array(
        [[summary.noise.mean, summary.noise.moment] for summary in summaries]
    )
    released = NoisyMoments(
        means.reshape(-1, d),
        symmetric(triangles.reshape(-1, n_entries), d),
        n_samples,
        noise.reshape(-1, 2),
    )
    return estimate(buyer, released, shrink)
