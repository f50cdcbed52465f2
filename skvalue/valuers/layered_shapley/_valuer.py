"""Layered Shapley of Watson, Andreeva, Yang and Sarkar (2022), with proved bounds."""

from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch

from ..._utils.checks import check_positive, seed_of
from ..._utils.sklearn import Interval, StrOptions
from ...base import (
    PRIVACY_CONSTRAINTS,
    BaseScoringValuer,
    Result,
    follow_input_tags,
    make_problem,
    refuse_unseen_labels,
)
from ...estimation import (
    LAYER_DESIGNS,
    LayerPlan,
    Utilities,
    block_values,
    n_steps,
    play_layers,
)
from ...games import failed_warnings, underflow_warnings
from ...privacy import Release
from ...samplers import ALLOCATIONS
from .._retraining._base import capabilities_of
from .._retraining._valuer import BaseSemivalueValuer
from ._bounds import marginal_bounds
from ._core import core_set, joining_values
from ._games import cost_of, game_of, plan_of, players_of, random_streams
from ._groups import value_of_players
from ._private import RELEASES, layered_report
from ._release import (
    Queries,
    check_private_fit,
    planned,
    predicted_values,
    public_shrinkage,
    warn_of_noise,
)
from ._tuning import MIN_POINTS

# Parameters with the constraints of the other retraining methods.
_RETRAINING_PARAMETERS = (
    "estimator",
    "tol",
    "max_evaluations",
    "max_time",
    "scoring",
    "empty_utility",
    "error_score",
    "task",
    "cv",
    "class_weight",
    "n_jobs",
    "random_state",
)


@dataclass(eq=False)
class SplitGame:
    """The game of one split, and what was estimated of it."""

    split: object
    game: object
    # The coalitions.
    plan: LayerPlan
    utilities: Utilities
    # Of the coalitions that were evaluated; None before there are any.
    estimate: object = None


class LayeredShapleyValuer(BaseScoringValuer):
    """Shapley values by retraining, from many small coalitions and few large ones.

    If learning is stable, what a row adds to a coalition of k others falls as c / k.
    The number of coalitions needed for layer k, the mean over coalitions of k others,
    then falls as 1 / k^2, so that most coalitions are small. Values are unbiased for
    any estimator and scorer. The utility of `l2` has proved bounds, with which values
    can be released under differential privacy.

    Parameters
    ----------
    estimator : estimator, default=None
        The model that is trained on coalitions; None is `LogisticRegression()` or
        `Ridge()`, or the model of `l2`, if that is set. X may be of any kind that the
        estimator takes; `l2` needs an array of finite numbers.
    l2 : float or "auto", default=None
        If set, use the utility of `skvalue.games.StableLogisticGame` with this penalty:
        minus the mean logistic loss, for two classes. Private fits need it; "auto", for
        them only, chooses it as `n_layers="auto"` does.
    max_norm : float, default=1.0
        For `l2`: norm to which rows and validation points are clipped. It is public: it
        must be chosen without looking at private rows.
    fit_intercept : bool, default=True
        For `l2`: whether to fit an intercept, which is penalised like a coefficient.
    design : {"blocks", "iid", "poisson"}, default="blocks"
        How coalitions are drawn. "blocks": shuffles of the other rows are cut into
        disjoint blocks; layers that need less than one coalition per shuffle are
        evaluated in some of the 8 shuffles. "iid": independent uniform coalitions, at
        least one of each size; the claim of `tol` and `confidence` is proved for this
        design. "poisson": Poisson sampling as in Algorithm 1 of the paper: each
        coalition of a layer is drawn independently with the same probability. A layer
        for which all coalitions are needed is enumerated.
    n_layers : int or "auto", default=None
        Largest number of other rows that a row joins; None is all of them.
        `truncation_bias_` bounds what is left out. "auto", for private fits: the number
        whose private values, at this epsilon, would agree most with those of all
        layers, as measured on the validation points, which are public.
    tol : float, default=None
        If set, the number of coalitions follows from this largest error of a value
        (alpha in the paper). Values are smaller than the paper's 0.05: choose it below
        their size.
    confidence : float, default=0.95
        For `tol`: probability that the error is smaller (1 - beta in the paper).
    bound : float, default=None
        The constant c: a row adds at most c / k, in absolute value, to a coalition of k
        rows. None is 1, or the proved bound for `l2`.
    allocation : {"neyman", "bound"}, default="neyman"
        Whether the number of coalitions falls as 1 / k, which gives the smallest error,
        or as 1 / k^2, like the square of the bound of marginal contributions, as in the
        paper; see `skvalue.samplers.layer_counts`.
    max_evaluations : int, default=None
        Approximate number of coalitions to evaluate, over all splits; with `tol`, their
        largest number. None computes it from the size of the data, unless `tol` is set:
        about one minute for 10,000 rows if the models are trained one at a time.
    max_time : float, default=None
        Approximate duration of the fit in seconds. The number of coalitions follows
        from the time that a few of them take, so that values depend on the machine.
    scoring : str or callable, default=None
        Scorer of the utility; None is the score method of the estimator (accuracy or
        R2). With `l2`, "neg_training_loss" is the other utility of the paper: minus the
        minimum of the mean logistic loss of a coalition on its own rows plus the
        penalty.
    empty_utility : float, default=None
        Utility of the empty coalition. None is 1/C for accuracy and balanced accuracy;
        for any other scorer the score of the constant prediction:
        `DummyClassifier(strategy="prior")` or `DummyRegressor()` fitted on the
        validation targets.
    error_score : "empty", "raise" or float, default="empty"
        Utility of a coalition whose fit or score fails: that of the empty coalition, an
        error, or a number.
    task : {"auto", "classification", "regression"}, default="auto"
        Type of target; "auto" is that of the estimator or, without one, that of y.
    cv : int, "leave-one-out", splitter or iterable, default=5
        How rows are held out as validation points if there is no validation set; all
        rows must be players equally often.
    class_weight : {"balanced", None}, default=None
        "balanced" weights the validation points such that each class has the same total
        weight in the utility, times any `sample_weight_val` within the class; rows held
        out by `cv` are weighted in each split. Use it for imbalanced classes. (Weights
        of rows in the fits of a model are parameters of the `estimator`.)
        Classification only.
    batch : {"auto", "never"}, default="auto"
        Whether many coalitions are trained at once if the estimator allows it.
    n_jobs : int, default=None
        Number of joblib workers or threads. Values are the same bit for bit for any
        number.
    random_state : int, RandomState or None, default=None
        Seed of the coalitions.
    epsilon : float, default=None
        Privacy budget of the rows: the total of everything released. Needs `l2`,
        `n_layers`, a public validation set, and the design "blocks" or "iid".
    delta : float, default=1e-5
        Probability that the bound of epsilon fails, if the noise is Gaussian. Noise is
        Gaussian if its standard deviation is then smaller than with Laplace noise.
    release : {"query", "all", "publish"}, default="query"
        What epsilon is for. "query": `fit` releases nothing; `values_for` releases up
        to `max_queries` values, each to its owner. "all": all values, each to its
        owner. "publish": the vector of all values, to everyone.
    max_queries : int, default=1
        For "query": number of rows whose values can be released.
    reader : {"curator"}, default=None
        Who reads the result of `fit_transform`. With epsilon, `fit_transform` needs
        "curator", unless the vector is published.
    ledger : skvalue.privacy.Ledger, default=None
        Charged before noise is drawn, by each query or by the fit; raises an error if
        its budget would be exceeded.
    noise_random_state : int, default=None
        For tests only: seed of the noise, which VOIDS the guarantee.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better. With
        epsilon, the values that were released, NaN for others; they are for the
        curator, unless published.
    layer_values_ : ndarray of shape (n_layers + 1, n_samples)
        Contribution of each layer; the sum over layers is `values_`. With groups, of
        shape (n_layers + 1, n_groups).
    baseline_ : ndarray of shape (n_samples,)
        Layer 0 of each value, which costs no privacy: it is a function of the row
        itself and of public points. Only with epsilon, for the curator, as the values
        are; none with `release="publish"`.
    values_error_ : ndarray of shape (n_samples,) or (n_groups,)
        Standard error of each value over the draw of coalitions; infinite if there are
        too few draws to estimate it. With epsilon: of the noise and of the bias of
        shrinkage; for the curator, as the values are. That bias is measured on public
        points with wrong labels: it allows for up to three labels in ten that are wrong
        among the rows, and not among the points, so that between .9 and 1 of the values
        are within two errors, and all of them if labels are right.
    truncation_bias_ : float
        With `n_layers`: largest contribution of the layers left out to a value, if
        `bound` holds.
    counts_ : ndarray of shape (n_layers + 1,)
        Number of coalitions of each size that a row joins; a mean if less than one.
    privacy_ : PrivacyReport
        What is protected, from whom, and what is not. Only with epsilon.
    l2_, n_layers_ : float and int
        Those of the private fit. Only with epsilon.
    noise_scale_ : float
        Scale of the noise on a value, before shrinkage. Only with epsilon.
    shrinkage_ : float
        Weight of the noisy value, between 0 and 1; the rest is that of the prediction.
        Only with epsilon.
    n_evaluations_ : int
        Number of coalitions evaluated.
    n_failed_ : int
        Number of coalitions whose training or score failed. Only without epsilon.
    utility_, empty_utility_ : float
        Utility of all rows and of the empty coalition, means over splits. If all layers
        are used, the sum of the values is their difference, up to the error of the
        values. With epsilon, `utility_` is NaN.
    classes_ : ndarray of shape (n_classes,)
        The labels; not set for regression.
    groups_ : ndarray of shape (n_groups,)
        The groups, if `groups` was passed.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    DataShapleyValuer : The same values from coalitions of all sizes, with other rules.
    TKNNShapleyValuer : Private values of a game that needs less noise.

    Notes
    -----
    `transform` and `score_samples` add a row that was not in fit to the coalitions that
    fit has stored. Without a label, the value is the average over labels by the
    probabilities of the estimator fitted on all rows (for regression, its prediction is
    the target). A private fit stores no coalitions, and these methods raise a
    ValueError.

    A private value is shrunk towards the value of the row among public rows,
    `prediction`: the validation points, half of which give the coalitions that are
    evaluated on the other half. The weight of the noisy value follows from how well
    public rows, a third of the points, are predicted by the others. With fewer than 50
    points values are not shrunk; with `release="publish"` the prediction is a constant.

    References
    ----------
    L. Watson, R. Andreeva, H.-T. Yang, R. Sarkar: "Differentially Private Shapley
    Values for Data Evaluation", 2022; Algorithms 1 and 2.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skvalue import LayeredShapleyValuer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, public = scale(X[:40]), dict(X_val=scale(X[40:140]), y_val=y[40:140])
    >>> valuer = LayeredShapleyValuer(max_evaluations=2000, random_state=0)
    >>> valuer.fit(X, y[:40], **public).layer_values_.shape
    (40, 40)

    A private fit releases single values, with new noise.

    >>> private = LayeredShapleyValuer(l2=1.0, n_layers=3, epsilon=1.0)
    >>> isinstance(private.fit(X, y[:40], **public).values_for(7), float)
    True
    """

    _parameter_constraints: dict = {
        **{
            name: BaseSemivalueValuer._parameter_constraints[name]
            for name in _RETRAINING_PARAMETERS
        },
        **{
            name: constraint
            for name, constraint in PRIVACY_CONSTRAINTS.items()
            if name != "relation"
        },
        "l2": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None],
        "max_norm": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "design": [StrOptions(set(LAYER_DESIGNS))],
        "n_layers": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
            None,
        ],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "bound": [Interval(Real, 0, None, closed="neither"), None],
        "allocation": [StrOptions(set(ALLOCATIONS))],
        "batch": [StrOptions({"auto", "never"})],
        "release": [StrOptions(set(RELEASES))],
        "max_queries": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        estimator=None,
        *,
        l2=None,
        max_norm=1.0,
        fit_intercept=True,
        design="blocks",
        n_layers=None,
        tol=None,
        confidence=0.95,
        bound=None,
        allocation="neyman",
        max_evaluations=None,
        max_time=None,
        scoring=None,
        empty_utility=None,
        error_score: float | str = "empty",
        task="auto",
        cv: object = 5,
        class_weight=None,
        batch="auto",
        n_jobs=None,
        random_state=None,
        epsilon=None,
        delta=1e-5,
        release="query",
        max_queries=1,
        reader=None,
        ledger=None,
        noise_random_state=None,
    ):
        self.estimator = estimator
        self.l2 = l2
        self.max_norm = max_norm
        self.fit_intercept = fit_intercept
        self.design = design
        self.n_layers = n_layers
        self.tol = tol
        self.confidence = confidence
        self.bound = bound
        self.allocation = allocation
        self.max_evaluations = max_evaluations
        self.max_time = max_time
        self.scoring = scoring
        self.empty_utility = empty_utility
        self.error_score = error_score
        self.task = task
        self.cv = cv
        self.class_weight = class_weight
        self.batch = batch
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.epsilon = epsilon
        self.delta = delta
        self.release = release
        self.max_queries = max_queries
        self.reader = reader
        self.ledger = ledger
        self.noise_random_state = noise_random_state

    # For `make_game`: this valuer has no such parameter.
    device = "auto"

    @property
    def _capabilities(self):
        refused = ""
        if self.release == "query":
            refused = (
                "release must be 'all' or 'publish' for fit_transform with epsilon: "
                "with 'query' fit releases nothing. Got release='query'."
            )
        return capabilities_of(
            self,
            any_rows=self._trains,
            values_are_public=self.release == "publish",
            fit_transform_error=refused,
        )

    @property
    def _trains(self):
        """Whether an estimator is trained, which takes X as it is passed."""
        return self.l2 is None and self.epsilon is None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if not self._trains:
            return tags
        estimator = self.estimator
        if estimator is None:
            estimator = LogisticRegression()
        return follow_input_tags(tags, estimator)

    # The fit --------------------------------------------------------------------------

    def _check(self, problem):
        """Refuse parameters and data that do not fit."""
        if self.epsilon is not None:
            check_private_fit(self, problem)
        if self.l2 is not None:
            check_stable_game(self, problem)
        if self.epsilon is None:
            for name in ("l2", "n_layers"):
                if getattr(self, name) == "auto":
                    raise ValueError(
                        f"{name} must not be 'auto' without epsilon, for which it is "
                        "tuned. Got 'auto'."
                    )
            refuse_unseen_labels(problem, self.cv)

    def _value(self, problem, run):
        self._check(problem)
        if self.epsilon is not None:
            return self._private_value(problem, run)

        split_games = self._split_games(problem, run)
        n = sum(n_steps(item.plan) for item in split_games)
        seed = seed_of(self.random_state)
        with run.steps(n, "coalitions evaluated") as done:
            for number, item in enumerate(split_games):
                game = item.game
                streams = random_streams(seed, number)
                for estimate in play_layers(item.plan, item.utilities, streams):
                    item.estimate = estimate
                    if 0 < game.n_failed == game.n_evaluations:
                        # An error if all rows together fail, too.
                        _ = item.utilities.full
                    done()
        return self._result(problem, run, split_games)

    def _split_games(self, problem, run):
        """The game of each split, and its plan, as a list of `SplitGame`."""
        games = [game_of(self, problem, split) for split in problem.splits]
        if not problem.is_plain:
            for game in games:
                game.require_trainable()
        plans = [plan_of(self, game, problem.shape, len(games)) for game in games]
        if self._trains:
            games[0].warn_unbatched()
        return [
            SplitGame(split, game, plan, Utilities(game, run.warned))
            for split, game, plan in zip(problem.splits, games, plans)
        ]

    def _result(self, problem, run, split_games):
        """Means over the splits that were played; None if there is none."""
        played = [item for item in split_games if item.estimate is not None]
        if not played:
            return None
        weight = 1 / len(played)
        n_layers = max(len(item.estimate.layers) for item in played)
        layers = np.zeros((n_layers, problem.n_players))
        variance = np.zeros(problem.n_players)
        counts = np.zeros(n_layers)
        bias = 0.0
        for item in played:
            players = players_of(problem, item.split)
            depth, n = item.estimate.layers.shape
            layers[:depth, players] += weight * item.estimate.layers / n
            variance[players] += weight**2 * item.estimate.variance
            counts[:depth] += weight * item.plan.counts
            _, left_out = marginal_bounds(self, n)
            bias += weight * left_out

        # The coalitions for the values; that of all rows is for the utility.
        n_evaluated = sum(item.utilities.n_evaluated for item in split_games)
        games = [item.game for item in played]
        values = layers.sum(axis=0)
        warned = failed_warnings(games)
        if any(len(item.plan.sampled) for item in played):
            warned += underflow_warnings(values)
        for message, category in warned:
            run.warn(message, category)
        utility = np.mean([item.utilities.full for item in played])
        empty_utility = np.mean([game.empty_utility for game in games])
        splits = tuple(item.split for item in played)
        return Result(
            values,
            float(utility),
            float(empty_utility),
            replace(problem, splits=splits),
            statistic=[item.estimate.core for item in played],
            attributes={
                "layer_values_": layers,
                "values_error_": np.sqrt(variance),
                "counts_": counts,
                "truncation_bias_": bias,
                "n_evaluations_": n_evaluated,
                "n_failed_": sum(item.game.n_failed for item in split_games),
            },
        )

    def _private_value(self, problem, run):
        """As `_value`, with noise: public plan -> values -> release -> shrinkage."""
        valuer, plan = planned(self, problem)
        shrunk = public_shrinkage(valuer, problem, plan)
        warn_of_noise(valuer, problem, plan, shrunk, run.warn)
        what = "one value" if plan.kind == "query" else "all values"
        release = Release(
            plan.charge,
            self.ledger,
            f"{type(self).__name__}: {what}",
            self.noise_random_state,
            layered_report(plan, self.noise_random_state),
        )
        utilities = Utilities(game_of(valuer, problem, problem.splits[0]))
        result = None
        with run.steps(1, "coalitions evaluated") as done:
            result = self._private_result(
                valuer, problem, plan, shrunk, release, utilities
            )
            done()
        return result

    def _private_result(self, valuer, problem, plan, shrunk, release, utilities):
        """The `Result` of the release of all values, or of none before queries."""
        n = plan.n
        empty_utility = utilities.game.empty_utility
        alone = utilities.of(np.arange(n)[:, None])
        baseline = (alone - empty_utility) / n

        def predict(rows):
            return predicted_values(valuer, problem, plan, shrunk, rows, baseline[rows])

        streams = random_streams(seed_of(self.random_state), 0)
        _, left_out = marginal_bounds(valuer, n)
        attributes = {
            "l2_": valuer.l2,
            "n_layers_": valuer.n_layers,
            "counts_": plan.counts,
            "noise_scale_": plan.noise.scale,
            "shrinkage_": shrunk.weight,
            "truncation_bias_": left_out,
            "shrinkage": shrunk,
        }
        errors = {"values_error_": np.full(n, shrunk.error)}
        curator = {}
        if plan.kind == "publish":
            attributes |= errors
        else:
            curator = {"baseline_": baseline} | errors

        queries = None
        if plan.kind == "query":
            values = np.full(n, np.nan)
            queries = Queries(release, plan, utilities, streams, shrunk, predict)
        else:
            exact = block_values(utilities, plan.n_shuffles, None, streams)
            # The release: what follows is a function of it and of each row.
            noisy = release.of(exact)
            predicted = predict(np.arange(n))
            values = shrunk.of(noisy, predicted)
            if plan.kind == "all":
                curator["prediction"] = predicted
        return Result(
            values,
            np.nan,
            empty_utility,
            problem,
            attributes=attributes,
            release=release,
            curator=curator,
            answers=queries,
        )

    # After the fit --------------------------------------------------------------------

    def _score_new(self, fitted, number, X, y):
        self._record("Valuing rows that were not in fit", needs_rows=True)
        return joining_values(self, fitted, number, X, y)

    @property
    def baseline_(self):
        """Layer 0 of each value: it is free where owners read only their own value."""
        self._refuse_published("baseline_", AttributeError)
        return self._for_curator("baseline_")

    @property
    def values_error_(self):
        """Standard errors of the values; of private ones for the curator, as these."""
        fitted = self._record("values_error_", error=AttributeError)
        if fitted.hides_values:
            return self._for_curator("values_error_")
        return fitted.attributes["values_error_"]

    def prediction(self):
        """Predict each value of a private fit from its own row and public points.

        It costs no privacy where owners read their own value only. A private value is
        the mean of the noisy value, with weight `shrinkage_`, and of this prediction.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
            For the curator, as the values are.

        Raises
        ------
        ValueError
            If the fit was not private, has been pickled, published its values, or had
            fewer than 50 validation points.
        """
        self._refuse_published("prediction", ValueError)
        fitted = self._record("prediction")
        if fitted.is_private and not fitted.attributes["shrinkage"].spread:
            n_points = len(fitted.problem.splits[0].points)
            raise ValueError(
                f"prediction needs at least {MIN_POINTS} validation points, which the "
                f"values are predicted from. Got {n_points}."
            )
        if fitted.answers is not None:
            return fitted.answers.predict(np.arange(len(fitted.values)))
        if "prediction" not in fitted.curator:
            raise ValueError(
                "prediction needs a private fit that was not pickled. Fit with epsilon."
            )
        return fitted.curator["prediction"]

    def _refuse_published(self, what, error):
        """Refuse a function of each row if the values are published."""
        fitted = getattr(self, "_fitted", None)
        if fitted is not None and fitted.is_private and not fitted.hides_values:
            raise error(
                f"{what} is a function of each row: release='publish' protects it, "
                "like the rest of the value."
            )

    def estimate_cost(self, X, y, *, X_val=None, y_val=None, groups=None):
        """Estimate the cost of `fit` from the time of a few coalitions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `fit`, like the other parameters.
        y : array-like of shape (n_samples,)
            Labels or targets.
        X_val, y_val, groups : array-likes, default=None
            Validation set, and groups.

        Returns
        -------
        cost : Bunch
            ``seconds`` (approximate), ``n_evaluations``, ``seconds_per_evaluation``,
            ``n_players`` and ``solver``. With epsilon, of all values that are released.

        Raises
        ------
        ValueError
            As in `fit`.
        """
        problem = make_problem(self, X, y, X_val, y_val, groups=groups)
        self._check(problem)
        if self.epsilon is None:
            return cost_of(self, problem)
        valuer, plan = planned(self, problem)
        layers = LayerPlan(
            self.design, plan.n, plan.counts, np.zeros(len(plan.counts), bool)
        )
        return cost_of(valuer, problem, layers, plan.cost)

    def value_of_group(self, indices, *, tol=None, confidence=None):
        """Value of several rows together: the sum of their values.

        For somebody who submits several rows to the holder of the others. With
        probability `confidence` the errors of all their values, and that of their mean,
        are at most `tol`: each may fail with 1 - `confidence` over their number, so
        that the number of coalitions grows with its logarithm. Coalitions are drawn
        anew, independently of those of `fit`.

        After a private fit with `release="query"`, this is the release of one number to
        the owner of these rows, and one of the `max_queries`: replacing another row
        moves the sum of w values by at most w times as much as one value, and the noise
        is w times that of one. That is less by a factor of the root of w than the sum
        of w answers with the same epsilon in total. After other private fits it is the
        sum of the values that were released, at no cost.

        Parameters
        ----------
        indices : sequence of int or str
            Positions of rows of `fit`, or of groups in `groups_`, or names of groups.
            Repeated ones count once.
        tol, confidence : float, default=None
            None takes the parameter of the valuer. Both must be None after a private
            fit, whose error is that of the noise.

        Returns
        -------
        group : Bunch
            ``value``, ``mean``, ``row_values`` of shape (w,), in the order of the
            positions (None for a private query), and ``n_evaluations``, the number of
            coalitions evaluated.

        Raises
        ------
        ValueError
            If there is no such row, `tol` is not set, or a private query exceeds the
            budget or is of another design than "blocks".

        References
        ----------
        L. Watson, R. Andreeva, H.-T. Yang, R. Sarkar: "Differentially Private Shapley
        Values for Data Evaluation", 2022; Section 3.4.
        """
        fitted = self._record("value_of_group")
        n = len(fitted.values)
        positions = {fitted.problem.position(i, n) for i in indices}
        if not positions:
            raise ValueError("indices must name at least one row. Got none.")
        players = np.array(sorted(positions))
        if fitted.is_private:
            return self._private_group(fitted, players, tol, confidence)

        tol = self.tol if tol is None else check_positive(tol, "tol")
        if tol is None:
            raise ValueError(
                "tol must be a number, here or in the parameters of the valuer: it "
                "determines the number of coalitions. Got None."
            )
        confidence = self.confidence if confidence is None else confidence
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must be in (0, 1). Got {confidence!r}.")
        self._record("value_of_group", needs_rows=True, needs_parameters=True)
        rng = np.random.default_rng(seed_of(self.random_state))
        return value_of_players(self, fitted, players, tol, confidence, rng)

    def _private_group(self, fitted, players, tol, confidence):
        """As `value_of_group`, after a private fit."""
        if tol is not None or confidence is not None:
            raise ValueError(
                "tol and confidence must be None after a private fit, whose error is "
                f"that of the noise. Got {tol!r} and {confidence!r}."
            )
        row_values = None
        if fitted.answers is not None:
            value = fitted.answers.answer_group(players.tolist())
        else:
            row_values = self.values_[players]
            value = float(row_values.sum())
        return Bunch(
            value=value,
            mean=value / len(players),
            row_values=row_values,
            n_evaluations=0,
        )

    def core_sets(self):
        """Core sets of the fit, on which `transform` values new rows.

        Returns
        -------
        core_sets : list of skvalue.valuers.CoreSet
            One for each split.

        Raises
        ------
        ValueError
            After a private fit.
        """
        fitted = self._record("core_sets", needs_rows=True, needs_parameters=True)
        return [core_set(self, fitted, i) for i in range(len(fitted.statistic))]


def check_stable_game(valuer, problem):
    """Refuse parameters and targets that the utility of ``l2`` does not support."""
    for name in ("estimator", "scoring", "empty_utility"):
        setting = getattr(valuer, name)
        if name == "scoring" and setting == "neg_training_loss":
            continue
        if setting is not None:
            raise ValueError(
                f"{name} must be None with l2, which defines the utility. Got "
                f"{setting!r}."
            )
    n_classes = problem.n_classes
    if n_classes != 2:
        got = f"{n_classes} classes" if n_classes else "a continuous target"
        raise ValueError(f"l2 needs two classes, for its loss is logistic. Got {got}.")
