"""Values of rows of a trained linear model, from its Hessian."""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..._utils.checks import refuse_large
from ..._utils.parallel import tiles
from ..._utils.sklearn import validated
from ...derivatives import (
    Hessian,
    LinearModel,
    block_size,
    changes_without,
    corrected_steps,
    evaluate,
    linear_model,
    newton_steps,
    polish_optimum,
    row_products,
)

# Numbers in a block.
_BLOCK = 2**21

# Largest number of a design, so that products of four numbers are finite.
_MAX_NUMBER = 1e75


# The model of a split -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """The model of one split, and its utility at the validation points.

    There are V points and K decisions at each.
    """

    model: LinearModel
    hessian: Hessian
    # Design of the validation points, (V, p).
    points: np.ndarray
    # Codes of their labels, or targets, (V,).
    y: np.ndarray
    # (V,)
    weights: np.ndarray
    # What `evaluate` takes.
    utility: object
    # The utility of the model, and of a constant decision.
    value: float
    empty_value: float
    # The utility at each point, (V,); None if it is no mean over points.
    by_point: np.ndarray | None
    # Of the utility by the decisions at the points, (V, K).
    gradient: np.ndarray

    def decrease(self, step):
        """Decrease of the utility for a change (K, p) of the coefficients.

        At each point, (V,), if the utility is a mean.
        """
        z = self.points @ (self.model.theta + step.T)
        by_point, value, _ = evaluate(self.utility, self.model, z, self.y, self.weights)
        if by_point is None:
            return self.value - value
        return self.by_point - by_point


def train(estimator, X, labels, points, utility):
    """Fit a model up to its optimum, and evaluate its utility at points.

    The y of the points are codes or targets.
    """
    # The steps below converge, or raise an error.
    with warnings.catch_warnings(), validated():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = clone(estimator).fit(X, labels)
    model = polish_optimum(linear_model(fitted, X, labels))
    design = model.design(points.X)
    _check_numbers("X", model.X)
    _check_numbers("X_val", design)
    z = design @ model.theta
    by_point, value, gradient = evaluate(utility, model, z, points.y, points.weights)
    constant = _constant_decision(estimator, model, points, z)
    _, empty_value, _ = evaluate(utility, model, constant, points.y, points.weights)
    return TrainedModel(
        model=model,
        hessian=Hessian(model),
        points=design,
        y=points.y,
        weights=points.weights,
        utility=utility,
        value=value,
        empty_value=empty_value,
        by_point=by_point,
        gradient=gradient,
    )


def _check_numbers(name, design):
    """Refuse numbers of a design of which the Hessian would not be finite."""
    reason = " in the linear model, for its Hessian to be finite"
    refuse_large(design, _MAX_NUMBER, name, reason)


def _constant_decision(estimator, model, points, z):
    """Decisions of no rows at the points, (V, K) as the decisions ``z``.

    They are those of probabilities 1/C, or of the mean target.
    """
    if model.classes is not None:
        return np.zeros_like(z)
    mean = points.weights @ points.y
    if model.loss.link is np.log and not mean > 0:
        raise ValueError(
            f"y_val must have a positive mean for {estimator!r}, which predicts "
            f"exponentials. Got {mean}."
        )
    return np.zeros_like(z) + model.loss.link(mean)


# Values of players --------------------------------------------------------------------


def value_split(number, data, groups, order, on_themselves):
    """Value the players of a split, as `mean_over_points` takes it.

    ``data`` are the arguments of `train`. Returns the number of the split, values
    (n_rows,) that are to be summed by group, the utility at each point, and the
    `TrainedModel`. With ``on_themselves`` the points are the rows, each of which
    evaluates its own player alone.
    """
    trained = train(*data)
    if on_themselves:
        players = rows_of_players(groups, len(trained.model.y))
        values = own_changes(trained, players, order)
        for rows in players:
            values[rows] /= len(rows)
    elif order == 1:
        values = first_order_values(trained)
    else:
        # The value of a group is not a sum over its rows: it stands at the first of
        # them, and the others have zero.
        players = rows_of_players(groups, len(trained.model.y))
        first_rows = [rows[0] for rows in players]
        decreases = second_order_decreases(trained, players)
        values = np.zeros(len(trained.model.y))
        values[first_rows] = mean_decreases(trained, decreases)
    utility = np.full(len(trained.y), trained.value)
    return number, values, utility, trained


def rows_of_players(groups, n):
    """Rows of each player, in the order of the players, as a list of arrays."""
    if groups is None:
        return list(np.arange(n)[:, None])
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def first_order_values(trained):
    """Decrease of the utility without each row, to first order, (n_rows,).

    It takes one linear system.
    """
    (products,) = row_products(trained.model, _utility_direction(trained))
    return -products


def second_order_decreases(trained, players):
    """Decrease of the utility after two Newton steps without each player's rows.

    Yields them in turn, at each point (V,) if the utility is a mean. ``players``: rows
    of each player.
    """
    for step in _second_order_steps(trained, players):
        yield trained.decrease(step)


def _second_order_steps(trained, players):
    """Change (K, p) of the coefficients after two Newton steps, in turn.

    Single rows have a closed form if the Hessian is factorised.
    """
    steps = changes_without(trained.model, trained.hessian, players)
    for rows, step in zip(players, steps):
        if not np.isfinite(step).all():
            raise ValueError(
                "order=2 needs an estimator with a unique optimum without each row: "
                "pass one with a penalty. Got "
                f"{trained.model.estimator!r}, without row {rows[0]}."
            )
        yield step


def own_changes(trained, players, order):
    """Change of the utility at each row when the player that it belongs to is removed.

    Approximate leave-one-out, (n_rows,): the largest losses are gained by rows that the
    model fits only because they are there. 0 at rows of no player. The points of the
    trained model are its rows, and the utility is a mean over them.
    """
    model = trained.model
    z = model.X @ model.theta
    before, slopes = _utility_and_slopes(trained, z, trained.y)
    moved = z.copy()
    for rows, step in zip(players, _steps_without(trained, players, order)):
        moved[rows] += model.X[rows] @ step.T
    if order == 1:
        return (slopes * (moved - z)).sum(axis=1)
    after, _ = _utility_and_slopes(trained, moved, trained.y)
    return after - before


def _utility_and_slopes(trained, z, y):
    """The utility (n,) at each of n points, and its derivatives (n, K).

    By the decisions z at the points.
    """
    utility = trained.utility
    variance = 1.0
    if utility == "r2":  # a squared error by the variance of the points of the fit
        utility = "neg_mean_squared_error"
        variance = trained.weights @ (trained.y - trained.weights @ trained.y) ** 2
    weights = np.ones(len(y))
    by_point, _, slopes = evaluate(utility, trained.model, z, y, weights)
    return by_point / variance, slopes / variance


def _steps_without(trained, players, order):
    """Change (K, p) of the coefficients without the rows of each player, in turn."""
    model = trained.model
    if order == 2:
        yield from _second_order_steps(trained, players)
        return
    for tile in tiles(len(players), block_size(model)):
        gradients = [model.gradient_sum(rows) for rows in players[tile]]
        yield from trained.hessian.solve(np.array(gradients))


def mean_decreases(trained, decreases):
    """Decreases of the utility, (n,), from means or from entries at each point."""
    means = []
    for decrease in decreases:
        if np.ndim(decrease) == 1:
            decrease = trained.weights @ decrease
        means.append(decrease)
    return np.array(means)


def values_at_points(trained, rows):
    """Total first-order value of rows at each point, (V,); 0 where the weight is 0."""
    gradient = trained.model.gradient_sum(rows)
    (direction,) = trained.hessian.solve(gradient[None])
    changes = trained.points @ direction.T
    values = -(trained.gradient * changes).sum(axis=1)
    has_weight = trained.weights > 0
    return np.divide(values, trained.weights, out=0 * values, where=has_weight)


def first_order_moments(trained, sum_by_group, n_players):
    """Sums over points of ``weight**2 * value`` and ``weight**2 * value**2``.

    Of shape (2, n_players), for values to first order.
    """
    model = trained.model
    weights = trained.weights
    moments = np.zeros((2, n_players))
    slopes = trained.gradient / np.where(weights > 0, weights, 1.0)[:, None]
    size = max(1, _BLOCK // max(model.theta.size, len(model.y)))
    for block in tiles(len(weights), size):
        points = _dense(trained.points[block])
        directions = slopes[block][:, :, None] * points[:, None]
        row_values = -row_products(model, trained.hessian.solve(directions))
        values = np.array([sum_by_group(line) for line in row_values])
        squared_weights = weights[block] ** 2
        moments += np.array([squared_weights @ values, squared_weights @ values**2])
    return moments


def second_order_moments(trained, players):
    """As `first_order_moments`, for values after two Newton steps."""
    squared_weights = trained.weights**2
    moments = [
        (squared_weights @ values, squared_weights @ values**2)
        for values in second_order_decreases(trained, players)
    ]
    return np.array(moments).T


def _dense(X):
    if isinstance(X, np.ndarray):
        return X
    return X.toarray()


# Values of rows that join -------------------------------------------------------------


def joining_values(trained, X, targets, order):
    """Increase of the utility when single rows join, (n_rows,).

    ``targets`` None: to first order, where the gradient is zero on average over labels.
    """
    model = trained.model
    X = model.design(X)
    z = X @ model.theta
    weights = np.full(X.shape[0], model.weights.mean())
    gradient = np.zeros_like(z)
    curvature = np.zeros((*z.shape, z.shape[1]))
    if targets is not None:
        gradient = weights[:, None] * model.loss.gradient(z, targets)
        curvature = weights[:, None, None] * model.loss.curvature(z, targets)
    if order == 1:
        direction = _utility_direction(trained)
        (products,) = row_products(model, direction, X, gradient, weights)
        return -products

    steps = _joining_steps(trained, X, targets, gradient, curvature, weights)
    increases = [-trained.decrease(step) for step in steps]
    return mean_decreases(trained, increases)


def _joining_steps(trained, X, targets, gradient, curvature, weights):
    """Change (K, p) of the coefficients when single rows join: two Newton steps.

    ``targets`` None: one step, with the gradient given.
    """
    model = trained.model

    # A row that joins adds its weight to that of the penalty.
    hessian = Hessian(model, less_weight=-model.weights.mean())
    for rows in tiles(X.shape[0], block_size(model)):
        steps = newton_steps(
            model,
            hessian,
            X[rows],
            gradient[rows],
            curvature[rows],
            weights[rows],
            sign=1.0,
        )
        if targets is not None:
            joined = X[rows], targets[rows], weights[rows]
            steps = corrected_steps(model, hessian, steps, joined=joined)
        yield from steps


def own_joining_values(trained, X, y, order):
    """Change of the utility at single rows without them, once they have joined.

    (n_rows,); y are codes or targets. None is the mean over labels by the model's own
    probabilities, and a row on its prediction where it has none.
    """
    model = trained.model
    if y is None and not model.loss.classes:
        return np.zeros(X.shape[0])
    design = model.design(X)
    z = design @ model.theta
    if y is not None:
        return _own_joining_values(trained, design, z, y, order)
    values = 0.0
    for code in range(len(model.classes)):
        codes = np.full(len(z), code)
        probabilities = np.exp(-model.loss.values(z, codes))
        of_label = _own_joining_values(trained, design, z, codes, order)
        values = values + probabilities * of_label
    return values


def _own_joining_values(trained, design, z, y, order):
    """As `own_joining_values`, of rows with decisions z and known labels."""
    model = trained.model
    targets = model.targets(y)
    weights = np.full(len(z), model.weights.mean())
    gradient = weights[:, None] * model.loss.gradient(z, targets)
    without, slopes = _utility_and_slopes(trained, z, y)
    if order == 1:
        values = np.empty(len(z))
        for rows in tiles(len(z), block_size(model)):
            X = _dense(design[rows])
            gradients = gradient[rows][:, :, None] * X[:, None]
            gradients = gradients + (
                weights[rows][:, None, None]
                * (model.row_penalty[:, None] * model.theta).T
            )
            steps = trained.hessian.solve(gradients)
            moved = np.einsum("mp,mkp->mk", X, steps)
            values[rows] = (slopes[rows] * moved).sum(axis=1)
        return values

    curvature = weights[:, None, None] * model.loss.curvature(z, targets)
    steps = _joining_steps(trained, design, targets, gradient, curvature, weights)
    moved = z.copy()
    for i, step in enumerate(steps):
        moved[i] += (design[i : i + 1] @ step.T)[0]
    joined, _ = _utility_and_slopes(trained, moved, y)
    return without - joined


def expected_joining_values(trained, X):
    """Increase of the utility when rows join, the mean over labels, (n_rows,).

    By the model's own probabilities, after two Newton steps.
    """
    model = trained.model
    z = model.design(X) @ model.theta
    values = 0
    for code in range(len(model.classes)):
        codes = np.full(len(z), code)
        probabilities = np.exp(-model.loss.values(z, codes))
        values = values + probabilities * joining_values(trained, X, codes, order=2)
    return values


def _utility_direction(trained):
    """The gradient of the utility in the inverse of the Hessian, (1, K, p)."""
    gradient = (trained.points.T @ trained.gradient).T
    return trained.hessian.solve(gradient[None])
