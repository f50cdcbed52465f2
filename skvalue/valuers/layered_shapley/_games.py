"""The games of a valuer's splits, and the coalitions that are planned for them.

`valuer` is an object with the parameters of `LayeredShapleyValuer`: one, or a copy in
which those that a private fit chose are set.
"""

import numpy as np
from sklearn.utils import Bunch

from ..._utils.fits import unfitted_copy
from ...estimation import default_evaluations, plan_layers
from ...games import StableLogisticGame
from ...samplers import layer_counts
from .._retraining._base import expected_cost
from .._retraining._games import make_game as model_game
from .._retraining._games import n_workers
from ._bounds import marginal_bounds


def with_parameters(valuer, **parameters):
    """A copy of a valuer with other parameters, apart from later changes of it."""
    other = unfitted_copy(valuer)
    vars(other).update(parameters)
    return other


def make_game(valuer, problem, X, y, points, groups=None):
    """The game of rows X, with codes of classes or targets y, at validation points."""
    if valuer.l2 is None:
        rows = Bunch(X=X, y=problem.labels(y), weights=None, groups=groups)
        return model_game(valuer, problem, rows, points)
    if groups is not None:
        _, groups = np.unique(groups, return_inverse=True)
    return StableLogisticGame(
        X,
        y,
        points.X,
        points.y,
        l2=valuer.l2,
        max_norm=valuer.max_norm,
        fit_intercept=valuer.fit_intercept,
        sample_weight_val=points.weights,
        groups=groups,
        loss="validation" if valuer.scoring is None else "training",
        n_jobs=valuer.n_jobs,
    )


def game_of(valuer, problem, split):
    """The game of one split; players are groups, if there are any."""
    X, y = problem.rows(split)
    groups = None if problem.groups is None else problem.groups[split.players]
    return make_game(valuer, problem, X, y, split.points, groups)


def players_of(problem, split):
    """Numbers of the players of a split among all players."""
    if problem.groups is None:
        return problem.row_numbers(split)
    return np.unique(problem.groups[split.players])


def random_streams(seed, number):
    """Independent random generators of one split, by keys that are integers >= 0."""

    def generator(*key):
        spawn_key = (number, *(i + 1 for i in key))
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=spawn_key))

    return generator


def plan_of(valuer, game, shape, n_games):
    """The plan of one of ``n_games`` games, of rows of a shape."""
    n = game.n_players
    tol = valuer.tol
    limit = valuer.max_evaluations
    if tol is None and limit is None:
        limit = default_evaluations(n, *shape)

    # Without tol, counts are proportions.
    bounds, _ = marginal_bounds(valuer, n)
    counts = layer_counts(bounds, tol or 1.0, valuer.confidence, valuer.allocation)
    plan = plan_layers(valuer.design, n, counts)
    if limit is not None and (tol is None or plan.cost > limit // n_games):
        plan = plan_layers(valuer.design, n, counts, max_evaluations=limit // n_games)
    if valuer.max_time is None:
        return plan

    seconds = seconds_per_coalition(game, plan) / n_workers(game)
    n_in_time = int(valuer.max_time / n_games / seconds)
    if n_in_time < plan.cost:
        plan = plan_layers(valuer.design, n, counts, max_evaluations=n_in_time)
    return plan


def seconds_per_coalition(game, plan):
    """Seconds per coalition of a plan for one worker, measured at typical sizes."""
    sizes = [max(1, min(size, game.n_players)) for size in plan.typical_sizes]
    return float(np.mean([game.evaluation_cost(size) for size in sizes]))


def cost_of(valuer, problem, plan=None, count=None):
    """Cost of ``count`` coalitions of a plan, or of all that an exact fit plans."""
    games = [game_of(valuer, problem, split) for split in problem.splits]
    if plan is None:
        plans = [plan_of(valuer, game, problem.shape, len(games)) for game in games]
        plan = plans[0]
        count = sum(plan.cost for plan in plans)
    seconds = seconds_per_coalition(games[0], plan)
    return expected_cost(
        problem, seconds, int(count), games[0].solver, n_workers(games[0])
    )
