"""What a posterior is worth: its divergence from the prior, or what it predicts
better."""

from functools import lru_cache, partial

import numpy as np
from scipy.special import logsumexp
from sklearn import get_config
from sklearn.utils import gen_batches

_BLOCK = 4_000_000  # log-likelihoods in a block of coalitions
_LEAST = 1e-280  # smaller means of densities are computed from their logarithms


def evaluated(utility, particles, masks):
    """The arrays that a utility returns, for all coalitions (masks of parties)."""
    batches = gen_batches(len(masks), max(1, _BLOCK // len(particles.loglik)))
    blocks = [
        utility(masks[batch].astype(float) @ particles.loglik.T) for batch in batches
    ]
    return [np.concatenate(column) for column in zip(*blocks)]


def surprise(particles, rows):
    """Divergences from the prior, of all particles (R,) and by replicate (R, G); sample
    sizes (R,).

    `rows` (R, J) are log-likelihoods of posteriors. The last are effective sample
    sizes. A grid has one replicate.
    """
    log_weights = rows + particles.log_base
    top = log_weights.max(axis=1, keepdims=True)
    weights = np.exp(log_weights - top)
    totals = weights.sum(axis=1)
    means = np.einsum("rj,rj->r", weights, rows) / totals
    values = np.maximum(means - np.log(totals) - top[:, 0], 0.0)
    ess = totals**2 / np.einsum("rj,rj->r", weights, weights)
    if particles.n_replicates == 1:
        return values, values[:, None], ess
    weights *= np.exp(particles.log_ratio)
    shape = len(rows), particles.n_replicates, -1
    totals = weights.reshape(shape).sum(axis=2)
    weights *= rows
    means = weights.reshape(shape).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        replicates = means / totals - np.log(totals) - top
    return values, np.where(np.isfinite(replicates), replicates, values[:, None]), ess


class Surprise:
    """Divergence of a posterior from the prior, which rises with the power of the
    likelihood."""

    powers = (1.0,)

    def on(self, particles):
        """The function `surprise` of rows."""
        return partial(surprise, particles)


class PredictiveGain:
    """Mean log predictive density of validation points, less that of the prior.

    Sim, Fan, Tian, Xu, Jaillet and Low, "Incentivizing Truthfulness and Collaborative
    Fairness in Bayesian Learning" (ICML 2026): the logarithmic score, which is proper.
    It may fall with the power of the likelihood.
    """

    powers = np.linspace(0, 1, 33)[1:]

    def __init__(self, model, X, y):
        self.model, self.X, self.y = model, X, y

    def on(self, particles):
        """The function of rows (R, J): gains (R,), by replicate (R, G) and by point (R,
        V)."""
        size = int(get_config()["working_memory"] * 2**20 / (32 * len(particles.phi)))
        blocks = list(gen_batches(len(self.y), max(1, size)))

        @lru_cache(maxsize=1)
        def densities(number):
            logs = self._logs(particles.phi, blocks[number])
            top = logs.max(axis=0)
            return np.exp(logs - top), top

        def gains(rows):
            log_weights = np.concatenate([np.zeros((1, len(particles.phi))), rows])
            log_weights += particles.log_base
            weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
            within = weights
            if particles.n_replicates > 1:
                within = weights * np.exp(particles.log_ratio)
            size = len(particles.phi) // particles.n_replicates
            points = np.empty((len(rows), len(self.y)))
            replicates = np.zeros((len(rows), particles.n_replicates))
            for number, block in enumerate(blocks):
                table, top = densities(number)
                logs = _log_means(weights, table)
                for k in np.flatnonzero(
                    np.isneginf(logs).any(axis=0)
                ):  # every mean underflows
                    point = self._logs(
                        particles.phi, slice(block.start + k, block.start + k + 1)
                    )
                    logs[:, k] = logsumexp(log_weights + point[:, 0], axis=1) - top[k]
                    logs[:, k] -= logsumexp(log_weights, axis=1)
                points[:, block] = logs[1:] - logs[0]
                for g in range(particles.n_replicates):
                    members = slice(g * size, (g + 1) * size)
                    some = _log_means(within[:, members], table[members])
                    some = np.where(np.isfinite(some), some, logs)
                    replicates[:, g] += (some[1:] - some[0]).sum(axis=1)
            if not np.isfinite(points).all():
                bad = self.y[~np.isfinite(points).all(axis=0)]
                raise ValueError(f"y_val must have a finite log density. Got {bad[0]}.")
            return points.mean(axis=1), replicates / len(self.y), points

        return gains

    def _logs(self, phi, points):
        X = None if self.X is None else self.X[points]
        return self.model.predict_logpdf(phi, X, self.y[points])


def _log_means(weights, densities):
    """Logarithms of weighted means of densities; -inf where they underflow."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (weights @ densities) / weights.sum(axis=1, keepdims=True)
        return np.log(np.where(means > _LEAST, means, 0.0))
