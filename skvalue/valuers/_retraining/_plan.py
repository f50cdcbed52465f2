"""The plan of a fit by retraining, made before any coalition is evaluated."""

from dataclasses import dataclass, field

import numpy as np
from joblib import effective_n_jobs
from sklearn.linear_model import LogisticRegression, Ridge

from ..._utils.hashing import fingerprint
from ...estimation import OrderDesign, Run
from ...games import ModelGame

COUNTS = ("n_failed", "n_one_class")  # of coalitions, in the header of a fit
_SEGMENT = 64  # fewest coalitions per call of a game that fits models one by one


@dataclass(frozen=True, eq=False)
class Sampled:
    """The outcome of a fit: a run, its sampler and the metadata that identify it."""

    run: Run
    sampler: str
    header: dict  # name -> array
    solvers: tuple = ()  # of the games

    @property
    def arrays(self):
        """Name -> array of the full state needed to resume."""
        return {**self.header, **self.run.arrays()}


@dataclass(frozen=True, eq=False)
class Plan:
    """A run that has not started or resumes, and the games that evaluate its coalitions."""

    run: Run
    games: list
    sampler: str
    header: dict
    warned: dict = field(default_factory=dict)  # counts of the warnings of the estimator's fits

    @property
    def sampled(self):
        """The state of the run so far."""
        sums = {name: sum(getattr(game, name) for game in self.games) for name in COUNTS}
        header = {**self.header, **{name: self.header[name] + sums[name] for name in COUNTS}}
        return Sampled(self.run, self.sampler, header, tuple(game.solver for game in self.games))

    def cost(self, n_jobs):
        """Seconds per coalition for one worker, and the number of workers."""
        game, design = self.games[0], self.run.designs[0]
        size = game.n_players - 1 if design.leave_one_out and game.n_players > 1 else None
        seconds = game.evaluation_cost(size, nested=isinstance(design, OrderDesign))
        return seconds, effective_n_jobs(n_jobs) if game.solver == "loop" else 1


def default_estimator(problem):
    """The estimator used for `estimator=None`."""
    return LogisticRegression() if problem.n_classes else Ridge()


def make_games(problem, estimator, replaced, **options):
    """The game of each split, and the indices of its players among all players.

    ``replaced(game, X, y, weights, groups)`` returns the game to play in place of a retraining.
    """
    games, players, is_plain = [], [], problem.is_plain
    for split in problem.splits:
        rows, points = problem.row_numbers(split), split.points
        weights, groups = problem.sample_weight, problem.groups
        weights = None if weights is None else weights[rows]
        groups = None if groups is None else groups[rows]
        X, y = problem.rows(split)
        y = problem.labels(y)
        game = ModelGame(
            estimator, X, y, points.X, problem.labels(points.y), sample_weight=weights,
            sample_weight_val=points.weights, groups=groups, random_state=0, **options,
        )  # fmt: skip
        if not is_plain:
            game.require_trainable()
        games.append(replaced(game, X, y, weights, groups))
        players.append(rows if groups is None else game.groups_)
    return games, players


def batch_options(game):
    """Options of a design: the number of coalitions that a game evaluates in one call."""
    if game.solver != "loop":
        return {}
    return {"size": max(_SEGMENT, 16 * effective_n_jobs(game.n_jobs))}


def fingerprints(problem, **settings):
    """Names of the data and settings of a fit, and their fingerprints, as an array of two rows."""
    points = [
        (None if isinstance(split.players, slice) else split.players, split.points.X,
         split.points.y, split.points.weights)
        for split in problem.splits
    ]  # fmt: skip
    labels = problem.labels(problem.y)
    weights, groups = problem.sample_weight, problem.groups
    parts = {"X": problem.X, "y": labels, "sample_weight": weights, "groups": groups}
    parts |= {"X_val and y_val, or cv": points, **settings}
    return np.array([list(parts), [fingerprint(part) for part in parts.values()]])


def different(marks, former):
    """Names of what differs between the fingerprints of two fits."""
    former = dict(former.T.tolist())
    return ", ".join(name for name, mark in marks.T.tolist() if former.get(name) != mark)


def refuse_few(run, sampler, max_evaluations):
    """Raise ValueError if `max_evaluations` allows less than one replicate in every game."""
    designs = run.designs
    costs = [1 + (design.total if design.exact else design.cost) for design in designs]
    least = len(designs) * max(costs)
    if max_evaluations < least:
        games = "" if len(designs) == 1 else f", {max(costs)} in each of {len(designs)} splits"
        raise ValueError(
            f"max_evaluations must be at least {least} for sampler={sampler!r} and "
            f"{max(design.n for design in designs)} players{games}. Got {max_evaluations}."
        )
