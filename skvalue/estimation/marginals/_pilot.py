"""What a few coalitions tell of the precision of contributions, and of utilities."""

import numpy as np

from ..._utils.parallel import one_thread
from ._corrections import draw_players

_COALITIONS = 4  # of every stratum
_PLAYERS, _FEW = 64, 8  # trained with a small coalition, and with a large one


def pilot_variances(marginal, design):
    """Variance of a block of a design, that of utilities times their number, and work
    of a block.

    Variances are means over players.
    """
    n, rng = marginal.n_players, np.random.default_rng(0)
    variance, work, root = 0.0, 0.0, 0.0
    with one_thread():
        for stratum, (mass, pairs) in enumerate(zip(design.mass, design.pairs)):
            first, last = design.edges[stratum : stratum + 2]
            p = design.probabilities[first:last]
            sizes = rng.choice(np.arange(first, last), _COALITIONS, p=p / p.sum())
            masks = rng.permuted(np.arange(n) < sizes[:, None], axis=1)
            variance += mass**2 * _variance(marginal, design, masks, rng) / (2 * pairs)
            work += 2 * pairs * np.mean([marginal.work(size)[0] for size in sizes])
            # The mean utilities with and without a player, of a fraction of the coalitions
            # each.
            fraction = np.clip(sizes.mean() / n, 1 / n, 1 - 1 / n)
            spread = marginal.utilities(masks).var(ddof=1) / (fraction * (1 - fraction))
            root += mass * np.sqrt(spread)
    return variance, root**2, work


def _variance(marginal, design, masks, rng):
    """Variance of what coalitions of a stratum tell of a value, a mean over players."""
    stepped = marginal.n_trained[masks.sum(axis=1)] < marginal.n_players
    players = rng.permutation(marginal.n_players)[: _FEW if stepped.any() else _PLAYERS]
    weights = design.weights_of(masks)
    told = weights[:, players] * [marginal.trained(mask, players) for mask in masks]
    if design.efficient:
        told -= told.mean(axis=1, keepdims=True)
    noise = [
        _noise(marginal, mask, of_mask, rng)
        for mask, of_mask in zip(masks[stepped], weights[stepped])
    ]
    return told.var(axis=0, ddof=1).mean() + np.sum(noise) / len(masks)


def _noise(marginal, mask, weights, rng):
    """Variance of the corrections to a coalition, a mean over players, estimated from a
    few."""
    steps, lengths = marginal.steps(mask)
    if marginal.exact:
        return 0.0
    count = marginal.n_trained[mask.sum()]
    _, p = draw_players(lengths, count, rng)
    players, drawn = draw_players(lengths, min(count, _FEW), rng)
    errors = weights[players] * (marginal.trained(mask, players) - steps[players])
    p, drawn = p[players], drawn[players]
    return (errors**2 * (1 - p) / (p * drawn)).sum() / marginal.n_players
