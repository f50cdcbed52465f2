# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops of the control variates."""

from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

cdef enum:
    N_FUNCTIONS = 5  # of the number of members of a class


def members_of(masks):
    """Players of all coalitions, in order, and where those of each coalition start."""
    cdef const uint8_t[:, ::1] is_in = np.ascontiguousarray(masks).view(np.uint8)
    cdef Py_ssize_t n_masks = is_in.shape[0], n = is_in.shape[1], m, j, at, size
    first = np.zeros(n_masks + 1, np.int64)
    cdef int64_t[::1] starts = first
    with nogil:
        for m in range(n_masks):
            size = 0
            for j in range(n):
                size += is_in[m, j]
            starts[m + 1] = starts[m] + size
    players = np.empty(starts[n_masks] + 1, np.int32)
    cdef int32_t[::1] members = players
    with nogil:
        for m in range(n_masks):
            at = starts[m]
            # Without a branch: the next player overwrites one that is no member.
            for j in range(n):
                members[at] = <int32_t> j
                at += is_in[m, j]
    return first, players


def column_means(
    const int64_t[::1] starts, const int32_t[::1] members, const double[:, ::1] phi,
    double[:, ::1] out,
):
    """Means of the rows of ``phi`` over the members of every coalition."""
    cdef Py_ssize_t width = phi.shape[1], m, t, c
    cdef double *total
    cdef const double *row
    if width == 0:
        return
    with nogil:
        for m in range(out.shape[0]):
            total = &out[m, 0]
            for c in range(width):
                total[c] = 0.0
            for t in range(starts[m], starts[m + 1]):
                row = &phi[members[t], 0]
                for c in range(width):
                    total[c] += row[c]
            for c in range(width):
                total[c] /= starts[m + 1] - starts[m]


cdef void add_functions(
    double factor, int64_t count, int64_t size, const double *log, double *out
) noexcept nogil:
    """Add functions of the number of members of a class; log[x] is log(x + 1)."""
    out[0] += factor * (count == 0)
    out[1] += factor * (count <= 1)
    out[2] += factor * (count <= 3)
    out[3] += factor * (0.5 * (2 * count >= size) + 0.5 * (2 * count > size))
    out[4] += factor * log[count]


def count_functions(
    const int64_t[::1] starts, const int32_t[::1] members, const int64_t[::1] codes,
    const double[:, ::1] weights, const double[::1] log, double[:, :, ::1] out,
):
    """Sums over classes of functions of their counts, of shape (m, n_sums, 5).

    Classes have weights in each of the sums.
    """
    cdef Py_ssize_t n_sums = weights.shape[0], n_classes = weights.shape[1], m, t, w, c
    cdef int64_t size
    cdef int64_t[::1] counts = np.empty(n_classes, np.int64)
    with nogil:
        for m in range(out.shape[0]):
            for c in range(n_classes):
                counts[c] = 0
            size = starts[m + 1] - starts[m]
            for t in range(starts[m], starts[m + 1]):
                counts[codes[members[t]]] += 1
            for w in range(n_sums):
                for c in range(N_FUNCTIONS):
                    out[m, w, c] = 0.0
                for c in range(n_classes):
                    add_functions(
                        weights[w, c], counts[c], size, &log[0], &out[m, w, 0]
                    )
                    out[m, w, 4] -= weights[w, c] * log[size + n_classes - 1]


cdef struct Draw:  # of rows of a population, some of which are of a class
    int64_t population
    int64_t good
    int64_t drawn
    int64_t more  # of the class, that are members in any case
    int64_t size


cdef void add_hypergeometric(
    double factor, const Draw *draw, const double *log, double *out
) noexcept nogil:
    """Add E f(X + more, size) for the functions f of counts, X good ones among drawn.

    From the mode outwards by the ratio of consecutive probabilities: nothing overflows.
    """
    cdef int64_t good = draw.good, drawn = draw.drawn, x
    cdef int64_t others = draw.population - good
    cdef int64_t low = max(<int64_t> 0, drawn - others), high = min(drawn, good)
    cdef int64_t mode = (drawn + 1) * (good + 1) // (draw.population + 2)
    cdef double total = 1.0, p
    cdef double sums[N_FUNCTIONS]
    cdef Py_ssize_t f, direction
    mode = min(max(mode, low), high)
    for f in range(N_FUNCTIONS):
        sums[f] = 0.0
    add_functions(1.0, mode + draw.more, draw.size, log, sums)
    for direction in range(2):
        x = mode
        p = 1.0
        while True:
            if direction == 0:
                if x + 1 > high:
                    break
                p *= <double> ((good - x) * (drawn - x)) / (
                    (x + 1.0) * (others - drawn + x + 1)
                )
                x += 1
            else:
                if x - 1 < low:
                    break
                p *= <double> (x * (others - drawn + x)) / (
                    (good - x + 1.0) * (drawn - x + 1)
                )
                x -= 1
            total += p
            add_functions(p, x + draw.more, draw.size, log, sums)
            if p < 1e-20:
                break
    for f in range(N_FUNCTIONS):
        out[f] += factor * sums[f] / total


def count_expectations(
    const int64_t[::1] stratum, const double[::1] probabilities,
    const int64_t[::1] totals, Py_ssize_t inside, const double[::1] log,
    double[:, :, :, ::1] out,
):
    """Add expectations over sizes of functions of the count of a class.

    ``out[k, t, same]``, of shape (5,): in stratum k, for a class of ``totals[t]``
    players that the given player belongs to or not.
    """
    cdef Py_ssize_t n = stratum.shape[0] - 1, s, t, same
    cdef Draw draw
    with nogil:
        for s in range(1, n):
            if probabilities[s] == 0.0:
                continue
            for t in range(totals.shape[0]):
                for same in range(min(<Py_ssize_t> 2, <Py_ssize_t> totals[t] + 1)):
                    draw = Draw(
                        n - 1, totals[t] - same, s - inside, same * inside, s
                    )
                    add_hypergeometric(
                        probabilities[s], &draw, &log[0], &out[stratum[s], t, same, 0]
                    )
