"""What each row changes in a utility, to second order in its step, from one fit of a
coalition.

At the optimum theta of a coalition S, with Hessian H, let a row with columns a and
decisions z join (s = 1) or leave (s = -1). With everything but its own loss l to second
order, the step is ``d = -s H^-1 a rho`` for the solution of ``rho = w l'(z - s h
rho)``, with the leverage ``h = a' H^-1 a``; the first iteration of Newton's method for
rho is Newton's step. The third derivatives T of the losses of S add ``-H^-1 T[d, d] /
2``. So a utility with derivatives g and G changes by

    ``g' d + d' (G - T[H^-1 g]) d / 2``

to second order, at the cost of two quadratic forms a row. All is exact for squared
losses. Decisions may be several (K classes); arrays of them have a last axis of length
K.
"""

import numpy as np

from .losses import SQUARED

_ITERATIONS = 5
_BLOCK = 2**20  # most entries of a block of leverages


def gram(X, weights):
    """``sum_i weights_i (K x K) times x_i x_i'``, as a matrix of K p rows, classes
    first."""
    k, p = weights.shape[1], X.shape[1]
    out = np.empty((k, p, k, p))
    for a in range(k):
        for b in range(a + 1):
            out[a, :, b] = (X * weights[:, a, b, None]).T @ X
            out[b, :, a] = out[a, :, b]
    return out.reshape(k * p, k * p)


def quadratic_forms(X, matrix):
    """``(I x x_i)' matrix (I x x_i)`` of every row, (n, K, K)."""
    p = X.shape[1]
    k = len(matrix) // p
    out = np.empty((len(X), k, k))
    for a in range(k):
        for b in range(a + 1):
            part = matrix[a * p : (a + 1) * p, b * p : (b + 1) * p]
            out[:, a, b] = out[:, b, a] = np.einsum("ij,ij->i", X @ part, X)
    return out


def pulls(z, y, w, leverages, signs, loss):
    """The solutions rho (n, K), by Newton's method from 0, of which rows that leave
    take a step."""
    rho, identity, first = np.zeros(z.shape), np.eye(z.shape[1]), None
    for _ in range(1 if loss is SQUARED else _ITERATIONS):
        at = z - signs[:, None] * np.einsum("nkl,nl->nk", leverages, rho)
        missing = rho - w[:, None] * loss.gradient(at, y)
        bent = (signs * w)[:, None, None] * (loss.curvature(at, y) @ leverages)
        if z.shape[1] == 1:
            rho = rho - missing / (1.0 + bent[:, 0])
        else:
            rho = rho - np.linalg.solve(identity + bent, missing[:, :, None])[:, :, 0]
        first = rho if first is None else first
    return np.where(signs[:, None] < 0, first, rho)


def utility_changes(X, y, w, theta, inverse, gradient, bend, signs, loss):
    """Changes of the utility by rows that join (sign 1) or leave (-1), and squared step
    lengths.

    Parameters
    ----------
    X, y, w : arrays
        Columns, targets or codes of classes, and weights of the rows.
    theta : ndarray of shape (K, p)
        Coefficients of the coalition.
    inverse, bend : ndarrays of shape (K p, K p)
        ``H^-1``, and ``G - T[H^-1 g]``.
    gradient : ndarray of shape (K p,)
        ``g``.
    signs : ndarray of shape (n,)
        1 for rows that join, -1 for rows that leave.
    loss : Loss
        The loss.

    Returns
    -------
    changes, lengths : ndarrays of shape (n,)
        Changes of the utility, and ``d' H d`` plus, for large leverages, ``|a' d|^2 /
        16``.
    """
    k, p = theta.shape
    along, turned = (inverse @ gradient).reshape(k, p), inverse @ bend @ inverse
    changes, lengths = np.empty(len(X)), np.empty(len(X))
    step = max(1, _BLOCK // (k * k * 4))
    with np.errstate(all="ignore"):
        for first in range(0, len(X), step):
            part = slice(first, first + step)
            rows = X[part]
            rho, pull, lengths[part] = _row_pulls(
                rows, y[part], w[part], theta, inverse, signs[part], loss
            )
            second = quadratic_forms(rows, turned)
            changes[part] = 0.5 * np.einsum("nk,nkl,nl->n", rho, second, rho)
            changes[part] -= signs[part] * np.einsum("nk,nk->n", pull, rows @ along.T)
    return changes, lengths


def _row_pulls(X, y, w, theta, inverse, signs, loss):
    """Solutions rho (n, K), what multiplies rows in first-order steps (n, K), and
    lengths (n,)."""
    h, z = quadratic_forms(X, inverse), X @ theta.T
    rho = pulls(z, y, w, h, signs, loss)
    moved = np.einsum("nkl,nl->nk", h, rho)
    own = (
        0.5
        * w[:, None]
        * np.einsum("nkl,nl->nk", loss.curvature_derivative(z, moved), moved)
    )
    lengths = np.einsum("nk,nk->n", rho, moved) + (moved**2).sum(axis=1) / 16
    return rho, rho + np.where(signs[:, None] < 0, own, 0.0), lengths


def row_steps(X, y, w, theta, inverse, signs, loss):
    """Newton's steps (n, K p) of rows, those with all of d but T of S, and lengths
    (n,)."""
    rho, pull, lengths = _row_pulls(X, y, w, theta, inverse, signs, loss)
    newton, own = (
        (-signs[:, None, None] * part[:, :, None] * X[:, None]).reshape(len(X), -1)
        @ inverse
        for part in (rho, pull)
    )
    return newton, own, lengths


def third_derivatives(X, w, z, loss):
    """Third derivatives of the losses of rows with decisions z, (K p, K p, K p)."""
    k, p = z.shape[1], X.shape[1]
    return np.array([
        gram(X, w[:, None, None] * loss.curvature_derivative(z, X[:, a, None] * np.eye(k)[c]))
        for c in range(k) for a in range(p)
    ])  # fmt: skip


def group_changes(X, y, w, theta, hessian, gradient, bend, signs, loss, codes):
    """As `utility_changes`, of groups of rows that join or leave together: one Newton
    step each."""
    d, lengths = group_steps(X, y, w, theta, hessian, signs, loss, codes)
    return d @ gradient + 0.5 * np.einsum("ij,ij->i", d @ bend, d), lengths


def group_steps(X, y, w, theta, hessian, signs, loss, codes):
    """Newton's step (n, K p) of each group, and its squared length; 0 and inf if it has
    none."""
    z = X @ theta.T
    pull, curve = (
        w[:, None] * loss.gradient(z, y),
        w[:, None, None] * loss.curvature(z, y),
    )
    order, n_groups = np.argsort(codes, kind="stable"), len(signs)
    starts = np.searchsorted(codes[order], np.arange(n_groups + 1))
    steps, lengths = np.zeros((n_groups, len(hessian))), np.full(n_groups, np.inf)
    for g in range(n_groups):
        rows = order[starts[g] : starts[g + 1]]
        moved = hessian + signs[g] * gram(X[rows], curve[rows])
        try:
            steps[g] = -signs[g] * np.linalg.solve(
                moved, (pull[rows].T @ X[rows]).ravel()
            )
        except np.linalg.LinAlgError:  # no optimum without the group
            continue
        lengths[g] = steps[g] @ hessian @ steps[g]
    return steps, lengths
