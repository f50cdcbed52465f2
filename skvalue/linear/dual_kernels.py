"""Compiled loops of L2 logistic regression on tiny coalitions, in the dual. Imports numba.

The coefficients are ``w = sum_i a_i x_i`` over the k rows of the coalition, so that a Newton step
solves k equations for any number of features (Rasmussen and Williams, "Gaussian Processes for
Machine Learning", Algorithm 3.1).
"""

import numpy as np

from .._utils.compiled import compiled


@compiled
def cholesky_solve(factor, k, v):
    """Solve in place with a lower Cholesky factor."""
    for i in range(k):
        s = v[i]
        for j in range(i):
            s -= factor[i, j] * v[j]
        v[i] = s / factor[i, i]
    for i in range(k - 1, -1, -1):
        s = v[i]
        for j in range(i + 1, k):
            s -= factor[j, i] * v[j]
        v[i] = s / factor[i, i]


@compiled
def loss(z, positive):
    """log(1 + exp(-z)) for a positive row, log(1 + exp(z)) for a negative one."""
    m = -z if positive else z
    return max(m, 0.0) + np.log1p(np.exp(-abs(m)))


@compiled
def solve_dual(gram, t, k, c, free, rtol, max_steps, a, work):
    """Minimise ``c sum log(1 + exp(-+z)) + a' gram a / 2``, ``z = gram a + b``; from a = 0.

    t are the labels, 0 or 1; b is 0 unless free. Stops when the gradient in the coefficients is at
    most ``c k rtol kappa`` for rows of norm up to kappa. Returns b and whether it converged.
    """
    z, g, root, u, left, right, new, dz = work[0], work[1], work[2], work[3], work[4], work[5], \
        work[6], work[7]  # fmt: skip
    factor = work[8:]
    b = 0.0
    for i in range(k):
        a[i], z[i] = 0.0, 0.0
    for _ in range(max_steps):
        residual, slope = 0.0, 0.0
        for i in range(k):
            p = 1.0 / (1.0 + np.exp(-z[i]))
            g[i] = c * (p - t[i])
            h = c * p * (1.0 - p)
            root[i] = np.sqrt(h)
            u[i] = h * z[i] - g[i]
            residual += abs(a[i] + g[i])
        if residual <= rtol * c * k:
            return b, True
        for i in range(k):
            for j in range(i + 1):
                s = root[i] * gram[i, j] * root[j] + (1.0 if i == j else 0.0)
                for q in range(j):
                    s -= factor[i, q] * factor[j, q]
                factor[i, j] = np.sqrt(s) if i == j else s / factor[j, j]
        # (I + H gram)^-1 of u, and of h if there is an intercept
        for i in range(k):
            s, r = 0.0, 0.0
            for j in range(k):
                s += gram[i, j] * u[j]
                r += gram[i, j] * root[j] * root[j]
            left[i], right[i] = root[i] * s, root[i] * r
        cholesky_solve(factor, k, left)
        new_b = 0.0
        for i in range(k):
            new[i] = u[i] - root[i] * left[i]
        if free:
            cholesky_solve(factor, k, right)
            above, below = 0.0, 0.0
            for i in range(k):
                right[i] = root[i] * root[i] - root[i] * right[i]
                above += new[i]
                below += right[i]
            if not below > 0.0:
                return b, False
            new_b = above / below
            for i in range(k):
                new[i] -= new_b * right[i]
        before = 0.0
        for i in range(k):
            s = new_b - b
            for j in range(k):
                s += gram[i, j] * (new[j] - a[j])
            dz[i] = s
            slope += g[i] * s + a[i] * (s - (new_b - b))
            before += c * loss(z[i], t[i] > 0.5) + 0.5 * a[i] * (z[i] - b)
        scale = 1.0
        for _ in range(40):
            after = 0.0
            for i in range(k):
                ai = a[i] + scale * (new[i] - a[i])
                bi = b + scale * (new_b - b)
                zi = z[i] + scale * dz[i]
                after += c * loss(zi, t[i] > 0.5) + 0.5 * ai * (zi - bi)
            if after <= before + 1e-4 * scale * slope + 1e-13 * abs(before):
                break
            scale *= 0.5
        for i in range(k):
            a[i] += scale * (new[i] - a[i])
        b += scale * (new_b - b)
        for i in range(k):  # recomputed, so that rounding errors do not accumulate
            s = b
            for j in range(k):
                s += gram[i, j] * a[j]
            z[i] = s
    return b, False


@compiled
def dual_tile(X, t, masks, c, free, rtol, max_steps):
    """Coefficients (m, p) of the models of coalitions, and a mask of those that converged.

    c are the weights of the losses of each coalition. If ``free``, the last column is constant, and
    its coefficient is not penalised.
    """
    most = 1
    for m in range(len(masks)):
        most = max(most, masks[m].sum())
    work, a = np.empty((8 + most, most)), np.empty(most)
    coefs, solved = np.empty((len(masks), X.shape[1])), np.empty(len(masks), np.bool_)
    for m in range(len(masks)):
        rows = np.flatnonzero(masks[m])
        part, k = X[rows], len(rows)
        if free:
            part[:, -1] = 0.0
        gram = np.dot(part, part.T)
        b, solved[m] = solve_dual(gram, t[rows], k, c[m], free, rtol, max_steps, a, work)
        np.dot(a[:k], part, coefs[m])
        coefs[m, -1] += b
    return coefs, solved
