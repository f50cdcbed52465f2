"""Private fits of Layered Shapley: their checks and releases."""

from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np

from ...base import Result
from ...privacy import Release, add_noise
from ._designs import Utilities
from ._private import ReleasePlan, layered_report, plan_release, private_values, secret_value
from ._settings import LayerSettings
from ._splits import random_streams
from ._tuning import LEAST, Shrinkage, choose_layers, play_public, public_layers, shrinkage

_NO_PROOF = (
    "must be None with epsilon: only the utility of l2 (mean logistic loss of a penalised model) "
    "has a proved bound of the influence of one row; accuracy can change by 1 with a row, and a "
    "model with a fixed C, or an unpenalised intercept, is not stable enough"
)


@dataclass(eq=False)
class LayeredRelease(Release):
    """A release, with its coalitions and noise."""

    plan: ReleasePlan | None = None
    shrinkage: Shrinkage | None = None
    by_query: bool = False  # whether `values_for` releases each value when it is called


@dataclass(eq=False)
class Queries:
    """Releases values one by one, with the parameters at the time of the fit.

    Keeps the rows, and only exists in the process of the curator.
    """

    release: LayeredRelease
    utilities: Utilities
    seed: int  # of the blocks, which are public
    predict: object  # prediction of the values of some rows from each row and public points
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
        noisy = add_noise(exact, plan.noise, noise_random_state=test_seed)
        return float(release.shrinkage.of(noisy, self.predict([i])[0]))

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
    n_points = len(problem.splits[0].points)
    for name in ("l2", "n_layers"):
        if getattr(valuer, name) == "auto" and n_points < LEAST:
            raise ValueError(
                f"{name} must be a number with fewer than {LEAST} validation points, on which "
                f"'auto' is tuned. Got 'auto' with {n_points}."
            )
    if valuer.n_layers != "auto" and valuer.n_layers > n - 2:
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
    if valuer.design == "iid" and valuer.tol is None:
        raise ValueError(
            "tol must be a number for design='iid' with epsilon: it determines how many coalitions "
            "are drawn, and so the amplification. Got None."
        )
    for name in ("max_evaluations", "max_time"):
        if getattr(valuer, name) is not None:
            raise ValueError(f"{name} must be None with epsilon. Got {getattr(valuer, name)!r}.")
    if valuer.release != "query" and valuer.max_queries != 1:
        raise ValueError(
            "max_queries is for release='query'. Got "
            f"max_queries={valuer.max_queries} with release={valuer.release!r}."
        )


def settings_of(valuer, attributes):
    """The settings of a fit, with the penalty and the number of layers that were chosen."""
    chosen = {name: attributes[f"{name}_"] for name in ("l2", "n_layers") if attributes}
    return replace(LayerSettings.of(valuer), **chosen)


def chosen_layers(valuer, problem):
    """`l2_` and `n_layers_` of a private fit, from the validation points where they are "auto"."""
    settings, n = LayerSettings.of(valuer), len(problem.X)

    def noise_of(l2, n_layers):
        return _plan_of(valuer, problem, replace(settings, l2=l2, n_layers=n_layers)).noise_std

    chosen = settings.l2, settings.n_layers
    if "auto" in chosen:
        chosen = choose_layers(settings, problem, n, noise_of)
    return {"l2_": chosen[0], "n_layers_": chosen[1]}


def _plan_of(valuer, problem, settings):
    """The release of a fit; only the number of rows and the validation points matter."""
    points = problem.splits[0].points
    game = settings.game(points.X, points.y, points.X, points.y, points.weights, problem.classes)
    slope, curvature = game.validation_bounds()
    names = ("epsilon", "delta", "release", "max_queries", "design", "tol", "confidence")
    return plan_release(
        len(problem.X), settings.n_layers, l2=settings.l2, max_norm=settings.max_norm,
        fit_intercept=settings.fit_intercept, slope=slope, curvature=curvature,
        **{name: getattr(valuer, name) for name in names},
    )  # fmt: skip


def planned_release(valuer, problem, attributes):
    """The release of a fit, with what its noisy values are shrunk to."""
    settings, n = settings_of(valuer, attributes), len(problem.X)
    plan = _plan_of(valuer, problem, settings)
    shrunk = Shrinkage(noise=plan.noise_std)
    if len(problem.splits[0].points) >= LEAST:
        public_game = play_public(settings, problem, plan.n_layers)
        knows_row = valuer.release != "publish"
        shrunk = shrinkage(public_game, n, plan.n_layers, plan.noise_std, knows_row)
    by_query, seed = valuer.release == "query", valuer.noise_random_state
    return LayeredRelease(
        event=plan.charge,
        ledger=valuer.ledger,
        label=f"{type(valuer).__name__}: {'one value' if by_query else 'all values'}",
        noise_random_state=seed,
        report=layered_report(plan, seed),
        plan=plan,
        shrinkage=shrunk,
        by_query=by_query,
    )


def private_result(problem, release, settings, seed):
    """Result of a private fit: all values, which are released here, or the `Queries`."""
    n, plan, is_vector = len(problem.X), release.plan, problem.takes.values_are_public
    game = settings.game_of(problem, problem.splits[0])
    values, statistic, utilities = np.full(n, np.nan), None, Utilities(game)
    baseline = (utilities.of(np.arange(n)[:, None]) - game.empty_utility) / n

    def predict(rows):
        return predicted_values(problem, release, settings, rows, baseline[rows])

    attributes = {
        "noise_scale_": plan.noise.scale,
        "shrinkage_": release.shrinkage.weight,
        "counts_": plan.counts,
        "truncation_bias_": settings.bounds(n)[1],
    }
    errors = {"values_error_": np.full(n, release.shrinkage.error)}
    curator = {} if is_vector else {"baseline_": baseline, **errors}
    attributes |= errors if is_vector else {}
    if release.by_query:
        statistic = Queries(release, utilities, seed, predict)
    else:
        noisy = release.of(private_values(plan, utilities, None, random_streams(seed, 0)))
        predicted = predict(np.arange(n))
        values = release.shrinkage.of(noisy, predicted)
        curator |= {} if is_vector else {"prediction": predicted}
    return Result(
        values, np.nan, game.empty_utility, problem, statistic, attributes, curator=curator
    )


def predicted_values(problem, release, settings, rows, baseline):
    """Predictions of the values of some rows, each from the row itself and the public points."""
    plan, shrunk = release.plan, release.shrinkage
    if shrunk.weight == 1.0 or shrunk.constant is not None:
        return np.full(len(rows), shrunk.constant or 0.0)  # without shrinkage, any number does
    layers = public_layers(
        settings, problem.X[rows], problem.y[rows], problem.splits[0].points, problem.classes,
        plan.n_layers,
    )  # fmt: skip
    return baseline + layers.sum(axis=0) / plan.n
