"""Tempered sequential Monte Carlo from the prior to the posteriors of several
coalitions."""

import numpy as np
from sklearn.utils import gen_batches

_CHUNK = 20_000  # rows of phi per call of a likelihood
_LOWEST = -1e300
_ESS = 0.6  # fraction of particles that stay effective in a temperature step
_ACCEPTANCE = 0.25


def loglik_table(logliks, phi):
    """Log-likelihood of every party at every row of phi: an array (n_rows,
    n_parties)."""
    table = np.empty((len(phi), len(logliks)))
    for rows in gen_batches(len(phi), _CHUNK):
        for i, loglik in enumerate(logliks):
            table[rows, i] = loglik(phi[rows])
    return np.maximum(
        np.nan_to_num(table, nan=_LOWEST, neginf=_LOWEST, posinf=_LOWEST), _LOWEST
    )


def _weighted(logliks, phi, weights):
    """Sum over parties of weight times log-likelihood; phi (B, N, d), weights (B,
    n)."""
    total = np.zeros(phi.shape[:2])
    for i, loglik in enumerate(logliks):
        rows = np.flatnonzero(weights[:, i])
        if len(rows):
            flat = phi[rows].reshape(-1, phi.shape[2])
            part = loglik_table([loglik], flat).reshape(len(rows), -1)
            total[rows] += weights[rows, i, None] * part
    return np.maximum(total, _LOWEST)


def _next_step(loglik, room):
    """Largest temperature steps, at most `room`, that keep enough particles
    effective."""

    def effective(step):
        w = step[:, None] * loglik
        w = np.exp(w - w.max(axis=1, keepdims=True))
        return w.sum(axis=1) ** 2 / (w * w).sum(axis=1) / loglik.shape[1]

    done = effective(room) >= _ESS
    low, high = np.zeros_like(room), room.copy()
    for _ in range(40):
        middle = 0.5 * (low + high)
        enough = effective(middle) >= _ESS
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.where(done, room, np.maximum(low, 1e-12 * room)), done


def _resample(log_weights, n_replicates, rng):
    """Systematic resampling within every replicate; indices of the resampled particles,
    (B, N)."""
    n_anchors, n_particles = log_weights.shape
    size = n_particles // n_replicates
    w = np.exp(log_weights - log_weights.max(axis=1, keepdims=True)) + 1e-300
    sums = w.reshape(n_anchors, n_replicates, size).cumsum(axis=2)
    sums /= sums[:, :, -1:]
    marks = (np.arange(size) + rng.random((n_anchors, n_replicates, 1))) / size
    places = np.empty((n_anchors, n_replicates, size), dtype=np.int64)
    for b in range(n_anchors):
        for g in range(n_replicates):
            places[b, g] = (
                np.searchsorted(sums[b, g], marks[b, g]).clip(0, size - 1) + g * size
            )
    return places.reshape(n_anchors, n_particles)


def _factors(phi):
    centred = phi - phi.mean(axis=1, keepdims=True)
    covariance = np.swapaxes(centred, 1, 2) @ centred / phi.shape[1]
    scale = np.trace(covariance, axis1=1, axis2=2)[:, None, None] / phi.shape[2]
    return np.linalg.cholesky(
        covariance + (1e-9 * scale + 1e-300) * np.eye(phi.shape[2])
    )


def metropolis(prior, logliks, weights, phi, loglik, factors, steps, n_moves, rng):
    """Random-walk Metropolis moves for the targets prior times weighted likelihoods.

    phi is (B, N, d), with one target per row of weights (B, n); loglik holds its
    weighted log-likelihoods, or is None to compute them. Returns phi, log-likelihoods
    and adapted step sizes.
    """
    n_anchors, n_particles, d = phi.shape
    if loglik is None:
        loglik = _weighted(logliks, phi, weights)
    log_prior = prior.log_prior(phi.reshape(-1, d)).reshape(n_anchors, n_particles)
    for _ in range(n_moves):
        jump = rng.standard_normal(phi.shape) @ np.swapaxes(factors, 1, 2)
        trial = phi + steps[:, None, None] * jump
        trial_prior = prior.log_prior(trial.reshape(-1, d)).reshape(
            n_anchors, n_particles
        )
        trial_loglik = _weighted(logliks, trial, weights)
        gain = trial_loglik - loglik + trial_prior - log_prior
        accept = np.log(rng.random(gain.shape)) < gain
        phi = np.where(accept[:, :, None], trial, phi)
        loglik = np.where(accept, trial_loglik, loglik)
        log_prior = np.where(accept, trial_prior, log_prior)
        steps = steps * np.exp(0.5 * (accept.mean(axis=1) - _ACCEPTANCE))
    return phi, loglik, steps


def anneal(prior, logliks, anchors, n_particles, n_replicates, n_moves, rng):
    """Particles at every temperature between the prior and the posteriors of the
    anchors.

    `prior` has the methods `sample_prior` and `log_prior`; `logliks` are functions of
    phi, one per party. Anchors (n_anchors, n_parties) are powers of the parties'
    likelihoods. Particles are in replicates that never mix. Returns stages (phi,
    powers, log evidence).
    """
    n_anchors = len(anchors)
    phi = prior.sample_prior(n_anchors * n_particles, rng)
    phi = phi.reshape(n_anchors, n_particles, -1)
    loglik = _weighted(logliks, phi, anchors)
    kappa, evidence = np.zeros(n_anchors), np.zeros(n_anchors)
    steps = np.full(n_anchors, 2.38 / np.sqrt(phi.shape[2]))
    stages = []
    active = np.flatnonzero(anchors.any(axis=1))
    while len(active):
        part, targets = loglik[active], anchors[active]
        step, done = _next_step(part, 1 - kappa[active])
        log_weights = step[:, None] * part
        top = log_weights.max(axis=1)
        evidence[active] += (
            np.log(np.exp(log_weights - top[:, None]).mean(axis=1)) + top
        )
        kappa[active] = np.where(done, 1.0, kappa[active] + step)
        places = _resample(log_weights, n_replicates, rng)
        moved = np.take_along_axis(phi[active], places[:, :, None], axis=1)
        part = np.take_along_axis(part, places, axis=1)
        powers = kappa[active, None] * targets
        moved, tempered, steps[active] = metropolis(
            prior, logliks, powers, moved, kappa[active, None] * part, _factors(moved),
            steps[active], n_moves, rng,
        )  # fmt: skip
        phi[active], loglik[active] = moved, tempered / kappa[active, None]
        stages += [(moved[k], powers[k], evidence[b]) for k, b in enumerate(active)]
        active = active[kappa[active] < 1]
    return stages
