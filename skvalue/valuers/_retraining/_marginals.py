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
_MIN_PLAYERS = 200

# Of squared errors times work, from which on contributions are chosen: control variates
# are not in the pilot, which is itself noisy.
_ADVANTAGE = 3.0


def evaluator(game, design):
    """Function of masks that returns what `tell` of the design takes."""
    if not isinstance(design, MarginalDesign):
        return game.utility
    return partial(_contributions, MarginalGame(game), design)


def _contributions(marginal, design, masks):
    """Contributions to the coalitions of a design, and corrections, (2, m, n)."""
    game = marginal.game
    if design.full is None:  # the coalition of all players
        return game.utility(masks)
    generators = design.generators(len(masks))
    tasks = [(marginal, mask, rng) for mask, rng in zip(masks, generators)]
    answers, counts = zip(*ordered_map(_with_counts, tasks, game.n_jobs))
    n_trained, n_failed, n_one_class = np.sum(counts, axis=0).tolist()
    game.n_evaluations += n_trained
    game.n_failed += n_failed
    game.n_one_class += n_one_class
    return np.stack(answers, axis=1)


def _with_counts(marginal, mask, rng):
    """Contributions, and the counts of the models trained for them."""
    marginal = copy(marginal)  # of this task, which may run in another thread
    marginal.counts = np.zeros_like(marginal.counts)
    return contributions(marginal, mask, rng), marginal.counts


def seconds_per_model(game, design):
    """Mean seconds of the models that a block of a design trains.

    From the time of a coalition of each stratum.
    """
    marginal = MarginalGame(game)
    rng = np.random.default_rng(0)
    smallest = design.edges[:-1, None]
    masks = rng.permuted(np.arange(game.n_players) < smallest, axis=1)
    # Not timed: first calls take imports, and the first use of memory.
    for mask in masks[[1, -1]]:
        contributions(marginal, mask, rng)

    seconds = 0.0
    for mask, n_pairs in zip(masks, design.pairs):
        start = perf_counter()
        contributions(marginal, mask, rng)
        seconds += 2 * n_pairs * (perf_counter() - start)
    return seconds / design.cost


def marginals_pay(games, semivalue, limit):
    """Whether sampler="marginals" promises smaller errors than subsets at equal work.

    A few coalitions of every stratum show how much the contributions of a few players
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
    if min(game.n_players for game in games) < _MIN_PLAYERS:
        return False
    try:
        marginal = MarginalGame(games[0])
    except ValueError:  # no steps
        return False
    if not marginal.smooth:
        return False

    n = marginal.n_players
    q = size_weights(semivalue, n)
    design = MarginalDesign(q, marginal.n_trained, marginal.smooth)
    if limit is not None and limit <= 2 * design.cost:
        return False
    variances = pilot_variances(marginal, design)
    if limit is not None:
        work = design.cost
        work_of_utility = 1
    else:
        work = variances.work
        _, work_of_utility = marginal.work(n // 2)
    of_contributions = _ADVANTAGE * variances.contributions * work
    return bool(of_contributions < variances.utilities * work_of_utility)
