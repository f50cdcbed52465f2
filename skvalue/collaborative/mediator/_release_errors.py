"""Errors of values that the noise of the releases causes.

The exact statistics behind the releases are drawn from what is known of them, and
coalitions are valued by the draws, without noise, in closed form or by a normal
approximation. The differences from the values of the releases are the errors.

A party's parameters are drawn from the posterior of its own release or, where that
agrees with others (and with the validation points), from their common posterior: of
parties of one population all releases tell what is behind each of them, while nothing
of a party that differs, such as one of wrong labels, is learnt from others.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp
from sklearn.utils import gen_batches

_MAX_POSTERIORS = 200_000
_MIN_DRAWS = 24
_MAX_DRAWS = 200
_BLOCK_SIZE = 4_000_000  # entries of an array of posteriors by points
_N_SWEEPS = 4
_MAX_PARTICLES = 5_000  # of which the evidence that parties agree is computed
_COVERED = 0.95  # of draws, within two errors


class ExactDraws(NamedTuple):
    """Values by statistics without noise, for draws of what is behind the releases.

    Semivalues (n_draws, n_parties) of the parties in the user's order, and values
    (n_draws,) of all of them together.
    """

    semivalues: np.ndarray
    grand_values: np.ndarray


def n_exact_draws(n_coalitions):
    """Number of draws, by which so many coalitions are valued."""
    return int(np.clip(_MAX_POSTERIORS // n_coalitions, _MIN_DRAWS, _MAX_DRAWS))


def draw_exact_values(game, masks, rng, drawn=None):
    """Values (n_draws, n_coalitions) of coalitions by draws of exact statistics.

    Also returns the mean (n_parties, m) of the statistics. None if the model cannot
    value exact statistics. `drawn` is called with the fraction of them that is done.
    """
    is_possible = hasattr(game.model, "exact_statistics")
    if not is_possible or not getattr(game.model, "noise_aware", True):
        return None
    n_draws = n_exact_draws(len(masks))
    common_loglik = game.utility.common_loglik(game.particles.phi)
    phi = _draw_parameters(game.particles, common_loglik, n_draws, rng)
    statistics = [
        game.model.exact_statistics(phi[:, i], release, rng)
        for i, release in enumerate(game.releases)
    ]
    statistics = np.stack(statistics, axis=1)
    values = np.empty((n_draws, len(masks)))
    for k in range(n_draws):
        values[k] = exact_coalition_values(game, masks, statistics[k])
        if drawn is not None:
            drawn((k + 1) / n_draws)
    return values, statistics.mean(axis=0)


def exact_coalition_values(game, masks, statistics):
    """Values (n_coalitions,) of exact statistics (n_parties, m), in closed form."""
    counts = np.array([release.n_samples for release in game.releases], dtype=float)
    values = np.empty(len(masks))
    batch_size = max(1, _BLOCK_SIZE // game.utility.n_points)
    for batch in gen_batches(len(masks), batch_size):
        weights = masks[batch].astype(float)
        values[batch] = game.utility.exact_values(
            game.model, weights @ counts, weights @ statistics
        )
    values[~masks.any(axis=1)] = 0.0
    return values


def covering_error(values, draws):
    """Half the distance from values (n,) within which 95 % of draws (n_draws, n) are.

    Of normal draws around the values it is their standard deviation.
    """
    return 0.5 * np.quantile(np.abs(draws - values), _COVERED, axis=0)


def _draw_parameters(particles, common_loglik, n_draws, rng):
    """Parameters of each party in each draw, (n_draws, n_parties, d)."""
    n_parties = particles.loglik.shape[1]
    agrees = _draw_agreement(particles, common_loglik, n_draws, rng)
    indices = np.empty((n_draws, n_parties), dtype=np.int64)
    for i in range(n_parties):
        indices[:, i] = _draw_particles(particles, particles.loglik[:, i], n_draws, rng)

    # Draws in which the same parties agree have one common posterior.
    patterns, numbers = np.unique(agrees, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        draws = np.flatnonzero(numbers.ravel() == number)
        row = particles.loglik @ pattern.astype(float) + common_loglik
        common = _draw_particles(particles, row, len(draws), rng)
        indices[draws] = np.where(pattern, common[:, None], indices[draws])
    return particles.phi[indices]


def _draw_particles(particles, row, n_draws, rng):
    """Indices (n_draws,) of particles from the posterior of log-likelihood `row`."""
    weights = particles.weights(row)
    return rng.choice(len(weights), size=n_draws, p=weights)


def _draw_agreement(particles, common_loglik, n_draws, rng):
    """Which parties have the common parameters, (n_draws, n_parties), by Gibbs steps.

    Given which others agree, the odds that a party does are the evidence of all of them
    together over the product of that of the others and its own.
    """
    loglik = particles.loglik
    log_common = particles.log_base + common_loglik
    log_prior = particles.log_base
    if len(loglik) > _MAX_PARTICLES:
        kept = rng.choice(len(loglik), _MAX_PARTICLES, replace=False)
        loglik = loglik[kept]
        log_common = log_common[kept]
        log_prior = log_prior[kept]
    log_own = logsumexp(loglik + log_prior[:, None], axis=0) - logsumexp(log_prior)

    n_parties = loglik.shape[1]
    agrees = np.ones((n_draws, n_parties), dtype=bool)
    known_odds = {}
    for _ in range(_N_SWEEPS):
        for i in range(n_parties):
            others = agrees.copy()
            others[:, i] = False
            patterns, numbers = np.unique(others, axis=0, return_inverse=True)
            keys = [(i, pattern.tobytes()) for pattern in patterns]

            # Evidence of sets of parties that no draw had before, all at once.
            is_new = np.array([key not in known_odds for key in keys])
            rows = patterns[is_new].astype(float) @ loglik.T + log_common
            together = logsumexp(rows + loglik[:, i], axis=1) - logsumexp(rows, axis=1)
            new_keys = [key for key in keys if key not in known_odds]
            known_odds.update(zip(new_keys, together - log_own[i]))

            log_odds = np.array([known_odds[key] for key in keys])
            probabilities = expit(log_odds)[numbers.ravel()]
            agrees[:, i] = rng.random(n_draws) < probabilities
    return agrees
