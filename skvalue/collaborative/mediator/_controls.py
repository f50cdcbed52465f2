"""Ways to make a posterior of a given value, smaller than that of the posterior of all parties."""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from ..models import bind, loglik_table
from ._particles import Particles, likelihoods

_TAUS = np.geomspace(1e-3, 1e5, 33)
_MOST_PARTICLES = 6000  # for the search over tau


class Rewards(NamedTuple):
    """How each party's posterior was made, its value and its draws."""

    setting: dict  # fitted attribute `temper_` or `tau_`
    attained: np.ndarray
    similarity: np.ndarray
    samples: list
    weak: list  # indices of the parties with few effective draws


def tempered(game, targets, grand_value, n_draws, min_ess, rng):
    """Raise the likelihood to a power in [0, 1]; surprise provably increases with it.

    A predictive value may not: the first crossing of the target on a grid of powers is taken.
    """
    particles, powers = game.particles, np.ones(len(game.releases))
    whole, values_of = particles.loglik @ powers, game.utility.on(particles)
    logliks = likelihoods(game.model, game.releases)

    def value_at(kappa):
        return values_of(kappa * whole[None])[0][0]

    kappas, attained, similarity, samples = [], [], [], []
    for target in targets:
        kappa = 1.0
        if target < grand_value:
            kappa = _power(value_at, target, game.utility.powers) if target > 0 else 0.0
        kappas.append(kappa)
        value = grand_value if kappa == 1 else value_at(kappa)
        attained.append(value if kappa else 0.0)
        away = particles.divergence_between(whole, kappa * whole) if kappa < 1 else 0.0
        similarity.append(0.0 - away)
        row = particles.loglik @ (kappa * powers)
        draws = particles.draw(game.model, logliks, kappa * powers, row, n_draws, rng)
        samples.append(draws)
    setting = {"temper_": np.array(kappas)}
    return Rewards(setting, np.array(attained, dtype=float), np.array(similarity), samples, [])


def noisy(game, targets, grand_value, n_draws, min_ess, rng):
    """Add noise to all releases; the first crossing of the target on a grid is taken."""
    model, particles = game.model, game.particles
    thin = _thinned(particles, rng)
    whole = particles.loglik.sum(axis=1)
    of_thin, of_all = game.utility.on(thin), game.utility.on(particles)
    taus, attained, similarity, samples, weak = [], [], [], [], []
    for i, target in enumerate(targets):
        units = [rng.standard_normal(len(r.statistic)) for r in game.releases]

        def loglik_at(tau, units=units):
            noisier = [r.with_noise(tau, u) if tau else r for r, u in zip(game.releases, units)]
            return _loglik_of_all(bind(model, noisier), noisier)

        def value(tau, values_of, some, loglik_at=loglik_at):
            row = loglik_at(tau)(some.phi)
            return float(values_of((row - row.max())[None])[0][0])

        tau = 0.0
        if target <= 0:
            tau = np.inf
        elif target < grand_value:
            tau = first_crossing(lambda t: value(t, of_thin, thin), target)
            tau = _bisect(lambda t: value(t, of_all, particles), target, tau / 1.5, tau * 1.5, 12)
        taus.append(tau)
        if not np.isfinite(tau):
            attained.append(0.0)
            similarity.append(-particles.divergence_between(whole, 0 * whole))
            samples.append(model.sample_prior(n_draws, rng))
            continue
        loglik = loglik_at(tau)
        row = loglik(particles.phi)
        row -= row.max()
        weights = particles.weights(row)
        if 1 / (weights @ weights) < min_ess and tau > 0:
            weak.append(i)
        attained.append(grand_value if tau == 0 else float(of_all(row[None])[0][0]))
        # Without noise only the order of the sum differs: set the distance to 0, not to rounding.
        similarity.append(0.0 - particles.divergence_between(whole, row) if tau > 0 else 0.0)
        samples.append(particles.draw(model, [loglik], np.ones(1), row, n_draws, rng))
    setting = {"tau_": np.array(taus)}
    return Rewards(setting, np.array(attained), np.array(similarity), samples, weak)


def _loglik_of_all(model, releases):
    """The log-likelihood of all releases together, as a function of phi."""
    logliks = likelihoods(model, releases)
    return lambda phi: loglik_table(logliks, phi).sum(axis=1)


def _thinned(particles, rng):
    """At most `_MOST_PARTICLES` of the particles, as one replicate, for the search over tau."""
    keep = slice(None)
    if len(particles.phi) > _MOST_PARTICLES:
        keep = np.sort(rng.choice(len(particles.phi), _MOST_PARTICLES, replace=False))
    log_base = particles.log_base[keep]
    return Particles(particles.phi[keep], particles.loglik[keep], log_base - logsumexp(log_base))


def first_crossing(value, target):
    """The tau at which the value first falls to the target: bracketed on a grid, then bisected."""
    low = 0.0
    for high in _TAUS:
        if value(high) <= target:
            break
        low = high
    else:
        return float(_TAUS[-1])
    return _bisect(value, target, low, high, 12)


def _power(value, target, grid):
    """The least power at which the value reaches the target, on a grid that ends at 1; bisected."""
    low = 0.0
    for high in grid:
        if value(high) > target:
            break
        low = high
    else:
        return 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if value(middle) < target else (low, middle)
    return 0.5 * (low + high)


def _bisect(value, target, low, high, steps):
    for _ in range(steps):
        middle = 0.5 * (low + high) if low == 0 else np.sqrt(low * high)
        low, high = (middle, high) if value(middle) > target else (low, middle)
    return float(0.5 * (low + high))
