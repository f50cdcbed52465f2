"""Estimates of sellers' moments, and the buyer's scores, from noisy moments."""

from typing import NamedTuple

import numpy as np

from ..seller import symmetric
from ._shrinkage import priors_of, shrink_moments
from .metrics import factored_wasserstein, psd_factor, symmetric_kl

METRICS = ("wasserstein", "kl")
_RIDGE = 0.01  # fraction of the buyer's mean variance, for divergences of singular covariances


class Buyer:
    """The buyer's moments around its centre, its metric, and priors of sellers'
    moments.

    They are computed from its centred and clipped rows. `seed` is for all simulations.
    """

    def __init__(self, rows, max_norm, metric, seed):
        self.max_norm = max_norm
        self.n_samples = len(rows)
        self.mean = rows.mean(axis=0)
        self.covariance = np.atleast_2d(np.cov(rows.T))
        self.factor = psd_factor(self.covariance)
        self.metric, self.seed = metric, seed
        self.ridge = _RIDGE * np.trace(self.covariance) / len(self.mean)
        self.priors = priors_of(rows, seed)

    def score(self, mean, factor):
        """Scores of stacked means (k, d) and factors of covariances (k, d, d)."""
        if self.metric == "wasserstein":
            return factored_wasserstein(self.mean, self.factor, mean, factor)
        covariance = factor @ np.swapaxes(factor, -1, -2)
        return symmetric_kl(
            self.mean, self.covariance, mean, covariance, ridge=self.ridge
        )


class Estimates(NamedTuple):
    """Moments of k sellers around the centre."""

    mean: np.ndarray  # (k, d)
    factor: np.ndarray  # (k, d, d), of the covariances

    @property
    def covariance(self):
        """Covariances, (k, d, d)."""
        return self.factor @ np.swapaxes(self.factor, -1, -2)


def estimate(buyer, means, moments, n_samples, noise, shrink):
    """Moments of k sellers, from noisy means (k, d) and unbiased noisy second moments
    (k, d, d).

    ``noise`` (k, 2) are standard deviations on an entry of the mean and on the diagonal
    of the second moment; `shrink` shrinks towards the buyer's moments. Covariances are
    made positive semidefinite, and moments are bounded as for rows within the radius.
    """
    d = means.shape[1]
    covariances = moments - means[:, :, None] * means[:, None, :]
    # The squared noise of the mean biases the covariance.
    covariances[:, range(d), range(d)] += noise[:, :1] ** 2
    noisy = noise.min(axis=1) > 0
    if shrink and noisy.any():
        means, target = means.copy(), (buyer.mean, buyer.covariance)
        means[noisy], covariances[noisy] = shrink_moments(
            target,
            means[noisy],
            moments[noisy],
            noise[noisy],
            buyer.priors,
            buyer.max_norm,
        )
    factor = psd_factor(covariances * (n_samples / (n_samples - 1))[:, None, None])
    means = means * _shorten(means, buyer.max_norm, 1)[:, None]
    # The unbiased covariance of two opposite rows has trace 2 max_norm^2.
    factor = factor * _shorten(factor, 2**0.5 * buyer.max_norm, (1, 2))[:, None, None]
    return Estimates(means, factor)


def _shorten(array, radius, axis):
    """Factors at most 1 that scale Euclidean norms down to a radius."""
    return radius / np.maximum(np.sqrt((array**2).sum(axis=axis)), radius)


def estimate_summaries(buyer, summaries, shrink):
    """`estimate` for a list of summaries."""
    d = len(buyer.mean)
    means = np.array([summary.mean for summary in summaries]).reshape(-1, d)
    packed = np.array([summary.moment for summary in summaries]).reshape(
        -1, d * (d + 1) // 2
    )
    rest = np.array([(s.n_samples, *s.noise[:2]) for s in summaries]).reshape(-1, 3)
    return estimate(buyer, means, symmetric(packed, d), rest[:, 0], rest[:, 1:], shrink)
