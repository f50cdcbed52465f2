"""Compiled loops that train a coalition with each of many other rows. Importing imports numba.

Every model starts from that of the coalition and from its inverse Hessian, to which the row is
added, so that a few steps of the loops of the batched solvers remain.
"""

import numpy as np

from ..._utils.compiled import compiled, exp_parts
from . import logistic_kernels, softmax_kernels
from .logistic_kernels import row_joins, sigmoid_less
from .softmax_kernels import residuals, row_joins_all

_solve_two, _hessian_two = logistic_kernels.solve, logistic_kernels.hessian_inverse
_solve_many, _hessian_many = softmax_kernels.solve, softmax_kernels.hessian_inverse
_PRODUCT = 16  # factors of at most 1 / eps whose product is a float64


@compiled
def join_two(
    own, own_y, own_w, scale, penalty, coef, inverse, warm, X, y, w, tolerance, max_steps, coefs
):
    """Coefficients of a coalition of two classes with each row of X; NaN where not converged.

    ``coef`` and ``inverse`` are those of the coalition ``own`` alone, if ``warm``.
    """
    s, p = own.shape
    n = s + 1
    bits = np.empty(n, np.int64)
    scratch = (
        bits, bits.view(np.float64), np.empty(n), np.empty(n), np.empty(p), np.empty(p),
        np.empty(p), np.empty(p), np.empty(p),
    )  # fmt: skip
    Xs, ys, ws = np.empty((n, p)), np.empty(n), np.empty(n)
    Xs[:s], ys[:s], ws[:s] = own, own_y, own_w
    start, z, r, theta, B = (
        np.dot(own, coef),
        np.empty(n),
        np.empty(n),
        np.empty(p),
        np.empty((p, p)),
    )
    for i in range(len(X)):
        Xs[s], ys[s], ws[s] = X[i], y[i], w[i]
        theta[:], z[:s] = coef, start
        z[s] = np.dot(X[i], coef)
        sigmoid_less(z, ys, ws, bits, scratch[1], r)
        near = warm
        if near:
            B[:] = inverse
            q = 1.0 / (1.0 + np.exp(-z[s]))
            near = row_joins(B, X[i], w[i] * q * (1.0 - q), scratch[8])
        if not near:
            _hessian_two(Xs, z, ws, penalty, B, scratch[8])
        coefs[i] = np.nan
        if _solve_two(Xs, ys, ws, scale, penalty, theta, z, r, B, scratch, tolerance, max_steps):
            coefs[i] = theta


@compiled
def join_many(
    own, own_y, own_w, scale, penalty, coef, inverse, warm, X, y, w, tolerance, max_steps, coefs
):
    """As `join_two`, for three or more classes: coefficients of shape (n, K, p)."""
    s, p = own.shape
    k, n = len(coef), s + 1
    Xs, ys, ws = np.empty((n, p)), np.empty(n, np.int64), np.empty(n)
    Xs[:s], ys[:s], ws[:s] = own, own_y, own_w
    start, Z, R = np.dot(own, coef.T), np.empty((n, k)), np.empty((n, k))
    theta, B, vector, work = (
        np.empty((k, p)),
        np.empty((k * p, k * p)),
        np.empty(k * p),
        np.empty(k * p),
    )
    for i in range(len(X)):
        Xs[s], ys[s], ws[s] = X[i], y[i], w[i]
        theta[:], Z[:s] = coef, start
        Z[s] = np.dot(coef, X[i])
        residuals(Z, ys, ws, R)
        near = warm
        if near:
            B[:] = inverse
            near = row_joins_all(B, X[i], R[s], y[i], w[i], 1.0, vector, work)
        if not near:
            _hessian_many(Xs, R, ys, ws, penalty, B)
        coefs[i] = np.nan
        if _solve_many(Xs, ys, ws, scale, penalty, theta, Z, R, B, tolerance, max_steps):
            coefs[i] = theta


@compiled(fastmath={"contract", "reassoc"})
def mean_log_losses(margins, out):
    """Mean over columns of ``log(1 + exp(-margin))``, the probabilities clipped to [eps, 1 - eps].

    Logarithms are those of products, of which there are fewer.
    """
    m, n = margins.shape
    eps = np.finfo(np.float64).eps
    bits = np.empty(n, np.int64)
    powers, values = bits.view(np.float64), np.empty(n)
    for i in range(m):
        for v in range(n):
            x = min(max(-margins[i, v], -40.0), 40.0)
            values[v], bits[v] = exp_parts(x)
        for v in range(n):
            values[v] = min(max(1.0 + values[v] * powers[v], 1.0 / (1.0 - eps)), 1.0 / eps)
        total = 0.0
        for first in range(0, n, _PRODUCT):
            product = 1.0
            for v in range(first, min(first + _PRODUCT, n)):
                product *= values[v]
            total += np.log(product)
        out[i] = total / n
