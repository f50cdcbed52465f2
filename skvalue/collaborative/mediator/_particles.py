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
from functools import partial

import numpy as np
from scipy.special import logsumexp

from ..models import anneal, loglik_table, metropolis
from ._utilities import evaluated, surprise

_REPLICATES, _ROUNDS, _MORE_ANCHORS = 8, 3, 8


@dataclass(frozen=True)
class Particles:
    """The matrix of log-likelihoods of particles and parties, and weights of a discrete
    prior.

    Particles are sorted by replicate, of which all have the same size. Nodes of a grid
    are one.
    """

    phi: np.ndarray  # (J, d)
    loglik: np.ndarray  # (J, n_parties)
    log_base: np.ndarray  # (J,), log weights
    n_replicates: int = 1
    log_ratio: np.ndarray | None = (
        None  # (J,), log of the weight in the replicate over the weight
    )

    def weights(self, row):
        """Weights of the posterior with log-likelihood `row`; they sum to 1."""
        log_weights = row + self.log_base
        return np.exp(log_weights - logsumexp(log_weights))

    def divergence_between(self, row, other):
        """Kullback-Leibler divergence of the posterior `row` from the posterior
        `other`."""
        log_p, log_q = row + self.log_base, other + self.log_base
        log_p, log_q = log_p - logsumexp(log_p), log_q - logsumexp(log_q)
        return float(max(np.sum(np.exp(log_p) * (log_p - log_q)), 0.0))

    def draw(self, prior, logliks, powers, row, size, rng, n_moves=20):
        """Draws from the posterior with log-likelihood `row`, the parties' raised to
        `powers`.

        Particles are resampled, then moved by Metropolis steps, so that there are no
        duplicates.
        """
        if not np.any(powers):
            return prior.sample_prior(size, rng)
        w = self.weights(row)
        places = rng.choice(len(w), size=size, p=w)
        mean = w @ self.phi
        centred = (self.phi - mean) * np.sqrt(w)[:, None]
        covariance = centred.T @ centred
        d = len(mean)
        jitter = 1e-9 * np.trace(covariance) / d + 1e-300
        factor = np.linalg.cholesky(covariance + jitter * np.eye(d))
        phi = metropolis(
            prior, logliks, powers[None], self.phi[places][None], factors=factor[None],
            steps=np.full(1, 2.38 / np.sqrt(d)), n_moves=n_moves, rng=rng,
        )[0]  # fmt: skip
        return phi[0]


def likelihoods(model, releases):
    """The log-likelihood of each release, as a function of phi."""
    return [lambda phi, r=release: model.party_loglik(phi, r) for release in releases]


def sample_particles(model, logliks, design, n_particles, min_ess, rng):
    """Sample the prior, each party's and all parties' posterior, then those of weak
    coalitions.

    Posteriors of coalitions with an effective sample size below `min_ess` are sampled
    as well. Returns particles, `surprise` of the coalitions, and a warning.
    """
    n = len(logliks)
    anchors = np.unique(np.concatenate([np.eye(n), np.ones((1, n))]), axis=0)[::-1]
    size = -(-n_particles // _REPLICATES) * _REPLICATES
    prior = model.sample_prior(2 * size, rng)
    n_moves = 8 if prior.shape[1] <= 4 else 12
    stages = [(prior, np.zeros(n), 0.0)]
    for _ in range(_ROUNDS):
        stages += anneal(
            model,
            logliks,
            anchors=anchors,
            n_particles=size,
            n_replicates=_REPLICATES,
            n_moves=n_moves,
            rng=rng,
        )
        particles = _mixture(logliks, stages)
        found = evaluated(partial(surprise, particles), particles, design.masks)
        ess = found[2]
        weak = np.flatnonzero(ess < min_ess)
        if len(weak) == 0:
            return particles, found, None
        anchors = design.masks[weak[np.argsort(ess[weak])][:_MORE_ANCHORS]].astype(
            float
        )
    warning = (
        f"{len(weak)} of {len(ess)} coalitions have an effective sample size below "
        f"min_ess={min_ess:g} (the smallest is {ess.min():.0f}): increase n_particles."
    )
    return particles, found, warning


def _mixture(logliks, stages):
    """The particles of all stages (phi, powers, log evidence), the first of which is
    the prior."""
    phi, powers, log_z = zip(*stages)
    counts, powers = np.array([*map(len, phi)], dtype=float), np.array(powers)
    by_replicate = [some.reshape(_REPLICATES, -1, some.shape[1]) for some in phi]
    phi = np.concatenate(by_replicate, axis=1).reshape(-1, phi[0].shape[1])
    loglik = loglik_table(logliks, phi)
    shift = loglik.max(axis=0)
    loglik -= shift
    logs = loglik @ powers.T
    log_base, log_z = _mixture_weights(logs, counts, np.array(log_z) - powers @ shift)
    within = [
        _mixture_weights(some, counts / _REPLICATES, log_z)[0]
        for some in np.split(logs, _REPLICATES)
    ]
    log_ratio = np.concatenate(within) - log_base
    return Particles(phi, loglik, log_base, _REPLICATES, log_ratio)


def _mixture_weights(logs, counts, log_z):
    """Log weights of a sample from a mixture with respect to its first component.

    ``logs`` (J, K) are log density ratios of the components to the first one, each up
    to a constant of which ``log_z`` is a first guess. Also returns the constants found.
    """
    logs = logs - log_z
    top = logs.max(axis=1)
    densities = np.exp(logs - top[:, None])
    change = np.zeros(len(counts))
    for _ in range(500):
        mixture = densities @ (counts * np.exp(-change))
        new = np.log(densities.T @ (1 / mixture))
        new -= new[0]
        step = np.abs(new - change).max()
        change = new
        if step < 1e-5:
            break
    log_weights = -np.log(densities @ (counts * np.exp(-change))) - top
    return log_weights - logsumexp(log_weights), log_z + change
