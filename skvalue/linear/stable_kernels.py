"""Compiled loops of a regularised mean logistic loss, to a proved tolerance. Imports numba."""

import numpy as np

from .._utils.compiled import compiled
from .dual_kernels import loss
from .logistic_kernels import invert


@compiled
def solve_primal(rows, t, k, c, rtol, kappa, max_steps, coef, scratch, inverse):
    """Minimise ``c sum log(1 + exp(-+z)) + |coef|^2 / 2`` by Newton's method; from coef = 0.

    Stops when the norm of the gradient is at most ``c k rtol kappa``; returns if it converged.
    """
    z, dz, gradient, step, column = scratch
    p = len(coef)
    coef[:] = 0.0
    z[:k] = 0.0
    for _ in range(max_steps):
        gradient[:] = coef
        inverse[:] = 0.0
        for a in range(p):
            inverse[a, a] = 1.0
        before = 0.0
        for a in range(p):
            before += 0.5 * coef[a] * coef[a]
        for i in range(k):
            s = 1.0 / (1.0 + np.exp(-z[i]))
            h, g = c * s * (1.0 - s), c * (s - t[i])
            before += c * loss(z[i], t[i] > 0.5)
            for a in range(p):
                gradient[a] += g * rows[i, a]
                scaled = h * rows[i, a]
                for b in range(p):
                    inverse[a, b] += scaled * rows[i, b]
        norm = np.sqrt(np.dot(gradient, gradient))
        if norm <= c * k * rtol * kappa:
            return True
        invert(inverse, column)
        np.dot(inverse, gradient, step)
        slope = -np.dot(gradient, step)
        for i in range(k):
            dz[i] = -np.dot(rows[i], step)
        scale = 1.0
        for _ in range(40):
            after = 0.0
            for a in range(p):
                after += 0.5 * (coef[a] - scale * step[a]) ** 2
            for i in range(k):
                after += c * loss(z[i] + scale * dz[i], t[i] > 0.5)
            if after <= before + 1e-4 * scale * slope + 1e-13 * abs(before):
                break
            scale *= 0.5
        for a in range(p):
            coef[a] -= scale * step[a]
        for i in range(k):
            z[i] = np.dot(rows[i], coef)
    return False


@compiled
def primal_tile(X, t, masks, c, rtol, kappa, max_steps):
    """As `dual_tile`, where all coefficients are penalised."""
    n, p = X.shape
    scratch = (np.empty(n), np.empty(n), np.empty(p), np.empty(p), np.empty(p))
    inverse = np.empty((p, p))
    coefs, solved = np.empty((len(masks), p)), np.empty(len(masks), np.bool_)
    for m in range(len(masks)):
        rows = np.flatnonzero(masks[m])
        solved[m] = solve_primal(
            X[rows], t[rows], len(rows), c[m], rtol, kappa, max_steps, coefs[m], scratch, inverse
        )
    return coefs, solved
