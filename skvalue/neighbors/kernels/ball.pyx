# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Compiled loops of the CPU engine: which rows are in the ball of a point.

Rows are in blocks of eight rows of one class; a block and a point take one byte, one
bit per row.
"""

from cython cimport floating
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

from ..._utils.loops cimport (
    add_bits, add_by_bit, bytes_alone, cloned, has_pack, integers_alone, pack_doubles,
    pack_floats,
)
from .ties cimport GENERIC, exact_key

import numpy as np

ctypedef fused label:
    uint8_t
    uint16_t
    uint32_t
    int64_t


cdef inline void compare_few(
    const floating *product, const floating *half, floating near,
    const floating *threshold, const floating *point_slack, Py_ssize_t n_points,
    uint8_t *line, int64_t *total, uint8_t *doubts, Py_ssize_t *n_doubtful,
) noexcept nogil:
    """`compare`, of fewer points than a register holds."""
    cdef Py_ssize_t v, r
    cdef int byte, inside, maybe
    cdef floating high, low, x
    n_doubtful[0] = 0
    for v in range(n_points):
        high = threshold[v] + (point_slack[v] + near)
        low = threshold[v] - (point_slack[v] + near)
        byte = 0
        inside = 0
        maybe = 0
        for r in range(8):
            x = product[r * n_points + v] - half[r]
            byte |= (x >= high) << r
            inside += x >= high
            maybe += x >= low
        n_doubtful[0] += maybe - inside
        doubts[v] = <uint8_t> (maybe - inside)
        total[v] += inside
        line[v] = <uint8_t> byte


cdef cloned compare(
    const floating *product, const floating *half, floating near,
    const floating *threshold, const floating *point_slack, Py_ssize_t n_points,
    uint8_t *line, int64_t *total, uint8_t *doubts, Py_ssize_t *n_doubtful,
) noexcept nogil:
    """Compare, count and pack one block of eight rows.

    ``doubts`` are the numbers of rows too near to a point's threshold.
    """
    if floating is float:
        if has_pack and n_points >= 16:
            n_doubtful[0] = pack_floats(
                product, half, near, threshold, point_slack, n_points, line, total,
                doubts,
            )
            return
    else:
        if has_pack and n_points >= 8:
            n_doubtful[0] = pack_doubles(
                product, half, near, threshold, point_slack, n_points, line, total,
                doubts,
            )
            return
    compare_few(
        product, half, near, threshold, point_slack, n_points, line, total, doubts,
        n_doubtful,
    )


cdef int decide(
    int kind, const floating[:, ::1] product, const floating[::1] half, Py_ssize_t s,
    Py_ssize_t v, floating low, floating high, const int64_t[::1] order,
    const floating[:, ::1] rows, const floating[:, ::1] queries, double limit,
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
    int kind, const floating[:, ::1] product, const floating[::1] half,
    const floating[::1] slack, const floating[::1] threshold,
    const floating[::1] point_slack, const int64_t[::1] order,
    const floating[:, ::1] rows, const floating[:, ::1] queries, double limit,
    const int64_t[::1] block_class, uint8_t[:, ::1] bits, int64_t[:, ::1] counts,
):
    """Compare, count and pack one tile of blocks; ``product`` has shape (rows of the
    tile, points).

    Row ``r`` is in the ball of point ``v`` if ``product[r, v] - half[r] >=
    threshold[v]``; within ``slack[block] + point_slack[v]`` of the threshold, if its
    exact key is at most ``limit``.
    """
    cdef Py_ssize_t n_points = product.shape[1], n_doubtful, s, v
    cdef uint8_t[::1] doubts = np.empty(n_points, np.uint8)
    cdef int byte
    cdef floating high, low
    if n_points == 0:
        return
    with nogil:
        for s in range(block_class.shape[0]):
            compare(
                &product[8 * s, 0], &half[8 * s], slack[s], &threshold[0],
                &point_slack[0], n_points, &bits[s, 0], &counts[block_class[s], 0],
                &doubts[0], &n_doubtful,
            )
            if n_doubtful == 0 or kind == GENERIC:
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
    const uint8_t *mask, int shift, Py_ssize_t n_points, bytes_alone line,
    integers_alone total
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
    """Count and pack some rows, at these positions in the blocks; ``inside`` holds 0
    and 1."""
    cdef Py_ssize_t r
    if bits.shape[1] == 0:
        return
    with nogil:
        for r in range(inside.shape[0]):
            pack_row(
                &inside[r, 0], position[r] & 7, bits.shape[1],
                &bits[position[r] >> 3, 0], &counts[labels[r], 0],
            )


def remove_self(
    uint8_t[:, ::1] bits, int64_t[:, ::1] counts, const int64_t[::1] position,
    const label[::1] labels, const int64_t[::1] self_index,
):
    """Remove from the ball of each point the row ``self_index``, which is the point
    itself."""
    cdef Py_ssize_t v, i, s
    cdef int bit
    with nogil:
        for v in range(self_index.shape[0]):
            i = self_index[v]
            if i >= 0:
                s = position[i] >> 3
                bit = 1 << (position[i] & 7)
                if bits[s, v] & bit:
                    bits[s, v] &= 255 ^ bit
                    counts[labels[i], v] -= 1


cdef cloned add_block(
    const uint8_t *line, const double *numbers, Py_ssize_t n_points, double *out
) noexcept nogil:
    """Add the numbers of one block of rows to the points in whose balls they are."""
    add_bits(line, numbers, n_points, out)


def add_rows(const uint8_t[:, ::1] bits, const double[::1] numbers, double[::1] out):
    """Add to each point the numbers of the rows in its ball; ``numbers`` in blocks of
    eight."""
    cdef Py_ssize_t s
    if out.shape[0] == 0:
        return
    with nogil:
        for s in range(bits.shape[0]):
            add_block(&bits[s, 0], &numbers[8 * s], bits.shape[1], &out[0])


cdef cloned add_weights_of(
    const uint8_t *line, const double *weights, Py_ssize_t n_points, double *out
) noexcept nogil:
    """Add to the eight rows of one block the weights of the points whose balls contain
    them."""
    add_by_bit(line, weights, n_points, out)


def add_weights(
    const uint8_t[:, ::1] bits, const int64_t[::1] block_class,
    const double[:, ::1] weights, double[::1] out,
):
    """Add to each row of the blocks the weights of the points whose balls contain
    it."""
    cdef Py_ssize_t s
    if bits.shape[1] == 0:
        return
    with nogil:
        for s in range(bits.shape[0]):
            add_weights_of(
                &bits[s, 0], &weights[block_class[s], 0], bits.shape[1], &out[8 * s]
            )
