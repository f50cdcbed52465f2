"""What happens to the coefficients, and along a direction, when rows are removed."""

from dataclasses import replace

import numpy as np

from .._utils.parallel import tiles
from .hessian import Hessian
from .losses import SQUARED

_BLOCK = 2**21  # numbers in a block
_SINGULAR = 1e-10  # determinant below which a row has no optimum without it

# Newton's steps end with one of this length, relative to the coefficients: the error
# after a step is about its square. Errors of corrections fall by a factor each.
_LAST_STEP = 1e-6
_MAX_STEPS = 50
_MAX_HALVINGS = 30
_ROUNDING = 1e-12  # relative, of the objective
_LAST_CORRECTION = 1e-9
_MAX_CORRECTIONS = 50


def polish_optimum(model):
    """The model at its optimum, which estimators reach up to `tol`, by Newton steps.

    Parameters
    ----------
    model : LinearModel
        The objective, at coefficients near its minimum.

    Returns
    -------
    model : LinearModel
        The same objective, at its minimum.

    Raises
    ------
    ValueError
        If the steps do not converge.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skvalue.derivatives import linear_model, polish_optimum
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    >>> estimator = LogisticRegression(tol=0.1).fit(X, y)
    >>> model = polish_optimum(linear_model(estimator, X, y))
    >>> slope = model.X.T @ model.gradient() + model.penalty[:, None] * model.theta
    >>> bool(np.abs(slope).max() < 1e-9)
    True
    """
    weight = model.weights.sum()
    penalty = (model.penalty + weight * model.row_penalty)[:, None]
    units = model.units[:, None]
    value = np.inf if model.loss is SQUARED else _objective(model, penalty)
    for _ in range(_MAX_STEPS):
        gradient = model.X.T @ model.gradient() + penalty * model.theta
        step = Hessian(model).solve(gradient.T[None])[0].T
        ahead = replace(model, theta=model.theta - step)
        size = 1 + np.abs(ahead.theta / units).max()
        if np.abs(step / units).max() <= _LAST_STEP * size:
            return ahead
        if model.loss is SQUARED:
            model = ahead
            continue

        # Far from the optimum a whole step may go too far.
        for _ in range(_MAX_HALVINGS):
            ahead_value = _objective(ahead, penalty)
            if ahead_value <= value + _ROUNDING * abs(value):
                break
            step = step / 2
            ahead = replace(model, theta=model.theta - step)
        model = ahead
        value = ahead_value
    raise ValueError(
        f"estimator must be near its optimum: {_MAX_STEPS} Newton steps from its "
        f"coefficients do not converge. Increase max_iter. Got {model.estimator!r}."
    )


def _objective(model, penalty):
    """The objective at the coefficients of a model, for penalties (p, 1)."""
    with np.errstate(over="ignore"):
        losses = model.loss.values(model.X @ model.theta, model.y)
        return model.weights @ losses + (penalty * model.theta**2).sum() / 2


def row_products(model, directions, X=None, gradient=None, weights=None):
    """Products of directions with the gradients of the objective's terms of rows.

    With directions ``H^-1 grad U``, minus the derivative of U by the weight of each
    row; the decrease of U, to first order, when it is removed is minus this.

    Parameters
    ----------
    model : LinearModel
        The objective.
    directions : ndarray of shape (m, K, p)
        Directions in the space of coefficients.
    X, gradient, weights : ndarrays, default=None
        Other rows: design, gradient of the loss by the decisions (times the weight),
        and weight.

    Returns
    -------
    products : ndarray of shape (m, n_rows)
        The products.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skvalue.derivatives import linear_model, row_products
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 3.0])
    >>> model = linear_model(Ridge().fit(X, y), X, y)
    >>> row_products(model, np.ones((1, 1, 2))).shape
    (1, 3)
    """
    if X is None:
        X = model.X
        gradient = model.gradient()
        weights = model.weights
    m, k, p = directions.shape
    changes = (X @ directions.reshape(m * k, p).T).reshape(-1, m, k)
    penalty = np.einsum("mkp,p,pk->m", directions, model.row_penalty, model.theta)
    return np.einsum("nmk,nk->mn", changes, gradient) + penalty[:, None] * weights


def newton_steps(model, hessian, X, gradient, curvature, weights, sign=-1.0):
    """Change of the coefficients by one Newton step if a single row leaves or joins.

    The optimum without a row for least squares (Cook 1977), and the approximate
    leave-one-out of Rad and Maleki (2020, equation 6) for other losses.

    Parameters
    ----------
    model : LinearModel
        The objective.
    hessian : Hessian
        Its factorised Hessian, with the weight of one row less (or more) in the
        penalty.
    X, gradient, curvature, weights : ndarrays
        The rows: design (m, p), weighted gradient (m, K) and curvature (m, K, K) of the
        loss by the decisions, and weights (m,).
    sign : {-1.0, 1.0}, default=-1.0
        -1 removes each row from the objective, 1 adds it.

    Returns
    -------
    steps : ndarray of shape (m, K, p)
        The change of the coefficients, for each row alone; NaN if there is no unique
        optimum without the row.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skvalue.derivatives import Hessian, linear_model, newton_steps
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 3.0])
    >>> model = linear_model(Ridge().fit(X, y), X, y)
    >>> rows = model.X, model.gradient(), model.curvature(), model.weights
    >>> steps = newton_steps(model, Hessian(model), *rows)
    >>> refit = Ridge().fit(X[:2], y[:2])
    >>> bool(np.isclose((model.theta.T + steps[2])[0, 0], refit.coef_[0]))
    True
    """
    X = _dense(X)
    m, p = X.shape
    k = gradient.shape[1]

    # H^-1 of each decision's columns, the leverages, and H^-1 of the gradient of the
    # penalty that a unit of weight carries.
    columns = np.zeros((m, k, k, p))
    columns[:, np.arange(k), np.arange(k)] = X[:, None]
    solved = hessian.solve(columns.reshape(m * k, k, p)).reshape(m, k, k, p)
    leverages = np.einsum("mklp,mp->mlk", solved, X)
    shrinkage = hessian.solve((model.row_penalty[:, None] * model.theta).T[None])[0]

    # The Hessian changes by the curvature of the row: Woodbury's formula.
    changes = np.einsum("mlk,mk->ml", leverages, gradient)
    changes += weights[:, None] * (X @ shrinkage.T)
    gradient_changes = np.einsum("mkl,ml->mk", curvature, changes)
    system = np.eye(k) + sign * np.einsum("mkl,mlj->mkj", curvature, leverages)
    system[np.abs(np.linalg.det(system)) < _SINGULAR] = np.nan
    corrections = np.linalg.solve(system, gradient_changes[:, :, None])
    factors = gradient - sign * corrections[:, :, 0]
    steps = np.einsum("mk,mklp->mlp", factors, solved)
    steps = steps + weights[:, None, None] * shrinkage
    return -sign * steps


def corrected_steps(model, hessian, steps, rows=None, joined=None):
    """A second step after `newton_steps`, with the gradient at the new coefficients.

    It has the same Hessian for all steps, that of `hessian`. For least squares the
    first step is the solution, and nothing changes.

    Parameters
    ----------
    model : LinearModel
        The objective.
    hessian : Hessian
        Its Hessian.
    steps : ndarray of shape (m, K, p)
        Changes of the coefficients.
    rows : ndarray of int of shape (m,), default=None
        The row that is removed at each step.
    joined : tuple of X, y and weights of m rows, default=None
        Or the row that is added at each step: design, targets and weight.

    Returns
    -------
    steps : ndarray of shape (m, K, p)
        The corrected changes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skvalue.derivatives import Hessian, corrected_steps, linear_model
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    >>> model = linear_model(LogisticRegression().fit(X, y), X, y)
    >>> no_step = np.zeros((1, 1, 2))
    >>> steps = corrected_steps(model, Hessian(model), no_step)
    >>> bool(np.abs(steps).max() < 1e-3)  # the model is at its optimum
    True
    """
    if model.loss is SQUARED:
        return steps
    n = len(model.y)
    m, k, p = steps.shape
    theta = model.theta.T + steps
    total_weight = np.full(m, model.weights.sum())  # of the rows in each objective

    # The gradient of all rows at the coefficients of each step.
    z = (model.X @ theta.reshape(m * k, p).T).reshape(n * m, k)
    gradient = model.loss.gradient(z, np.repeat(model.y, m, axis=0)).reshape(n, m, k)
    gradient = model.weights[:, None, None] * gradient
    if rows is not None:
        gradient[rows, np.arange(m)] = 0
        total_weight = total_weight - model.weights[rows]
    total = (model.X.T @ gradient.reshape(n, m * k)).T.reshape(m, k, p)
    if joined is not None:
        X, y, weights = joined
        X = _dense(X)
        z = np.einsum("mp,mkp->mk", X, theta)
        gradient = weights[:, None] * model.loss.gradient(z, y)
        total = total + gradient[:, :, None] * X[:, None]
        total_weight = total_weight + weights

    penalty = model.penalty + total_weight[:, None] * model.row_penalty
    return steps - hessian.solve(total + penalty[:, None] * theta)


def changes_without(model, hessian, players, converge=False):
    """Change of the coefficients without each player's rows, in turn: two Newton steps.

    The first is, of several rows, the second-order effect of a group (Basu, You and
    Feizi 2020).

    Parameters
    ----------
    model : LinearModel
        The objective.
    hessian : Hessian
        Its Hessian. Single rows have a closed form if it is factorised.
    players : list of ndarray of int
        Positions of the rows of each player.
    converge : bool, default=False
        Whether steps are repeated up to the optimum without the rows.

    Yields
    ------
    step : ndarray of shape (K, p)
        The change; NaN if there is no unique optimum without a row, or if repeated
        steps do not converge.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skvalue.derivatives import Hessian, changes_without, linear_model
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 3.0])
    >>> model = linear_model(Ridge().fit(X, y), X, y)
    >>> (change,) = changes_without(model, Hessian(model), [np.array([2])])
    >>> refit = Ridge().fit(X[:2], y[:2])
    >>> bool(np.isclose((model.theta.T + change)[0, 0], refit.coef_[0]))
    True
    """
    is_single = all(len(rows) == 1 for rows in players)
    if is_single and hessian.solver == "cholesky":
        yield from _changes_without_rows(model, hessian, players, converge)
    elif converge:
        for rows in players:
            yield optimum_without(model, rows)
    else:
        for rows in players:
            remaining = model.without(rows)
            own_hessian = Hessian(remaining)
            step = own_hessian.solve(model.gradient_sum(rows)[None])
            yield corrected_steps(remaining, own_hessian, step)[0]


def _changes_without_rows(model, hessian, players, converge):
    """As `changes_without`, of players of one row, in blocks of rows."""
    if model.row_penalty.any():
        # One for all rows: the penalty is without the mean weight of a row.
        hessian = Hessian(model, model.weights.mean())
    rows = np.concatenate(players)
    n_corrections = _MAX_CORRECTIONS if converge else 1
    units = model.units
    scale = 1 + np.abs(model.theta.T / units).max()
    for tile in tiles(len(rows), block_size(model)):
        removed = rows[tile]
        steps = newton_steps(
            model,
            hessian,
            X=model.X[removed],
            gradient=model.gradient(removed),
            curvature=model.curvature(removed),
            weights=model.weights[removed],
        )
        for _ in range(n_corrections):
            former = steps
            steps = corrected_steps(model, hessian, steps, rows=removed)
            errors = np.abs((steps - former) / units).max(axis=(1, 2)) / scale
            if np.all(errors <= _LAST_CORRECTION):
                break
        if converge:
            steps[~(errors <= _LAST_CORRECTION)] = np.nan
        yield from steps


def optimum_without(model, rows):
    """Change of the coefficients without some rows, up to the optimum.

    Parameters
    ----------
    model : LinearModel
        The objective, at its minimum.
    rows : ndarray of int
        Positions of the removed rows.

    Returns
    -------
    step : ndarray of shape (K, p)
        The change of the coefficients; NaN if there is no unique optimum without the
        rows, or if it is not reached.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skvalue.derivatives import linear_model, optimum_without
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 3.0])
    >>> model = linear_model(Ridge().fit(X, y), X, y)
    >>> change = optimum_without(model, np.array([2]))
    >>> refit = Ridge().fit(X[:2], y[:2])
    >>> bool(np.isclose((model.theta.T + change)[0, 0], refit.coef_[0]))
    True
    """
    try:
        return (polish_optimum(model.without(rows)).theta - model.theta).T
    except ValueError:
        return np.full(model.theta.T.shape, np.nan)


def block_size(model):
    """Number of Newton steps to take at a time.

    Parameters
    ----------
    model : LinearModel
        The objective.

    Returns
    -------
    size : int
        The number.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from skvalue.derivatives import block_size, linear_model
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 3.0])
    >>> model = linear_model(Ridge().fit(X, y), X, y)
    >>> block_size(model) > len(y)
    True
    """
    p, k = model.theta.shape
    return max(1, _BLOCK // (k * max(k * p, len(model.y))))


def _dense(X):
    return X if isinstance(X, np.ndarray) else X.toarray()
