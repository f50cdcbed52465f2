"""Models that are trained on some of the rows, and their scores."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from .._utils.sklearn import HasMethods, Interval, StrOptions
from ..games import train

# Of all functions that train models, by the names of their parameters.
CONSTRAINTS = {
    "estimator": [HasMethods(["fit"])],
    "X": ["array-like", "sparse matrix"],
    "y": ["array-like"],
    "values": ["array-like"],
    "X_test": ["array-like", "sparse matrix"],
    "y_test": ["array-like"],
    "first": [StrOptions({"lowest", "highest"})],
    "fractions": ["array-like", None],
    "scoring": [str, callable, None],
    "n_repeats": [Interval(Integral, 1, None, closed="left")],
    "baseline": ["boolean"],
    "groups": ["array-like", None],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}


class Refits(NamedTuple):
    """What all fits of one estimator to some of the rows have in common.

    `classes` are those of all rows; None for a regression.
    """

    estimator: Any
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    classes: Any
    scorer: Any

    def score(self, seeds, rows):
        """Test score of the estimator fitted on the rows, which may lack classes."""
        estimator = clone(self.estimator).set_params(**seeds)
        model, _ = train(estimator, self.X, self.y, None, self.classes, rows)
        return self.scorer(model, self.X_test, self.y_test)


def draw_seeds(estimator, rng):
    """Seeds for the random_state parameters of the estimator that are None, by name."""
    seeds = {}
    for name, value in sorted(estimator.get_params(deep=True).items()):
        is_seed = name == "random_state" or name.endswith("__random_state")
        if is_seed and value is None:
            seeds[name] = int(rng.randint(np.iinfo(np.int32).max))
    return seeds
