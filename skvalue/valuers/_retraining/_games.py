"""The games of a valuer that trains an estimator, and what they cost."""

from joblib import effective_n_jobs
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import Bunch

from ...estimation import BATCH, MarginalDesign, OrderDesign
from ...games import ModelGame
from ._marginals import seconds_per_model

_SEGMENT = 64  # fewest coalitions per call of a game that fits models one by one


def estimator_of(valuer, problem):
    """The estimator of a valuer, or the one used for None."""
    if valuer.estimator is not None:
        return valuer.estimator
    return LogisticRegression() if problem.n_classes else Ridge()


def training_rows(problem, split):
    """What models of a split are trained on: X, y (labels), weights and groups."""
    X, y = problem.rows(split)
    rows = problem.row_numbers(split)
    weights = problem.sample_weight
    groups = problem.groups
    return Bunch(
        X=X,
        y=problem.labels(y),
        weights=None if weights is None else weights[rows],
        groups=None if groups is None else groups[rows],
    )


def make_game(valuer, problem, rows, points):
    """The game of rows at validation points, with the parameters of a valuer.

    ``rows`` are those of `training_rows`.
    """
    return ModelGame(
        estimator_of(valuer, problem),
        rows.X,
        rows.y,
        points.X,
        problem.labels(points.y),
        sample_weight=rows.weights,
        sample_weight_val=points.weights,
        groups=rows.groups,
        random_state=0,
        scoring=valuer.scoring,
        error_score=valuer.error_score,
        empty_utility=valuer.empty_utility,
        batch=valuer.batch,
        device=valuer.device,
        n_jobs=valuer.n_jobs,
    )


def n_workers(game):
    """Number of joblib workers of a game; 1 if it trains models in batches."""
    if game.solver != "loop":
        return 1
    return effective_n_jobs(game.n_jobs)


def batch_size(game):
    """Number of coalitions that a game evaluates in one call."""
    if game.solver != "loop":
        return BATCH
    return max(_SEGMENT, 16 * n_workers(game))


def trains_one_by_one(game):
    """Whether no two models of a game are trained at the same time."""
    return game.solver == "loop" and n_workers(game) == 1


def seconds_per_coalition(design, game):
    """Seconds per coalition of a design, for one worker."""
    if isinstance(design, MarginalDesign):
        return seconds_per_model(game, design)
    return game.evaluation_cost(nested=isinstance(design, OrderDesign))
