# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops of a regularised mean logistic loss, to a proved tolerance."""

from libc.math cimport exp, fabs, sqrt
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

import numpy as np

from .._utils.loops cimport dot
from .dual_kernels cimport loss
from .logistic_kernels cimport (
    invert, matrix_vector, vector_matrix, weighted_gram
)


cdef struct Memory:
    double *rows  # of the coalition, (n, p)
    double *t  # their labels, 0 or 1
    double *z
    double *dz
    double *residual
    double *curvature
    double *gradient  # (p,)
    double *step
    double *column
    double *inverse  # (p, p)


cdef bint solve_primal(
    const Memory *memory, Py_ssize_t k, Py_ssize_t p, double c, double rtol,
    double kappa, Py_ssize_t max_steps, double *coef,
) noexcept nogil:
    """Minimise ``c sum log(1 + exp(-+z)) + |coef|^2 / 2`` by Newton's method.

    From coef = 0. Stops when the norm of the gradient is at most ``c k rtol kappa``;
    returns whether it converged.
    """
    cdef Py_ssize_t count, trial, i, a
    cdef double s, before, after, slope, scale, moved
    cdef const double *t = memory.t
    cdef double *z = memory.z
    cdef double *dz = memory.dz
    cdef double *gradient = memory.gradient
    cdef double *step = memory.step
    for a in range(p):
        coef[a] = 0.0
    for i in range(k):
        z[i] = 0.0
    for count in range(max_steps):
        before = 0.0
        for a in range(p):
            before += 0.5 * coef[a] * coef[a]
        for i in range(k):
            s = 1.0 / (1.0 + exp(-z[i]))
            memory.curvature[i] = c * s * (1.0 - s)
            memory.residual[i] = c * (s - t[i])
            before += c * loss(z[i], t[i] > 0.5)
        vector_matrix(memory.residual, memory.rows, gradient, k, p)
        weighted_gram(memory.rows, memory.curvature, memory.inverse, k, p)
        for a in range(p):
            gradient[a] += coef[a]
            memory.inverse[a * p + a] += 1.0
        if sqrt(dot(gradient, gradient, p)) <= c * k * rtol * kappa:
            return True

        invert(memory.inverse, memory.column, p)
        vector_matrix(gradient, memory.inverse, step, p, p)
        slope = -dot(gradient, step, p)
        matrix_vector(memory.rows, step, dz, k, p)
        scale = 1.0
        for trial in range(40):
            after = 0.0
            for a in range(p):
                moved = coef[a] - scale * step[a]
                after += 0.5 * (moved * moved)
            for i in range(k):
                after += c * loss(z[i] - scale * dz[i], t[i] > 0.5)
            if after <= before + 1e-4 * scale * slope + 1e-13 * fabs(before):
                break
            scale *= 0.5
        for a in range(p):
            coef[a] -= scale * step[a]
        matrix_vector(memory.rows, coef, z, k, p)
    return False


def primal_tile(
    X, const double[::1] t, masks, const double[::1] c, double rtol, double kappa,
    Py_ssize_t max_steps,
):
    """As `dual_tile`, where all coefficients are penalised."""
    cdef const double[:, ::1] rows = np.ascontiguousarray(X, np.float64)
    cdef const uint8_t[:, ::1] is_in = np.ascontiguousarray(masks).view(np.uint8)
    cdef Py_ssize_t n_masks = is_in.shape[0], n = rows.shape[0], p = rows.shape[1]
    cdef Py_ssize_t m, i, k
    coefs = np.empty((n_masks, p))
    solved = np.empty(n_masks, dtype=bool)
    if n_masks == 0 or n == 0 or p == 0:
        return coefs, solved
    cdef double[:, ::1] out = coefs
    cdef uint8_t[::1] is_solved = solved.view(np.uint8)
    cdef double[::1] doubles = np.empty(n * (p + 5) + p * (p + 3))
    cdef Memory memory
    memory.rows = &doubles[0]
    memory.t = memory.rows + n * p
    memory.z = memory.t + n
    memory.dz = memory.z + n
    memory.residual = memory.dz + n
    memory.curvature = memory.residual + n
    memory.gradient = memory.curvature + n
    memory.step = memory.gradient + p
    memory.column = memory.step + p
    memory.inverse = memory.column + p
    with nogil:
        for m in range(n_masks):
            k = 0
            for i in range(n):
                if is_in[m, i]:
                    memcpy(memory.rows + k * p, &rows[i, 0], p * sizeof(double))
                    memory.t[k] = t[i]
                    k += 1
            is_solved[m] = solve_primal(
                &memory, k, p, c[m], rtol, kappa, max_steps, &out[m, 0]
            )
    return coefs, solved
