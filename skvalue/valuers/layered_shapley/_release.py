"""Private fits of Layered Shapley: their checks, their plan, and queries of single
values."""

from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np

from ...estimation import Utilities, block_values
from ...privacy import Release
from ._games import make_game, with_parameters
from ._private import ReleasePlan, plan_release, secret_value
from ._tuning import LEAST, Shrinkage, choose_layers, public_layers

_NO_PROOF = (
    "must be None with epsilon: only the utility of l2 (mean logistic loss of a penalised model) "
    "has a proved bound of the influence of one row; accuracy can change by 1 with a row, and a "
    "model with a fixed C, or an unpenalised intercept, is not stable enough"
)
_NEEDED = "must be a number with epsilon: the noise is for the utility of l2 and that many layers"
_FEW = f"must be a number with fewer than {LEAST} validation points, on which 'auto' is tuned"
_POISSON = (
    "must be 'blocks' or 'iid' with epsilon: the number of coalitions that 'poisson' draws is "
    "random, and there is no bound for a sum divided by its mean"
)
_SECRET = (
    "must be 'blocks' with release='all' or 'publish': the coalitions of 'iid' are secret, and for "
    "a single query"
)
_AMPLIFIED = (
    "must be a number for design='iid' with epsilon: it determines how many coalitions are drawn, "
    "and so the amplification"
)


def check_private_fit(valuer, problem):
    """Refuse parameters and data for which no guarantee is proved."""
    if problem.groups is not None:
        raise ValueError(
            "groups must be None with epsilon: the unit protected is one row."
        )

    def refuse(name, why, refused):
        if refused:
            raise ValueError(f"{name} {why}. Got {getattr(valuer, name)!r}.")

    n, few = len(problem.X), len(problem.splits[0].points) < LEAST
    for name in ("estimator", "scoring", "empty_utility"):
        refuse(name, _NO_PROOF, getattr(valuer, name) is not None)
    for name in ("l2", "n_layers"):
        refuse(name, _NEEDED, getattr(valuer, name) is None)
        refuse(name, _FEW, getattr(valuer, name) == "auto" and few)
    if valuer.n_layers != "auto":
        deepest = f"must be at most {n - 2} with epsilon and {n} rows"
        refuse("n_layers", deepest, valuer.n_layers > n - 2)
    refuse("design", _POISSON, valuer.design == "poisson")
    refuse("design", _SECRET, valuer.design == "iid" and valuer.release != "query")
    refuse("tol", _AMPLIFIED, valuer.design == "iid" and valuer.tol is None)
    for name in ("max_evaluations", "max_time"):
        refuse(name, "must be None with epsilon", getattr(valuer, name) is not None)
    several = valuer.release != "query" and valuer.max_queries != 1
    refuse("max_queries", "is for release='query'", several)


def planned(valuer, problem):
    """A copy of the valuer with `l2` and `n_layers` chosen, and the plan of its
    release.

    Of the data, only the number of rows and the validation points matter.
    """
    points = problem.splits[0].points

    def plan_of(l2, n_layers):
        game = make_game(
            with_parameters(valuer, l2=l2), problem, points.X, points.y, points
        )
        slope, curvature = game.validation_bounds()
        return plan_release(
            len(problem.X), n_layers, l2=l2, slope=slope, curvature=curvature,
            max_norm=valuer.max_norm, fit_intercept=valuer.fit_intercept, epsilon=valuer.epsilon,
            delta=valuer.delta, release=valuer.release, max_queries=valuer.max_queries,
            design=valuer.design, tol=valuer.tol, confidence=valuer.confidence,
        )  # fmt: skip

    l2, n_layers = valuer.l2, valuer.n_layers
    if "auto" in (l2, n_layers):
        l2, n_layers = choose_layers(
            valuer, problem, lambda *found: plan_of(*found).noise_std
        )
    return with_parameters(valuer, l2=l2, n_layers=n_layers), plan_of(l2, n_layers)


def predicted_values(valuer, problem, plan, shrunk, rows, baseline):
    """Predictions of the values of some rows, each from the row itself and the public
    points."""
    if shrunk.weight == 1.0 or shrunk.constant is not None:
        return np.full(
            len(rows), shrunk.constant or 0.0
        )  # without shrinkage, any number does
    points = problem.splits[0].points
    layers = public_layers(
        valuer, problem, problem.X[rows], problem.y[rows], points, plan.n_layers
    )
    return baseline + layers.sum(axis=0) / plan.n


@dataclass(eq=False)
class Queries:
    """Releases values one by one, with the parameters at the time of the fit.

    Keeps the rows, and only exists in the process of the curator.
    """

    release: Release  # that of one answer, which is made anew for each
    plan: ReleasePlan
    utilities: Utilities
    streams: object  # of the blocks, which are public
    shrinkage: Shrinkage
    predict: (
        object  # prediction of the values of some rows from each row and public points
    )
    answers: dict = field(default_factory=dict)
    lock: object = field(default_factory=Lock)

    def answer(self, i):
        """The value of row i, released at the first call."""
        plan = self.plan
        self.release.check_process()  # a forked child has a copy of the answers and their number
        with self.lock:  # two threads must not release the same value twice
            if i not in self.answers:
                if len(self.answers) >= plan.max_queries:
                    raise ValueError(
                        "max_queries must be larger to query more rows: "
                        f"epsilon={plan.epsilon:g} is the total of {plan.max_queries} queries, "
                        "and that many rows have been queried. Another fit is another release."
                    )
                self.answers[i] = self._released(i)
            return self.answers[i]

    def _released(self, i):
        plan, seed = self.plan, self.release.noise_random_state
        if plan.design == "iid":
            exact = secret_value(
                plan, self.utilities, i, None if seed is None else seed + 1 + i
            )
        else:
            exact = block_values(self.utilities, plan.n_shuffles, [i], self.streams)[0]
        release = replace(
            self.release, noise_random_state=None if seed is None else seed + i
        )
        noisy = release.of(exact)
        return float(self.shrinkage.of(noisy, self.predict([i])[0]))

    def __getstate__(self):
        raise TypeError(
            "A LayeredShapleyValuer fitted with epsilon and release='query' holds the rows, to "
            "answer queries: it is for the process of the curator, and refuses to be pickled."
        )
