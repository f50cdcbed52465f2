"""Posteriors of a given value that is smaller than that of all parties.

A control makes them by tempering the likelihood, by scaling the statistics or by adding
noise to the releases. Its method `control` takes a target value.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from ..models import bind, loglik_table
from ._particles import Particles, TemperedPosterior, likelihoods

_TAUS = np.geomspace(1e-3, 1e5, 33)
_SHRINKAGES = np.geomspace(1e-3, 1e8, 34)  # of scales 1 / (1 + shrinkage)
_MAX_SEARCH_PARTICLES = 6000  # for the search over tau


class ControlledPosterior(NamedTuple):
    """A posterior of a target value, and the power, scale or noise that makes it."""

    setting: float
    posterior: TemperedPosterior


class TemperingControl:
    """Raises the likelihood to a power in [0, 1]; surprise increases with it.

    A predictive value may not: the first crossing of the target on a grid of powers is
    taken.
    """

    def __init__(self, game, grand_value):
        self.grand_value = grand_value
        self.grand_row = game.particles.loglik.sum(axis=1)
        self.value_of = game.utility.bind(game.particles)
        self.power_grid = game.utility.power_grid
        self.logliks = likelihoods(game.model, game.releases)

    def control(self, target):
        """The `ControlledPosterior` of a target value."""
        if target <= 0:
            kappa = 0.0
        elif target < self.grand_value:
            # Minus the value decreases as the power increases.
            kappa = first_crossing(self._minus_value, -target, self.power_grid, 60)
        else:
            kappa = 1.0
        posterior = TemperedPosterior(
            row=kappa * self.grand_row,
            logliks=self.logliks,
            powers=np.full(len(self.logliks), kappa),
        )
        return ControlledPosterior(kappa, posterior)

    def _minus_value(self, kappa):
        return -self.value_of(kappa * self.grand_row[None]).values[0]


class ScaledControl:
    """Scales statistics, numbers of rows and noise; the first crossing is taken.

    The likelihood of the exact statistics is raised to a power, before noise is taken
    into account: Section 5.2 and Appendix E.3 of the paper. The search goes from the
    posterior of all parties (a shrinkage of 0) towards the prior.
    """

    def __init__(self, game, grand_value):
        if not hasattr(game.model, "scaled_loglik"):
            raise ValueError(
                "control must not be 'scaled' for a model without a method "
                f"scaled_loglik(phi, release, scale), such as {type(game.model)}."
            )
        self.game = game
        self.grand_value = grand_value
        self.value_of = game.utility.bind(game.particles)

    def control(self, target):
        """The `ControlledPosterior` of a target value."""
        phi = self.game.particles.phi
        if target <= 0:
            prior = TemperedPosterior(np.zeros(len(phi)), [], np.zeros(0))
            return ControlledPosterior(0.0, prior)
        shrinkage = 0.0
        if target < self.grand_value:
            shrinkage = first_crossing(self._value_at, target, _SHRINKAGES, 20)
        loglik = self._scaled_loglik(shrinkage)
        row = loglik(phi)
        posterior = TemperedPosterior(row - row.max(), [loglik], np.ones(1))
        return ControlledPosterior(1 / (1 + shrinkage), posterior)

    def _scaled_loglik(self, shrinkage):
        """The log-likelihood of all scaled releases, as a function of phi."""
        model = self.game.model
        scale = 1 / (1 + shrinkage)
        logliks = [
            lambda phi, r=release: model.scaled_loglik(phi, r, scale)
            for release in self.game.releases
        ]
        return lambda phi: loglik_table(logliks, phi).sum(axis=1)

    def _value_at(self, shrinkage):
        row = self._scaled_loglik(shrinkage)(self.game.particles.phi)
        return self.value_of((row - row.max())[None]).values[0]


class NoiseControl:
    """Adds noise to all releases; the first crossing of the target is taken."""

    def __init__(self, game, grand_value, rng):
        self.game = game
        self.grand_value = grand_value
        self.rng = rng
        self.search_particles = _thinned(game.particles, rng)
        self.search_value = game.utility.bind(self.search_particles)
        self.value = game.utility.bind(game.particles)

    def control(self, target):
        """The `ControlledPosterior` of a target value."""
        game = self.game
        phi = game.particles.phi
        units = [
            self.rng.standard_normal(len(release.statistic))
            for release in game.releases
        ]
        if target <= 0:
            prior = TemperedPosterior(np.zeros(len(phi)), [], np.zeros(0))
            return ControlledPosterior(np.inf, prior)

        tau = 0.0
        if target < self.grand_value:
            # A search with fewer particles, then a finer one around its result.
            value = partial(_value_at, game=game, units=units)
            rough_value = partial(
                value, phi=self.search_particles.phi, value_of=self.search_value
            )
            tau = first_crossing(rough_value, target, _TAUS, 12)
            full_value = partial(value, phi=phi, value_of=self.value)
            tau = _bisect(full_value, target, tau / 1.5, tau * 1.5, 12)
        loglik = _noisier_loglik(game, tau, units)
        row = loglik(phi)
        posterior = TemperedPosterior(row - row.max(), [loglik], np.ones(1))
        return ControlledPosterior(tau, posterior)


def _noisier_loglik(game, tau, units):
    """The log-likelihood of all releases with more noise, as a function of phi."""
    releases = game.releases
    if tau:
        releases = [
            release.with_noise(tau, unit) for release, unit in zip(releases, units)
        ]
    logliks = likelihoods(bind(game.model, releases), releases)
    return lambda phi: loglik_table(logliks, phi).sum(axis=1)


def _value_at(tau, game, units, phi, value_of):
    row = _noisier_loglik(game, tau, units)(phi)
    return value_of((row - row.max())[None]).values[0]


def _thinned(particles, rng):
    """At most `_MAX_SEARCH_PARTICLES` of the particles, as one replicate."""
    n_particles = len(particles.phi)
    kept = slice(None)
    if n_particles > _MAX_SEARCH_PARTICLES:
        kept = np.sort(rng.choice(n_particles, _MAX_SEARCH_PARTICLES, replace=False))
    log_base = particles.log_base[kept]
    return Particles(
        particles.phi[kept], particles.loglik[kept], log_base - logsumexp(log_base)
    )


def first_crossing(value, target, grid, n_steps):
    """Where a value first falls to the target: on a grid from 0, then by bisection."""
    low = 0.0
    for high in grid:
        if value(high) <= target:
            return _bisect(value, target, low, high, n_steps)
        low = high
    return float(grid[-1])


def _bisect(value, target, low, high, n_steps):
    """Where a value falls to the target between `low` and `high`, on a log scale."""
    for _ in range(n_steps):
        middle = 0.5 * (low + high) if low == 0 else np.sqrt(low * high)
        if value(middle) > target:
            low = middle
        else:
            high = middle
    return float(0.5 * (low + high))
