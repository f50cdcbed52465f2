"""Forecasts of the time of fits of scorers."""

import time
from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from ..._utils.parallel import one_blas_thread
from ..models import loglik_table
from ._particles import N_REPLICATES, Particles, expected_size, likelihoods
from ._release_errors import draw_exact_values, n_exact_draws
from ._utilities import Surprise, evaluate

_N_TIMED = 256  # particles at which likelihoods are timed
_N_COALITIONS = 32
_N_REPEATS = 3  # of which the shortest counts: other programs only add time
_GRID_SIZE = 8000  # nodes, of a model of one parameter


def expected_cost(bound, design, utility, *, n_particles, min_ess):
    """The `Bunch` that `estimate_cost` returns.

    Likelihoods are timed at some particles, and utilities of some coalitions with all.
    """
    rng = np.random.default_rng(0)
    model = bound.model
    logliks = likelihoods(model, bound.ordered)
    n_parties = len(logliks)
    n_coalitions = len(design.masks)
    n_parameters = model.sample_prior(1, rng).shape[1]
    if hasattr(model, "prior_quantile"):
        n_replicates = 1
        size = _GRID_SIZE
    else:
        n_replicates = N_REPLICATES
        size = expected_size(n_particles, n_parties, n_parameters, min_ess)
        size -= size % n_replicates

    # Draws from the prior take the time of any others.
    phi = model.sample_prior(size, rng)
    with one_blas_thread():
        loglik_table(logliks, phi[:_N_TIMED])
        start = time.perf_counter()
        loglik_table(logliks, phi[:_N_TIMED])
        seconds = (time.perf_counter() - start) * size / len(phi[:_N_TIMED])

    particles = Particles(
        phi=phi,
        loglik=np.zeros((size, n_parties)),
        log_base=np.full(size, -np.log(size)),
        n_replicates=n_replicates,
        log_ratio=np.full(size, np.log(n_replicates)),
    )
    utilities = [Surprise()]
    if not isinstance(utility, Surprise):
        utilities.append(utility)
    per_coalition = 0.0
    for timed in utilities:
        _seconds_of(timed, particles, 1)  # touches memory
        few = _seconds_of(timed, particles, _N_COALITIONS)
        many = _seconds_of(timed, particles, 3 * _N_COALITIONS)
        slope = max(many - few, 0.0) / (2 * _N_COALITIONS)
        seconds += max(few - _N_COALITIONS * slope, 0.0)
        per_coalition += slope
    if any(release.noise_scale for release in bound.ordered):
        if getattr(model, "has_approximate_posteriors", False):
            # A second game is sampled, to correct the approximation.
            seconds *= 2
            per_coalition *= 2
        game = TimedGame(model, bound.ordered, utility, particles)
        seconds_of_error, per_error = _cost_of_errors(game, n_coalitions)
        seconds += seconds_of_error
        per_coalition += per_error
    seconds += per_coalition * n_coalitions
    return Bunch(
        seconds=float(seconds),
        n_evaluations=n_coalitions,
        seconds_per_evaluation=float(per_coalition),
        n_players=n_parties,
    )


class TimedGame(NamedTuple):
    """What `draw_exact_values` needs of a game."""

    model: object
    releases: list
    utility: object
    particles: Particles


def _cost_of_errors(game, n_coalitions):
    """Seconds of the errors of the noise: at first, and then for each coalition."""
    # Twice: the first draws touch memory, and other programs only add time.
    timed_few = []
    timed_many = []
    for _ in range(2):
        timed_few.append(_seconds_of_errors(game, 8))
        timed_many.append(_seconds_of_errors(game, 24))
    few = min(timed_few)
    many = min(timed_many)
    slope = max(many - few, 0.0) / 16
    # Of more coalitions there are fewer draws.
    fraction = n_exact_draws(n_coalitions) / n_exact_draws(1)
    return fraction * max(few - 8 * slope, 0.0), fraction * slope


def _seconds_of_errors(game, n_coalitions):
    """Seconds in which the errors of the noise of coalitions are drawn."""
    masks = np.ones((n_coalitions, len(game.releases)), dtype=bool)
    start = time.perf_counter()
    with one_blas_thread():
        draw_exact_values(game, masks, np.random.default_rng(0))
    return time.perf_counter() - start


def _seconds_of(utility, particles, n_coalitions):
    """Seconds in which coalitions are evaluated."""
    masks = np.zeros((n_coalitions, particles.loglik.shape[1]), dtype=bool)
    seconds = []
    for _ in range(_N_REPEATS):
        start = time.perf_counter()
        evaluate(utility, particles, masks)
        seconds.append(time.perf_counter() - start)
    return min(seconds)
