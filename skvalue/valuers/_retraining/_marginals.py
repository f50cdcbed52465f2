"""Contributions of all players to the coalitions of a design, from few fits of each."""

from copy import copy
from functools import partial
from time import perf_counter

import numpy as np

from ..._utils.parallel import ordered_map
from ...estimation import MarginalDesign, contributions, pilot_variances
from ...games import MarginalGame
from ...semivalues import size_weights

BLOCKS = 4  # of coalitions, in a fit without limits or `tol`
_FEWEST_PLAYERS = 200
# Of squared errors times work: control variates are not in the pilot, which is itself
# noisy.
_ADVANTAGE = 3.0


def evaluator(game, design):
    """The function that returns what a design is told of its masks."""
    if not isinstance(design, MarginalDesign):
        return game.utility
    return partial(_contributions, MarginalGame(game), design)


def _contributions(game, design, masks):
    if design.full is None:
        return game.game.utility(masks)
    tasks = [
        (game, mask, rng) for mask, rng in zip(masks, design.generators(len(masks)))
    ]
    answers, counts = zip(*ordered_map(_counted, tasks, game.game.n_jobs))
    trained, failed, one_class = np.sum(counts, axis=0).tolist()
    game.game.n_evaluations += trained
    game.game.n_failed += failed
    game.game.n_one_class += one_class
    return np.stack(answers, axis=1)


def _counted(game, mask, rng):
    """Contributions, and the counts of the models trained for them."""
    game = copy(game)  # of this task, which may run in another thread
    game.counts = np.zeros_like(game.counts)
    return contributions(game, mask, rng), game.counts


def seconds_per_model(game, design):
    """Mean seconds of the models that a block of a design trains, from a coalition a
    stratum."""
    game, rng, seconds = MarginalGame(game), np.random.default_rng(0), 0.0
    masks = rng.permuted(np.arange(game.n_players) < design.edges[:-1, None], axis=1)
    for mask in masks[[1, -1]]:  # compilation and imports
        contributions(game, mask, rng)
    for mask, pairs in zip(masks, design.pairs):
        start = perf_counter()
        contributions(game, mask, rng)
        seconds += 2 * pairs * (perf_counter() - start)
    return seconds / design.cost


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
    ours, theirs, work = pilot_variances(marginal, design)
    if limit is not None:
        return bool(_ADVANTAGE * ours * design.cost < theirs)
    return bool(_ADVANTAGE * ours * work < theirs * marginal.work(n // 2)[1])
