"""What happens to the coefficients, and along a direction, when rows are removed."""

import numpy as np

from ._hessian import Hessian
from ._losses import SQUARED


def row_products(model, directions, X=None, gradient=None, weights=None):
    """Products of directions with the gradients of the objective's terms of rows.

    With directions ``H^-1 grad U``, minus the derivative of U by the weight of each row; the
    decrease of U, to first order, when it is removed is minus this.

    Parameters
    ----------
    model : LinearModel
        The objective.
    directions : ndarray of shape (m, K, p)
        Directions in the space of coefficients.
    X, gradient, weights : ndarrays, default=None
        Other rows: design, gradient of the loss by the decisions (times the weight), and weight.

    Returns
    -------
    products : ndarray of shape (m, n_rows)
        The products.
    """
    if X is None:
        X, gradient, weights = model.X, model.gradient(), model.weights
    m, k, p = directions.shape
    along = (X @ directions.reshape(m * k, p).T).reshape(-1, m, k)
    penalty = np.einsum("mkp,p,pk->m", directions, model.row_penalty, model.theta)
    return np.einsum("nmk,nk->mn", along, gradient) + penalty[:, None] * weights


def newton_steps(model, hessian, X, gradient, curvature, weights, sign=-1.0):
    """Change of the coefficients by one Newton step, when single rows are removed or added.

    The optimum without a row for least squares (Cook 1977), and the approximate leave-one-out of
    Rad and Maleki (2020, equation 6) for other losses.

    Parameters
    ----------
    model : LinearModel
        The objective.
    hessian : Hessian
        Its factorised Hessian, with the weight of one row less (or more) in the penalty.
    X, gradient, curvature, weights : ndarrays
        The rows: design (m, p), weighted gradient (m, K) and curvature (m, K, K) of the loss by the
        decisions, and weights (m,).
    sign : {-1.0, 1.0}, default=-1.0
        -1 removes each row from the objective, 1 adds it.

    Returns
    -------
    steps : ndarray of shape (m, K, p)
        The change of the coefficients, for each row alone.
    """
    X = X.toarray() if not isinstance(X, np.ndarray) else X
    (m, p), k = X.shape, gradient.shape[1]
    units = np.zeros((m, k, k, p))
    units[:, np.arange(k), np.arange(k)] = X[:, None]
    solved = hessian.solve(units.reshape(m * k, k, p)).reshape(m, k, k, p)
    # H^-1 of the gradient, and then the change of the Hessian by Woodbury's formula.
    shrink = hessian.solve((model.row_penalty[:, None] * model.theta).T[None])[0]
    leverage = np.einsum("mklp,mp->mlk", solved, X)
    along = np.einsum("mlk,mk->ml", leverage, gradient)
    along += weights[:, None] * (X @ shrink.T)
    curved = np.einsum("mkl,ml->mk", curvature, along)
    system = np.eye(k) + sign * np.einsum("mkl,mlj->mkj", curvature, leverage)
    moved = gradient - sign * np.linalg.solve(system, curved[:, :, None])[:, :, 0]
    steps = np.einsum("mk,mklp->mlp", moved, solved) + weights[:, None, None] * shrink
    return -sign * steps


def corrected_steps(model, hessian, steps, rows=None, joined=None):
    """A second step after `newton_steps`, with the gradient at the new coefficients.

    It has the same Hessian for all steps, that of `hessian`. For least squares the first step is
    the solution, and nothing changes.

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
    """
    if model.loss is SQUARED:
        return steps
    n, (m, k, p) = len(model.y), steps.shape
    theta, weight = model.theta.T + steps, np.full(m, model.weights.sum())
    z = (model.X @ theta.reshape(m * k, p).T).reshape(n * m, k)
    gradient = model.loss.gradient(z, np.repeat(model.y, m, axis=0)).reshape(n, m, k)
    gradient = model.weights[:, None, None] * gradient
    if rows is not None:
        gradient[rows, np.arange(m)] = 0
        weight = weight - model.weights[rows]
    total = (model.X.T @ gradient.reshape(n, m * k)).T.reshape(m, k, p)
    if joined is not None:
        X, y, weights = joined
        X = X.toarray() if not isinstance(X, np.ndarray) else X
        slopes = weights[:, None] * model.loss.gradient(np.einsum("mp,mkp->mk", X, theta), y)
        total, weight = total + slopes[:, :, None] * X[:, None], weight + weights
    penalty = model.penalty + weight[:, None] * model.row_penalty
    return steps - hessian.solve(total + penalty[:, None] * theta)


def coefficients_without(model, rows, solver="auto"):
    """Change of the coefficients without some rows: two steps with the Hessian without them.

    The first is the second-order effect of a group (Basu, You and Feizi 2020).

    Parameters
    ----------
    model : LinearModel
        The objective.
    rows : ndarray of int
        Positions of the removed rows.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        As in `Hessian`.

    Returns
    -------
    step : ndarray of shape (K, p)
        The change of the coefficients.
    """
    total = (model.X[rows].T @ model.gradient(rows)).T
    total = total + model.weights[rows].sum() * (model.row_penalty[:, None] * model.theta).T
    rest = model.without(rows)
    hessian = Hessian(rest, solver=solver)
    return corrected_steps(rest, hessian, hessian.solve(total[None]))[0]
