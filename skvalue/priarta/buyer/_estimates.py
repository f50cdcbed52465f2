"""Estimates of sellers' moments, and the buyer's scores, from noisy moments."""

from typing import NamedTuple

import numpy as np

from ...privacy import clip_rows
from ..seller import symmetric
from ._shrinkage import draw_moments, priors_of, shrink_moments
from .metrics import (
    diversity_relevance,
    factored_wasserstein,
    psd_factor,
    symmetric_kl,
)

METRICS = ("wasserstein", "kl", "diversity", "relevance")
# Fraction of the buyer's mean variance, for divergences of singular covariances.
_RIDGE = 0.01
_MAX_CLIPPED = 2**24  # entries of the covariances that are kept, one per radius
_BLOCK_SIZE = 50  # sellers per block, so that their matrices fit in the cache


class BuyerMoments(NamedTuple):
    """Mean (d,), covariance (d, d) and a factor of it, of the buyer's rows.

    They are around the buyer's centre; `max_norm` is the radius of the sellers that are
    compared with these moments, or None.
    """

    mean: np.ndarray
    covariance: np.ndarray
    factor: np.ndarray
    max_norm: float | None


class Buyer:
    """The buyer's rows (n, d) around its centre, its metric, and priors of sellers.

    `max_norm` is that of the model. `seed` is for all simulations.
    """

    def __init__(self, rows, max_norm, metric, seed):
        self.rows = rows
        self.max_norm = max_norm
        self.metric = metric
        self.seed = seed
        self.n_samples, self.n_dimensions = rows.shape
        self.exact = _buyer_moments(rows, None)
        self.ridge = _RIDGE * np.trace(self.exact.covariance) / self.n_dimensions
        self.priors = priors_of(clip_rows(rows, max_norm), seed)
        self._clipped = {}

    def moments_for(self, max_norm):
        """`BuyerMoments` to compare with those of sellers that clip to a radius.

        The buyer's rows are clipped to the same radius, so that a seller whose rows are
        like the buyer's is like it when clipped, too; but not below the norm of the
        model, since rows near each other would make the buyer's seem so.
        """
        if max_norm is None:
            return self.exact
        if max_norm not in self._clipped:
            if len(self._clipped) * self.n_dimensions**2 > _MAX_CLIPPED:
                self._clipped.clear()
            clipped = clip_rows(self.rows, max(max_norm, self.max_norm))
            self._clipped[max_norm] = _buyer_moments(clipped, max_norm)
        return self._clipped[max_norm]

    def score(self, own, mean, factor):
        """Scores (k,) of means (k, d) and factors of covariances (k, d, d).

        `own` are the `BuyerMoments` to compare them with.
        """
        if self.metric == "wasserstein":
            return factored_wasserstein(own.mean, own.factor, mean, factor)
        covariance = factor @ np.swapaxes(factor, -1, -2)
        if self.metric == "kl":
            return symmetric_kl(
                own.mean, own.covariance, mean, covariance, ridge=self.ridge
            )
        diversity, relevance = diversity_relevance(own.covariance, covariance)
        if self.metric == "diversity":
            return diversity
        return relevance


def _buyer_moments(rows, max_norm):
    covariance = np.atleast_2d(np.cov(rows.T))
    return BuyerMoments(rows.mean(axis=0), covariance, psd_factor(covariance), max_norm)


class NoisyMoments(NamedTuple):
    """Moments of k sellers around the buyer's centre, with noise.

    They are the means (k, d), the unbiased second moments (k, d, d), the numbers of
    rows (k,), and the standard deviations (k, 3) of the noise on an entry of the mean,
    on the diagonal of the second moment and on its trace.
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


def estimate(buyer, own, released, shrink):
    """`Estimates` of the moments of sellers with one radius, from `NoisyMoments`.

    `own` are the `BuyerMoments` for this radius, towards which `shrink` shrinks.
    Covariances are made positive semidefinite. Where there is noise, moments are
    bounded as for rows within the radius.
    """
    means, moments, n_samples, noise = released
    radius = own.max_norm
    d = means.shape[1]
    if radius is not None and shrink:
        means, covariances = shrink_moments(
            (own.mean, own.covariance), means, moments, noise, buyer.priors, radius
        )
    else:
        covariances = moments - means[:, :, None] * means[:, None, :]
        # The squared noise of the mean biases the covariance.
        covariances[:, range(d), range(d)] += noise[:, :1] ** 2

    return _bounded(means, covariances, n_samples, radius)


def _bounded(means, covariances, n_samples, radius):
    """`Estimates` with unbiased covariances, bounded as for rows within the radius."""
    factor = psd_factor(covariances * (n_samples / (n_samples - 1))[:, None, None])
    if radius is None:
        return Estimates(means, factor)

    # The unbiased covariance of two opposite rows has trace 2 max_norm^2.
    means = means * _shrink_to(means, radius, 1)[:, None]
    shrinkage = _shrink_to(factor, 2**0.5 * radius, (1, 2))
    return Estimates(means, factor * shrinkage[:, None, None])


def draw_estimates(buyer, own, summary, n_draws, rng):
    """`Estimates` of n_draws sellers that could have sent a private summary.

    They are draws from the posterior of the moments of its clipped rows, of which
    `estimate` returns means.
    """
    means, covariances = draw_moments(
        (own.mean, own.covariance),
        np.array(summary.mean),
        symmetric(np.array([summary.moment]), buyer.n_dimensions)[0],
        np.array(summary.noise[:3]),
        buyer.priors,
        own.max_norm,
        n_draws,
        rng,
    )
    n_samples = np.full(n_draws, float(summary.n_samples))
    return _bounded(means, covariances, n_samples, own.max_norm)


def _shrink_to(array, radius, axis):
    """Factors at most 1 that scale Euclidean norms down to a radius."""
    return radius / np.maximum(np.sqrt((array**2).sum(axis=axis)), radius)


def estimate_summaries(buyer, own, summaries, shrink):
    """`Estimates` of a list of summaries of one radius, that of the moments `own`."""
    d = buyer.n_dimensions
    means = np.array([summary.mean for summary in summaries])
    triangles = np.array([summary.moment for summary in summaries])
    n_samples = np.array([summary.n_samples for summary in summaries], dtype=float)
    noise = np.zeros((len(summaries), 3))
    if own.max_norm is not None:
        noise = np.array([summary.noise[:3] for summary in summaries])
    released = NoisyMoments(means, symmetric(triangles, d), n_samples, noise)
    return estimate(buyer, own, released, shrink)


def by_radius(summaries):
    """Yield positions of the summaries of each radius, in blocks, and the radius."""
    places = {}
    for place, summary in enumerate(summaries):
        places.setdefault(summary.max_norm, []).append(place)
    for radius, group in places.items():
        for start in range(0, len(group), _BLOCK_SIZE):
            yield np.array(group[start : start + _BLOCK_SIZE]), radius
