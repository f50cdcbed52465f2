"""Weighted particles, from which the posterior of every coalition is computed.

The particles are one sample from a mixture of the prior and of t distributions that are
fitted to posteriors of coalitions. Weights with respect to the prior make the sample a
discrete prior; multiplied by likelihoods, it is a discrete posterior of any coalition,
with its likelihood raised to any power. Every value is the divergence between
two discrete distributions on the same particles: it is never negative, grows with the
power of the likelihood, is equal for parties with equal releases, and does not change
when a party with a constant likelihood joins.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp
from sklearn.utils import gen_batches

from ..models import PriorModel, loglik_table, metropolis
from ._proposals import fit_proposal, log_mixture
from ._utilities import Surprise, evaluate

N_REPLICATES = 8
_MAX_STEPS = 30
_MAX_ROUNDS = 3  # of checks of all coalitions
_MAX_POWER_RATIO = 2.0  # of the likelihood of a step's proposals and of the sample
_MIN_POWER = 1e-12
_N_BETWEEN = 2.5  # powers on the way to a posterior, of usual releases
_N_BISECTIONS = 14
# Coalitions of a small effective sample size: many are sampled a little in each step.
_MAX_NEW_ANCHORS = 64
_N_NEW = 16
_SMALL_FRACTION = 0.25  # of the sample, from which sizes are estimated
_DOUBTFUL = 2.5  # times the least size: estimates that are checked
_MARGIN = 1.03  # since a size may decrease when others are increased
_BLOCK_SIZE = 4_000_000  # weights in a block of coalitions


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


def sample_particles(model, logliks, design, *, n_particles, min_ess, rng, progress):
    """Sample the prior and posteriors, until those of all coalitions are represented.

    The posteriors of each party and of all parties are sampled first, then those of
    coalitions with an effective sample size below `min_ess`, unless `progress` is late.

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
    sample = MixtureSample(model, logliks, 2 * n_particles, rng, progress)
    singles = np.eye(n_parties)
    anchors = np.unique(np.concatenate([singles, np.ones((1, n_parties))]), axis=0)
    sample.reach(anchors, n_particles)
    coalitions = design.masks
    # Of few parties, whose posteriors have more draws, those of coalitions have, too.
    target_ess = min_ess
    if min_ess > 0:
        target_ess = max(min_ess, n_particles / 10)
    for _ in range(_MAX_ROUNDS):
        sample.represent(coalitions, target_ess)
        particles = sample.particles()
        surprises = evaluate(Surprise(), particles, design.masks)
        ess = surprises.ess
        is_weak = ess < min_ess
        if not is_weak.any():
            return particles, surprises, None
        if progress.is_late:
            break
        coalitions = design.masks[is_weak]
    warning = (
        f"{is_weak.sum()} of {len(ess)} coalitions have an effective sample size below "
        f"min_ess={min_ess:g} (the smallest is {ess.min():.0f}): increase n_particles."
    )
    return particles, surprises, warning


class MixtureSample:
    """A sample from the prior and from t distributions that are fitted to posteriors.

    A t distribution is fitted to the sample, weighted as the posterior of a coalition,
    and drawn from. Where few draws represent that posterior, its likelihood is raised
    to the largest power at which they are enough, and the covariance is extrapolated to
    a larger power. All draws are weighted by the density of the mixture of all
    distributions that were drawn from (Cornuet, Marin, Mira and Robert, "Adaptive
    multiple importance sampling", 2012): those on the way to one posterior serve
    others, and none of them has to be reached from the prior twice.

    Parameters
    ----------
    model : model
        Has the methods `sample_prior` and `log_prior`.
    logliks : list of callable
        Log-likelihoods of the n parties.
    n_prior : int
        Number of draws from the prior.
    rng : numpy Generator
        Random number generator.
    progress : FitProgress
        What steps are reported to.
    """

    def __init__(self, model, logliks, n_prior, rng, progress):
        self._progress = progress
        self._model = model
        self._logliks = logliks
        self._is_normalized = isinstance(model, PriorModel)
        self._rng = rng
        self._n_prior = _in_replicates(n_prior)
        self._proposals = []
        self._phi = model.sample_prior(self._n_prior, rng)
        self._log_prior = self._log_prior_of(self._phi)
        self._loglik = loglik_table(logliks, self._phi)
        # Log of the sum of the densities of proposals, times their numbers of draws.
        self._log_proposed = np.full(self._n_prior, -np.inf)
        self._replicate = np.arange(self._n_prior) % N_REPLICATES
        self._n_enough = _enough(self._phi.shape[1])

    def reach(self, anchors, n_draws):
        """Draw `n_draws` from each posterior of coalitions, anchors (A, n), at least.

        Those of powers of the likelihood on the way are fewer.
        """
        n_between = _draws_between(n_draws, self._phi.shape[1])
        for _ in range(_MAX_STEPS):
            powers = self._step(anchors, n_draws, n_between)
            anchors = anchors[powers < 1]
            if len(anchors) == 0:
                return

    def represent(self, coalitions, min_ess):
        """Draw until coalitions (m, n) have an effective sample size of `min_ess`.

        A posterior that is drawn from represents similar ones, too.
        """
        coalitions = coalitions.astype(float)
        ess = self._effective_sizes(coalitions, _SMALL_FRACTION)
        doubtful = coalitions[ess < _DOUBTFUL * min_ess]
        # First by a part of the sample, then by all of it.
        for fraction in (_SMALL_FRACTION, 1.0):
            weak = doubtful
            for _ in range(_MAX_STEPS):
                ess = self._effective_sizes(weak, fraction)
                weak = weak[np.argsort(ess)]
                weak = weak[: np.sum(ess < _MARGIN * min_ess)]
                if len(weak) == 0 or self._progress.is_late:
                    break
                self._step(_dissimilar(weak, _MAX_NEW_ANCHORS), _N_NEW, _N_NEW)

    def particles(self):
        """The sample as `Particles`, sorted by replicate."""
        order = np.argsort(self._replicate, kind="stable")
        loglik = self._loglik[order]
        loglik -= loglik.max(axis=0)
        log_base = self._log_base()[order]
        by_replicate = log_base.reshape(N_REPLICATES, -1)
        log_sums = logsumexp(by_replicate, axis=1, keepdims=True)
        log_ratio = np.broadcast_to(-log_sums, by_replicate.shape).ravel()
        return Particles(self._phi[order], loglik, log_base, N_REPLICATES, log_ratio)

    def _log_base(self):
        """Log weights (J,) of the draws with respect to the prior; they sum to 1."""
        # The density of all proposals over that of the prior, times numbers of draws.
        log_ratios = self._log_proposed - self._log_prior
        log_constant = 0.0
        if self._proposals and not self._is_normalized:
            log_constant = _estimate_log_constant(log_ratios, self._n_prior)
        log_density = np.logaddexp(np.log(self._n_prior), log_ratios + log_constant)
        return -log_density - logsumexp(-log_density)

    def _step(self, anchors, n_draws, n_between):
        """Draw once for each coalition: `n_draws`, or `n_between` of a lower power.

        Returns the powers (A,).
        """
        log_base = self._log_base()
        loglik = anchors @ self._loglik.T
        powers = _largest_powers(loglik, log_base, self._n_enough)
        proposals = []
        for row, power in zip(loglik, powers):
            log_weights = power * row + log_base
            weights = np.exp(log_weights - logsumexp(log_weights))
            # The covariance of a posterior is inverse to the power, nearly.
            scale = max(power, 1 / _MAX_POWER_RATIO)
            n = _in_replicates(n_draws if power == 1 else n_between)
            proposals.append(fit_proposal(self._phi, weights, scale, n))
        self._add(proposals)
        return powers

    def _add(self, proposals):
        """Draw from proposals, and weight all draws by the larger mixture."""
        phi = np.concatenate([proposal.draw(self._rng) for proposal in proposals])
        replicates = [np.arange(p.n_draws) % N_REPLICATES for p in proposals]
        log_proposed = log_mixture(proposals, self._phi)
        self._log_proposed = np.logaddexp(self._log_proposed, log_proposed)
        self._proposals += proposals
        log_proposed = log_mixture(self._proposals, phi)
        self._log_proposed = np.append(self._log_proposed, log_proposed)
        self._log_prior = np.append(self._log_prior, self._log_prior_of(phi))
        loglik = loglik_table(self._logliks, phi)
        self._loglik = np.concatenate([self._loglik, loglik])
        self._replicate = np.concatenate([self._replicate, *replicates])
        self._phi = np.concatenate([self._phi, phi])
        self._progress.sampled()

    def _log_prior_of(self, phi):
        log_prior = self._model.log_prior(phi)
        return np.where(np.isnan(log_prior), -np.inf, log_prior)

    def _effective_sizes(self, coalitions, fraction):
        """Effective sample sizes (m,) of coalitions, from a fraction of the draws."""
        is_part = self._replicate < fraction * N_REPLICATES
        log_base = self._log_base()
        log_base = log_base[is_part]
        loglik = self._loglik[is_part].T
        batch_size = max(1, _BLOCK_SIZE // len(log_base))
        if len(coalitions) == 0:
            return np.zeros(0)
        sizes = [
            _effective_size(coalitions[batch] @ loglik + log_base)
            for batch in gen_batches(len(coalitions), batch_size)
        ]
        return np.concatenate(sizes) / fraction


def expected_size(n_particles, n_parties, n_parameters, min_ess):
    """Number of particles that a fit takes, nearly."""
    n_between = _draws_between(n_particles, n_parameters)
    of_anchor = n_particles + _N_BETWEEN * n_between
    of_weak = _N_NEW * _MAX_NEW_ANCHORS if min_ess > 0 and n_parties > 2 else 0
    return int(2 * n_particles + (n_parties + 1) * of_anchor + of_weak)


def _draws_between(n_draws, n_parameters):
    """Draws from each power of a likelihood on the way to the posterior."""
    return max(n_draws // 2, 2 * _enough(n_parameters))


def _enough(n_parameters):
    """Effective draws from which a mean and a covariance are estimated."""
    return 40 + 6 * n_parameters


def _in_replicates(n):
    """The number of draws, rounded up to a multiple of the number of replicates."""
    return -(-int(n) // N_REPLICATES) * N_REPLICATES


def _estimate_log_constant(log_ratios, n_prior):
    """Logarithm of the integral of an unnormalized prior, up to that of its draws.

    `log_ratios` are those of `MixtureSample`. The probabilities of draws to be those of
    proposals sum to the number of these (Meng and Wong, "Simulating ratios of
    normalizing constants", 1996).
    """
    n_proposed = len(log_ratios) - n_prior
    finite = log_ratios[np.isfinite(log_ratios)]
    margin = 5 + np.log(len(log_ratios))

    def excess(log_constant):
        probabilities = expit(log_ratios + log_constant - np.log(n_prior))
        return probabilities.sum() - n_proposed

    low = np.log(n_prior) - finite.max() - margin
    high = np.log(n_prior) - finite.min() + margin
    return brentq(excess, low, high, xtol=1e-8)


def _effective_size(log_weights):
    """Effective sample sizes (A,) of log weights (A, m), which are overwritten."""
    log_weights -= log_weights.max(axis=1, keepdims=True)
    weights = np.exp(log_weights, out=log_weights)
    squares = np.einsum("aj,aj->a", weights, weights)
    return weights.sum(axis=1) ** 2 / squares


def _largest_powers(loglik, log_base, n_enough):
    """Largest powers (A,) of likelihoods (A, m) with enough effective draws."""
    powers = np.ones(len(loglik))
    is_far = _effective_size(loglik + log_base) < n_enough
    if not is_far.any():
        return powers
    loglik = loglik[is_far]
    low = np.full(len(loglik), np.log(_MIN_POWER))
    high = np.zeros(len(loglik))
    for _ in range(_N_BISECTIONS):
        middle = 0.5 * (low + high)
        log_weights = np.exp(middle)[:, None] * loglik + log_base
        is_enough = _effective_size(log_weights) >= n_enough
        low = np.where(is_enough, middle, low)
        high = np.where(is_enough, high, middle)
    powers[is_far] = np.exp(low)
    return powers


def _dissimilar(coalitions, n):
    """At most `n` coalitions: the first one, then each time the most different one."""
    chosen = [0]
    distances = np.abs(coalitions - coalitions[0]).sum(axis=1)
    while len(chosen) < n and distances.max() > 0:
        chosen.append(int(np.argmax(distances)))
        others = np.abs(coalitions - coalitions[chosen[-1]]).sum(axis=1)
        distances = np.minimum(distances, others)
    return coalitions[chosen]
