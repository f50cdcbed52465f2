"""Compiled loops of the batched logistic regression with three or more classes. Imports numba.

As in `logistic_kernels`, with one row of coefficients per class: steps and gradients sum to zero
over the classes, so that no step is in the direction in which the loss is constant.
"""

import numpy as np

from ..._utils.compiled import compiled
from .logistic_kernels import invert, is_flat, row_joins, step_done
from .status import ONE_CLASS, SOLVED, TWO_CLASSES, UNSOLVED

_REFRESH = 4  # steps after which the Hessian is recomputed


@compiled
def residuals(Z, y, w, out):
    """``out = w * (softmax(Z) - one-hot(y))``."""
    n, k = Z.shape
    for i in range(n):
        top = Z[i, 0]
        for c in range(1, k):
            top = max(top, Z[i, c])
        total = 0.0
        for c in range(k):
            out[i, c] = np.exp(Z[i, c] - top)
            total += out[i, c]
        for c in range(k):
            out[i, c] *= w[i] / total
        out[i, y[i]] -= w[i]


@compiled
def hessian_inverse(X, R, y, w, penalty, inverse):
    """Inverse of the Hessian at the residuals R."""
    n, p = X.shape
    k = R.shape[1]
    weighted = np.empty((n, p))
    top = 0.0
    for c in range(k):
        for e in range(c + 1):
            for i in range(n):
                # A row of weight zero has no residual and no Hessian.
                scale = 1.0 / w[i] if w[i] > 0 else 0.0
                q = R[i, c] * scale + (c == y[i])
                pull = (c == e) - (R[i, e] * scale + (e == y[i]))
                for a in range(p):
                    weighted[i, a] = X[i, a] * (w[i] * q * pull)
            block = np.dot(weighted.T, X)
            if c == e:
                for a in range(p):
                    block[a, a] += penalty[a]
                    top = max(top, block[a, a])
            inverse[c * p : (c + 1) * p, e * p : (e + 1) * p] = block
            inverse[e * p : (e + 1) * p, c * p : (c + 1) * p] = block.T
    for a in range(p):
        for c in range(k):
            inverse[c * p + a, c * p + a] += 1e-12 * top + 1e-300
            if penalty[a] == 0:  # constant along shifts of all classes, which no step makes
                for e in range(k):
                    inverse[c * p + a, e * p + a] += top / k
    invert(inverse, np.empty(k * p))


@compiled
def row_joins_all(inverse, x, residual, y, weight, sign, vector, work):
    """Add the Hessian of a row, weight (diag(q) - q q') times x x', q its class probabilities.

    diag(q) - q q' is the sum over classes c of q_c (e_c - q)(e_c - q)'.
    """
    k, p = len(residual), len(x)
    for c in range(k):
        q = residual[c] / weight + (c == y)
        for e in range(k):
            pull = (e == c) - residual[e] / weight - (e == y)
            for a in range(p):
                vector[e * p + a] = pull * x[a]
        if not row_joins(inverse, vector, sign * weight * q, work):
            return False
    return True


@compiled
def gradient_at(X, R, coef, penalty, out):
    """``R' X + penalty * coef``, flattened."""
    out[:] = (np.dot(R.T, X) + penalty * coef).ravel()


@compiled
def objective(Z, y, w, penalty, coef):
    """The penalised cross-entropy."""
    k, p = coef.shape
    total = 0.0
    for c in range(k):
        for a in range(p):
            total += 0.5 * penalty[a] * coef[c, a] ** 2
    for i in range(len(Z)):
        top = Z[i].max()
        total += w[i] * (top + np.log(np.exp(Z[i] - top).sum()) - Z[i, y[i]])
    return total


@compiled
def solve(X, y, w, scale, penalty, coef, Z, R, inverse, tolerance, max_steps):
    """Minimise the penalised cross-entropy, starting from `coef`; see the binary ``solve``."""
    k, p = coef.shape
    gradient, ahead, work = np.empty(k * p), np.empty(k * p), np.empty(k * p)
    trial = np.empty_like(coef)
    gradient_at(X, R, coef, penalty, gradient)
    for count in range(max_steps):
        step = np.dot(inverse, gradient)
        slope = -np.dot(gradient, step)
        done = slope <= 0.0 and -slope <= tolerance * tolerance
        if done and is_flat(gradient, scale, len(y)):
            coef -= step.reshape(k, p)
            return True
        if done or not slope < 0.0 or (count and count % _REFRESH == 0):
            hessian_inverse(X, R, y, w, penalty, inverse)
            step = np.dot(inverse, gradient)
            slope = -np.dot(gradient, step)
            if not slope < 0.0:
                return False
        dZ = np.dot(X, step.reshape(k, p).T)
        t = 1.0
        for _ in range(30):
            Z_trial = Z - t * dZ
            residuals(Z_trial, y, w, R)
            trial[:] = coef - t * step.reshape(k, p)
            gradient_at(X, R, trial, penalty, ahead)
            after = -np.dot(ahead, step)
            if after <= -0.1 * slope or (
                after <= -0.9 * slope
                and objective(Z_trial, y, w, penalty, trial) < objective(Z, y, w, penalty, coef)
            ):
                break
            t *= max(0.1, slope / (slope - after))
        Z[:] = Z_trial
        coef[:] = trial
        step *= -t
        change = ahead - gradient
        gradient[:] = ahead
        step_done(inverse, step, change, work)
    return False


@compiled
def solve_tile(
    X, y, w, scale, penalty, masks, n_classes, nearby, tolerance, max_steps, coefs, status
):  # fmt: skip
    """Coefficients of every coalition of a tile that has at least three classes.

    Those of classes that a coalition lacks are not changed. A coalition starts from the one before
    it if it has the same classes and at most ``nearby`` rows differ, else from zero.
    """
    n, p = X.shape
    seen, before = np.zeros(n_classes, np.bool_), np.zeros(n_classes, np.bool_)
    local = np.zeros(n_classes, np.int64)
    work, vector = np.empty(n_classes * p), np.empty(n_classes * p)
    old = np.zeros(n, np.bool_)
    coef, inverse = np.zeros((0, p)), np.zeros((0, 0))
    k, warm = 0, False
    for c in range(len(masks)):
        mask = masks[c]
        before[:] = seen
        seen[:] = False
        differ = 0
        for i in range(n):
            seen[y[i]] |= mask[i]
            differ += mask[i] != old[i]
        present = seen.sum()
        if present < 3:
            status[c] = ONE_CLASS if present < 2 else TWO_CLASSES
            warm = False
            continue
        warm = warm and differ <= nearby and (before == seen).all()
        if not warm:
            k = 0
            for e in range(n_classes):
                if seen[e]:
                    local[e] = k
                    k += 1
            coef, inverse = np.zeros((k, p)), np.empty((k * p, k * p))
        rows = np.flatnonzero(mask)
        Xs, ys, ws = X[rows], local[y[rows]], w[rows]
        Z, R = np.dot(Xs, coef.T), np.empty((len(rows), k))
        residuals(Z, ys, ws, R)
        if not warm:
            hessian_inverse(Xs, R, ys, ws, penalty, inverse)
        else:
            row, one_y, one_w = np.empty((1, k)), np.empty(1, np.int64), np.ones(1)
            for i in range(n):
                if mask[i] != old[i] and w[i] > 0:
                    one_y[0], one_w[0] = local[y[i]], w[i]
                    residuals(np.dot(X[i : i + 1], coef.T), one_y, one_w, row)
                    sign = 1.0 if mask[i] else -1.0
                    if not row_joins_all(
                        inverse, X[i], row[0], one_y[0], w[i], sign, vector[: k * p], work[: k * p]
                    ):
                        hessian_inverse(Xs, R, ys, ws, penalty, inverse)
                        break
        warm = solve(Xs, ys, ws, scale, penalty, coef, Z, R, inverse, tolerance, max_steps)
        status[c] = SOLVED if warm else UNSOLVED
        old[:] = mask
        for e in range(n_classes):
            if seen[e]:
                coefs[c, e] = coef[local[e]]
