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

from ..._utils.parallel import one_blas_thread

_BLOCK_SIZE = 4_000_000  # log-likelihoods in a block of coalitions
_N_REPORTS = 16  # at least, of an evaluation that is watched
_MIN_LOG_WEIGHT = -37.0  # relative to the largest; smaller ones are below rounding
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


def evaluate(utility, particles, masks, evaluated=None):
    """The record of a utility for all coalitions (masks of parties).

    `evaluated` is called with the fraction of the work that is done, a few times.

    The loop over blocks of validation points is the outer one, so that what is computed
    of a block is computed once.
    """
    batch_size = max(1, _BLOCK_SIZE // len(particles.loglik))
    if evaluated is not None:
        batch_size = min(batch_size, max(1, len(masks) // _N_REPORTS))
    batches = list(gen_batches(len(masks), batch_size))
    by_points = []
    with one_blas_thread():
        blocks = utility.blocks(particles)
        for number, block in enumerate(blocks):
            value_of = block.bind(particles)
            records = []
            for batch in batches:
                records.append(
                    value_of(masks[batch].astype(float) @ particles.loglik.T)
                )
                fraction = (number + len(records) / len(batches)) / len(blocks)
                if evaluated is not None:
                    evaluated(fraction)
            record = type(records[0])
            by_points.append(record(*map(np.concatenate, zip(*records))))
    return utility.merge(by_points)


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
    n_points = 1

    def blocks(self, particles):
        """The utility alone: it has no validation points."""
        return [self]

    def merge(self, records):
        """The record of the only block."""
        return records[0]

    def bind(self, particles):
        """The function that gives `SurpriseValues` of rows (R, J)."""
        return partial(surprise, particles)

    def common_loglik(self, phi):
        """Log-likelihood (J,) of what the mediator has itself, which is nothing."""
        return np.zeros(len(phi))

    def exact_values(self, model, counts, statistics):
        """Values (R,) of R exact statistics, each of so many rows."""
        return model.exact_posteriors(counts, statistics).divergences()


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

    def blocks(self, particles):
        """The gains on blocks of points, whose densities fit into memory."""
        return [self._of_points(block) for block in self._slices(particles)]

    def _of_points(self, points):
        """The gain on a slice of the points."""
        X = None if self.X is None else self.X[points]
        return PredictiveGain(self.model, X, self.y[points])

    def _slices(self, particles):
        """Slices of points, whose densities at all particles fit into memory."""
        bytes_per_point = 32 * len(particles.phi)
        block_size = int(get_config()["working_memory"] * 2**20 / bytes_per_point)
        return list(gen_batches(len(self.y), max(1, block_size)))

    def merge(self, records):
        """The record of all points, from those of blocks of points."""
        points = np.concatenate([record.points for record in records], axis=1)
        replicates = sum(
            record.replicates * record.points.shape[1] for record in records
        )
        n_points = points.shape[1]
        return PredictiveValues(points.mean(axis=1), replicates / n_points, points)

    def bind(self, particles):
        """The function that gives `PredictiveValues` of rows (R, J)."""
        blocks = self._slices(particles)

        @lru_cache(maxsize=1)
        def densities(number):
            """Densities (J, block) over their maxima, and logarithms of the maxima."""
            logs = self._log_densities(particles.phi, blocks[number])
            top = logs.max(axis=0)
            return np.exp(logs - top), top

        return partial(self._gains, particles, blocks, densities)

    @property
    def n_points(self):
        """Number of validation points."""
        return len(self.y)

    def common_loglik(self, phi):
        """Log-likelihood (J,) of the validation points, which the mediator has."""
        loglik = np.empty(len(phi))
        for batch in gen_batches(len(phi), max(1, _BLOCK_SIZE // len(self.y))):
            logs = self.model.predict_logpdf(phi[batch], self.X, self.y)
            loglik[batch] = logs.sum(axis=1)
        return loglik

    def exact_values(self, model, counts, statistics):
        """Values (R,) of R exact statistics, each of so many rows."""
        # The first one is the prior.
        counts = np.append(0.0, counts)
        statistics = np.insert(statistics, 0, 0.0, axis=0)
        posteriors = model.exact_posteriors(counts, statistics)
        means = posteriors.log_densities(self.X, self.y).mean(axis=1)
        return means[1:] - means[0]

    def _gains(self, particles, blocks, densities, rows):
        """`PredictiveValues` of rows (R, J), by blocks of points."""
        # The first row is the prior.
        log_weights = np.concatenate([np.zeros((1, len(particles.phi))), rows])
        log_weights += particles.log_base
        log_weights -= log_weights.max(axis=1, keepdims=True)

        # Particles of no weight in any row are left out: most of them, where rows are
        # of parties that agree, and others do not.
        is_used = log_weights.max(axis=0) > _MIN_LOG_WEIGHT
        n_replicates = particles.n_replicates
        members = [
            group[is_used[group]]
            for group in np.split(np.arange(len(is_used)), n_replicates)
        ]
        weights = [np.exp(log_weights[:, group]) for group in members]
        masses = np.array([replicate.sum(axis=1) for replicate in weights])

        points = np.empty((len(rows), len(self.y)))
        replicates = np.zeros((len(rows), n_replicates))
        for number, block in enumerate(blocks):
            table, top = densities(number)

            # The sum over all particles is that of the sums over replicates.
            sums = [
                replicate @ table[group] for replicate, group in zip(weights, members)
            ]
            log_means = _log_quotients(sum(sums), masses.sum(axis=0))

            # Where the mean of a point underflows, it is computed from logarithms.
            for k in np.flatnonzero(np.isneginf(log_means).any(axis=0)):
                point = slice(block.start + k, block.start + k + 1)
                logs = self._log_densities(particles.phi, point)[:, 0]
                log_means[:, k] = logsumexp(log_weights + logs, axis=1) - top[k]
                log_means[:, k] -= logsumexp(log_weights, axis=1)

            points[:, block] = log_means[1:] - log_means[0]
            for g in range(n_replicates):
                in_replicate = _log_quotients(sums[g], masses[g])
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


def _log_quotients(sums, masses):
    """Logarithms of sums (R, V) of densities over masses (R,); -inf where too small."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / masses[:, None]
        return np.log(np.where(means > _MIN_DENSITY, means, 0.0))
