# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops of L2 logistic regression on tiny coalitions, in the dual.

The coefficients are ``w = sum_i a_i x_i`` over the k rows of the coalition, so that a
Newton step solves k equations for any number of features (Rasmussen and Williams,
"Gaussian Processes for Machine Learning", Algorithm 3.1).
"""

from libc.math cimport exp, fabs, log1p, sqrt
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

import numpy as np

from .._utils.loops cimport cloned, dot


cdef double loss(double z, bint positive) noexcept nogil:
    """log(1 + exp(-z)) for a positive row, log(1 + exp(z)) for a negative one."""
    cdef double m = -z if positive else z
    return max(m, 0.0) + log1p(exp(-fabs(m)))


cdef struct Dual:  # a coalition of k rows, and memory
    Py_ssize_t k
    const double *gram  # (k, k)
    const double *t  # labels, 0 or 1
    double c  # weight of the losses
    bint free  # whether there is an intercept
    double *a  # the solution
    double *z
    double *g
    double *root
    double *u
    double *left
    double *right
    double *updated
    double *dz
    double *factor  # (k, k)


cdef cloned find_gram(
    const double *X, double *gram, Py_ssize_t k, Py_ssize_t p
) noexcept nogil:
    """``X X'``."""
    cdef Py_ssize_t i, j
    for i in range(k):
        for j in range(i + 1):
            gram[i * k + j] = gram[j * k + i] = dot(X + i * p, X + j * p, p)


cdef cloned combine(
    const double *a, const double *X, double *out, Py_ssize_t k, Py_ssize_t p
) noexcept nogil:
    """``out = a X``."""
    cdef Py_ssize_t i, j
    for j in range(p):
        out[j] = 0.0
    for i in range(k):
        for j in range(p):
            out[j] += a[i] * X[i * p + j]


cdef void cholesky_solve(const double *factor, Py_ssize_t k, double *v) noexcept nogil:
    """Solve in place with a lower Cholesky factor."""
    cdef Py_ssize_t i, j
    cdef double s
    for i in range(k):
        s = v[i]
        for j in range(i):
            s -= factor[i * k + j] * v[j]
        v[i] = s / factor[i * k + i]
    for i in range(k - 1, -1, -1):
        s = v[i]
        for j in range(i + 1, k):
            s -= factor[j * k + i] * v[j]
        v[i] = s / factor[i * k + i]


cdef void factorise(const Dual *dual) noexcept nogil:
    """Cholesky factor of ``I + root gram root``."""
    cdef Py_ssize_t k = dual.k, i, j, q
    cdef double *factor = dual.factor
    cdef double s
    for i in range(k):
        for j in range(i + 1):
            s = dual.root[i] * dual.gram[i * k + j] * dual.root[j]
            s += 1.0 if i == j else 0.0
            for q in range(j):
                s -= factor[i * k + q] * factor[j * k + q]
            factor[i * k + j] = sqrt(s) if i == j else s / factor[j * k + j]


cdef bint find_step(const Dual *dual, double *intercept) noexcept nogil:
    """The Newton step to ``updated`` and the intercept; False if it is not defined."""
    cdef Py_ssize_t k = dual.k, i, j
    cdef double *root = dual.root
    cdef double *left = dual.left
    cdef double *right = dual.right
    cdef double *updated = dual.updated
    cdef double s, r, above = 0.0, below = 0.0
    factorise(dual)

    # (I + H gram)^-1 of u, and of h if there is an intercept.
    for i in range(k):
        s = 0.0
        r = 0.0
        for j in range(k):
            s += dual.gram[i * k + j] * dual.u[j]
            r += dual.gram[i * k + j] * root[j] * root[j]
        left[i] = root[i] * s
        right[i] = root[i] * r
    cholesky_solve(dual.factor, k, left)
    for i in range(k):
        updated[i] = dual.u[i] - root[i] * left[i]
    intercept[0] = 0.0
    if not dual.free:
        return True

    cholesky_solve(dual.factor, k, right)
    for i in range(k):
        right[i] = root[i] * root[i] - root[i] * right[i]
        above += updated[i]
        below += right[i]
    if not below > 0.0:
        return False
    intercept[0] = above / below
    for i in range(k):
        updated[i] -= intercept[0] * right[i]
    return True


cdef bint solve_dual(
    const Dual *dual, double rtol, Py_ssize_t max_steps, double *intercept
) noexcept nogil:
    """Minimise ``c sum log(1 + exp(-+z)) + a' gram a / 2``, ``z = gram a + b``.

    From a = 0; b is 0 unless free. Stops when the gradient in the coefficients is at
    most ``c k rtol kappa`` for rows of norm up to kappa. Returns whether it converged.
    """
    cdef Py_ssize_t k = dual.k, count, trial, i, j
    cdef double c = dual.c, b = 0.0, new_b, residual, slope, p, h, s
    cdef double before, after, scale, ai, bi, zi
    cdef const double *gram = dual.gram
    cdef const double *t = dual.t
    cdef double *a = dual.a
    cdef double *z = dual.z
    cdef double *g = dual.g
    cdef double *updated = dual.updated
    cdef double *dz = dual.dz
    for i in range(k):
        a[i] = 0.0
        z[i] = 0.0
    for count in range(max_steps):
        residual = 0.0
        slope = 0.0
        for i in range(k):
            p = 1.0 / (1.0 + exp(-z[i]))
            g[i] = c * (p - t[i])
            h = c * p * (1.0 - p)
            dual.root[i] = sqrt(h)
            dual.u[i] = h * z[i] - g[i]
            residual += fabs(a[i] + g[i])
        if residual <= rtol * c * k:
            intercept[0] = b
            return True
        if not find_step(dual, &new_b):
            intercept[0] = b
            return False

        before = 0.0
        for i in range(k):
            s = new_b - b
            for j in range(k):
                s += gram[i * k + j] * (updated[j] - a[j])
            dz[i] = s
            slope += g[i] * s + a[i] * (s - (new_b - b))
            before += c * loss(z[i], t[i] > 0.5) + 0.5 * a[i] * (z[i] - b)
        scale = 1.0
        for trial in range(40):
            after = 0.0
            for i in range(k):
                ai = a[i] + scale * (updated[i] - a[i])
                bi = b + scale * (new_b - b)
                zi = z[i] + scale * dz[i]
                after += c * loss(zi, t[i] > 0.5) + 0.5 * ai * (zi - bi)
            if after <= before + 1e-4 * scale * slope + 1e-13 * fabs(before):
                break
            scale *= 0.5
        for i in range(k):
            a[i] += scale * (updated[i] - a[i])
        b += scale * (new_b - b)
        for i in range(k):  # recomputed, so that rounding errors do not accumulate
            s = b
            for j in range(k):
                s += gram[i * k + j] * a[j]
            z[i] = s
    intercept[0] = b
    return False


def dual_tile(
    X, const double[::1] t, masks, const double[::1] c, bint free, double rtol,
    Py_ssize_t max_steps,
):
    """Coefficients (m, p) of the models of coalitions, and a mask of those converged.

    c are the weights of the losses of each coalition. If ``free``, the last column is
    constant, and its coefficient is not penalised.
    """
    cdef const double[:, ::1] rows = np.ascontiguousarray(X, np.float64)
    cdef const uint8_t[:, ::1] is_in = np.ascontiguousarray(masks).view(np.uint8)
    cdef Py_ssize_t n_masks = is_in.shape[0], n = rows.shape[0], p = rows.shape[1]
    cdef Py_ssize_t m, i, k, largest = max(1, int(masks.sum(axis=1).max(initial=0)))
    coefs = np.empty((n_masks, p))
    solved = np.empty(n_masks, dtype=bool)
    if n_masks == 0 or n == 0 or p == 0:
        return coefs, solved
    cdef double[:, ::1] out = coefs
    cdef uint8_t[::1] is_solved = solved.view(np.uint8)
    cdef double[::1] doubles = np.empty(largest * (2 * largest + 10 + p))
    cdef double *inside = &doubles[0]  # the rows of the coalition
    cdef double *gram = inside + largest * p
    cdef double *labels = gram + largest * largest
    cdef double intercept
    cdef Dual dual
    dual.factor = labels + largest
    dual.a = dual.factor + largest * largest
    dual.z = dual.a + largest
    dual.g = dual.z + largest
    dual.root = dual.g + largest
    dual.u = dual.root + largest
    dual.left = dual.u + largest
    dual.right = dual.left + largest
    dual.updated = dual.right + largest
    dual.dz = dual.updated + largest
    dual.gram = gram
    dual.t = labels
    dual.free = free
    with nogil:
        for m in range(n_masks):
            k = 0
            for i in range(n):
                if is_in[m, i]:
                    memcpy(inside + k * p, &rows[i, 0], p * sizeof(double))
                    labels[k] = t[i]
                    if free:
                        inside[k * p + p - 1] = 0.0
                    k += 1
            find_gram(inside, gram, k, p)
            dual.k = k
            dual.c = c[m]
            is_solved[m] = solve_dual(&dual, rtol, max_steps, &intercept)
            combine(dual.a, inside, &out[m, 0], k, p)
            out[m, p - 1] += intercept
    return coefs, solved
