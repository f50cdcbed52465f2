"""Nodes of a grid as particles, for a model of one parameter."""

from functools import partial

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import gen_batches

from ..models import loglik_table
from ._particles import Particles
from ._utilities import evaluated, surprise

_WIDENINGS = 60  # most doublings of the range
_REFINEMENTS, _FEW_NODES = 8, 30  # for coalitions with fewer nodes
_POWER = 1 / 3  # of the densities that nodes follow, so that tails have enough nodes
_TOGETHER, _MORE_NODES = (
    64,
    20_000,
)  # coalitions per block and most new nodes of a refinement


def grid_particles(model, logliks, design):
    """Integrate a model of one parameter on a grid, refined for coalitions with too few
    nodes.

    Returns as `sample_particles` does.
    """
    particles = _nodes(model, logliks, _first_nodes(model, logliks))
    for refinement in range(_REFINEMENTS + 1):
        found = evaluated(partial(surprise, particles), particles, design.masks)
        weak = found[2] < _FEW_NODES
        if not weak.any():
            return particles, found, None
        if refinement < _REFINEMENTS:
            phi = _more_nodes(particles, design.masks[weak])
            particles = _nodes(model, logliks, phi)
    warning = (
        f"{weak.sum()} of {len(weak)} coalitions have fewer than {_FEW_NODES} nodes of the "
        "grid: their values are not accurate."
    )
    return particles, found, warning


def _first_nodes(model, logliks, size=4001):
    """Nodes, dense where the prior, a party's or all parties' posterior has mass."""
    ends = model.prior_quantile(np.array([1e-12, 1 - 1e-12]))
    for _ in range(_WIDENINGS):
        mass = _node_masses(model, logliks, np.linspace(*ends, 501))[[0, -1]]
        # Where a posterior has far more mass at an end than the prior, the grid is too
        # short.
        cut = mass[:, 1:].max(axis=1) > 10 * mass[:, 0] + 1e-10
        if not cut.any():
            break
        ends = ends + cut * np.array([-1, 1]) * (ends[1] - ends[0])
    phi = np.linspace(*ends, size)
    for _ in range(3):
        phi = _denser(
            phi, _node_masses(model, logliks, phi, _POWER).mean(axis=1), size, size
        )
    return phi


def _node_masses(model, logliks, phi, power=1.0):
    """Mass of each node under the prior, each party's posterior, and the posterior of
    all parties.

    Densities are raised to `power`: below 1, tails get more weight.
    """
    loglik = loglik_table(logliks, phi[:, None])
    logs = np.column_stack([np.zeros(len(phi)), loglik, loglik.sum(axis=1)])
    logs += model.log_prior(phi[:, None])[:, None]
    logs = power * logs + np.log(np.gradient(phi))[:, None]
    return np.exp(logs - logsumexp(logs, axis=0))


def _more_nodes(particles, coalitions):
    """The nodes of a grid, and more where the posteriors of `coalitions` (m, n_parties)
    have mass.

    Where parties disagree, these differ from the posteriors that the first grid was
    made for.
    """
    phi, mass = particles.phi[:, 0], 0.0
    widths = np.log(np.gradient(phi))
    for block in gen_batches(len(coalitions), _TOGETHER):
        rows = coalitions[block].astype(float) @ particles.loglik.T + particles.log_base
        rows = _POWER * (rows - widths) + widths
        mass = mass + np.exp(rows - logsumexp(rows, axis=1, keepdims=True)).sum(axis=0)
    size = min(_MORE_NODES, 100 * len(coalitions))
    return _denser(phi, mass / len(coalitions), size, len(phi))


def _denser(phi, weights, size, keep):
    """At least `keep` of the given nodes, and more where the weights are large."""
    places = np.concatenate([[0.0], np.cumsum(weights)[:-1] + weights[1:] * 0.5])
    nodes = np.interp(np.linspace(0, 1, size), places, phi)
    return np.unique(np.concatenate([phi[:: max(1, len(phi) // keep)], nodes]))


def _nodes(model, logliks, phi):
    """Grid nodes as particles."""
    loglik = loglik_table(logliks, phi[:, None])
    loglik -= loglik.max(axis=0)
    log_base = model.log_prior(phi[:, None]) + np.log(np.gradient(phi))
    return Particles(phi[:, None], loglik, log_base - logsumexp(log_base))
