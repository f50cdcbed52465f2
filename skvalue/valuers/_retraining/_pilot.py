"""Whether contributions of all players promise smaller errors than utilities, for the
same work."""

import numpy as np

from ..._utils.parallel import one_thread
from ...estimation import MarginalDesign, draw_players
from ...games import MarginalGame
from ...semivalues import size_weights

_FEWEST_PLAYERS = 200
_COALITIONS = 4  # of every stratum
_PLAYERS, _FEW = 64, 8  # trained with a small coalition, and with a large one
# Of squared errors times work: control variates are not in the pilot, which is itself
# noisy.
_ADVANTAGE = 3.0


def marginals_pay(games, semivalue, limit):
    """Whether sampler="marginals" promises smaller errors than subsets, for the same
    work.

    A few coalitions of every stratum tell how much the contributions of a few players
    differ between coalitions, how much those of steps are off, and how much utilities
    differ. No clock is read and no random number of a fit used, so that the same call
    has the same answer.

    Parameters
    ----------
    games : list of ModelGame
        The games, of which the first one is played.
    semivalue : str, tuple or callable
        The semivalue, see `skvalue.semivalues.check_semivalue`.
    limit : int or None
        Most models to train in each game, which then count the same; None counts
        operations, see `MarginalGame.work`.

    Returns
    -------
    pay : bool
        The answer; False for few players, if the game has no steps, and for the
        accuracy, of which the pilot, without control variates, promises too much.
    """
    if min(game.n_players for game in games) < _FEWEST_PLAYERS:
        return False
    try:
        marginal = MarginalGame(games[0])
    except ValueError:
        return False
    if not marginal.smooth:
        return False
    n = marginal.n_players
    design = MarginalDesign(
        size_weights(semivalue, n), marginal.n_trained, marginal.smooth
    )
    if limit is not None and limit <= 2 * design.cost:
        return False
    with one_thread():
        ours, theirs, work = _expected(marginal, design)
    if limit is not None:
        return bool(_ADVANTAGE * ours * design.cost < theirs)
    return bool(_ADVANTAGE * ours * work < theirs * marginal.work(n // 2)[1])


def _expected(marginal, design):
    """Variance of a block of a design, that of utilities times their number, and work
    of a block.

    Variances are means over players.
    """
    n, rng = marginal.n_players, np.random.default_rng(0)
    variance, work, root = 0.0, 0.0, 0.0
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
