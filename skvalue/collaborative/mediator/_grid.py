"""Nodes of a grid as particles, for a model of one parameter."""

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import gen_batches

from ..models import loglik_table
from ._particles import Particles
from ._utilities import Surprise, evaluate

_MAX_WIDENINGS = 60  # doublings of the range
_MAX_REFINEMENTS = 8  # for coalitions with too few nodes
_MIN_NODES = 30  # effective nodes of a coalition
_FIRST_NODES = 4001
_POWER = 1 / 3  # of the densities that nodes follow, so that tails have enough nodes
_BLOCK_SIZE = 64  # coalitions
_MAX_NEW_NODES = 20_000  # of a refinement


def grid_particles(model, logliks, design):
    """Integrate a model of one parameter on a grid.

    The grid is refined for coalitions with too few nodes. Returns as `sample_particles`
    does.
    """
    particles = _nodes(model, logliks, _first_nodes(model, logliks))
    for refinement in range(_MAX_REFINEMENTS + 1):
        surprises = evaluate(Surprise(), particles, design.masks)
        is_weak = surprises.ess < _MIN_NODES
        if not is_weak.any():
            return particles, surprises, None
        if refinement < _MAX_REFINEMENTS:
            phi = _refined_nodes(particles, design.masks[is_weak])
            particles = _nodes(model, logliks, phi)
    warning = (
        f"{is_weak.sum()} of {len(is_weak)} coalitions have fewer than {_MIN_NODES} "
        "nodes of the grid: their values are not accurate."
    )
    return particles, surprises, warning


def _first_nodes(model, logliks):
    """Nodes, dense where the prior, a party's or all parties' posterior has mass."""
    ends = model.prior_quantile(np.array([1e-12, 1 - 1e-12]))
    for _ in range(_MAX_WIDENINGS):
        # Where a posterior has far more mass at an end than the prior, the grid is too
        # short.
        end_masses = _node_masses(model, logliks, np.linspace(*ends, 501))[[0, -1]]
        is_cut = end_masses[:, 1:].max(axis=1) > 10 * end_masses[:, 0] + 1e-10
        if not is_cut.any():
            break
        ends = ends + is_cut * np.array([-1, 1]) * (ends[1] - ends[0])

    phi = np.linspace(*ends, _FIRST_NODES)
    for _ in range(3):
        masses = _node_masses(model, logliks, phi, _POWER).mean(axis=1)
        phi = _denser_nodes(phi, masses, n_new=_FIRST_NODES, n_kept=_FIRST_NODES)
    return phi


def _node_masses(model, logliks, phi, power=1.0):
    """Mass of each node (J,) under each of several distributions: (J, n_parties + 2).

    They are the prior, each party's posterior, and the posterior of all parties.
    Densities are raised to `power`: below 1, tails get more weight.
    """
    loglik = loglik_table(logliks, phi[:, None])
    logs = np.column_stack([np.zeros(len(phi)), loglik, loglik.sum(axis=1)])
    logs += model.log_prior(phi[:, None])[:, None]
    logs = power * logs + np.log(np.gradient(phi))[:, None]
    return np.exp(logs - logsumexp(logs, axis=0))


def _refined_nodes(particles, coalitions):
    """The nodes of a grid, and more where posteriors of coalitions have mass.

    Where parties disagree, the posteriors of `coalitions` (m, n_parties) differ from
    those that the first grid was made for.
    """
    phi = particles.phi[:, 0]
    widths = np.log(np.gradient(phi))
    masses = 0.0
    for block in gen_batches(len(coalitions), _BLOCK_SIZE):
        rows = coalitions[block].astype(float) @ particles.loglik.T + particles.log_base
        rows = _POWER * (rows - widths) + widths
        block_masses = np.exp(rows - logsumexp(rows, axis=1, keepdims=True))
        masses = masses + block_masses.sum(axis=0)
    n_new = min(_MAX_NEW_NODES, 100 * len(coalitions))
    return _denser_nodes(phi, masses / len(coalitions), n_new=n_new, n_kept=len(phi))


def _denser_nodes(phi, masses, *, n_new, n_kept):
    """At least `n_kept` of the nodes, and `n_new` more where their masses are large."""
    cumulative = np.concatenate([[0.0], np.cumsum(masses)[:-1] + masses[1:] * 0.5])
    nodes = np.interp(np.linspace(0, 1, n_new), cumulative, phi)
    return np.unique(np.concatenate([phi[:: max(1, len(phi) // n_kept)], nodes]))


def _nodes(model, logliks, phi):
    """Nodes (J,) of a grid as particles."""
    loglik = loglik_table(logliks, phi[:, None])
    loglik -= loglik.max(axis=0)
    log_base = model.log_prior(phi[:, None]) + np.log(np.gradient(phi))
    return Particles(phi[:, None], loglik, log_base - logsumexp(log_base))
