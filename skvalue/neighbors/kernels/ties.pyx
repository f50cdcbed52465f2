# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops on near-ties: rows whose keys are within rounding are compared in float64.

`skvalue.neighbors._exact` does the same for arrays of pairs. Sums are of eight columns
at a time, so that compilers can use vector registers.
"""

from typing import NamedTuple

from cython cimport floating
from libc.math cimport fabs, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

from ..._utils.loops cimport bytes_alone, cloned, sum_of_eight
from .sort cimport Scratch, sort_run

EQUAL = 1e-14  # exact keys that differ by less, relative to their size, are tied

ctypedef fused index:  # of sparse rows
    int32_t
    int64_t


class KeyParameters(NamedTuple):
    """What turns an inner product into a key: ``key = half[i] - scale[i] * product``.

    Keys closer than ``tolerance`` (at far ranks, ``far_tolerance``), relative to the
    sizes of both rows, are computed again from ``rows`` in float64, since rounding may
    have swapped them.
    """

    kind: int
    half: np.ndarray
    scale: np.ndarray
    rows: np.ndarray
    tolerance: float
    far_tolerance: float
    largest_half: float
    mean_half: float


cdef Tolerances tolerances_of(params):
    return Tolerances(
        params.kind, params.tolerance, params.far_tolerance, params.largest_half,
        params.mean_half,
    )


# Exact keys ---------------------------------------------------------------------------


cdef cloned find_squares(
    const floating *x, const floating *q, Py_ssize_t d, double *out
) noexcept nogil:
    """Squared distance of two rows."""
    cdef double sums[8]
    cdef double diff, rest = 0.0
    cdef Py_ssize_t c, j, whole = d & ~7
    for j in range(8):
        sums[j] = 0.0
    for c in range(0, whole, 8):
        for j in range(8):
            diff = <double> x[c + j] - <double> q[c + j]
            sums[j] += diff * diff
    for c in range(whole, d):
        diff = <double> x[c] - <double> q[c]
        rest += diff * diff
    out[0] = sum_of_eight(sums) + rest


cdef cloned find_product(
    const floating *x, const floating *q, Py_ssize_t d, double *out
) noexcept nogil:
    """Inner product of two rows."""
    cdef double sums[8]
    cdef double rest = 0.0
    cdef Py_ssize_t c, j, whole = d & ~7
    for j in range(8):
        sums[j] = 0.0
    for c in range(0, whole, 8):
        for j in range(8):
            sums[j] += <double> x[c + j] * <double> q[c + j]
    for c in range(whole, d):
        rest += <double> x[c] * <double> q[c]
    out[0] = sum_of_eight(sums) + rest


cdef inline double minus_cosine(double xq, double xx, double qq) noexcept nogil:
    """Minus the cosine of two rows, from their inner products; 0 for a row of zeros."""
    cdef double both = xx * qq
    if 1e-300 < both < 1e300:
        return -xq / sqrt(both)
    return -(xq / sqrt(xx)) / sqrt(qq) if xx > 0 and qq > 0 else 0.0


cdef double exact_key(
    int kind, const floating *x, const floating *q, Py_ssize_t d
) noexcept nogil:
    """Squared distance, or minus the cosine; equal rows have equal keys."""
    cdef double key, xx, qq
    if kind == EUCLIDEAN:
        find_squares(x, q, d, &key)
        return key
    find_product(x, q, d, &key)
    find_product(x, x, d, &xx)
    find_product(q, q, d, &qq)
    return minus_cosine(key, xx, qq)


def dense_keys(
    int kind, const floating[:, ::1] rows, const int64_t[::1] i,
    const floating[:, ::1] points, const int64_t[::1] v,
):
    """Exact keys of pairs of row ``i[p]`` and point ``v[p]``."""
    cdef Py_ssize_t p, d = rows.shape[1], n_pairs = i.shape[0]
    keys = np.empty(n_pairs)
    cdef double[::1] out = keys
    if n_pairs == 0 or d == 0:
        keys[:] = 0.0
        return keys
    with nogil:
        for p in range(n_pairs):
            out[p] = exact_key(kind, &rows[i[p], 0], &points[v[p], 0], d)
    return keys


cdef struct Sums:  # of the columns of two rows, in the order of `exact_key`
    double key[8]
    double xx[8]
    double qq[8]
    double key_rest
    double xx_rest
    double qq_rest


cdef void add_column(
    Sums *sums, int kind, double first, double second, Py_ssize_t column,
    Py_ssize_t whole
) noexcept nogil:
    """Add what one column contributes to the sums of two sparse rows."""
    cdef double term = first * second
    cdef Py_ssize_t j = column & 7
    if kind == EUCLIDEAN:
        term = (first - second) * (first - second)
    if column < whole:
        sums.key[j] += term
        sums.xx[j] += first * first
        sums.qq[j] += second * second
    else:
        sums.key_rest += term
        sums.xx_rest += first * first
        sums.qq_rest += second * second


def sparse_keys(
    int kind, const index[::1] x_ptr, const index[::1] x_col, const floating[::1] x,
    const int64_t[::1] i, const index[::1] q_ptr, const index[::1] q_col,
    const floating[::1] q, const int64_t[::1] v, Py_ssize_t n_columns,
):
    """The sums of `exact_key` in the same order without zeros: the same bits."""
    cdef Py_ssize_t p, a, b, a_stop, b_stop, left, right, j
    cdef Py_ssize_t whole = n_columns & ~7, n_pairs = i.shape[0]
    cdef double first, second, key
    cdef Sums sums
    keys = np.empty(n_pairs)
    cdef double[::1] out = keys
    with nogil:
        for p in range(n_pairs):
            for j in range(8):
                sums.key[j] = 0.0
                sums.xx[j] = 0.0
                sums.qq[j] = 0.0
            sums.key_rest = 0.0
            sums.xx_rest = 0.0
            sums.qq_rest = 0.0
            a = x_ptr[i[p]]
            a_stop = x_ptr[i[p] + 1]
            b = q_ptr[v[p]]
            b_stop = q_ptr[v[p] + 1]
            while a < a_stop or b < b_stop:
                left = x_col[a] if a < a_stop else n_columns
                right = q_col[b] if b < b_stop else n_columns
                first = 0.0
                second = 0.0
                if left <= right:
                    first = x[a]
                    a += 1
                if right <= left:
                    second = q[b]
                    b += 1
                add_column(&sums, kind, first, second, min(left, right), whole)
            key = sum_of_eight(sums.key) + sums.key_rest
            if kind != EUCLIDEAN:
                key = minus_cosine(
                    key, sum_of_eight(sums.xx) + sums.xx_rest,
                    sum_of_eight(sums.qq) + sums.qq_rest,
                )
            out[p] = key
    return keys


# Near-ties ----------------------------------------------------------------------------


cdef double slack(
    int kind, double tolerance, double half, double query_half
) noexcept nogil:
    """Largest difference of two keys that may be due to rounding, for rows of this
    size."""
    if kind == EUCLIDEAN:
        return tolerance * (half + query_half)
    return tolerance if kind == COSINE else 0.0


cdef double pair_slack(
    const Tolerances *params, floating half, floating key, double query_half
) noexcept nogil:
    """`slack` of one pair: the error of any pair, and one that grows with the
    product."""
    # More than at far ranks: rows on a grid far from the origin tie exactly, which
    # matters here.
    cdef double tolerance = params.far + params.near / 2
    cdef double common = slack(params.kind, tolerance, half, query_half)
    cdef double largest = slack(params.kind, params.near, half, query_half)
    return min(largest, common + params.near * fabs(half - key))


cdef void order_exactly(
    const Tolerances *params, const floating *rows, const floating *query, Py_ssize_t d,
    int32_t *order, Py_ssize_t m, const Scratch *scratch,
) noexcept nogil:
    """Sort m rows by exact keys; keys that are equal up to rounding are tied."""
    cdef int32_t *run = scratch.run
    cdef int32_t *place = scratch.place
    cdef double *exact = scratch.exact
    cdef double key, size
    cdef Py_ssize_t p
    for p in range(m):
        run[p] = order[p]
        place[p] = <int32_t> p
        exact[p] = exact_key(params.kind, rows + run[p] * d, query, d)
    sort_run(place, exact, 0, m, scratch.merged)
    for p in range(m):
        key = exact[place[p]]
        size = fabs(key) if params.kind == EUCLIDEAN else 1.0
        order[p] = run[place[p]]
        if p > 0 and key - exact[place[p - 1]] <= 1e-14 * size:  # EQUAL
            order[p] = ~order[p]


cdef void finish_run(
    const Tolerances *params, const floating *half, const floating *rows,
    const floating *query, Py_ssize_t d, double query_half, const floating *keys,
    int32_t *order, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t head,
    const Scratch *scratch,
) noexcept nogil:
    """Sort one run by full keys; near-ties below rank ``head`` are sorted exactly.

    Those from that rank on are tied.
    """
    cdef Py_ssize_t a = start, b, p
    cdef int32_t i
    sort_run(order, keys, start, stop, scratch.merged)
    while a < stop:
        b = a + 1
        while b < stop:
            i = order[b]
            if keys[i] - keys[order[b - 1]] > pair_slack(
                params, half[i], keys[i], query_half
            ):
                break
            b += 1
        if b - a > 1:
            if params.kind == GENERIC or a >= head:
                for p in range(a + 1, b):
                    order[p] = ~order[p]
            else:
                order_exactly(params, rows, query, d, order + a, b - a, scratch)
        a = b


cdef void resolve_head(
    const Tolerances *params, const floating *half, const floating *rows,
    const floating *query, Py_ssize_t d, double query_half, const floating *keys,
    const real *rel, real blur, floating unit, int32_t *order, Py_ssize_t n,
    Py_ssize_t head, const Scratch *scratch,
) noexcept nogil:
    """Sort again the rows whose sorted keys, or products, are within rounding.

    ``rel``, by row in float32 and by rank in float64, has a relative error of ``blur``.
    """
    cdef float allowed = <float> (
        slack(params.kind, params.near, params.largest_half, query_half) * unit
    )
    cdef bint is_whole = sizeof(floating) == 4  # the whole key was sorted
    cdef Py_ssize_t start = 0, p
    cdef real value, before = rel[0]
    cdef int32_t i
    for p in range(n):
        i = order[p]
        i ^= i >> 31
        order[p] = i
        if real is double:
            value = rel[p]
        else:
            value = rel[i]
        if p and value - before > allowed + value * blur:
            if p - start > 1:
                finish_run(
                    params, half, rows, query, d, query_half, keys, order, start, p,
                    head, scratch,
                )
            start = p
            if is_whole and p >= head:
                return
        before = value
    if n - start > 1:
        finish_run(
            params, half, rows, query, d, query_half, keys, order, start, n, head,
            scratch
        )


cdef cloned compare_gaps(
    const floating *keys, Py_ssize_t n, double low, double high, bytes_alone near
) noexcept nogil:
    """Number of bounds, of two, that the gap before each sorted key does not exceed."""
    cdef Py_ssize_t p
    cdef floating gap
    for p in range(1, n):
        gap = keys[p] - keys[p - 1]
        near[p] = <uint8_t> (gap <= low) + <uint8_t> (gap <= high)


def near_ties(
    int kind, const floating[:, ::1] keys, const int32_t[:, ::1] order,
    const real[::1] half, const double[::1] query_half, double tolerance,
    double smallest_half, double largest_half, uint8_t[:, ::1] near,
):
    """Whether sorted keys differ from the one before by no more than rounding may do.

    For keys (n_points, n_sorted) of the rows ``order``; the first one of a point does
    not.
    """
    cdef Py_ssize_t v, p, n = keys.shape[1]
    cdef double low, high
    cdef floating gap
    if n == 0:
        return
    with nogil:
        for v in range(keys.shape[0]):
            low = slack(kind, tolerance, smallest_half, query_half[v])
            high = slack(kind, tolerance, largest_half, query_half[v])
            if kind == COSINE:
                low = high = <floating> tolerance
            near[v, 0] = False
            compare_gaps(&keys[v, 0], n, low, high, &near[v, 0])
            # Most gaps are within both bounds, or beyond both; the others need the size
            # of a row, which is anywhere in memory.
            for p in range(1, n):
                if near[v, p] == 1:
                    gap = keys[v, p] - keys[v, p - 1]
                    near[v, p] = gap <= slack(
                        kind, tolerance, half[order[v, p]], query_half[v]
                    )
                else:
                    near[v, p] >>= 1


def sort_runs(const int64_t[::1] starts, const double[::1] keys):
    """Positions that sort ``keys`` within each run; runs begin at ``starts``."""
    cdef Py_ssize_t r
    places = np.arange(len(keys), dtype=np.int32)
    cdef int32_t[::1] place = places
    cdef int32_t[::1] merged = np.empty(len(keys), np.int32)
    if len(keys) == 0:
        return places
    with nogil:
        for r in range(starts.shape[0] - 1):
            sort_run(&place[0], &keys[0], starts[r], starts[r + 1], &merged[0])
    return places
