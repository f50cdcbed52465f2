# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Compiled loops of the CPU engine: which rows are in the ball of a point.

Rows are in blocks of eight rows of one class; a block and a point take one byte, one bit per row.
"""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from ..._utils.loops cimport (
    add_by_bit, bytes_alone, cloned, doubles_alone, integers_alone, kept
)
from .ties cimport GENERIC, exact_key

import numpy as np

ctypedef fused label:
    uint8_t
    uint16_t
    uint32_t
    int64_t


cdef cloned compare(
    const floating *product, const floating *half, floating near, const floating *threshold,
    const floating *point_slack, Py_ssize_t n_points, bytes_alone line, integers_alone total,
    bytes_alone doubts, int32_t *doubtful,
) noexcept nogil:
    """Compare, count and pack one block; ``doubts`` are its rows too near to a point's threshold."""
    cdef Py_ssize_t v
    cdef int32_t b0, b1, b2, b3, b4, b5, b6, b7, inside, maybe, count = 0
    cdef floating high, low, x0, x1, x2, x3, x4, x5, x6, x7
    cdef floating h0 = half[0], h1 = half[1], h2 = half[2], h3 = half[3]
    cdef floating h4 = half[4], h5 = half[5], h6 = half[6], h7 = half[7]
    cdef const floating *p1 = product + n_points
    cdef const floating *p2 = p1 + n_points
    cdef const floating *p3 = p2 + n_points
    cdef const floating *p4 = p3 + n_points
    cdef const floating *p5 = p4 + n_points
    cdef const floating *p6 = p5 + n_points
    cdef const floating *p7 = p6 + n_points
    for v in range(n_points):
        high = threshold[v] + (point_slack[v] + near)
        low = threshold[v] - (point_slack[v] + near)
        x0, x1, x2, x3 = product[v] - h0, p1[v] - h1, p2[v] - h2, p3[v] - h3
        x4, x5, x6, x7 = p4[v] - h4, p5[v] - h5, p6[v] - h6, p7[v] - h7
        b0, b1, b2, b3 = x0 >= high, x1 >= high, x2 >= high, x3 >= high
        b4, b5, b6, b7 = x4 >= high, x5 >= high, x6 >= high, x7 >= high
        inside = b0 + b1 + b2 + b3 + b4 + b5 + b6 + b7
        maybe = (x0 >= low) + (x1 >= low) + (x2 >= low) + (x3 >= low)
        maybe += (x4 >= low) + (x5 >= low) + (x6 >= low) + (x7 >= low)
        count += maybe - inside
        doubts[v] = <uint8_t> (maybe - inside)
        total[v] += inside
        line[v] = <uint8_t> (
            b0 | b1 << 1 | b2 << 2 | b3 << 3 | b4 << 4 | b5 << 5 | b6 << 6 | b7 << 7
        )
    doubtful[0] = count


cdef int decide(
    int kind, const floating[:, ::1] product, const floating[::1] half, Py_ssize_t s, Py_ssize_t v,
    floating low, floating high, const int64_t[::1] order, const floating[:, ::1] rows,
    const floating[:, ::1] queries, double limit,
) noexcept nogil:
    """Bits of the rows of one block that are in the ball by their exact keys."""
    cdef Py_ssize_t j, i
    cdef floating x
    cdef int byte = 0
    for j in range(8):
        i = order[8 * s + j]
        x = product[8 * s + j, v] - half[8 * s + j]
        if i >= 0 and low <= x and x < high:
            if exact_key(kind, &rows[i, 0], &queries[v, 0], rows.shape[1]) <= limit:
                byte |= 1 << j
    return byte


def pack_blocks(
    int kind, const floating[:, ::1] product, const floating[::1] half, const floating[::1] slack,
    const floating[::1] threshold, const floating[::1] point_slack, const int64_t[::1] order,
    const floating[:, ::1] rows, const floating[:, ::1] queries, double limit,
    const int64_t[::1] block_class, uint8_t[:, ::1] bits, int64_t[:, ::1] counts,
):
    """Compare, count and pack one tile of blocks; ``product`` has shape (rows of the tile, points).

    Row ``r`` is in the ball of point ``v`` if ``product[r, v] - half[r] >= threshold[v]``; within
    ``slack[block] + point_slack[v]`` of the threshold, if its exact key is at most ``limit``.
    """
    cdef Py_ssize_t n_points = product.shape[1], s, v
    cdef uint8_t[::1] doubts = np.empty(n_points, np.uint8)
    cdef int32_t doubtful = 0
    cdef int byte
    cdef floating high, low
    if n_points == 0:
        return
    with nogil:
        for s in range(block_class.shape[0]):
            compare(
                &product[8 * s, 0], &half[8 * s], slack[s], &threshold[0], &point_slack[0],
                n_points, &bits[s, 0], &counts[block_class[s], 0], &doubts[0], &doubtful,
            )
            if doubtful == 0 or kind == GENERIC:
                continue
            for v in range(n_points):
                if doubts[v] == 0:
                    continue
                high = threshold[v] + (point_slack[v] + slack[s])
                low = threshold[v] - (point_slack[v] + slack[s])
                byte = decide(
                    kind, product, half, s, v, low, high, order, rows, queries, limit
                )
                bits[s, v] |= byte
                while byte:
                    counts[block_class[s], v] += byte & 1
                    byte >>= 1


cdef cloned pack_row(
    const uint8_t *mask, int shift, Py_ssize_t n_points, bytes_alone line, integers_alone total
) noexcept nogil:
    """Count and pack one row."""
    cdef Py_ssize_t v
    for v in range(n_points):
        line[v] |= <uint8_t> (mask[v] << shift)
        total[v] += mask[v]


def pack_rows(
    const uint8_t[:, ::1] inside, const int64_t[::1] position, const label[::1] labels,
    uint8_t[:, ::1] bits, int64_t[:, ::1] counts,
):
    """Count and pack some rows, at these positions in the blocks; ``inside`` holds 0 and 1."""
    cdef Py_ssize_t r
    if bits.shape[1] == 0:
        return
    with nogil:
        for r in range(inside.shape[0]):
            pack_row(
                &inside[r, 0], position[r] & 7, bits.shape[1], &bits[position[r] >> 3, 0],
                &counts[labels[r], 0],
            )


def remove_self(
    uint8_t[:, ::1] bits, int64_t[:, ::1] counts, const int64_t[::1] position,
    const label[::1] labels, const int64_t[::1] self_index,
):
    """Remove from the ball of each point the row ``self_index``, which is the point itself."""
    cdef Py_ssize_t v, i, s
    cdef int bit
    with nogil:
        for v in range(self_index.shape[0]):
            i = self_index[v]
            if i >= 0:
                s, bit = position[i] >> 3, 1 << (position[i] & 7)
                if bits[s, v] & bit:
                    bits[s, v] &= 255 ^ bit
                    counts[labels[i], v] -= 1


cdef cloned add_block(
    const uint8_t *line, const double *x, Py_ssize_t n_points, doubles_alone out
) noexcept nogil:
    """Add the numbers of one block of rows to the points in whose balls they are."""
    cdef Py_ssize_t v
    cdef uint64_t b
    cdef double low, high
    cdef double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3]
    cdef double x4 = x[4], x5 = x[5], x6 = x[6], x7 = x[7]
    for v in range(n_points):
        b = line[v]
        low = (kept(b & 1, x0) + kept(b >> 1 & 1, x1)) + (kept(b >> 2 & 1, x2) + kept(b >> 3 & 1, x3))
        high = (kept(b >> 4 & 1, x4) + kept(b >> 5 & 1, x5)) + (kept(b >> 6 & 1, x6) + kept(b >> 7, x7))
        out[v] += low + high


def add_rows(const uint8_t[:, ::1] bits, const double[::1] numbers, double[::1] out):
    """Add to each point the numbers of the rows in its ball; ``numbers`` in blocks of eight."""
    cdef Py_ssize_t s
    if out.shape[0] == 0:
        return
    with nogil:
        for s in range(bits.shape[0]):
            add_block(&bits[s, 0], &numbers[8 * s], bits.shape[1], &out[0])


cdef cloned add_weights_of(
    const uint8_t *line, const double *weights, Py_ssize_t n_points, double *out
) noexcept nogil:
    """Add to the eight rows of one block the weights of the points whose balls contain them."""
    add_by_bit(line, weights, n_points, out)


def add_weights(
    const uint8_t[:, ::1] bits, const int64_t[::1] block_class, const double[:, ::1] weights,
    double[::1] out,
):
    """Add to each row of the blocks the weights of the points whose balls contain it."""
    cdef Py_ssize_t s
    if bits.shape[1] == 0:
        return
    with nogil:
        for s in range(bits.shape[0]):
            add_weights_of(
                &bits[s, 0], &weights[block_class[s], 0], bits.shape[1], &out[8 * s]
            )
