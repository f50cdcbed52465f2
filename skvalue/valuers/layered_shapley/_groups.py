"""The value of several rows together, to the holder of the others."""

from math import comb

import numpy as np
from sklearn.utils import Bunch

from ..._utils.parallel import tiles
from ...estimation import ENTRIES, Utilities
from ...samplers import all_subsets, layer_counts, uniform_subsets
from ._bounds import marginal_bounds
from ._games import game_of, players_of


def value_of_players(valuer, fitted, players, tol, confidence, rng):
    """The values of players with errors of at most `tol`, and their sum.

    Coalitions are drawn anew and independently, so that Hoeffding's inequality holds
    for each value. It fails with a probability of (1 - confidence) over the number of
    values: all of them hold with the confidence, and so does that of their mean.
    """
    problem = fitted.problem
    failure = (1 - confidence) / (len(players) * len(problem.splits))
    values = np.zeros(len(players))
    n_evaluated = 0
    for split in problem.splits:
        in_split = players_of(problem, split)
        is_present = np.isin(players, in_split)
        utilities = Utilities(game_of(valuer, problem, split))
        bounds, _ = marginal_bounds(valuer, utilities.n)
        counts = layer_counts(bounds, tol, 1 - failure, valuer.allocation)
        present = np.searchsorted(in_split, players[is_present])
        in_game = _values_in_game(utilities, present, counts, rng)
        values[is_present] += in_game / len(problem.splits)
        n_evaluated += utilities.n_evaluated
    return Bunch(
        value=float(values.sum()),
        mean=float(values.mean()),
        row_values=values,
        n_evaluations=n_evaluated,
    )


def _values_in_game(utilities, players, counts, rng):
    """Values (n_players,) of players of a game, from `counts` coalitions a layer."""
    n = utilities.n
    values = utilities.of(players[:, None]) - utilities.game.empty_utility
    for k in range(1, len(counts)):
        n_drawn = max(1, int(np.ceil(counts[k])))
        n_subsets = comb(n - 1, k)
        for position, player in enumerate(players):
            if n_drawn >= n_subsets:
                others = all_subsets(n - 1, k)
                values[position] += _gains(utilities, player, others).mean()
                continue
            total = 0.0
            for block in tiles(n_drawn, max(1, ENTRIES // n)):
                others = uniform_subsets(rng, n - 1, k, block.stop - block.start)
                total += _gains(utilities, player, others).sum()
            values[position] += total / n_drawn
    return values / n


def _gains(utilities, player, subsets):
    """Contributions (m,) of a player to subsets (m, k) of the n - 1 others."""
    others = subsets + (subsets >= player)
    joined = np.column_stack([others, np.full(len(others), player)])
    return utilities.of(joined) - utilities.of(others)
