"""What a few coalitions tell of the precision of contributions, and of utilities."""

from typing import NamedTuple

import numpy as np

from ..._utils.parallel import one_thread
from ._corrections import draw_players

_N_COALITIONS = 4  # of every stratum
_N_PLAYERS = 64  # trained with a small coalition
_N_FEW_PLAYERS = 8  # trained with a large one


class PilotVariances(NamedTuple):
    """Variances of a value to expect, means over players.

    Parameters
    ----------
    contributions : float
        Variance after one block of a design.
    utilities : float
        Variance of a value from utilities of subsets, times their number.
    work : float
        Operations of a block.
    """

    contributions: float
    utilities: float
    work: float


def pilot_variances(game, design):
    """Estimate variances from a few coalitions of each stratum of a design.

    Parameters
    ----------
    game : MarginalGame
        The game.
    design : MarginalDesign
        A design of its contributions.

    Returns
    -------
    variances : PilotVariances
        The estimates, which are themselves noisy.
    """
    n = game.n_players
    rng = np.random.default_rng(0)
    variance = 0.0
    work = 0.0
    std = 0.0  # of a value from one utility
    with one_thread():
        for stratum, (mass, n_pairs) in enumerate(zip(design.mass, design.pairs)):
            first, last = design.edges[stratum : stratum + 2]
            p = design.probabilities[first:last]
            sizes = rng.choice(np.arange(first, last), _N_COALITIONS, p=p / p.sum())
            masks = rng.permuted(np.arange(n) < sizes[:, None], axis=1)
            of_coalition = _variance(game, design, masks, rng)
            variance += mass**2 * of_coalition / (2 * n_pairs)
            work += 2 * n_pairs * np.mean([game.work(size)[0] for size in sizes])

            # Values are differences of the mean utilities with and without a player, of
            # a fraction of the coalitions each. Neyman's rule adds standard deviations.
            fraction = np.clip(sizes.mean() / n, 1 / n, 1 - 1 / n)
            spread = game.utilities(masks).var(ddof=1) / (fraction * (1 - fraction))
            std += mass * np.sqrt(spread)
    return PilotVariances(contributions=variance, utilities=std**2, work=work)


def _variance(game, design, masks, rng):
    """Variance of what a coalition of a stratum tells of a value."""
    takes_steps = game.n_trained[masks.sum(axis=1)] < game.n_players
    n_trained = _N_FEW_PLAYERS if takes_steps.any() else _N_PLAYERS
    players = rng.permutation(game.n_players)[:n_trained]
    weights = design.weights_of(masks)
    terms = weights[:, players] * [game.trained(mask, players) for mask in masks]
    if design.efficient:
        terms -= terms.mean(axis=1, keepdims=True)
    noise = [
        _correction_variance(game, mask, of_mask, rng)
        for mask, of_mask in zip(masks[takes_steps], weights[takes_steps])
    ]
    return terms.var(axis=0, ddof=1).mean() + np.sum(noise) / len(masks)


def _correction_variance(game, mask, weights, rng):
    """Variance of the corrections to a coalition, estimated from a few players."""
    steps, lengths = game.steps(mask)
    if game.exact:
        return 0.0
    n_trained = game.n_trained[mask.sum()]
    _, p = draw_players(lengths, n_trained, rng)
    players, p_here = draw_players(lengths, min(n_trained, _N_FEW_PLAYERS), rng)
    errors = weights[players] * (game.trained(mask, players) - steps[players])
    terms = errors**2 * (1 - p[players]) / (p[players] * p_here[players])
    return terms.sum() / game.n_players
