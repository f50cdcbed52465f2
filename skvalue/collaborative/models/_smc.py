"""Tempered sequential Monte Carlo from the prior to posteriors of several coalitions.

Arrays have one row for each of B targets (a coalition at a temperature), with N
particles of d parameters: phi (B, N, d), log-likelihoods (B, N). `logliks` are the
log-likelihoods of the n parties, as functions of phi.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

_CHUNK_SIZE = 20_000  # rows of phi per call of a likelihood
_MIN_LOGLIK = -1e300
_EFFECTIVE = 0.6  # fraction of particles that stay effective in a temperature step
_ACCEPTANCE = 0.25


class Stage(NamedTuple):
    """Particles of one coalition at one temperature.

    They are phi (N, d), the powers (n_parties,) of the likelihoods and the logarithm of
    the evidence.
    """

    phi: np.ndarray
    powers: np.ndarray
    log_evidence: float


def loglik_table(logliks, phi):
    """Log-likelihood of every party at every row of phi (m, d): (m, n_parties)."""
    table = np.empty((len(phi), len(logliks)))
    for rows in gen_batches(len(phi), _CHUNK_SIZE):
        for i, loglik in enumerate(logliks):
            table[rows, i] = loglik(phi[rows])
    table = np.nan_to_num(
        table, nan=_MIN_LOGLIK, neginf=_MIN_LOGLIK, posinf=_MIN_LOGLIK
    )
    return np.maximum(table, _MIN_LOGLIK)


def _tempered_loglik(logliks, phi, powers):
    """Sum over parties of power (B, n) times log-likelihood at phi: (B, N)."""
    total = np.zeros(phi.shape[:2])
    for i, loglik in enumerate(logliks):
        targets = np.flatnonzero(powers[:, i])
        if len(targets):
            flat = phi[targets].reshape(-1, phi.shape[2])
            table = loglik_table([loglik], flat).reshape(len(targets), -1)
            total[targets] += powers[targets, i, None] * table
    return np.maximum(total, _MIN_LOGLIK)


def _next_step(loglik, remaining):
    """Largest temperature steps (B,) that keep enough particles effective.

    They are at most what is `remaining`; also returns which of them are all of it.
    """

    def effective_fraction(step):
        weights = step[:, None] * loglik
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        totals = weights.sum(axis=1)
        return totals**2 / (weights * weights).sum(axis=1) / loglik.shape[1]

    is_last = effective_fraction(remaining) >= _EFFECTIVE
    low = np.zeros_like(remaining)
    high = remaining.copy()
    for _ in range(40):
        middle = 0.5 * (low + high)
        is_enough = effective_fraction(middle) >= _EFFECTIVE
        low = np.where(is_enough, middle, low)
        high = np.where(is_enough, high, middle)
    step = np.where(is_last, remaining, np.maximum(low, 1e-12 * remaining))
    return step, is_last


def _resample(log_weights, n_replicates, rng):
    """Systematic resampling within every replicate; indices of particles, (B, N)."""
    n_targets, n_particles = log_weights.shape
    size = n_particles // n_replicates
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True)) + 1e-300
    sums = weights.reshape(n_targets, n_replicates, size).cumsum(axis=2)
    sums /= sums[:, :, -1:]
    marks = (np.arange(size) + rng.random((n_targets, n_replicates, 1))) / size
    indices = np.empty((n_targets, n_replicates, size), dtype=np.int64)
    for b in range(n_targets):
        for g in range(n_replicates):
            within = np.searchsorted(sums[b, g], marks[b, g]).clip(0, size - 1)
            indices[b, g] = within + g * size
    return indices.reshape(n_targets, n_particles)


def _covariance_factors(phi):
    """Cholesky factors (B, d, d) of the covariances of particles."""
    d = phi.shape[2]
    centred = phi - phi.mean(axis=1, keepdims=True)
    covariance = np.swapaxes(centred, 1, 2) @ centred / phi.shape[1]
    scale = np.trace(covariance, axis1=1, axis2=2)[:, None, None] / d
    return np.linalg.cholesky(covariance + (1e-9 * scale + 1e-300) * np.eye(d))


def metropolis(
    prior, logliks, powers, phi, *, loglik=None, factors, scales, n_moves, rng
):
    """Random-walk Metropolis moves for the targets prior times tempered likelihoods.

    Parameters
    ----------
    prior : model
        Has the method `log_prior`.
    logliks : list of callable
        Log-likelihoods of the parties.
    powers : ndarray of shape (B, n)
        Powers of the likelihoods in the targets.
    phi : ndarray of shape (B, N, d)
        Particles of the targets.
    loglik : ndarray of shape (B, N), default=None
        Tempered log-likelihoods of the particles; computed if None.
    factors : ndarray of shape (B, d, d)
        Cholesky factors of the covariance of a jump.
    scales : ndarray of shape (B,)
        Scales of the jumps, which are adapted to the rate of acceptance.
    n_moves : int
        Number of moves.
    rng : numpy Generator
        Random number generator.

    Returns
    -------
    phi, loglik, scales : ndarray
        The moved particles, their tempered log-likelihoods, and the adapted scales.
    """
    n_targets, n_particles, d = phi.shape
    if loglik is None:
        loglik = _tempered_loglik(logliks, phi, powers)

    def log_prior_of(phi):
        return prior.log_prior(phi.reshape(-1, d)).reshape(n_targets, n_particles)

    log_prior = log_prior_of(phi)
    for _ in range(n_moves):
        jump = rng.standard_normal(phi.shape) @ np.swapaxes(factors, 1, 2)
        trial = phi + scales[:, None, None] * jump
        trial_prior = log_prior_of(trial)
        trial_loglik = _tempered_loglik(logliks, trial, powers)
        gain = trial_loglik - loglik + trial_prior - log_prior
        is_accepted = np.log(rng.random(gain.shape)) < gain
        phi = np.where(is_accepted[:, :, None], trial, phi)
        loglik = np.where(is_accepted, trial_loglik, loglik)
        log_prior = np.where(is_accepted, trial_prior, log_prior)
        scales = scales * np.exp(0.5 * (is_accepted.mean(axis=1) - _ACCEPTANCE))
    return phi, loglik, scales


def anneal(prior, logliks, *, anchors, n_particles, n_replicates, n_moves, rng):
    """Particles at every temperature between the prior and posteriors of the anchors.

    Parameters
    ----------
    prior : model
        Has the methods `sample_prior` and `log_prior`.
    logliks : list of callable
        Log-likelihoods of the parties.
    anchors : ndarray of shape (B, n)
        Powers of the parties' likelihoods in the posteriors to reach.
    n_particles : int
        Number of particles of each posterior.
    n_replicates : int
        Number of replicates of particles, which never mix.
    n_moves : int
        Number of Metropolis moves at each temperature.
    rng : numpy Generator
        Random number generator.

    Returns
    -------
    stages : list of Stage
        One for each temperature of each anchor, without the prior.
    """
    n_anchors = len(anchors)
    phi = prior.sample_prior(n_anchors * n_particles, rng)
    phi = phi.reshape(n_anchors, n_particles, -1)
    loglik = _tempered_loglik(logliks, phi, anchors)
    kappa = np.zeros(n_anchors)
    log_evidence = np.zeros(n_anchors)
    # The usual scale of jumps for a normal posterior, which is adapted.
    scales = np.full(n_anchors, 2.38 / np.sqrt(phi.shape[2]))

    stages = []
    active = np.flatnonzero(anchors.any(axis=1))
    while len(active):
        # The next temperature weights the particles of the last one.
        active_loglik = loglik[active]
        step, is_last = _next_step(active_loglik, 1 - kappa[active])
        log_weights = step[:, None] * active_loglik
        top = log_weights.max(axis=1)
        means = np.exp(log_weights - top[:, None]).mean(axis=1)
        log_evidence[active] += np.log(means) + top
        kappa[active] = np.where(is_last, 1.0, kappa[active] + step)

        # Particles are resampled by their weights, and moved apart.
        indices = _resample(log_weights, n_replicates, rng)
        resampled = np.take_along_axis(phi[active], indices[:, :, None], axis=1)
        active_loglik = np.take_along_axis(active_loglik, indices, axis=1)
        powers = kappa[active, None] * anchors[active]
        moved, tempered, scales[active] = metropolis(
            prior,
            logliks,
            powers,
            resampled,
            loglik=kappa[active, None] * active_loglik,
            factors=_covariance_factors(resampled),
            scales=scales[active],
            n_moves=n_moves,
            rng=rng,
        )
        phi[active] = moved
        loglik[active] = tempered / kappa[active, None]
        for k, b in enumerate(active):
            stages.append(Stage(moved[k], powers[k], log_evidence[b]))
        active = active[kappa[active] < 1]
    return stages
