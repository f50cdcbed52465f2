"""Ways to make a posterior of a given value, smaller than that of the posterior of all
parties."""

from functools import partial

import numpy as np
from scipy.special import logsumexp

from ..models import bind, loglik_table
from ._particles import Particles, likelihoods

_TAUS = np.geomspace(1e-3, 1e5, 33)
_MOST_PARTICLES = 6000  # for the search over tau


# Both yield, for each target: the power or the noise, the log-likelihood of every
# particle, and the log-likelihoods as functions, with the powers to draw with.


def tempered(game, targets, grand_value, rng):
    """Raise the likelihood to a power in [0, 1]; surprise provably increases with it.

    A predictive value may not: the first crossing of the target on a grid of powers is
    taken.
    """
    whole, value_of = game.particles.loglik.sum(axis=1), game.utility.on(game.particles)
    logliks = likelihoods(game.model, game.releases)

    def minus_value(kappa):
        return -value_of(kappa * whole[None])[0][0]

    for target in targets:
        kappa = float(target > 0)
        if 0 < target < grand_value:
            kappa = first_crossing(minus_value, -target, game.utility.powers, 60)
        yield kappa, kappa * whole, logliks, np.full(len(logliks), kappa)


def noisy(game, targets, grand_value, rng):
    """Add noise to all releases; the first crossing of the target on a grid is
    taken."""
    particles = game.particles
    thin = _thinned(particles, rng)
    of_thin, of_all = game.utility.on(thin), game.utility.on(particles)
    for target in targets:
        units = [rng.standard_normal(len(r.statistic)) for r in game.releases]
        if target <= 0:
            yield np.inf, np.zeros(len(particles.phi)), [], np.zeros(0)
            continue
        tau = 0.0
        if target < grand_value:
            value = partial(_value_at, game=game, units=units)
            roughly = partial(value, phi=thin.phi, value_of=of_thin)
            tau = first_crossing(roughly, target, _TAUS, 12)
            value = partial(value, phi=particles.phi, value_of=of_all)
            tau = _bisect(value, target, tau / 1.5, tau * 1.5, 12)
        loglik = _with_noise(game, tau, units)
        row = loglik(particles.phi)
        yield tau, row - row.max(), [loglik], np.ones(1)


def _with_noise(game, tau, units):
    """The log-likelihood of all releases with more noise, as a function of phi."""
    noisier = [r.with_noise(tau, u) if tau else r for r, u in zip(game.releases, units)]
    logliks = likelihoods(bind(game.model, noisier), noisier)
    return lambda phi: loglik_table(logliks, phi).sum(axis=1)


def _value_at(tau, game, units, phi, value_of):
    row = _with_noise(game, tau, units)(phi)
    return value_of((row - row.max())[None])[0][0]


def _thinned(particles, rng):
    """At most `_MOST_PARTICLES` of the particles, as one replicate, for the search over
    tau."""
    keep = slice(None)
    if len(particles.phi) > _MOST_PARTICLES:
        keep = np.sort(rng.choice(len(particles.phi), _MOST_PARTICLES, replace=False))
    log_base = particles.log_base[keep]
    return Particles(
        particles.phi[keep], particles.loglik[keep], log_base - logsumexp(log_base)
    )


def first_crossing(value, target, grid, steps):
    """Where a value first falls to the target: bracketed on a grid from 0, then
    bisected."""
    low = 0.0
    for high in grid:
        if value(high) <= target:
            return _bisect(value, target, low, high, steps)
        low = high
    return float(grid[-1])


def _bisect(value, target, low, high, steps):
    for _ in range(steps):
        middle = 0.5 * (low + high) if low == 0 else np.sqrt(low * high)
        low, high = (middle, high) if value(middle) > target else (low, middle)
    return float(0.5 * (low + high))
