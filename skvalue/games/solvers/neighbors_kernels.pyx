# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops of the batched neighbours."""

from libc.stdint cimport int64_t, uint8_t

import numpy as np


def neighbour_means(
    const int64_t[:, ::1] order, const double[:, ::1] distances,
    const double[:, ::1] values, masks, Py_ssize_t n_neighbors, bint by_distance,
    double[:, :, ::1] out,
):
    """Mean of ``values`` over the nearest rows of a coalition; 0 if it is too small.

    ``by_distance`` weights rows by 1 / distance; if rows have distance 0, only these
    count.
    """
    cdef const uint8_t[:, ::1] is_in = np.ascontiguousarray(masks).view(np.uint8)
    cdef Py_ssize_t n_points = order.shape[0], n = order.shape[1]
    cdef Py_ssize_t width = values.shape[1]
    cdef Py_ssize_t m, v, i, c, rank, n_found, size
    cdef double total, weight
    cdef bint has_equal
    with nogil:
        for m in range(is_in.shape[0]):
            size = 0
            for i in range(n):
                size += is_in[m, i]
            if size < n_neighbors:
                continue
            for v in range(n_points):
                n_found = 0
                total = 0.0
                has_equal = False
                for rank in range(n):
                    i = order[v, rank]
                    if not is_in[m, i]:
                        continue
                    weight = 1.0
                    if by_distance and distances[v, rank] == 0.0:
                        has_equal = True
                    elif by_distance:
                        if has_equal:
                            break  # the following rows have distances above 0
                        weight = 1.0 / distances[v, rank]
                    total += weight
                    for c in range(width):
                        out[m, v, c] += weight * values[i, c]
                    n_found += 1
                    if n_found == n_neighbors:
                        break
                for c in range(width):
                    out[m, v, c] /= total
