"""Compiled loops of the batched logistic regression. Importing imports numba.

Coefficients are arrays (K, p), logits and residuals (K, n). Two classes have one row of
coefficients, those of the second class; three and more have one row each, and steps and gradients
sum to zero over the classes, so that no step is in the direction in which the loss is constant.

One coalition at a time, with its rows only. The inverse Hessian is kept: adding or removing a row
updates it by rank one, or by as many ranks as there are classes (Sherman and Morrison), a step by
rank two (BFGS), so that a coalition that is similar to the one before needs a few products with
its rows and no factorisation.
"""

import numpy as np

from .._utils.compiled import compiled, exp_parts
from .status import ONE_CLASS, SOLVED, UNSOLVED

FLAT = 1e-6  # largest final gradient, relative to the mean size of its terms
# Steps after which a slow solve recomputes its Hessian, of two classes and of more.
_REFRESH, _REFRESH_MANY = 6, 4


@compiled(fastmath={"contract", "reassoc"})
def residuals(Z, y, w, bits, out):
    """``out = w * (q - one-hot(y))`` for the probabilities q of classes at logits Z.

    y are the codes of the classes of the rows, as floats. The loops over rows are vectorised (those
    with libm's exp are not).
    """
    n, powers = len(y), bits.view(np.float64)
    if len(Z) == 1:
        z, r = Z[0], out[0]
        for i in range(n):
            r[i], bits[i] = exp_parts(min(max(-z[i], -700.0), 700.0))
        for i in range(n):
            r[i] = w[i] * (1.0 / (1.0 + r[i] * powers[i]) - y[i])
        return
    top, total = np.full(n, -np.inf), np.zeros(n)
    for c in range(len(Z)):
        for i in range(n):
            top[i] = max(top[i], Z[c, i])
    for c in range(len(Z)):
        z, r = Z[c], out[c]
        for i in range(n):
            r[i], bits[i] = exp_parts(max(z[i] - top[i], -700.0))
        for i in range(n):
            r[i] *= powers[i]
            total[i] += r[i]
    for c in range(len(Z)):
        r = out[c]
        for i in range(n):
            r[i] = w[i] * (r[i] / total[i] - (y[i] == c))


@compiled
def residual(Z, i, y, w, out):
    """``out[:, i]``, the residuals of one row."""
    if len(Z) == 1:
        out[0, i] = w * (1.0 / (1.0 + np.exp(-Z[0, i])) - y)
        return
    top, total = Z[:, i].max(), 0.0
    for c in range(len(Z)):
        out[c, i] = np.exp(Z[c, i] - top)
        total += out[c, i]
    for c in range(len(Z)):
        out[c, i] = w * (out[c, i] / total - (y == c))


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
def rank_joins(inverse, x, weight, work):
    """Sherman-Morrison: the inverse of H + weight x x'; False if that is not positive."""
    np.dot(inverse, x, work)
    below = 1.0 + weight * np.dot(work, x)
    if below < 1e-3:
        return False
    add_ranks(inverse, -weight / below, work, 0.0, work)
    return True


@compiled
def row_joins(inverse, x, R, i, y, w, sign, vector, work):
    """Add the Hessian of a row of residuals ``R[:, i]``, or subtract it if the sign is -1.

    It is w (diag(q) - q q') times x x', for the probabilities q of its classes, and diag(q) - q q'
    is the sum over classes c of q_c (e_c - q)(e_c - q)'.
    """
    k, p = len(R), len(x)
    if k == 1:
        q = R[0, i] / w + y
        return rank_joins(inverse, x, sign * w * q * (1.0 - q), work)
    for c in range(k):
        q = R[c, i] / w + (c == y)
        for e in range(k):
            pull = (e == c) - R[e, i] / w - (e == y)
            for a in range(p):
                vector[e * p + a] = pull * x[a]
        if not rank_joins(inverse, vector, sign * w * q, work):
            return False
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
def hessian_inverse(X, R, y, w, penalty, inverse, work):
    """Inverse of the Hessian at the residuals R."""
    n, p = X.shape
    k = len(R)
    first = k == 1  # the code of the first class with coefficients
    if k == 1 and n < p // 2 and penalty[: p - 1].min() > 0:
        # Few rows are added one by one to the penalty; the intercept starts at its curvature.
        curvature = 0.0
        for i in range(n):
            q = R[0, i] / w[i] + y[i]
            curvature += w[i] * q * (1.0 - q)
        inverse[:] = 0.0
        for a in range(p):
            inverse[a, a] = 1.0 / (penalty[a] if penalty[a] > 0 else max(curvature, 1e-3))
        for i in range(n):
            row_joins(inverse, X[i], R, i, y[i], w[i], 1.0, work, work)
        return
    weighted, block, top = np.empty((n, p)), np.empty((p, p)), 0.0
    for c in range(k):
        for e in range(c + 1):
            for i in range(n):
                # A row of weight zero has no residual and no Hessian.
                scale = 1.0 / w[i] if w[i] > 0 else 0.0
                q = R[c, i] * scale + (y[i] == c + first)
                pull = (c == e) - (R[e, i] * scale + (y[i] == e + first))
                curvature = w[i] * q * pull
                for a in range(p):
                    weighted[i, a] = X[i, a] * curvature
            np.dot(weighted.T, X, block)
            if c == e:
                for a in range(p):
                    block[a, a] += penalty[a]
                    top = max(top, block[a, a])
            inverse[c * p : (c + 1) * p, e * p : (e + 1) * p] = block
            inverse[e * p : (e + 1) * p, c * p : (c + 1) * p] = block.T
    for a in range(p):
        for c in range(k):  # the curvature of a large intercept vanishes
            inverse[c * p + a, c * p + a] += 1e-12 * top + 1e-300
            if k > 1 and penalty[a] == 0:  # constant along shifts of all classes
                for e in range(k):
                    inverse[c * p + a, e * p + a] += top / k
    invert(inverse, work)


@compiled
def gradient_at(X, R, penalty, coef, step, t, out):
    """``R X + penalty * (coef - t step)``, flattened."""
    k, p = coef.shape
    for c in range(k):
        part = out[c * p : (c + 1) * p]
        np.dot(R[c, : len(X)], X, part)
        for a in range(p):
            part[a] += penalty[a] * (coef[c, a] - t * step[c, a])


@compiled
def objective(Z, y, w, penalty, coef, step, t):
    """The penalised cross-entropy at logits Z and coefficients ``coef - t step``."""
    (k, p), total = coef.shape, 0.0
    for c in range(k):
        for a in range(p):
            total += 0.5 * penalty[a] * (coef[c, a] - t * step[c, a]) ** 2
    for i in range(len(y)):
        if k == 1:
            z = Z[0, i]
            total += w[i] * (max(z, 0.0) - y[i] * z + np.log1p(np.exp(-abs(z))))
        else:
            top = Z[:, i].max()
            total += w[i] * (top + np.log(np.exp(Z[:, i] - top).sum()) - Z[int(y[i]), i])
    return total


@compiled
def is_flat(gradient, scale, size):
    """Whether the gradient is small relative to its terms, without the inverse Hessian."""
    for a in range(len(gradient)):
        if abs(gradient[a]) > FLAT * size * scale[a % len(scale)]:
            return False
    return True


@compiled
def scratch_of(k, n, p):
    """Arrays in which `solve` works; the last two serve `row_joins`, too."""
    steps = np.empty((k, p))
    return (
        np.empty(n, np.int64), np.empty((k, n)), np.empty((k, n)), steps, steps.reshape(k * p),
        np.empty(k * p), np.empty(k * p), np.empty(k * p), np.empty(k * p),
    )  # fmt: skip


@compiled
def solve(X, y, w, scale, penalty, coef, Z, R, inverse, scratch, tolerance, max_steps):
    """Minimise the sum of w times the cross-entropy + penalty coef^2 / 2, starting from `coef`.

    Updates Z and R, which belong to coef and may have more columns than there are rows, and the
    inverse Hessian. Stops when the Newton decrement, the error in standard errors of the fit, is
    below the tolerance; returns whether it converged.
    """
    bits, dZ, trial, steps, step, gradient, ahead, change, work = scratch
    (k, p), n = coef.shape, len(y)
    refresh = _REFRESH if k == 1 else _REFRESH_MANY
    step[:] = 0.0
    gradient_at(X, R, penalty, coef, steps, 0.0, gradient)
    for count in range(max_steps):
        np.dot(inverse, gradient, step)
        slope = -np.dot(gradient, step)
        done = slope <= 0.0 and -slope <= tolerance * tolerance
        if done and is_flat(gradient, scale, n):
            for c in range(k):  # the last step; the logits are updated so that they do not drift
                np.dot(X, steps[c], dZ[c, :n])
                for i in range(n):
                    Z[c, i] -= dZ[c, i]
                for a in range(p):
                    coef[c, a] -= steps[c, a]
            return True
        if done or not slope < 0.0 or (count and count % refresh == 0):
            hessian_inverse(X, R, y, w, penalty, inverse, work)
            np.dot(inverse, gradient, step)
            slope = -np.dot(gradient, step)
            if not slope < 0.0:
                return False
        for c in range(k):
            np.dot(X, steps[c], dZ[c, :n])
        t = 1.0
        for _ in range(30):
            for c in range(k):
                for i in range(n):
                    trial[c, i] = Z[c, i] - t * dZ[c, i]
            residuals(trial, y, w, bits, R)
            gradient_at(X, R, penalty, coef, steps, t, ahead)
            after = -np.dot(ahead, step)
            # Far beyond the minimum on the line, a smaller slope can have a larger objective.
            if after <= -0.1 * slope or (
                after <= -0.9 * slope
                and objective(trial, y, w, penalty, coef, steps, t)
                < objective(Z, y, w, penalty, coef, steps, 0.0)
            ):
                break
            t *= max(0.1, slope / (slope - after))
        for c in range(k):
            for i in range(n):
                Z[c, i] = trial[c, i]
            for a in range(p):
                steps[c, a] *= -t
                coef[c, a] += steps[c, a]
        for a in range(k * p):
            change[a] = ahead[a] - gradient[a]
            gradient[a] = ahead[a]
        step_done(inverse, step, change, work)
    return False


@compiled
def solve_tile(
    X, y, w, scale, penalty, masks, n_classes, start, nearby, tolerance, max_steps, coefs, status
):  # fmt: skip
    """Coefficients of every coalition of a tile, in the rows of ``coefs`` of the classes it has.

    Of two classes in all there is one row. A coalition starts from the one before it if it has the
    same classes and at most ``nearby`` rows differ, else from zero, or from ``start`` if it has
    many rows of two classes. ``scale`` is the mean of ``w |x|``.
    """
    n, p = X.shape
    rows, place, flips = np.empty(n, np.int64), np.full(n, -1, np.int64), np.empty(n, np.int64)
    Xs, ys, ws = np.empty((n, p)), np.empty(n), np.empty(n)
    counts, before = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    local = np.zeros(n_classes, np.int64)  # codes among the classes of a coalition
    coef, inverse, scratch = np.zeros((1, p)), np.empty((p, p)), scratch_of(1, n, p)
    Z, R = np.empty((1, n)), np.empty((1, n))
    size, warm = 0, False
    for m in range(len(masks)):
        mask = masks[m]
        differ = 0
        for i in range(n):
            flips[differ] = i
            differ += mask[i] != (place[i] >= 0)
        before[:] = counts
        for i in flips[:differ]:
            counts[y[i]] += 1 if mask[i] else -1
        warm, present = warm and differ <= nearby, 0
        for e in range(n_classes):
            warm = warm and (counts[e] > 0) == (before[e] > 0)
            local[e] = present
            present += counts[e] > 0
        k = present if present > 2 else 1
        for i in flips[:differ]:
            at, sign = (size, 1.0) if mask[i] else (place[i], -1.0)
            code = float(local[y[i]])
            if warm:
                for c in range(k):
                    Z[c, at] = np.dot(X[i], coef[c])
                residual(Z, at, code, w[i], R)
                warm = row_joins(inverse, X[i], R, at, code, w[i], sign, scratch[7], scratch[8])
            if mask[i]:
                rows[size], place[i] = i, size
                Xs[size], ys[size], ws[size] = X[i], code, w[i]
                size += 1
            else:
                size -= 1
                rows[at], Xs[at], ys[at], ws[at] = rows[size], Xs[size], ys[size], ws[size]
                for c in range(k if warm else 0):
                    Z[c, at], R[c, at] = Z[c, size], R[c, size]
                place[rows[at]], place[i] = at, -1
        if present < 2:
            status[m], warm = ONE_CLASS, False
            continue
        X_in, y_in, w_in = Xs[:size], ys[:size], ws[:size]
        if not warm:
            if len(coef) != k:
                coef, inverse = np.empty((k, p)), np.empty((k * p, k * p))
                Z, R, scratch = np.empty((k, n)), np.empty((k, n)), scratch_of(k, n, p)
            coef[:] = 0.0
            if k == 1 and size >= p:
                coef += start
            for j in range(size):
                ys[j] = local[y[rows[j]]]
            for c in range(k):
                np.dot(X_in, coef[c], Z[c, :size])
        if k > 1 or not warm:
            residuals(Z, y_in, w_in, scratch[0], R)
        if not warm:
            hessian_inverse(X_in, R, y_in, w_in, penalty, inverse, scratch[8])
        warm = solve(
            X_in, y_in, w_in, scale, penalty, coef, Z, R, inverse, scratch, tolerance, max_steps
        )
        status[m] = SOLVED if warm else UNSOLVED
        for e in range(n_classes):
            vector_of = local[e] - (k == 1)
            if counts[e] > 0 and vector_of >= 0:
                coefs[m, e - (n_classes == 2)] = coef[vector_of]
