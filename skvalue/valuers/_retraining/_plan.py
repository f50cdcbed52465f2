"""What a fit by retraining will do, made from a problem before any coalition is evaluated."""

from dataclasses import dataclass

import numpy as np
from joblib import effective_n_jobs
from sklearn.linear_model import LogisticRegression, Ridge

from ..._utils.hashing import fingerprint
from ...estimation import OrderDesign, Run
from ...games import ModelGame

_SEGMENT = 64  # coalitions of a question to a game that fits one by one, at least


@dataclass(frozen=True, eq=False)
class Sampled:
    """A run, and what tells it from others: what a fit leaves behind."""

    run: Run
    sampler: str
    header: dict  # name -> array

    @property
    def arrays(self):
        """Name -> array of everything needed to resume."""
        return {**self.header, **self.run.arrays()}


@dataclass(frozen=True, eq=False)
class Plan:
    """A run that may begin, and the games that it asks."""

    run: Run
    games: list
    sampler: str
    header: dict

    @property
    def sampled(self):
        """What the run has found so far."""
        failed = self.header["n_failed"] + sum(game.n_failed for game in self.games)
        return Sampled(self.run, self.sampler, {**self.header, "n_failed": failed})

    def cost(self, n_jobs):
        """Seconds that a coalition takes one worker, and the number of workers."""
        game, design = self.games[0], self.run.designs[0]
        seconds = game.evaluation_cost(nested=isinstance(design, OrderDesign))
        return seconds, effective_n_jobs(n_jobs) if game.solver == "loop" else 1


def default_estimator(problem):
    """The estimator where the user gives none."""
    return LogisticRegression() if problem.n_classes else Ridge()


def make_games(problem, estimator, **options):
    """The game of each split, and the numbers of its players among all."""
    games, players = [], []
    for split in problem.splits:
        rows, points = problem.row_numbers(split), split.points
        weights, groups = problem.sample_weight, problem.groups
        X, y = problem.rows(split)
        game = ModelGame(
            estimator, X, problem.labels(y), points.X, problem.labels(points.y),
            sample_weight=None if weights is None else weights[rows],
            sample_weight_val=points.weights,
            groups=None if groups is None else groups[rows], random_state=0, **options,
        )  # fmt: skip
        games.append(game)
        players.append(rows if groups is None else game.groups_)
    return games, players


def question_size(game):
    """Options of a design for what can be asked of a game at once."""
    if game.solver != "loop":
        return {}
    return {"size": max(_SEGMENT, 16 * effective_n_jobs(game.n_jobs))}


def mark_of(problem, *settings):
    """Fingerprint of a problem and of settings."""
    points = [
        (None if isinstance(split.players, slice) else split.players, split.points.X,
         split.points.y, split.points.weights)
        for split in problem.splits
    ]  # fmt: skip
    labels = problem.labels(problem.y)
    weights, groups = problem.sample_weight, problem.groups
    return np.array(fingerprint(problem.X, labels, weights, groups, points, *settings))


def refuse_few(run, sampler, max_evaluations):
    """Refuse a number of coalitions that does not allow one replicate in every game."""
    designs = run.designs
    costs = [1 + (design.total if design.exact else design.cost) for design in designs]
    least = len(designs) * max(costs)
    if max_evaluations < least:
        games = "" if len(designs) == 1 else f" in each of {len(designs)} splits"
        raise ValueError(
            f"max_evaluations must be at least {least} for sampler={sampler!r} and "
            f"{max(design.n for design in designs)} players{games}. Got {max_evaluations}."
        )
