"""Values of coalitions, by one of three methods: a grid, a pool of particles, or Gibbs chains."""

from typing import NamedTuple

import numpy as np

from ..models import anneal
from ._gibbs import gibbs_values
from ._pool import Pool, grid_pool, refined_pool, sampled_pool

ISLANDS = 8
_ROUNDS, _MORE_ANCHORS = 3, 8
_REFINEMENTS, _FEW_NODES = 8, 30  # of a grid, for coalitions with fewer nodes
_LEAST_ESS = 50  # least effective sample size of Gibbs chains


class Evaluation(NamedTuple):
    """Values of the coalitions of a design, and their precision."""

    values: np.ndarray  # (n_coalitions,)
    ess: np.ndarray  # (n_coalitions,), effective sample sizes
    islands: np.ndarray  # (n_coalitions, n_islands), independent estimates of the values
    pool: Pool | None  # None for Gibbs chains
    acceptance: float
    warning: str | None


def by_grid(model, releases, design):
    """Integrate a model of one parameter on a grid, refined for coalitions with too few nodes."""
    if not hasattr(model, "prior_quantile"):
        raise ValueError(
            f"method='grid' needs a model of one parameter, such as GaussianMean. Got {model!r}."
        )
    pool = grid_pool(model, releases)
    found = design.values_in(pool)
    for _ in range(_REFINEMENTS):
        weak = found[1] < _FEW_NODES
        if not weak.any():
            break
        pool = refined_pool(model, releases, pool, design.masks[weak])
        found = design.values_in(pool)
    weak, warning = found[1] < _FEW_NODES, None
    if weak.any():
        warning = (
            f"{weak.sum()} of {len(weak)} coalitions have fewer than {_FEW_NODES} nodes of the "
            "grid: their values are not accurate."
        )
    return Evaluation(*found, pool, 1.0, warning)


def by_particles(model, releases, design, n_particles, n_moves, min_ess, rng):
    """Sample the prior, each party's and all parties' posterior; value coalitions by these draws.

    Posteriors of coalitions with an effective sample size below `min_ess` are sampled as well.
    """
    n = len(releases)
    anchors = np.unique(np.concatenate([np.eye(n), np.ones((1, n))]), axis=0)[::-1]
    size = -(-n_particles // ISLANDS) * ISLANDS
    prior = model.sample_prior(2 * size, rng)
    n_moves = n_moves or (8 if prior.shape[1] <= 4 else 12)
    stages = []
    for _ in range(_ROUNDS):
        more, acceptance = anneal(model, releases, anchors, size, ISLANDS, n_moves, rng)
        stages += more
        pool = sampled_pool(model, releases, stages, prior, ISLANDS)
        found = design.values_in(pool)
        weak = np.flatnonzero(found[1] < min_ess)
        if len(weak) == 0:
            return Evaluation(*found, pool, acceptance, None)
        anchors = design.masks[weak[np.argsort(found[1][weak])][:_MORE_ANCHORS]].astype(float)
    warning = (
        f"{len(weak)} of {len(found[1])} coalitions have an effective sample size below "
        f"min_ess={min_ess:g} (the smallest is {found[1].min():.0f}): increase n_particles."
    )
    return Evaluation(*found, pool, acceptance, warning)


def by_chains(model, releases, design, n_draws, kind, rng):
    """Sample every coalition's posterior separately by Gibbs sampling, as the paper does."""
    islands, ess = gibbs_values(model, releases, design.masks, n_draws, kind, rng)
    warning = None
    if ess.min() < _LEAST_ESS:
        warning = (
            "Gibbs chains of some coalitions have mixed slowly (effective sample size "
            f"{ess.min():.0f}): use method='pool', or increase n_particles."
        )
    return Evaluation(islands.mean(axis=1), ess, islands, None, 1.0, warning)
