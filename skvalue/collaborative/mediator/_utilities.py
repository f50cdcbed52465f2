"""What a posterior is worth: its divergence from the prior, or what it predicts better.

A posterior is a row (J,) of log-likelihoods of the particles, and has a value in total
and within each of G replicates of the particles.
"""

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn import get_config
from sklearn.utils import gen_batches

_BLOCK_SIZE = 4_000_000  # log-likelihoods in a block of coalitions
_MIN_DENSITY = 1e-280  # smaller means of densities are computed from their logarithms


class SurpriseValues(NamedTuple):
    """Values (R,) of R posteriors, by replicate (R, G), and effective sample sizes."""

    values: np.ndarray
    replicates: np.ndarray
    ess: np.ndarray


class PredictiveValues(NamedTuple):
    """Values (R,) of R posteriors, by replicate (R, G) and by point (R, V)."""

    values: np.ndarray
    replicates: np.ndarray
    points: np.ndarray


def evaluate(utility, particles, masks):
    """The records of a bound utility for all coalitions (masks of parties), as one."""
    batches = gen_batches(len(masks), max(1, _BLOCK_SIZE // len(particles.loglik)))
    blocks = [
        utility(masks[batch].astype(float) @ particles.loglik.T) for batch in batches
    ]
    record = type(blocks[0])
    return record(*(np.concatenate(column) for column in zip(*blocks)))


def surprise(particles, rows):
    """`SurpriseValues` of rows (R, J); a grid has one replicate."""
    log_weights = rows + particles.log_base
    top = log_weights.max(axis=1, keepdims=True)
    weights = np.exp(log_weights - top)
    totals = weights.sum(axis=1)
    means = np.einsum("rj,rj->r", weights, rows) / totals
    values = np.maximum(means - np.log(totals) - top[:, 0], 0.0)
    ess = totals**2 / np.einsum("rj,rj->r", weights, weights)
    if particles.n_replicates == 1:
        return SurpriseValues(values, values[:, None], ess)

    weights *= np.exp(particles.log_ratio)
    shape = len(rows), particles.n_replicates, -1
    totals = weights.reshape(shape).sum(axis=2)
    weights *= rows
    means = weights.reshape(shape).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        replicates = means / totals - np.log(totals) - top
    replicates = np.where(np.isfinite(replicates), replicates, values[:, None])
    return SurpriseValues(values, replicates, ess)


class Surprise:
    """Divergence of a posterior from the prior.

    It increases with the power of the likelihood.
    """

    power_grid = (1.0,)

    def bind(self, particles):
        """The function that gives `SurpriseValues` of rows (R, J)."""
        return partial(surprise, particles)


class PredictiveGain:
    """Mean log predictive density of validation points, less that of the prior.

    Sim, Fan, Tian, Xu, Jaillet and Low, "Incentivizing Truthfulness and Collaborative
    Fairness in Bayesian Learning" (ICML 2026): the logarithmic score, which is proper.
    It may decrease with the power of the likelihood.
    """

    power_grid = np.linspace(0, 1, 33)[1:]

    def __init__(self, model, X, y):
        self.model = model
        self.X = X
        self.y = y

    def bind(self, particles):
        """The function that gives `PredictiveValues` of rows (R, J)."""
        bytes_per_point = 32 * len(particles.phi)
        block_size = int(get_config()["working_memory"] * 2**20 / bytes_per_point)
        blocks = list(gen_batches(len(self.y), max(1, block_size)))

        @lru_cache(maxsize=1)
        def densities(number):
            """Densities (J, block) over their maxima, and logarithms of the maxima."""
            logs = self._log_densities(particles.phi, blocks[number])
            top = logs.max(axis=0)
            return np.exp(logs - top), top

        return partial(self._gains, particles, blocks, densities)

    def _gains(self, particles, blocks, densities, rows):
        """`PredictiveValues` of rows (R, J), by blocks of points."""
        # The first row is the prior.
        log_weights = np.concatenate([np.zeros((1, len(particles.phi))), rows])
        log_weights += particles.log_base
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        replicate_weights = weights
        if particles.n_replicates > 1:
            replicate_weights = weights * np.exp(particles.log_ratio)
        replicate_size = len(particles.phi) // particles.n_replicates

        points = np.empty((len(rows), len(self.y)))
        replicates = np.zeros((len(rows), particles.n_replicates))
        for number, block in enumerate(blocks):
            table, top = densities(number)
            log_means = _log_means(weights, table)

            # Where the mean of a point underflows, it is computed from logarithms.
            for k in np.flatnonzero(np.isneginf(log_means).any(axis=0)):
                point = slice(block.start + k, block.start + k + 1)
                logs = self._log_densities(particles.phi, point)[:, 0]
                log_means[:, k] = logsumexp(log_weights + logs, axis=1) - top[k]
                log_means[:, k] -= logsumexp(log_weights, axis=1)

            points[:, block] = log_means[1:] - log_means[0]
            for g in range(particles.n_replicates):
                members = slice(g * replicate_size, (g + 1) * replicate_size)
                in_replicate = _log_means(replicate_weights[:, members], table[members])
                in_replicate = np.where(
                    np.isfinite(in_replicate), in_replicate, log_means
                )
                replicates[:, g] += (in_replicate[1:] - in_replicate[0]).sum(axis=1)

        if not np.isfinite(points).all():
            bad = self.y[~np.isfinite(points).all(axis=0)]
            raise ValueError(
                "y_val must have a finite log density under the prior and the "
                f"posteriors. Got {bad[0]}."
            )
        return PredictiveValues(points.mean(axis=1), replicates / len(self.y), points)

    def _log_densities(self, phi, points):
        X = None if self.X is None else self.X[points]
        return self.model.predict_logpdf(phi, X, self.y[points])


def _log_means(weights, densities):
    """Logarithms of weighted means of densities; -inf where they underflow."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (weights @ densities) / weights.sum(axis=1, keepdims=True)
        return np.log(np.where(means > _MIN_DENSITY, means, 0.0))
