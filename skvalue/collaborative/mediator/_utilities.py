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
_N_LOCATED = 4000  # particles, by whose weights posteriors are located
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
        order = np.arange(len(masks))
        if utility.has_points and len(batches) > 1:
            order = _similar_together(particles, masks.astype(float))
        masks = masks[order]
        to_masks = np.argsort(order)
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
            columns = [np.concatenate(column)[to_masks] for column in zip(*records)]
            by_points.append(record(*columns))
    return utility.merge(by_points)


def _similar_together(particles, masks):
    """Order of coalitions by which those of similar posteriors come together.

    A block of them then has fewer particles of some weight. Posteriors are sorted by
    where they have most weight, along the direction in which they differ most, and
    those of one quarter by their numbers of parties.
    """
    n_particles = len(particles.phi)
    some = np.linspace(0, n_particles - 1, min(n_particles, _N_LOCATED)).astype(int)
    loglik = particles.loglik[some].T
    log_base = particles.log_base[some]
    tops = [
        np.argmax(masks[batch] @ loglik + log_base, axis=1)
        for batch in gen_batches(len(masks), max(1, _BLOCK_SIZE // len(some)))
    ]
    locations = particles.phi[some][np.concatenate(tops)]
    residuals = locations - locations.mean(axis=0)
    _, _, directions = np.linalg.svd(residuals, full_matrices=False)
    ranks = np.argsort(np.argsort(residuals @ directions[0], kind="stable"))
    return np.lexsort((masks.sum(axis=1), 4 * ranks // len(masks)))


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
    has_points = False

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
    has_points = True

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
        prior = _WeightedParticles.of(particles, np.zeros((1, len(particles.phi))))

        @lru_cache(maxsize=1)
        def densities(number):
            """The densities of a block of points, and their means of the prior."""
            logs = self._log_densities(particles.phi, blocks[number])
            top = logs.max(axis=0)
            table = np.exp(logs - top)
            prior_means = self._log_means(prior, blocks[number], table, top)
            return table, top, prior_means

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
        posteriors = _WeightedParticles.of(particles, rows)
        points = np.empty((len(rows), len(self.y)))
        replicates = np.zeros((len(rows), particles.n_replicates))
        for number, block in enumerate(blocks):
            table, top, (prior_means, prior_in_replicates) = densities(number)
            log_means, in_replicates = self._log_means(posteriors, block, table, top)
            points[:, block] = log_means - prior_means
            replicates += (in_replicates - prior_in_replicates).sum(axis=2).T

        if not np.isfinite(points).all():
            bad = self.y[~np.isfinite(points).all(axis=0)]
            raise ValueError(
                "y_val must have a finite log density under the prior and the "
                f"posteriors. Got {bad[0]}."
            )
        return PredictiveValues(points.mean(axis=1), replicates / len(self.y), points)

    def _log_means(self, posteriors, block, table, top):
        """Logarithms of mean densities, less ``top``, and of those within replicates.

        The former are (R, V), the latter (G, R, V), for `_WeightedParticles` of R
        posteriors. ``table`` (J, V) has the densities of the points of a block over
        their maxima, of the logarithms ``top`` (V,).
        """
        # The sum over all particles is that of the sums over replicates.
        sums = np.array(
            [
                weights @ table[group]
                for weights, group in zip(posteriors.weights, posteriors.members)
            ]
        )
        masses = posteriors.masses
        log_means = _log_quotients(sums.sum(axis=0), masses.sum(axis=0))

        # Where the mean of a point underflows, it is computed from logarithms.
        log_weights = posteriors.log_weights
        for k in np.flatnonzero(np.isneginf(log_means).any(axis=0)):
            point = slice(block.start + k, block.start + k + 1)
            logs = self._log_densities(posteriors.phi, point)[:, 0]
            log_means[:, k] = logsumexp(log_weights + logs, axis=1) - top[k]
            log_means[:, k] -= logsumexp(log_weights, axis=1)

        in_replicates = np.array(list(map(_log_quotients, sums, masses)))
        in_replicates = np.where(np.isfinite(in_replicates), in_replicates, log_means)
        return log_means, in_replicates

    def _log_densities(self, phi, points):
        X = None if self.X is None else self.X[points]
        return self.model.predict_logpdf(phi, X, self.y[points])


class _WeightedParticles(NamedTuple):
    """The particles of some weight in R posteriors, by G replicates.

    Parameters
    ----------
    phi : ndarray of shape (J, d)
        All particles.
    log_weights : ndarray of shape (R, J)
        Logarithms of their weights, over the largest of each posterior.
    members : list of ndarray
        Of each replicate, the numbers of the particles of some weight.
    weights : list of ndarray of shape (R, n_members)
        Their weights.
    masses : ndarray of shape (G, R)
        The sums of these.
    """

    phi: np.ndarray
    log_weights: np.ndarray
    members: list
    weights: list
    masses: np.ndarray

    @classmethod
    def of(cls, particles, rows):
        """The particles of posteriors of the log-likelihoods rows (R, J)."""
        log_weights = rows + particles.log_base
        log_weights -= log_weights.max(axis=1, keepdims=True)

        # Particles of no weight in any row are left out: half of them, where some
        # parties contradict the others.
        is_used = log_weights.max(axis=0) > _MIN_LOG_WEIGHT
        numbers = np.arange(len(is_used))
        members = [
            group[is_used[group]] for group in np.split(numbers, particles.n_replicates)
        ]
        weights = [np.exp(log_weights[:, group]) for group in members]
        masses = np.array([replicate.sum(axis=1) for replicate in weights])
        return cls(particles.phi, log_weights, members, weights, masses)


def _log_quotients(sums, masses):
    """Logarithms of sums (R, V) of densities over masses (R,); -inf where too small."""
    with np.errstate(divide="ignore", invalid="ignore"):
        means = sums / masses[:, None]
        return np.log(np.where(means > _MIN_DENSITY, means, 0.0))
