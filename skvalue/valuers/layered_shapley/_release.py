"""Private fits of Layered Shapley: their checks and releases."""

from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from ...base import Release, Result
from ...privacy import add_noise
from ._designs import Utilities
from ._private import ReleasePlan, layered_report, plan_release, private_values, secret_value
from ._splits import random_streams

_NO_PROOF = (
    "must be None with epsilon: only the utility of l2 (mean logistic loss of a penalised model) "
    "has a proved bound of the influence of one row; accuracy can change by 1 with a row, and a "
    "model with a fixed C, or an unpenalised intercept, is not stable enough"
)


@dataclass(frozen=True, eq=False)
class LayeredRelease(Release):
    """A release, with its coalitions and noise."""

    plan: ReleasePlan | None = None


@dataclass(eq=False)
class Queries:
    """Releases values one by one, with the parameters at the time of the fit.

    Keeps the rows, and only exists in the process of the curator.
    """

    release: LayeredRelease
    utilities: Utilities
    seed: int  # of the blocks, which are public
    answers: dict = field(default_factory=dict)
    lock: object = field(default_factory=Lock)

    def answer(self, i):
        """The value of row i, released at the first call."""
        plan = self.release.plan
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
        release, plan, seed = self.release, self.release.plan, self.release.noise_random_state
        if release.ledger is not None:
            release.ledger.charge(plan.charge, label=release.label)
        if plan.design == "iid":
            test_seed = None if seed is None else seed + 1 + i
            exact = secret_value(plan, self.utilities, i, test_seed)
        else:
            exact = private_values(plan, self.utilities, [i], random_streams(self.seed, 0))[0]
        test_seed = None if seed is None else seed + i
        return float(add_noise(exact, plan.noise, noise_random_state=test_seed))

    def __getstate__(self):
        raise TypeError(
            "A LayeredShapleyValuer fitted with epsilon and release='query' holds the rows, to "
            "answer queries: it is for the process of the curator, and refuses to be pickled."
        )


def check_private_fit(valuer, problem):
    """Refuse parameters and data for which no guarantee is proved."""
    if problem.groups is not None:
        raise ValueError("groups must be None with epsilon: the unit protected is one row.")
    for name in ("estimator", "scoring", "empty_utility"):
        if getattr(valuer, name) is not None:
            raise ValueError(f"{name} {_NO_PROOF}. Got {getattr(valuer, name)!r}.")
    for name in ("l2", "n_layers"):
        if getattr(valuer, name) is None:
            raise ValueError(
                f"{name} must be a number with epsilon: the noise is for the utility of l2 in "
                f"layers up to n_layers. Got {name}=None."
            )
    n = len(problem.X)
    if valuer.n_layers > n - 2:
        raise ValueError(
            f"n_layers must be at most {n - 2} with epsilon and {n} rows. Got {valuer.n_layers}."
        )
    if valuer.design == "poisson":
        raise ValueError(
            "design must be 'blocks' or 'iid' with epsilon: the number of coalitions that "
            "'poisson' draws is random, and there is no bound for a sum divided by its mean. Got "
            "design='poisson'."
        )
    if valuer.design == "iid" and valuer.release != "query":
        raise ValueError(
            "design must be 'blocks' with release='all' or 'publish': the coalitions of 'iid' are "
            f"secret, and for a single query. Got design='iid' with release={valuer.release!r}."
        )
    if valuer.max_evaluations is not None or not valuer.include_empty:
        raise ValueError(
            "max_evaluations must be None and include_empty True with epsilon. Got "
            f"max_evaluations={valuer.max_evaluations!r}, include_empty={valuer.include_empty!r}."
        )
    if valuer.release != "query" and valuer.max_queries != 1:
        raise ValueError(
            "max_queries is for release='query'. Got "
            f"max_queries={valuer.max_queries} with release={valuer.release!r}."
        )


def planned_release(valuer, n):
    """The release of a fit on n rows."""
    names = (
        "epsilon", "delta", "release", "noise", "max_queries", "design", "l2", "max_norm",
        "fit_intercept", "accuracy", "failure",
    )  # fmt: skip
    plan = plan_release(n, valuer.n_layers, **{name: getattr(valuer, name) for name in names})
    by_query, seed = valuer.release == "query", valuer.noise_random_state
    return LayeredRelease(
        event=plan.charge,
        ledger=valuer.ledger,
        label=f"{type(valuer).__name__}: {'one value' if by_query else 'all values'}",
        noise_random_state=seed,
        report=layered_report(plan, seed),
        values_are_public=valuer.release == "publish",
        by_query=by_query,
        plan=plan,
    )


def private_result(problem, release, settings, seed):
    """Result of a private fit: all values, which are released here, or the `Queries`."""
    n, plan = len(problem.X), release.plan
    game = settings.game_of(problem, problem.splits[0])
    values, statistic, utilities = np.full(n, np.nan), None, Utilities(game)
    if release.by_query:
        statistic = Queries(release, utilities, seed)
    else:
        values = add_noise(
            private_values(plan, utilities, None, random_streams(seed, 0)), plan.noise,
            ledger=release.ledger, label=release.label,
            noise_random_state=release.noise_random_state,
        )  # fmt: skip
    attributes = {
        "noise_scale_": plan.noise.scale,
        "counts_": plan.counts,
        "truncation_bias_": settings.bounds(n)[1],
    }
    return Result(values, np.nan, game.empty_utility, problem, statistic, attributes)
