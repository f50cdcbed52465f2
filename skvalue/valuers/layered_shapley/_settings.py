"""Frozen records of the parameters of a valuer, for its functions."""

from dataclasses import dataclass, fields

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

from ...games import ModelGame, StableLogisticGame
from ...samplers import layer_counts
from ._bounds import marginal_bounds
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
    memory: object = None
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
                n_jobs=self.n_jobs,
            )  # fmt: skip
        if classes is not None:
            y, y_val = classes[y], classes[y_val]
        return ModelGame(
            self.model(classes), X, y, X_val, y_val, scoring=self.scoring,
            error_score=self.error_score, empty_utility=self.empty_utility,
            sample_weight_val=weights_val, groups=groups, batch=self.batch, random_state=0,
            memory=self.memory, n_jobs=self.n_jobs,
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


@dataclass(frozen=True, kw_only=True)
class LayerSettings(GameSettings):
    """Parameters of the layers and their numbers of coalitions, named as those of the valuer."""

    design: str
    n_layers: int | None
    accuracy: float
    failure: float
    bound: float | None
    allocation: str
    include_empty: bool
    max_evaluations: int | None
    n_shuffles: int

    def bounds(self, n):
        """Bounds of marginal contributions by size, and of what the layers left out add."""
        game = self.l2, self.max_norm, self.fit_intercept
        return marginal_bounds(n, self.bound, self.n_layers, game)

    def counts(self, n):
        """Number of coalitions of each size for `accuracy` and `failure`."""
        return layer_counts(self.bounds(n)[0], self.accuracy, self.failure, self.allocation)

    def plan(self, n, n_games):
        """The plan of one of ``n_games`` games of n players."""
        limit = self.max_evaluations
        return make_plan(
            self.design, n, self.counts(n), n_shuffles=self.n_shuffles,
            include_empty=self.include_empty,
            max_evaluations=None if limit is None else limit // n_games,
        )  # fmt: skip
