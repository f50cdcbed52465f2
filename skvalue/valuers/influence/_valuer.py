"""The estimator of influence: a trained model -> its Hessian -> values."""

from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.linear_model import LogisticRegression

from ..._utils.messages import Message
from ..._utils.parallel import one_blas_thread
from ..._utils.sklearn import HasMethods, Interval, StrOptions
from ..._utils.targets import task_of
from ...base import (
    BaseValuer,
    Capabilities,
    follow_input_tags,
    mean_over_points,
    refuse_unseen_labels,
)
from ...derivatives import supports
from ...exceptions import UncleanPointsWarning
from .._retraining._games import estimator_of
from ._values import (
    expected_joining_values,
    first_order_moments,
    joining_values,
    own_changes,
    own_joining_values,
    rows_of_players,
    second_order_decreases,
    second_order_moments,
    value_split,
    values_at_points,
)

_OF_CV = Message(
    "cv",
    "holds out rows whose labels are as noisy as those of the others: on average the "
    "gradient of their loss is zero at the optimum, and values say little about wrong "
    "labels.",
    "Pass clean {}, or {}, which evaluates each row on itself.",
    [("X_val", ...), ("cv", None)],
)

# Utilities that are means over the validation points, and all by name.
_MEANS = ("neg_loss", "accuracy", "neg_mean_squared_error", "r2")
_UTILITIES = (*_MEANS, "roc_auc")


class _NoMeanError(ValueError, AttributeError):
    """The utility is no mean over points; `hasattr` of an attribute is then False."""


class InfluenceValuer(BaseValuer):
    """Influence of rows on a trained linear model, from its exact Hessian.

    With validation points, the value of a row is the estimated decrease of the utility
    of the trained model when the row is removed: to first order the product of the
    gradients of the utility and of the row's loss in the inverse of the Hessian. There
    is one fit and one linear system; no model is trained without a row. Values are no
    semivalues, and do not sum to ``utility_ - empty_utility_``.

    Without validation points, the value of a row is the estimated change of the utility
    at the row itself when it is removed (approximate leave-one-out, from one fit): that
    of a group is the mean over its own rows. It is lowest for rows that the model fits
    only because it was trained on them, such as those with a wrong label.

    Parameters
    ----------
    estimator : estimator, default=None
        `LogisticRegression` (L2 penalty or none), `Ridge`, `LinearRegression`,
        `RidgeClassifier`, `PoissonRegressor`, `GammaRegressor` or `KernelRidge`, or a
        Pipeline that ends in one of them: rows are then valued as its fitted
        transformers map them, and the transformers count as fixed. None is
        `LogisticRegression`, or `Ridge` for a continuous target. `LinearSVC` is left
        out: its loss has no second derivative at the margin.
    utility : str or callable, default="neg_loss"
        The utility. "neg_loss" is minus the mean log-loss, squared error or deviance,
        "accuracy" the mean probability of the right label, "roc_auc" the mean over
        pairs of a positive and a negative of the logistic function of the difference of
        their decisions; "neg_mean_squared_error" and "r2" are the scores of predicted
        targets. A callable ``utility(decisions, y, weights)`` gets the decisions at the
        validation points, of shape (n_validation,) or, for several, (n_validation,
        n_decisions), the codes of the labels or the targets, and weights with sum 1; it
        returns the utility and its gradient by the decisions.
        :class:`~skvalue.derivatives.AccuracyGap` is the gap between groups of points.
    order : {1, 2}, default=1
        1 is the first order, in which the value of a group is the sum of those of its
        rows. With 2 the utility is evaluated after two steps of Newton's method on the
        objective without the row, or the group: the exact model for least squares.
    cv : int, splitter, "leave-one-out" or None, default=None
        If there is no validation set: None evaluates each row on itself. Else which
        rows are held out in turn and evaluate the others; the rows then evaluate each
        other with the labels that they have, to first order no value says which are
        wrong, and a warning says so.
    n_jobs : int, default=None
        Number of splits that are valued at the same time.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better.
    utility_ : float
        Utility of the model trained on all rows, at the validation points; at the rows
        themselves if there are none.
    empty_utility_ : float
        Utility of a constant decision: probabilities 1/C, or the mean of y_val.
    solver_ : {"cholesky", "cg"}
        How linear systems are solved: by factorising the Hessian if it fits into
        `working_memory` of :func:`sklearn.set_config`, else by conjugate gradients.
    validation_error_ : ndarray of the same shape as `values_`
        Standard errors over the sampling of the validation points; needs X_val in
        `fit`, and a utility that is a mean over points: any but "roc_auc" and
        callables. For "r2" the variance of y_val counts as fixed. With few points, of
        which some have large losses, less than 95 % of the values are within two errors
        (.84 with 50 points of iris and wrong labels).
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
    LeaveOneOutValuer : The decrease of a score without each row, by refits.
    skvalue.inspection.linear_datamodeling_score : Whether values predict retraining.

    Notes
    -----
    On average over the labels that the model expects, the gradient of a row's loss is
    zero: `transform` gives an unseen row, to first order, the value 0. Pass labels to
    `score_samples`. Weights of `class_weight` count as fixed.

    References
    ----------
    P. W. Koh, P. Liang: "Understanding Black-box Predictions via Influence Functions",
    ICML 2017, Equation 2.

    S. Basu, X. You, S. Feizi: "On Second-Order Group Influence Functions for Black-Box
    Predictions", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import InfluenceValuer
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0], [1.5]])
    >>> y = ["no", "no", "yes", "yes", "no"]
    >>> valuer = InfluenceValuer().fit(X, y, X_val=[[-1.5], [1.2]], y_val=["no", "yes"])
    >>> valuer.values_.argmin()
    np.int64(4)
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"]), HasMethods("forward"), None],
        "utility": [StrOptions(set(_UTILITIES)), callable],
        "order": [Interval(Integral, 1, 2, closed="both")],
        "cv": ["cv_object", StrOptions({"leave-one-out"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator=None,
        *,
        utility: object = "neg_loss",
        order=1,
        cv: object = None,
        n_jobs=None,
    ):
        self.estimator = estimator
        self.utility = utility
        self.order = order
        self.cv = cv
        self.n_jobs = n_jobs

    @property
    def _capabilities(self):
        if hasattr(self.estimator, "forward"):
            raise ValueError(
                "estimator must be a linear model of scikit-learn; for a torch module "
                f"take UnrolledValuer. Got {type(self.estimator).__name__}."
            )
        return Capabilities(
            regression=True,
            task=task_of("auto", self.estimator),
            any_rows=True,
            means=False,
            on_themselves=True,
            names=self.estimator is not None,
            products=not hasattr(self.estimator, "steps"),
        )

    # The fit --------------------------------------------------------------------------

    def _value(self, problem, run):
        estimator = estimator_of(self, problem)
        if not supports(estimator):
            raise ValueError(
                "estimator must be LogisticRegression, Ridge, LinearRegression, "
                "RidgeClassifier, PoissonRegressor, GammaRegressor or KernelRidge, or "
                f"a Pipeline that ends in one of them. Got {estimator!r}."
            )
        refuse_unseen_labels(problem, self.cv)
        on_themselves = problem.is_on_itself
        if on_themselves and self.utility not in _MEANS:
            raise ValueError(
                "utility must be a mean over points where each row is evaluated on "
                f"itself: {' or '.join(map(repr, _MEANS))}. Pass X_val, or cv. Got "
                f"utility={self.utility!r}."
            )
        if not on_themselves and not problem.has_validation_set:
            run.warn(_OF_CV, UncleanPointsWarning)

        tasks = []
        for number, split in enumerate(problem.splits):
            X, y = problem.rows(split)
            points = split.points
            if problem.n_classes:
                points = replace(points, y=points.y.astype(np.int64))
            data = (estimator, X, problem.labels(y), points, self.utility)
            groups = None if problem.groups is None else problem.groups[split.players]
            tasks.append((number, data, groups, self.order, on_themselves))
        values = run.map(value_split, tasks, self.n_jobs, what="splits valued")

        # The empty utility is that of the trained models.
        result = mean_over_points(problem, values, empty_utility=0.0)
        if result is None:
            return None
        models = [trained for (trained,) in result.statistic]
        empty_utility = np.mean([trained.empty_value for trained in models])
        return replace(
            result,
            empty_utility=float(empty_utility),
            statistic=models,
            attributes={"solver_": models[0].hessian.solver},
        )

    # After the fit --------------------------------------------------------------------

    def _score_new(self, fitted, number, X, y):
        trained = fitted.statistic[number]
        model = trained.model
        with one_blas_thread():
            if y is not None and model.classes is not None:
                y = y.astype(np.int64)
            if fitted.problem.is_on_itself:
                return own_joining_values(trained, X, y, self.order)
            if y is not None:
                return joining_values(trained, X, model.targets(y), self.order)
            if self.order == 2 and model.loss.classes:
                return expected_joining_values(trained, X)
            return joining_values(trained, X, None, self.order)

    def _point_values(self, fitted, number, players):
        trained = fitted.statistic[number]
        if fitted.problem.is_on_itself:
            changes = own_changes(trained, [players], self.order)
            return changes / (len(players) * trained.weights)
        if self.order == 1:
            return values_at_points(trained, players)
        self._require_mean("contributions", trained)
        (decrease,) = second_order_decreases(trained, [players])
        return decrease

    def _point_moments(self, fitted):
        problem = fitted.problem
        trained = fitted.statistic[0]
        self._require_mean("validation_error_", trained)
        if self.order == 1:
            return first_order_moments(trained, problem.sum_by_group, problem.n_players)
        players = rows_of_players(problem.groups, len(trained.model.y))
        return second_order_moments(trained, players)

    def _require_mean(self, what, trained):
        """Refuse a utility that is no mean over points."""
        if trained.by_point is None:
            raise _NoMeanError(
                f"{what} needs a utility that is a mean over validation points: "
                f"{' or '.join(map(repr, _MEANS))}. Got utility={self.utility!r}."
            )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # A torch module has no tags; `fit` refuses it.
        estimator = self.estimator
        if not hasattr(estimator, "__sklearn_tags__"):
            estimator = LogisticRegression()
        return follow_input_tags(tags, estimator)
