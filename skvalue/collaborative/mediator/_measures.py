"""What a posterior is worth: its divergence from the prior, or what it predicts better."""

from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.special import logsumexp
from sklearn import get_config
from sklearn.utils import gen_batches

_LEAST = 1e-280  # smaller means of densities are computed from their logarithms


class Surprise:
    """Divergence of a posterior from the prior, which rises with the power of the likelihood."""

    powers = (1.0,)

    def values(self, found, masks):
        """Values of the coalitions of an evaluation, and by island; no values by point."""
        return found.values, found.islands, None

    def on(self, pool):
        """The function of rows of log-likelihoods (R, J) that returns their (R,) values."""
        return lambda rows: pool.divergences(rows)[0]


class PredictiveGain:
    """Mean log predictive density of validation points, less that of the prior.

    Sim, Fan, Tian, Xu, Jaillet and Low, "Incentivizing Truthfulness and Collaborative Fairness in
    Bayesian Learning" (ICML 2026): the logarithmic score, which is proper. It may fall with the
    power of the likelihood.
    """

    powers = np.linspace(0, 1, 33)[1:]

    def __init__(self, model, X, y):
        self.model, self.X, self.y = model, X, y

    def values(self, found, masks):
        """Values of the coalitions of an evaluation, by island, and by validation point."""
        gains, parts = self._gains(found.pool), []
        step = max(1, 4_000_000 // len(found.pool.phi))
        for part in gen_batches(len(masks), step):
            parts.append(gains(masks[part].astype(float) @ found.pool.loglik.T))
        points, islands = (np.concatenate(column) for column in zip(*parts))
        if not np.isfinite(points).all():
            bad = self.y[~np.isfinite(points).all(axis=0)]
            raise ValueError(f"y_val must have a finite log density. Got {bad[0]}.")
        return points.mean(axis=1), islands, points

    def on(self, pool):
        """The function of rows of log-likelihoods (R, J) that returns their (R,) values."""
        gains = self._gains(pool)
        return lambda rows: gains(rows)[0].mean(axis=1)

    def _gains(self, pool):
        """The function of rows (R, J) that returns gains by point (R, V) and by island (R, G)."""
        size = int(get_config()["working_memory"] * 2**20 / (32 * len(pool.phi)))
        blocks = list(gen_batches(len(self.y), max(1, size)))
        ends = [0, len(pool.phi)] if pool.starts is None else [*pool.starts, len(pool.phi)]

        @lru_cache(maxsize=1)
        def densities(number):
            logs = self._logs(pool.phi, blocks[number])
            top = logs.max(axis=0)
            return np.exp(logs - top), top

        def gains(rows):
            log_weights = np.concatenate([np.zeros((1, len(pool.phi))), rows]) + pool.log_base
            weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
            within = weights if pool.starts is None else weights * np.exp(pool.log_ratio)
            points = np.empty((len(rows), len(self.y)))
            islands = np.zeros((len(rows), len(ends) - 1))
            for number, block in enumerate(blocks):
                table, top = densities(number)
                logs = _log_means(weights, table)
                for k in np.flatnonzero(np.isneginf(logs).any(axis=0)):  # every mean underflows
                    point = self._logs(pool.phi, slice(block.start + k, block.start + k + 1))[:, 0]
                    logs[:, k] = logsumexp(log_weights + point, axis=1) - top[k]
                    logs[:, k] -= logsumexp(log_weights, axis=1)
                points[:, block] = logs[1:] - logs[0]
                for g, (start, end) in enumerate(pairwise(ends)):
                    part = _log_means(within[:, start:end], table[start:end])
                    part = np.where(np.isfinite(part), part, logs)
                    islands[:, g] += (part[1:] - part[0]).sum(axis=1)
            return points, islands / len(self.y)

        return gains

    def _logs(self, phi, points):
        return self.model.predict_logpdf(
            phi, None if self.X is None else self.X[points], self.y[points]
        )


def _log_means(weights, densities):
    """Logarithms of weighted means of densities; -inf where they underflow."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (weights @ densities) / weights.sum(axis=1, keepdims=True)
        return np.log(np.where(means > _LEAST, means, 0.0))
