# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops of the batched ridge regression."""

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy, memset

import numpy as np

from .._utils.loops cimport dot
from .logistic_kernels cimport (
    invert, rank_joins, vector_matrix, weighted_gram
)

cdef enum:
    FRESH = 100  # rank-one updates after which an inverse is recomputed

cdef double safe = 1e-7  # smallest pivot of a matrix with a unit diagonal
cdef double eps = 2.220446049250313e-16
cdef double coarse = 1e-11  # relative error from which an inverse is recomputed


cdef struct Memory:
    double *inverse  # (p, p)
    double *right  # (p,)
    double *work
    double *scale
    double *diagonal  # of the matrix
    double *rows  # the rows of a coalition, (n, p)
    double *weights  # (n,)
    double *targets


cdef struct Problem:
    Py_ssize_t n
    Py_ssize_t p
    const double *X
    const double *y
    const double *w
    const double *penalty


cdef void find_gram(
    const Problem *problem, const Memory *memory, const uint8_t *mask
) noexcept nogil:
    """``X' w X`` and ``X' w y`` of a coalition."""
    cdef Py_ssize_t p = problem.p, i, size = 0
    for i in range(problem.n):
        if mask[i]:
            memcpy(memory.rows + size * p, problem.X + i * p, p * sizeof(double))
            memory.weights[size] = problem.w[i]
            memory.targets[size] = problem.w[i] * problem.y[i]
            size += 1
    weighted_gram(memory.rows, memory.weights, memory.inverse, size, p)
    vector_matrix(memory.targets, memory.rows, memory.right, size, p)


cdef bint penalised_inverse(
    double *inverse, const double *penalty, const Memory *memory, Py_ssize_t p
) noexcept nogil:
    """Replace a matrix by the inverse of it plus diag(penalty); False if nearly
    singular."""
    cdef double *column = memory.work
    cdef double *scale = memory.scale
    cdef double largest = 0.0
    cdef Py_ssize_t a, b
    for a in range(p):
        inverse[a * p + a] += penalty[a]
        column[a] = inverse[a * p + a]
        memory.diagonal[a] = column[a]
    for a in range(p):
        if not column[a] > 0:
            return False
        scale[a] = 1.0 / sqrt(column[a])

    # Scaled to a unit diagonal: columns may have any unit.
    for a in range(p):
        for b in range(p):
            inverse[a * p + b] *= scale[a] * scale[b]
    invert(inverse, column, p)
    for a in range(p):
        largest = max(largest, fabs(inverse[a * p + a]))
    if not largest < 1.0 / safe:
        return False
    for a in range(p):
        for b in range(p):
            inverse[a * p + b] *= scale[a] * scale[b]
    return True


cdef bint row_moves(
    const Memory *memory, const double *x, double weight, double *error, Py_ssize_t p
) noexcept nogil:
    """`rank_joins` of a row of a weight, negative if it leaves; False if digits are
    lost.

    Rounding errors are relative to the largest entries of the inverse, in units of the
    columns: before a row joins, and after one leaves, which errors grow with.
    """
    cdef double *diagonal = memory.diagonal
    cdef double *inverse = memory.inverse
    cdef double largest = 0.0, kept
    cdef Py_ssize_t a
    if weight > 0:
        for a in range(p):
            diagonal[a] += weight * x[a] * x[a]
            largest = max(largest, inverse[a * p + a] * diagonal[a])
    if not rank_joins(inverse, x, weight, memory.work, p):
        return False
    if weight < 0:
        kept = 1.0 + weight * dot(memory.work, x, p)
        error[0] /= kept
        for a in range(p):
            largest = max(largest, inverse[a * p + a] * diagonal[a])
            diagonal[a] += weight * x[a] * x[a]
    error[0] += eps * largest
    return error[0] < coarse


cdef double condition_bound(
    const Problem *problem, const double *inverse, const uint8_t *mask
) noexcept nogil:
    """A bound of the condition number: the product of the traces of matrix and
    inverse."""
    cdef Py_ssize_t p = problem.p, a, i
    cdef double trace = 0.0, inverse_trace = 0.0
    for a in range(p):
        trace += problem.penalty[a]
        inverse_trace += inverse[a * p + a]
    for i in range(problem.n):
        if mask[i]:
            trace += problem.w[i] * dot(problem.X + i * p, problem.X + i * p, p)
    return trace * inverse_trace


def ridge_tile(
    X, const double[::1] y, const double[::1] w, const double[::1] penalty, masks,
    Py_ssize_t nearby, double widest, const double[:, ::1] grams,
    const double[:, ::1] rights, const int64_t[::1] numbers, double[:, ::1] coefs,
):
    """Coefficients of every coalition of a tile; returns a mask of those computed.

    A coalition that differs from the one before in at most ``nearby`` rows is computed
    from it; others may have matrices in ``grams`` and ``rights`` at ``numbers`` (-1:
    none). Matrices that may have a condition number above ``widest`` are skipped.
    """
    cdef const double[:, ::1] rows = np.ascontiguousarray(X, np.float64)
    cdef const uint8_t[:, ::1] is_in = np.ascontiguousarray(masks).view(np.uint8)
    cdef Py_ssize_t n = rows.shape[0], p = rows.shape[1], c, i, a, b, k, differ, at
    cdef Py_ssize_t changes = 0
    solved = np.zeros(is_in.shape[0], dtype=bool)
    if n == 0 or p == 0:
        return solved
    cdef uint8_t[::1] is_solved = solved.view(np.uint8)
    cdef uint8_t[::1] before = np.zeros(n, np.uint8)
    cdef double[::1] doubles = np.empty(p * p + 4 * p + n * p + 2 * n)
    cdef double weight, error = 0.0
    cdef bint warm = False
    cdef Problem problem = Problem(n, p, &rows[0, 0], &y[0], &w[0], &penalty[0])
    cdef Memory memory
    memory.inverse = &doubles[0]
    memory.right = memory.inverse + p * p
    memory.work = memory.right + p
    memory.scale = memory.work + p
    memory.diagonal = memory.scale + p
    memory.rows = memory.diagonal + p
    memory.weights = memory.rows + n * p
    memory.targets = memory.weights + n
    with nogil:
        for c in range(is_in.shape[0]):
            differ = 0
            for i in range(n):
                differ += is_in[c, i] != before[i]
            warm = warm and differ <= nearby and changes < FRESH
            if warm:
                for i in range(n):
                    if is_in[c, i] == before[i]:
                        continue
                    weight = w[i] if is_in[c, i] else -w[i]
                    warm = warm and row_moves(&memory, &rows[i, 0], weight, &error, p)
                    for a in range(p):
                        memory.right[a] += weight * y[i] * rows[i, a]
                    changes += 1
            if not warm:
                at = numbers[c]
                if at < 0:
                    find_gram(&problem, &memory, &is_in[c, 0])
                else:
                    k = 0
                    for a in range(p):
                        for b in range(a + 1):
                            memory.inverse[a * p + b] = grams[at, k]
                            memory.inverse[b * p + a] = grams[at, k]
                            k += 1
                    memcpy(memory.right, &rights[at, 0], p * sizeof(double))
                warm = penalised_inverse(memory.inverse, &penalty[0], &memory, p)
                changes = 0
                error = 0.0
            memcpy(&before[0], &is_in[c, 0], n)

            is_solved[c] = warm
            if warm and widest < INFINITY:
                is_solved[c] = (
                    condition_bound(&problem, memory.inverse, &is_in[c, 0]) < widest
                )
            if is_solved[c]:
                vector_matrix(memory.right, memory.inverse, &coefs[c, 0], p, p)
            else:
                memset(&coefs[c, 0], 0, p * sizeof(double))
    return solved
