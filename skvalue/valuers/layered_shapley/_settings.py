"""Frozen records of the parameters of a valuer, for its functions."""

from dataclasses import dataclass, fields

import numpy as np
from joblib import effective_n_jobs
from sklearn.linear_model import LogisticRegression, Ridge

from ...estimation import default_evaluations
from ...games import ModelGame, StableLogisticGame
from ...samplers import layer_counts
from ._bounds import marginal_bounds, training_bound
from ._plan import make_plan

_PLAIN = (str, float, int, type(None))


@dataclass(frozen=True, kw_only=True)
class GameSettings:
    """Parameters of the game of rows and validation points, named as those of the valuer."""

    estimator: object = None
    l2: float | None = None
    max_norm: float = 1.0
    fit_intercept: bool = True
    scoring: object = None
    empty_utility: float | None = None
    error_score: object = "empty"
    batch: str = "auto"
    n_jobs: int | None = None

    @classmethod
    def of(cls, valuer):
        """The settings from the parameters of a valuer."""
        return cls(**{field.name: getattr(valuer, field.name) for field in fields(cls)})

    def game_of(self, problem, split):
        """The game of one split of a problem; players are groups, if there are any."""
        points, groups = split.points, problem.groups
        return self.game(
            *problem.rows(split), points.X, points.y, points.weights, problem.classes,
            None if groups is None else groups[split.players],
        )  # fmt: skip

    def game(self, X, y, X_val, y_val, weights_val, classes, groups=None):
        """The game of rows X with codes or targets y; ``classes`` is None for regression."""
        if self.l2 is not None:
            codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
            return StableLogisticGame(
                X, y, X_val, y_val, l2=self.l2, max_norm=self.max_norm,
                fit_intercept=self.fit_intercept, sample_weight_val=weights_val, groups=codes,
                loss="validation" if self.scoring is None else "training", n_jobs=self.n_jobs,
            )  # fmt: skip
        if classes is not None:
            y, y_val = classes[y], classes[y_val]
        return ModelGame(
            self.model(classes), X, y, X_val, y_val, scoring=self.scoring,
            error_score=self.error_score, empty_utility=self.empty_utility,
            sample_weight_val=weights_val, groups=groups, batch=self.batch, random_state=0,
            n_jobs=self.n_jobs,
        )  # fmt: skip

    def model(self, classes):
        """The estimator trained on coalitions; with `l2`, one similar to its model."""
        if self.estimator is not None:
            return self.estimator
        return Ridge() if classes is None else LogisticRegression()

    def plain(self):
        """The settings that values depend on, as JSON types; the estimator as its repr."""
        names = ("l2", "max_norm", "fit_intercept", "scoring", "empty_utility", "error_score")
        record = {name: getattr(self, name) for name in names}
        record |= {k: v.item() for k, v in record.items() if isinstance(v, np.generic)}
        for name, value in record.items():
            if not isinstance(value, _PLAIN):
                raise ValueError(f"{name} must be a string or a number to be saved. Got {value!r}.")
        return {**record, "estimator": None if self.estimator is None else repr(self.estimator)}


def seconds_per_coalition(game, plan, n_jobs):
    """Seconds per coalition of a plan, measured at a few of its sizes."""
    sizes = [max(1, min(size, game.n_players)) for size in plan.typical_sizes]
    seconds = float(np.mean([game.evaluation_cost(size) for size in sizes]))
    return seconds / (effective_n_jobs(n_jobs) if game.solver == "loop" else 1)


@dataclass(frozen=True, kw_only=True)
class LayerSettings(GameSettings):
    """Parameters of the layers and their numbers of coalitions, named as those of the valuer."""

    design: str
    n_layers: int | None
    tol: float | None
    confidence: float
    bound: float | None
    allocation: str
    max_evaluations: int | None
    max_time: float | None

    def bounds(self, n):
        """Bounds of marginal contributions by size, and of what the layers left out add."""
        game, bound = (self.l2, self.max_norm, self.fit_intercept), self.bound
        if self.l2 is not None and self.scoring is not None and bound is None:
            bound = training_bound(*game)
        return marginal_bounds(n, bound, self.n_layers, game)

    def counts(self, n):
        """Number of coalitions of each size for `tol`; without it, their proportions."""
        tol = 1.0 if self.tol is None else self.tol
        return layer_counts(self.bounds(n)[0], tol, self.confidence, self.allocation)

    def plan(self, game, shape, n_games):
        """The plan of one of ``n_games`` games of rows of a shape."""
        n, limit = game.n_players, self.max_evaluations
        counts = self.counts(n)
        if self.tol is None and limit is None:
            limit = default_evaluations(n, *shape)
        limit = None if limit is None else limit // n_games
        plan = make_plan(self.design, n, counts)
        if limit is not None and (self.tol is None or plan.cost > limit):
            plan = make_plan(self.design, n, counts, max_evaluations=limit)
        if self.max_time is None:
            return plan
        in_time = int(self.max_time / n_games / seconds_per_coalition(game, plan, self.n_jobs))
        if in_time < plan.cost:
            plan = make_plan(self.design, n, counts, max_evaluations=in_time)
        return plan
