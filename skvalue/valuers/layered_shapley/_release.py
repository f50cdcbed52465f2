"""Private fits of Layered Shapley: checks, the plan, and queries of single values."""

from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np

from ...base import warn_if_noise_exceeds
from ...estimation import Utilities, block_values
from ...privacy import Release
from ._games import make_game, with_parameters
from ._private import ReleasePlan, plan_release, secret_value
from ._tuning import (
    MIN_POINTS,
    WRONG_FRACTION,
    Shrinkage,
    choose_layers,
    play_public,
    public_layers,
    shrinkage,
)


def check_private_fit(valuer, problem):
    """Refuse parameters and data for which no guarantee is proved."""
    if problem.groups is not None:
        raise ValueError(
            "groups must be None with epsilon: the unit protected is one row."
        )
    for name in ("estimator", "scoring", "empty_utility"):
        if getattr(valuer, name) is not None:
            raise ValueError(
                f"{name} must be None with epsilon: only the utility of l2 (mean "
                "logistic loss of a penalised model) has a proved bound of the "
                "influence of one row; accuracy can change by 1 with a row, and a "
                "model with a fixed C, or an unpenalised intercept, is not stable "
                f"enough. Got {getattr(valuer, name)!r}."
            )
    _check_sizes(valuer, problem)
    _check_design(valuer)
    for name in ("max_evaluations", "max_time"):
        if getattr(valuer, name) is not None:
            raise ValueError(
                f"{name} must be None with epsilon: the noise is for all coalitions of "
                f"the plan. Got {getattr(valuer, name)!r}."
            )
    if valuer.release != "query" and valuer.max_queries != 1:
        raise ValueError(
            "max_queries is for release='query': in other releases all values are "
            f"released once. Got {valuer.max_queries!r}."
        )


def _check_sizes(valuer, problem):
    """Refuse an `l2` or `n_layers` that is not known before the release."""
    too_few_points = len(problem.splits[0].points) < MIN_POINTS
    for name in ("l2", "n_layers"):
        if getattr(valuer, name) is None:
            raise ValueError(
                f"{name} must be a number with epsilon: the noise is for the utility "
                "of l2 and that many layers. Got None."
            )
        if getattr(valuer, name) == "auto" and too_few_points:
            raise ValueError(
                f"{name} must be a number with fewer than {MIN_POINTS} validation "
                "points, on which 'auto' is tuned. Got 'auto'."
            )
    n = len(problem.X)
    if valuer.n_layers != "auto" and valuer.n_layers > n - 2:
        raise ValueError(
            f"n_layers must be at most {n - 2} with epsilon and {n} rows, so that each "
            f"coalition leaves out one of the others. Got {valuer.n_layers!r}."
        )


def _check_design(valuer):
    """Refuse a design whose sums have no bound, or that needs other parameters."""
    if valuer.design == "poisson":
        raise ValueError(
            "design must be 'blocks' or 'iid' with epsilon: the number of coalitions "
            "that 'poisson' draws is random, and there is no bound for a sum divided "
            "by its mean. Got 'poisson'."
        )
    if valuer.design == "iid" and valuer.release != "query":
        raise ValueError(
            "design must be 'blocks' with release='all' or 'publish': the coalitions "
            "of 'iid' are secret, and for a single query. Got 'iid'."
        )
    if valuer.design == "iid" and valuer.tol is None:
        raise ValueError(
            "tol must be a number for design='iid' with epsilon: it determines how "
            "many coalitions are drawn, and so the amplification. Got None."
        )


def planned(valuer, problem):
    """Choose `l2` and `n_layers` of a private fit, and plan its release.

    Returns a copy of the valuer with these parameters, and the `ReleasePlan`. Of the
    data, only the number of rows and the validation points matter.
    """
    points = problem.splits[0].points

    def plan_of(l2, n_layers):
        public_valuer = with_parameters(valuer, l2=l2)
        game = make_game(public_valuer, problem, points.X, points.y, points)
        slope, curvature = game.validation_bounds()
        return plan_release(
            len(problem.X),
            n_layers,
            epsilon=valuer.epsilon,
            delta=valuer.delta,
            release=valuer.release,
            max_queries=valuer.max_queries,
            design=valuer.design,
            l2=l2,
            max_norm=valuer.max_norm,
            fit_intercept=valuer.fit_intercept,
            slope=slope,
            curvature=curvature,
            tol=valuer.tol,
            confidence=valuer.confidence,
        )

    def noise_of(l2, n_layers):
        return plan_of(l2, n_layers).noise_std

    l2 = valuer.l2
    n_layers = valuer.n_layers
    if "auto" in (l2, n_layers):
        l2, n_layers = choose_layers(valuer, problem, noise_of)
    return with_parameters(valuer, l2=l2, n_layers=n_layers), plan_of(l2, n_layers)


def public_shrinkage(valuer, problem, plan):
    """The `Shrinkage` of the values of a plan, from the validation points alone."""
    if len(problem.splits[0].points) < MIN_POINTS:
        return Shrinkage(noise=plan.noise_std)
    right, wrong = (
        play_public(valuer, problem, plan.n_layers, fraction)
        for fraction in (0.0, WRONG_FRACTION)
    )
    knows_row = plan.kind != "publish"
    return shrinkage(right, plan.n, plan.n_layers, plan.noise_std, knows_row, wrong)


def warn_of_noise(valuer, problem, plan, shrunk, warn):
    """Warn if the noise of a plan exceeds what its release can say.

    A release says how far values are from their predictions or, with few points, how
    large they are: of both the size is known from public points.
    """
    advice = "more rows, fewer layers, a larger l2 or a larger epsilon have less noise"
    if plan.kind != "query":
        advice += ", and so have single values, by release='query'"
    points = problem.splits[0].points
    what = "what the release adds to predictions from public points"
    signal = shrunk.doubt
    if len(points) < MIN_POINTS:
        what = "the values"
        game = make_game(valuer, problem, points.X, points.y, points)
        alone = Utilities(game).of(np.arange(len(points))[:, None])
        signal = np.sqrt(np.mean((alone - game.empty_utility) ** 2)) / plan.n
    warn_if_noise_exceeds(
        np.full(plan.n, np.hypot(signal, plan.noise_std)),
        np.full(plan.n, plan.noise_std),
        advice,
        warn=warn,
        what=what,
    )


def predicted_values(valuer, problem, plan, shrunk, rows, baseline):
    """Predict values of rows, each from the row itself and the public points.

    ``baseline`` are the layers 0 of these rows, (n_rows,) as the predictions.
    """
    # Without shrinkage, any number does.
    if shrunk.weight == 1.0 or shrunk.constant is not None:
        return np.full(len(rows), shrunk.constant or 0.0)
    X = problem.X[rows]
    y = problem.y[rows]
    points = problem.splits[0].points
    layers = public_layers(valuer, problem, X, y, points, plan.n_layers)
    return baseline + layers.sum(axis=0) / plan.n


@dataclass(eq=False)
class Queries:
    """Releases values one by one, with the parameters at the time of the fit.

    Keeps the rows, and only exists in the process of the curator.
    """

    # The release of one answer, which is made anew for each.
    release: Release
    plan: ReleasePlan
    utilities: Utilities
    # Random streams of the blocks, which are public.
    streams: object
    shrinkage: Shrinkage
    # Predicts the values of rows from each row and the public points.
    predict: object
    answers: dict = field(default_factory=dict)
    lock: object = field(default_factory=Lock)

    def answer(self, i):
        """The value of row i, released at the first call."""
        return self._answer(i, self._release_value)

    def answer_group(self, rows):
        """The sum of the values of several rows, released at the first call.

        It is one query: the sum of w values changes by at most w times as much as one
        of them, and its noise is w times that of one.
        """
        if len(rows) == 1:
            return self.answer(rows[0])
        if self.plan.design == "iid":
            raise ValueError(
                "value_of_group needs design='blocks' with release='query': a row is "
                "in the secret coalitions of several values more often than in those "
                "of one, for which the noise of 'iid' is. Got 'iid'."
            )
        return self._answer(tuple(rows), self._release_sum)

    def _answer(self, asked, release):
        plan = self.plan
        # A forked child has a copy of the answers and of their number.
        self.release.check_process()
        # Two threads must not release the same value twice.
        with self.lock:
            if asked not in self.answers:
                if len(self.answers) >= plan.max_queries:
                    raise ValueError(
                        "max_queries must be larger to query more rows: "
                        f"epsilon={plan.epsilon:g} is the total of {plan.max_queries} "
                        "queries, and that many rows have been queried. Another fit "
                        "is another release."
                    )
                self.answers[asked] = release(asked)
            return self.answers[asked]

    def _release_value(self, i):
        """Value, noise and shrinkage of row i."""
        plan = self.plan
        seed = self.release.noise_random_state
        noise_seed = None
        coalition_seed = None
        if seed is not None:
            noise_seed = seed + i
            coalition_seed = seed + 1 + i
        if plan.design == "iid":
            exact = secret_value(plan, self.utilities, i, coalition_seed)
        else:
            exact = block_values(self.utilities, plan.n_shuffles, [i], self.streams)[0]
        release = replace(self.release, noise_random_state=noise_seed)
        noisy = release.of(exact)
        return float(self.shrinkage.of(noisy, self.predict([i])[0]))

    def _release_sum(self, rows):
        """Sum of the values of rows, with noise, and shrunk as their mean."""
        n_rows = len(rows)
        values = block_values(self.utilities, self.plan.n_shuffles, rows, self.streams)
        event = self.release.event
        event = replace(
            event,
            scale=n_rows * event.scale,
            sensitivity=n_rows * event.sensitivity,
        )
        seed = self.release.noise_random_state
        if seed is not None:
            seed = int(np.random.SeedSequence([seed, *rows]).generate_state(1)[0])
        label = f"{self.release.label.split(':')[0]}: the sum of {n_rows} values"
        release = replace(
            self.release, event=event, label=label, noise_random_state=seed
        )
        noisy_mean = release.of(values.sum()) / n_rows
        predicted = self.predict(np.array(rows)).mean()
        return n_rows * float(self.shrinkage.of(noisy_mean, predicted))

    def __getstate__(self):
        raise TypeError(
            "A LayeredShapleyValuer fitted with epsilon and release='query' holds the "
            "rows, to answer queries: it is for the process of the curator, and "
            "refuses to be pickled."
        )
