"""Contributions of all players to the coalitions of a design, from few fits of each."""

from copy import copy
from functools import partial
from time import perf_counter

import numpy as np

from ..._utils.parallel import ordered_map
from ...estimation import MarginalDesign, corrections, draw_players
from ...games import MarginalGame

BLOCKS = 4  # of coalitions, in a fit without limits or `tol`


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


def contributions(game, mask, rng):
    """Contributions to a coalition, and their corrections, (2, n)."""
    count = game.n_trained[mask.sum()]
    if count == game.n_players:
        exact = game.trained(mask)
        return np.stack([exact, np.zeros_like(exact)])
    steps, lengths = game.steps(mask)
    if game.exact:  # the players without steps
        count = np.count_nonzero(np.isinf(lengths))
    players, probabilities = draw_players(lengths, count, rng)
    exact = game.trained(mask, players) if len(players) else np.zeros(0)
    return np.stack(corrections(steps, players, probabilities, exact))


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
