"""Compiled loops of the batched logistic regression with two classes. Importing imports numba.

One coalition at a time, with its rows only. The inverse Hessian is kept: adding or removing a row
is a rank-one update (Sherman and Morrison), a step a rank-two update (BFGS), so that a coalition
that is similar to the one before needs a few products with its rows and no factorisation.
"""

import numpy as np

from ..._utils.compiled import compiled, exp_parts
from .status import ONE_CLASS, SOLVED, UNSOLVED

FLAT = 1e-6  # largest final gradient, relative to the mean size of its terms
_REFRESH = 6  # steps after which a slow solve recomputes its Hessian


@compiled(fastmath={"contract", "reassoc"})
def sigmoid_less(z, y, w, bits, powers, out):
    """``out = w * (1 / (1 + exp(-z)) - y)``, in vectorised loops (libm's exp is not)."""
    n = len(z)
    for i in range(n):
        x = min(max(-z[i], -700.0), 700.0)
        out[i], bits[i] = exp_parts(x)
    for i in range(n):
        out[i] = w[i] * (1.0 / (1.0 + out[i] * powers[i]) - y[i])


@compiled(fastmath={"contract", "reassoc"})
def add_ranks(inverse, a, u, b, v):
    """``inverse += a u u' + b (u v' + v u')``."""
    p = len(u)
    for i in range(p):
        c, d = a * u[i] + b * v[i], b * u[i]
        for j in range(p):
            inverse[i, j] += c * u[j] + d * v[j]


@compiled(fastmath={"contract", "reassoc"})
def invert(matrix, column):
    """Replace a positive definite matrix by its inverse (sweeps; faster than LAPACK when small)."""
    p = len(column)
    for k in range(p):
        column[:] = matrix[k]
        scale = 1.0 / column[k]
        for i in range(p):
            c = column[i] * scale
            for j in range(p):
                matrix[i, j] -= c * column[j]
        for i in range(p):
            matrix[i, k] = matrix[k, i] = column[i] * scale
        matrix[k, k] = -scale
    for i in range(p):
        for j in range(p):
            matrix[i, j] = -matrix[i, j]


@compiled
def row_joins(inverse, x, weight, work):
    """Sherman-Morrison: the inverse of H + weight x x'; False if that is not positive."""
    np.dot(inverse, x, work)
    below = 1.0 + weight * np.dot(work, x)
    if below < 1e-3:
        return False
    add_ranks(inverse, -weight / below, work, 0.0, work)
    return True


@compiled
def step_done(inverse, step, change, work):
    """BFGS: the inverse Hessian after a step and the change of the gradient along it."""
    curve = np.dot(step, change)
    if curve > 0.0:
        np.dot(inverse, change, work)
        ratio = (1.0 + np.dot(change, work) / curve) / curve
        add_ranks(inverse, ratio, step, -1.0 / curve, work)


@compiled
def hessian_inverse(X, z, w, penalty, inverse, work):
    """Inverse of ``X' diag(w s (1 - s)) X + diag(penalty)``, s the sigmoid of z."""
    n, p = X.shape
    if n < p // 2 and penalty[: p - 1].min() > 0:
        # Few rows are added one by one to the penalty; the intercept starts at its curvature.
        curvature = 0.0
        for i in range(n):
            s = 1.0 / (1.0 + np.exp(-z[i]))
            curvature += w[i] * s * (1.0 - s)
        inverse[:] = 0.0
        for a in range(p):
            inverse[a, a] = 1.0 / (penalty[a] if penalty[a] > 0 else max(curvature, 1e-3))
        for i in range(n):
            s = 1.0 / (1.0 + np.exp(-z[i]))
            row_joins(inverse, X[i], w[i] * s * (1.0 - s), work)
        return
    scaled = np.empty((n, p))
    for i in range(n):
        s = 1.0 / (1.0 + np.exp(-z[i]))
        d = w[i] * s * (1.0 - s)
        for a in range(p):
            scaled[i, a] = X[i, a] * d
    np.dot(scaled.T, X, inverse)
    top = 0.0
    for a in range(p):
        inverse[a, a] += penalty[a]
        top = max(top, inverse[a, a])
    for a in range(p):  # the curvature of a large intercept vanishes
        inverse[a, a] += 1e-12 * top + 1e-300
    invert(inverse, work)


@compiled
def objective(z, y, w, penalty, coef, step, t):
    """The objective at logits z and coefficients ``coef - t step``."""
    total = 0.0
    for a in range(len(coef)):
        total += 0.5 * penalty[a] * (coef[a] - t * step[a]) ** 2
    for i in range(len(z)):
        total += w[i] * (max(z[i], 0.0) - y[i] * z[i] + np.log1p(np.exp(-abs(z[i]))))
    return total


@compiled
def is_flat(gradient, scale, size):
    """Whether the gradient is small relative to its terms, without the inverse Hessian."""
    for a in range(len(gradient)):
        if abs(gradient[a]) > FLAT * size * scale[a % len(scale)]:
            return False
    return True


@compiled
def solve(X, y, w, scale, penalty, coef, z, residual, inverse, scratch, tolerance, max_steps):
    """Minimise ``sum w (log(1 + exp(z)) - y z) + penalty coef^2 / 2``, starting from `coef`.

    Updates z and residual, which belong to coef, and the inverse Hessian. Stops when the Newton
    decrement, the error in standard errors of the fit, is below the tolerance; returns whether it
    converged.
    """
    bits, powers, dz, trial, gradient, ahead, step, change, work = scratch
    n = len(y)
    np.dot(residual, X, gradient)
    gradient += penalty * coef
    for count in range(max_steps):
        np.dot(inverse, gradient, step)
        slope = -np.dot(gradient, step)
        done = slope <= 0.0 and -slope <= tolerance * tolerance
        if done and is_flat(gradient, scale, n):
            coef -= step  # the last step; the logits are updated so that they do not drift
            np.dot(X, step, dz[:n])
            for i in range(n):
                z[i] -= dz[i]
            return True
        if done or not slope < 0.0 or (count and count % _REFRESH == 0):
            hessian_inverse(X, z, w, penalty, inverse, work)
            np.dot(inverse, gradient, step)
            slope = -np.dot(gradient, step)
            if not slope < 0.0:
                return False
        np.dot(X, step, dz[:n])
        t = 1.0
        for _ in range(30):
            for i in range(n):
                trial[i] = z[i] - t * dz[i]
            sigmoid_less(trial[:n], y, w, bits, powers, residual)
            np.dot(residual, X, ahead)
            for a in range(len(coef)):
                ahead[a] += penalty[a] * (coef[a] - t * step[a])
            after = -np.dot(ahead, step)
            # Far beyond the minimum on the line, a smaller slope can have a larger objective.
            if after <= -0.1 * slope or (
                after <= -0.9 * slope
                and objective(trial[:n], y, w, penalty, coef, step, t)
                < objective(z, y, w, penalty, coef, step, 0.0)
            ):
                break
            t *= max(0.1, slope / (slope - after))
        z[:] = trial[:n]
        for a in range(len(coef)):
            step[a] *= -t
            coef[a] += step[a]
            change[a] = ahead[a] - gradient[a]
            gradient[a] = ahead[a]
        step_done(inverse, step, change, work)
    return False


@compiled
def solve_tile(
    X, y, w, scale, penalty, masks, start, nearby, tolerance, max_steps, coefs, status
):  # fmt: skip
    """Coefficients of every coalition of a tile.

    A coalition starts from the one before it if at most ``nearby`` rows differ, else from
    ``start`` (or zero if it has few rows). ``scale`` is the mean of ``w |x|``.
    """
    n, p = X.shape
    bits = np.empty(n, np.int64)
    scratch = (
        bits, bits.view(np.float64), np.empty(n), np.empty(n), np.empty(p), np.empty(p),
        np.empty(p), np.empty(p), np.empty(p),
    )  # fmt: skip
    rows, place = np.empty(n, np.int64), np.full(n, -1, np.int64)
    Xs, ys, ws, zs, rs = np.empty((n, p)), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    coef, inverse = np.zeros(p), np.empty((p, p))
    size, warm = 0, False
    for c in range(len(masks)):
        mask = masks[c]
        differ = 0
        for i in range(n):
            differ += mask[i] != (place[i] >= 0)
        warm = warm and differ <= nearby
        for i in range(n):
            if mask[i] == (place[i] >= 0):
                continue
            if warm:
                zi = np.dot(X[i], coef)
                s = 1.0 / (1.0 + np.exp(-zi))
                weight = w[i] * s * (1.0 - s)
                warm = row_joins(inverse, X[i], weight if mask[i] else -weight, scratch[8])
            if mask[i]:
                rows[size], place[i] = i, size
                Xs[size], ys[size], ws[size] = X[i], y[i], w[i]
                if warm:
                    zs[size], rs[size] = zi, w[i] * (s - y[i])
                size += 1
            else:
                at, size = place[i], size - 1
                rows[at], Xs[at], ys[at], ws[at] = rows[size], Xs[size], ys[size], ws[size]
                zs[at], rs[at] = zs[size], rs[size]
                place[rows[at]], place[i] = at, -1
        positive = ys[:size].sum()
        if positive == 0.0 or positive == size:
            status[c] = ONE_CLASS
            warm = False
            continue
        k = size
        if not warm:
            coef[:] = 0.0
            if size >= p:
                coef += start
            np.dot(Xs[:k], coef, zs[:k])
            sigmoid_less(zs[:k], ys[:k], ws[:k], bits, scratch[1], rs[:k])
            hessian_inverse(Xs[:k], zs[:k], ws[:k], penalty, inverse, scratch[8])
        warm = solve(
            Xs[:k], ys[:k], ws[:k], scale, penalty, coef, zs[:k], rs[:k], inverse, scratch,
            tolerance, max_steps,
        )  # fmt: skip
        status[c] = SOLVED if warm else UNSOLVED
        coefs[c] = coef
