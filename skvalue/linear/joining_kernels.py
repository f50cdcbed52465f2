"""Compiled loops that train a coalition with each of many other rows. Importing imports numba.

Every model starts from that of the coalition and from its inverse Hessian, to which the row is
added, so that a few steps of the loops of the batched solvers remain.
"""

import numpy as np

from .._utils.compiled import compiled, exp_parts
from .logistic_kernels import hessian_inverse, residuals, row_joins, scratch_of, solve

_PRODUCT = 16  # factors of at most 1 / eps whose product is a float64
_FEW_COLUMNS = 16  # most columns for which every step computes the Hessian anew
_NEWTON = 12  # most of these steps


@compiled(fastmath={"contract", "reassoc"})
def newton(X, squares, y, w, penalty, coef, vectors, bits, tolerance):
    """As `logistic_kernels.solve`, by full steps; False if one goes too far.

    ``squares`` are the products of each row's columns with those up to them; ``coef`` is updated.
    """
    n, p = X.shape
    hessian, gradient, step, z, c, r, values = vectors
    powers, before, size = bits.view(np.float64), 0.0, squares.shape[1]
    np.dot(X, coef, z)
    for _ in range(_NEWTON):
        for i in range(n):
            values[i], bits[i] = exp_parts(min(max(-z[i], -700.0), 700.0))
        for i in range(n):
            q = 1.0 / (1.0 + values[i] * powers[i])
            r[i], c[i] = w[i] * (q - y[i]), w[i] * q * (1.0 - q)
        hessian[:] = 0.0
        for a in range(p):
            gradient[a] = penalty[a] * coef[a]
            hessian[(a * (a + 3)) // 2] = penalty[a]
        for i in range(n):
            for a in range(p):
                gradient[a] += r[i] * X[i, a]
            for a in range(size):
                hessian[a] += c[i] * squares[i, a]
        after = 0.0
        for a in range(p):
            after += gradient[a] * step[a]
        if before > 0.0 and not after > -0.5 * before:
            return False
        if not cholesky_solve(hessian, gradient, step):
            return False
        before = furthest = 0.0
        for a in range(p):
            coef[a] -= step[a]
            before += gradient[a] * step[a]
        for i in range(n):
            change = 0.0
            for a in range(p):
                change += X[i, a] * step[a]
            z[i] -= change
            furthest = max(furthest, abs(change))
        # Curvatures change by at most that relative amount: so does the next step over this one.
        if np.sqrt(before) * furthest <= tolerance:
            return True
    return False


@compiled(fastmath={"contract", "reassoc"})
def cholesky_solve(packed, b, x):
    """Solve for x, given the lower triangle of a matrix by rows, which is overwritten."""
    p, row = len(b), 0
    for i in range(p):
        top, column, total = packed[row + i], 0, b[i]
        for j in range(i + 1):
            v = packed[row + j]
            for k in range(j):
                v -= packed[row + k] * packed[column + k]
            packed[row + j] = v * packed[column + j] if j < i else v
            column += j + 1
        if not v > 1e-13 * top:
            return False
        packed[row + i] = 1.0 / np.sqrt(v)
        for j in range(i):
            total -= packed[row + j] * x[j]
        x[i] = total * packed[row + i]
        row += i + 1
    for i in range(p - 1, -1, -1):
        row -= i + 1
        x[i] *= packed[row + i]
        for j in range(i):
            x[j] -= packed[row + j] * x[i]
    return True


@compiled
def square(x, out):
    """The products of x's entries with those up to them."""
    at = 0
    for a in range(len(x)):
        for b in range(a + 1):
            out[at] = x[a] * x[b]
            at += 1


@compiled
def joined_start(coef, inverse, x, y, w, out):
    """Coefficients of a coalition and a row, with the losses of the coalition to second order."""
    np.dot(inverse, x, out)
    h, z, rho = np.dot(out, x), np.dot(coef, x), 0.0
    for _ in range(4):
        q = 1.0 / (1.0 + np.exp(h * rho - z))
        rho -= (rho - w * (q - y)) / (1.0 + w * h * q * (1.0 - q))
    for a in range(len(coef)):
        out[a] = coef[a] - rho * out[a]


@compiled
def join(
    own, own_y, own_w, scale, penalty, coef, inverse, warm, X, y, w, tolerance, max_steps, coefs
):
    """Coefficients (n, K, p) of a coalition with each row of X; NaN where not converged.

    ``coef`` and ``inverse`` are those of the coalition ``own`` alone, if ``warm``.
    """
    s, p = own.shape
    k, n = len(coef), s + 1
    Xs, ys, ws = np.empty((n, p)), np.empty(n), np.empty(n)
    Xs[:s], ys[:s], ws[:s] = own, own_y, own_w
    start, Z, R = np.dot(coef, own.T), np.empty((k, n)), np.empty((k, n))
    theta, B, scratch = np.empty((k, p)), np.empty((k * p, k * p)), scratch_of(k, n, p)
    bits, dZ, trial, _, step, gradient, _, change, work = scratch
    few = k == 1 and p <= _FEW_COLUMNS
    squares = np.empty((n, (p * (p + 1)) // 2 if few else 1))
    vectors = squares[0].copy(), gradient, step, Z[0], dZ[0], trial[0], np.empty(n)
    for i in range(s if few else 0):
        square(Xs[i], squares[i])
    for i in range(len(X)):
        Xs[s], ys[s], ws[s] = X[i], y[i], w[i]
        theta[:] = coef
        if few:
            if warm:
                joined_start(coef[0], inverse, X[i], y[i], w[i], theta[0])
            square(Xs[s], squares[s])
            if newton(Xs, squares, ys, ws, penalty, theta[0], vectors, bits, tolerance):
                coefs[i] = theta
                continue
            theta[:] = coef
        Z[:, :s] = start
        for c in range(k):
            Z[c, s] = np.dot(coef[c], X[i])
        residuals(Z, ys, ws, bits, R)
        near = warm
        if near:
            B[:] = inverse
            near = row_joins(B, X[i], R, s, y[i], w[i], 1.0, change, work)
        if not near:
            hessian_inverse(Xs, R, ys, ws, penalty, B, work)
        coefs[i] = np.nan
        if solve(Xs, ys, ws, scale, penalty, theta, Z, R, B, scratch, tolerance, max_steps):
            coefs[i] = theta


@compiled(fastmath={"contract", "reassoc"})
def mean_log_losses(margins, signs, out):
    """Mean of ``log(1 + exp(-sign * margin))`` of every row, probabilities in [eps, 1 - eps].

    Logarithms are those of products, of which there are fewer.
    """
    m, n = margins.shape
    eps = np.finfo(np.float64).eps
    bits = np.empty(n, np.int64)
    powers, values = bits.view(np.float64), np.empty(n)
    for i in range(m):
        for v in range(n):
            x = min(max(-signs[v] * margins[i, v], -40.0), 40.0)
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
