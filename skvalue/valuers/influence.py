"""Influence: the estimated decrease of a trained model's utility without a row."""

from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from .._utils.parallel import one_blas_thread, tiles
from .._utils.sklearn import HasMethods, Interval, StrOptions
from .._utils.targets import task_of
from ..base import (
    BaseValuer,
    Capabilities,
    follow_input_tags,
    mean_over_points,
    refuse_unseen_labels,
)
from ..derivatives import (
    Hessian,
    LinearModel,
    block_size,
    changes_without,
    corrected_steps,
    evaluate,
    linear_model,
    newton_steps,
    row_products,
    supports,
)
from ._retraining._plan import estimator_of

_BLOCK = 2**21  # numbers in a block
_MOST = 1e75  # of the design, so that products of four numbers are finite
_UTILITIES = ("neg_loss", "accuracy", "neg_mean_squared_error", "r2", "roc_auc")
_MEANS = _UTILITIES[:-1]


@dataclass(frozen=True, eq=False)
class Trained:
    """The model of one split, and its utility at the validation points."""

    model: LinearModel
    hessian: Hessian
    points: np.ndarray  # design of the validation points
    y: np.ndarray  # codes of their labels, or targets
    weights: np.ndarray
    utility: object
    value: float
    empty: float
    by_point: np.ndarray | None  # the utility at each point; None if it is no mean
    gradient: np.ndarray  # of the utility by the decisions at the points, (V, K)

    def decrease(self, step):
        """Decrease of the utility, at each point if it is a mean, for a change of
        coefficients."""
        z = self.points @ (self.model.theta + step.T)
        by_point, value, _ = evaluate(self.utility, self.model, z, self.y, self.weights)
        return self.value - value if by_point is None else self.by_point - by_point


def train(estimator, X, labels, X_val, y_val, weights, utility):
    """Fit a model, and evaluate its utility; `y_val` are codes or targets."""
    model = linear_model(clone(estimator).fit(X, labels), X, labels)
    points = model.design(X_val)
    for name, rows in (("X", model.X), ("X_val", points)):
        if np.abs(rows).max() > _MOST:
            raise ValueError(
                f"{name} must hold numbers of at most {_MOST:g} in absolute value in the linear "
                f"model, for its Hessian to be finite: scale them. Got {np.abs(rows).max():g}."
            )
    z = points @ model.theta
    by_point, value, gradient = evaluate(utility, model, z, y_val, weights)
    # No rows: the same decision everywhere, of probabilities 1/C or the mean target.
    constant = np.zeros_like(z)
    if model.classes is None:
        mean = weights @ y_val
        if model.loss.link is np.log and not mean > 0:
            raise ValueError(
                f"y_val must have a positive mean for {estimator!r}. Got {mean}."
            )
        constant += model.loss.link(mean)
    empty = evaluate(utility, model, constant, y_val, weights)[1]
    return Trained(
        model,
        Hessian(model),
        points,
        y_val,
        weights,
        utility,
        value,
        empty,
        by_point,
        gradient,
    )


def first_order_values(trained):
    """Decrease of the utility without each row, to first order: one linear system."""
    direction = (trained.points.T @ trained.gradient).T[None]
    return -row_products(trained.model, trained.hessian.solve(direction))[0]


def means(trained, decreases):
    """Decreases of the utility, of which each is a mean over points, or has an entry
    per point."""
    return np.array([x if np.ndim(x) == 0 else trained.weights @ x for x in decreases])


def second_order_decreases(trained, players):
    """Decrease of the utility after two Newton steps without each player's rows, in
    turn.

    At each point if the utility is a mean. ``players``: rows of each player. Single
    rows have a closed form if the Hessian is factorised.
    """
    steps = changes_without(trained.model, trained.hessian, players)
    for rows, step in zip(players, steps):
        if not np.isfinite(step).all():
            raise ValueError(
                "order=2 needs an estimator with a unique optimum without each row: pass one with "
                f"a penalty. Got {trained.model.estimator!r}, without row {rows[0]}."
            )
        yield trained.decrease(step)


def joining_values(trained, X, targets, order):
    """Increase of the utility when single rows join, with their targets or with their
    mean.

    ``targets`` None: to first order; the gradient is zero on average over labels.
    """
    model = trained.model
    X = model.design(X)
    z, weights = X @ model.theta, np.full(X.shape[0], model.weights.mean())
    gradient, curvature = np.zeros_like(z), np.zeros((*z.shape, z.shape[1]))
    if targets is not None:
        gradient = weights[:, None] * model.loss.gradient(z, targets)
        curvature = weights[:, None, None] * model.loss.curvature(z, targets)
    if order == 1:
        direction = (trained.points.T @ trained.gradient).T[None]
        solved = trained.hessian.solve(direction)
        return -row_products(model, solved, X, gradient, weights)[0]
    hessian, values = Hessian(model, -model.weights.mean()), []
    for part in tiles(len(z), block_size(model)):
        steps = newton_steps(
            model,
            hessian,
            X[part],
            gradient[part],
            curvature[part],
            weights[part],
            sign=1.0,
        )
        if targets is not None:
            joined = X[part], targets[part], weights[part]
            steps = corrected_steps(model, hessian, steps, joined=joined)
        values += [-trained.decrease(step) for step in steps]
    return means(trained, values)


def value_split(number, arguments, groups, order):
    """The tile of a split, see `mean_over_points`; a group's value stands at its first
    row."""
    trained = train(*arguments)
    if order == 1:
        values = first_order_values(trained)
    else:
        players = rows_of_players(groups, len(trained.model.y))
        values = np.zeros(len(trained.model.y))
        decreases = second_order_decreases(trained, players)
        values[[rows[0] for rows in players]] = means(trained, decreases)
    utility = np.full(len(trained.y), trained.value)
    return number, values, utility, trained


def rows_of_players(groups, n):
    """Rows of each player, in the order of the players."""
    if groups is None:
        return list(np.arange(n)[:, None])
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


class _NoMeanError(ValueError, AttributeError):
    """The utility is no mean over points. As an attribute's error it lets `hasattr` be
    False."""


class InfluenceValuer(BaseValuer):
    """Influence of rows on a trained linear model, from its exact Hessian.

    The value of a row is the estimated decrease of the utility of the trained model
    when the row is removed: to first order the product of the gradients of the utility
    and of the row's loss in the inverse of the Hessian. There is one fit and one linear
    system; no model is trained without a row. Values are no semivalues, and do not sum
    to ``utility_ - empty_utility_``.

    Parameters
    ----------
    estimator : estimator, default=None
        `LogisticRegression` (L2 penalty or none), `Ridge`, `LinearRegression`,
        `RidgeClassifier`, `PoissonRegressor`, `GammaRegressor` or `KernelRidge`, or a
        Pipeline that ends in one of them: rows are then valued as its fitted
        transformers map them, and the transformers count as fixed. None is
        `LogisticRegression`, or `Ridge` for a continuous target. `LinearSVC` is left
        out: its loss has no second derivative at the margin.
    utility : {"neg_loss", "accuracy", "roc_auc", "neg_mean_squared_error", "r2"} or callable, \
            default="neg_loss"
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
    cv : int, splitter or "leave-one-out", default=5
        Which rows are held out in turn, if there is no validation set.
    n_jobs : int, default=None
        Number of splits that are valued at the same time.

    Attributes
    ----------
    values_ : ndarray of shape (n_samples,) or (n_groups,)
        Values in the order of the rows, or of `groups_`; higher is better.
    utility_ : float
        Utility of the model trained on all rows.
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
    skvalue.inspection.linear_datamodeling_score : Whether values predict what retraining does.

    Notes
    -----
    On average over the labels that the model expects, the gradient of a row's loss is zero:
    `transform` gives an unseen row, to first order, the value 0. Pass labels to `score_samples`.
    Weights of `class_weight` count as fixed.

    References
    ----------
    P. W. Koh, P. Liang: "Understanding Black-box Predictions via Influence Functions", ICML 2017,
    Equation 2. S. Basu, X. You, S. Feizi: "On Second-Order Group Influence Functions for Black-Box
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
        cv: object = 5,
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
                "estimator must be a linear model of scikit-learn; for a torch module take "
                f"UnrolledValuer. Got {type(self.estimator).__name__}."
            )
        return Capabilities(
            regression=True, task=task_of("auto", self.estimator),
            any_rows=True, means=False, names=self.estimator is not None,
            products=not hasattr(self.estimator, "steps"),
        )  # fmt: skip

    def _value(self, problem, run):
        model = estimator_of(self, problem)
        if not supports(model):
            raise ValueError(
                "estimator must be LogisticRegression, Ridge, LinearRegression, RidgeClassifier, "
                "PoissonRegressor, GammaRegressor or KernelRidge, or a Pipeline that ends in one "
                f"of them. Got {model!r}."
            )
        refuse_unseen_labels(problem, self.cv)
        tasks = []
        for number, split in enumerate(problem.splits):
            (X, y), points = problem.rows(split), split.points
            y_val = points.y.astype(np.int64) if problem.n_classes else points.y
            groups = None if problem.groups is None else problem.groups[split.players]
            arguments = (
                model,
                X,
                problem.labels(y),
                points.X,
                y_val,
                points.weights,
                self.utility,
            )
            tasks.append((number, arguments, groups, self.order))
        found = run.map(value_split, tasks, self.n_jobs, what="splits valued")
        result = mean_over_points(problem, found, empty_utility=0.0)
        if result is None:
            return None
        models = [trained for (trained,) in result.statistic]
        empty = float(np.mean([trained.empty for trained in models]))
        attributes = {"solver_": models[0].hessian.solver}
        return replace(
            result, empty_utility=empty, statistic=models, attributes=attributes
        )

    # After the fit --------------------------------------------------------------------

    def _score_new(self, fitted, number, X, y):
        trained = fitted.statistic[number]
        model = trained.model
        with one_blas_thread():
            if y is not None:
                targets = model.targets(
                    y.astype(np.int64) if model.classes is not None else y
                )
                return joining_values(trained, X, targets, self.order)
            if self.order == 1 or not model.loss.classes:
                return joining_values(trained, X, None, self.order)
            z = model.design(X) @ model.theta
            labels = range(len(model.classes))
            return sum(
                np.exp(-model.loss.values(z, np.full(len(z), label)))
                * joining_values(trained, X, np.full(len(z), label), 2)
                for label in labels
            )

    def _point_values(self, fitted, number, players):
        trained = fitted.statistic[number]
        if self.order == 2:
            self._require_mean("contributions", trained)
            (decrease,) = second_order_decreases(trained, [players])
            return decrease
        model = trained.model
        total = model.gradient_sum(players)
        change = trained.points @ trained.hessian.solve(total[None])[0].T
        parts = -(trained.gradient * change).sum(axis=1)
        return np.divide(
            parts, trained.weights, out=0 * parts, where=trained.weights > 0
        )

    def _point_moments(self, fitted):
        trained, problem = fitted.statistic[0], fitted.problem
        self._require_mean("validation_error_", trained)
        model, weights = trained.model, trained.weights
        players = rows_of_players(problem.groups, len(model.y))
        if self.order == 2:
            moments = [
                (weights**2 @ x, weights**2 @ x**2)
                for x in second_order_decreases(trained, players)
            ]
            return np.array(moments).T
        moments = np.zeros((2, problem.n_players))
        slopes = trained.gradient / np.where(weights > 0, weights, 1.0)[:, None]
        for part in tiles(
            len(weights), max(1, _BLOCK // max(model.theta.size, len(model.y)))
        ):
            points = trained.points[part]
            points = points if isinstance(points, np.ndarray) else points.toarray()
            directions = slopes[part][:, :, None] * points[:, None]
            x = -row_products(model, trained.hessian.solve(directions))
            x = np.array([problem.sum_by_group(row) for row in x])
            moments += np.array([weights[part] ** 2 @ x, weights[part] ** 2 @ x**2])
        return moments

    def _require_mean(self, what, trained):
        if trained.by_point is None:
            raise _NoMeanError(
                f"{what} needs a utility that is a mean over validation points: "
                f"{' or '.join(map(repr, _MEANS))}. Got utility={self.utility!r}."
            )

    def __sklearn_tags__(self):
        known = hasattr(
            self.estimator, "__sklearn_tags__"
        )  # a torch module is refused by `fit`
        estimator = self.estimator if known else LogisticRegression()
        return follow_input_tags(super().__sklearn_tags__(), estimator)
