"""Weighted particles, from which the posterior of every coalition is computed.

The particles of all temperatures between the prior and a few posteriors are one sample
from the mixture of these distributions. Weights with respect to the prior (Shirts and
Chodera, "Statistically optimal analysis of samples from multiple equilibrium states",
2008) make the sample a discrete prior; multiplied by likelihoods, it is a discrete
posterior of any coalition, at any temperature. Every value is the divergence between
two discrete distributions on the same particles: it is never negative, grows with the
power of the likelihood, is equal for parties with equal releases, and does not change
when a party with a constant likelihood joins.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from ..models import Stage, anneal, loglik_table, metropolis
from ._utilities import Surprise, evaluate

_N_REPLICATES = 8
_MAX_ROUNDS = 3
_MAX_NEW_ANCHORS = 8  # weak coalitions whose posteriors are sampled in a round


@dataclass(frozen=True)
class Particles:
    """Particles (J, d), their log-likelihoods (J, n_parties), and a discrete prior.

    `log_base` (J,) are the logarithms of the prior's weights. Particles are sorted by
    replicate, and all replicates have the same size. Nodes of a grid are one replicate.
    `log_ratio` (J,) is the logarithm of a particle's weight within its replicate over
    its weight; None for a grid.
    """

    phi: np.ndarray
    loglik: np.ndarray
    log_base: np.ndarray
    n_replicates: int = 1
    log_ratio: np.ndarray | None = None

    def weights(self, row):
        """Weights of the posterior with log-likelihood `row`; they sum to 1."""
        log_weights = row + self.log_base
        return np.exp(log_weights - logsumexp(log_weights))

    def divergence_between(self, row, other):
        """Kullback-Leibler divergence of the posterior `row` from that of `other`."""
        log_p = row + self.log_base
        log_p = log_p - logsumexp(log_p)
        log_q = other + self.log_base
        log_q = log_q - logsumexp(log_q)
        return float(max(np.sum(np.exp(log_p) * (log_p - log_q)), 0.0))

    def draw(self, prior, posterior, size, rng, n_moves=20):
        """Draws (size, d) from a `TemperedPosterior`.

        Particles are resampled, then moved by Metropolis steps, so that there are no
        duplicates.
        """
        if not np.any(posterior.powers):
            return prior.sample_prior(size, rng)
        weights = self.weights(posterior.row)
        indices = rng.choice(len(weights), size=size, p=weights)

        # Jumps have the covariance of the posterior.
        mean = weights @ self.phi
        centred = (self.phi - mean) * np.sqrt(weights)[:, None]
        covariance = centred.T @ centred
        d = len(mean)
        jitter = 1e-9 * np.trace(covariance) / d + 1e-300
        factor = np.linalg.cholesky(covariance + jitter * np.eye(d))
        phi, _, _ = metropolis(
            prior,
            posterior.logliks,
            posterior.powers[None],
            self.phi[indices][None],
            factors=factor[None],
            scales=np.full(1, 2.38 / np.sqrt(d)),
            n_moves=n_moves,
            rng=rng,
        )
        return phi[0]


@dataclass(frozen=True)
class TemperedPosterior:
    """A posterior to draw from: log-likelihoods as functions of phi, and their powers.

    `row` (J,) is the sum of powers times log-likelihoods at the particles.
    """

    row: np.ndarray
    logliks: list
    powers: np.ndarray


def likelihoods(model, releases):
    """The log-likelihood of each release, as a function of phi."""
    return [lambda phi, r=release: model.party_loglik(phi, r) for release in releases]


def sample_particles(model, logliks, design, *, n_particles, min_ess, rng):
    """Sample the prior and posteriors, until those of all coalitions are represented.

    The posteriors of each party and of all parties are sampled first, then those of
    coalitions with an effective sample size below `min_ess`.

    Returns
    -------
    particles : Particles
        The particles.
    surprises : SurpriseValues
        Surprises of the coalitions.
    warning : str or None
        A warning about effective sample sizes that remain small.
    """
    n_parties = len(logliks)
    anchors = np.concatenate([np.eye(n_parties), np.ones((1, n_parties))])
    anchors = np.unique(anchors, axis=0)[::-1]
    n_particles = -(-n_particles // _N_REPLICATES) * _N_REPLICATES
    prior = model.sample_prior(2 * n_particles, rng)
    n_moves = 8 if prior.shape[1] <= 4 else 12
    stages = [Stage(prior, np.zeros(n_parties), 0.0)]
    for _ in range(_MAX_ROUNDS):
        stages += anneal(
            model,
            logliks,
            anchors=anchors,
            n_particles=n_particles,
            n_replicates=_N_REPLICATES,
            n_moves=n_moves,
            rng=rng,
        )
        particles = _mixture(logliks, stages)
        surprises = evaluate(Surprise().bind(particles), particles, design.masks)
        ess = surprises.ess
        weak = np.flatnonzero(ess < min_ess)
        if len(weak) == 0:
            return particles, surprises, None
        weakest = weak[np.argsort(ess[weak])][:_MAX_NEW_ANCHORS]
        anchors = design.masks[weakest].astype(float)
    warning = (
        f"{len(weak)} of {len(ess)} coalitions have an effective sample size below "
        f"min_ess={min_ess:g} (the smallest is {ess.min():.0f}): increase n_particles."
    )
    return particles, surprises, warning


def _mixture(logliks, stages):
    """The particles of all stages as one sample; the first stage is the prior."""
    counts = np.array([len(stage.phi) for stage in stages], dtype=float)
    powers = np.array([stage.powers for stage in stages])
    log_evidence = np.array([stage.log_evidence for stage in stages])
    n_parameters = stages[0].phi.shape[1]
    by_replicate = [
        stage.phi.reshape(_N_REPLICATES, -1, n_parameters) for stage in stages
    ]
    phi = np.concatenate(by_replicate, axis=1).reshape(-1, n_parameters)

    loglik = loglik_table(logliks, phi)
    shift = loglik.max(axis=0)
    loglik -= shift
    logs = loglik @ powers.T
    log_base, log_z = _mixture_weights(logs, counts, log_evidence - powers @ shift)
    within = [
        _mixture_weights(replicate, counts / _N_REPLICATES, log_z)[0]
        for replicate in np.split(logs, _N_REPLICATES)
    ]
    log_ratio = np.concatenate(within) - log_base
    return Particles(phi, loglik, log_base, _N_REPLICATES, log_ratio)


def _mixture_weights(logs, counts, log_z):
    """Log weights of a sample from a mixture with respect to its first component.

    ``logs`` (J, K) are log density ratios of the components to the first one, each up
    to a constant of which ``log_z`` is a first guess. Returns the weights (J,) and the
    constants (K,) of the solution.
    """
    logs = logs - log_z
    top = logs.max(axis=1)
    densities = np.exp(logs - top[:, None])

    # The constants are a fixed point: each is the integral of its component, estimated
    # from the sample with the weights that follow from all of them. The first is 0.
    correction = np.zeros(len(counts))
    for _ in range(500):
        mixture = densities @ (counts * np.exp(-correction))
        new_correction = np.log(densities.T @ (1 / mixture))
        new_correction -= new_correction[0]
        change = np.abs(new_correction - correction).max()
        correction = new_correction
        if change < 1e-5:
            break
    log_weights = -np.log(densities @ (counts * np.exp(-correction))) - top
    return log_weights - logsumexp(log_weights), log_z + correction
