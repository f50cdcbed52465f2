# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Compiled loops of the CPU engine: which rows are in the ball of a point.

Rows are in blocks of eight rows of one class; a block and a point take one byte, one
bit per row.
"""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

from ..._utils.loops cimport (
    add_bits, add_by_bit, add_tables, bytes_alone, cloned, count_bits, integers_alone,
)
from .ties cimport GENERIC, exact_key

import numpy as np

ctypedef fused label:
    uint8_t
    uint16_t
    uint32_t
    int64_t

# Of the width of a key in float32 or float64.
ctypedef fused word:
    int32_t
    int64_t


cdef cloned compare(
    const floating *product, const floating *half, floating near,
    const floating *threshold, const floating *point_slack, Py_ssize_t n_points,
    word *words,
) noexcept nogil:
    """Compare one block of eight rows with the points.

    Of a word, bit r says whether row r is in the ball for sure, bit 8 + r whether it is
    or may be. Words are as wide as keys, so that compilers vectorise the loop for
    registers of any size.
    """
    cdef Py_ssize_t v, r
    cdef floating away, high, low, x
    cdef word bits
    for v in range(n_points):
        away = point_slack[v] + near
        high = threshold[v] + away
        low = threshold[v] - away
        bits = 0
        for r in range(8):
            x = product[r * n_points + v] - half[r]
            bits |= <word> (x >= high) << r
            bits |= <word> (x >= low) << (8 + r)
        words[v] = bits


cdef cloned split(
    const word *words, Py_ssize_t n_points, bytes_alone line, bytes_alone doubts,
) noexcept nogil:
    """Bits of rows that are in a ball for sure, and of those in doubt."""
    cdef Py_ssize_t v
    for v in range(n_points):
        line[v] = <uint8_t> words[v]
        doubts[v] = <uint8_t> (words[v] >> 8 ^ words[v])


cdef cloned count(
    const uint8_t *line, const uint8_t *doubts, Py_ssize_t n_points,
    integers_alone total, uint8_t *any_doubt,
) noexcept nogil:
    """Add the number of bits of each byte of a line, and say whether there is a
    doubt."""
    cdef Py_ssize_t v
    cdef uint8_t bits, some = 0
    for v in range(n_points):
        some |= doubts[v]
        # Sums of two, four and eight bits, side by side.
        bits = line[v]
        bits = bits - (bits >> 1 & 0x55)
        bits = (bits & 0x33) + (bits >> 2 & 0x33)
        total[v] += (bits + (bits >> 4)) & 0x0F
    any_doubt[0] = some


cdef inline void pack_block(
    const floating *product, const floating *half, floating near,
    const floating *threshold, const floating *point_slack, Py_ssize_t n_points,
    int64_t *words, uint8_t *line, uint8_t *doubts,
) noexcept nogil:
    """Bits of the rows of one block that are in a ball for sure, and of those in
    doubt."""
    if floating is float:
        compare(
            product, half, near, threshold, point_slack, n_points, <int32_t *> words
        )
        split(<int32_t *> words, n_points, line, doubts)
    else:
        compare(product, half, near, threshold, point_slack, n_points, words)
        split(words, n_points, line, doubts)


cdef int decide(
    int kind, int doubts, const int64_t *order, const floating[:, ::1] rows,
    const floating *query, double limit,
) noexcept nogil:
    """Those of the rows in doubt that are in the ball by their exact keys, as bits."""
    cdef Py_ssize_t j
    cdef int inside = 0
    for j in range(8):
        if doubts >> j & 1 and order[j] >= 0:
            if exact_key(kind, &rows[order[j], 0], query, rows.shape[1]) <= limit:
                inside |= 1 << j
    return inside


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
    cdef Py_ssize_t n_points = product.shape[1], s, v
    cdef int64_t[::1] words = np.empty(n_points, np.int64)
    cdef uint8_t[::1] doubts = np.empty(n_points, np.uint8)
    cdef uint8_t any_doubt
    cdef int byte
    if n_points == 0:
        return
    with nogil:
        for s in range(block_class.shape[0]):
            pack_block(
                &product[8 * s, 0], &half[8 * s], slack[s], &threshold[0],
                &point_slack[0], n_points, &words[0], &bits[s, 0], &doubts[0],
            )
            count(
                &bits[s, 0], &doubts[0], n_points, &counts[block_class[s], 0],
                &any_doubt,
            )
            if any_doubt == 0 or kind == GENERIC:
                continue
            for v in range(n_points):
                if doubts[v] == 0:
                    continue
                byte = decide(
                    kind, doubts[v], &order[8 * s], rows, &queries[v, 0], limit
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
    const uint8_t *line, const int64_t *weights, Py_ssize_t n_points, int64_t *out
) noexcept nogil:
    """Add to the eight rows of one block the weights of the points whose balls contain
    them."""
    add_by_bit(line, weights, n_points, out)


def add_weights(
    const uint8_t[:, ::1] bits, const int64_t[::1] block_class,
    const int64_t[:, ::1] weights, int64_t[::1] out,
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


def add_weights_of_class(
    const uint8_t[:, ::1] bits, const int64_t[:, ::1] weights, int64_t[:, ::1] out
):
    """As `add_weights`, for blocks of one class: of several weights of each point, one
    line of ``out`` for each."""
    cdef Py_ssize_t s, g
    if bits.shape[1] == 0:
        return
    with nogil:
        for s in range(bits.shape[0]):
            for g in range(weights.shape[0]):
                add_weights_of(
                    &bits[s, 0], &weights[g, 0], bits.shape[1], &out[g, 8 * s]
                )


cdef cloned add_tables_of(
    const uint8_t *line, Py_ssize_t n_points, const float *tables, float *out,
    Py_ssize_t stride,
) noexcept nogil:
    """Sixteen sums for each of the eight rows of one block."""
    add_tables(line, n_points, tables, out, stride)


def add_many_weights(
    const uint8_t[:, ::1] bits, const float[:, :, :, ::1] tables, float[:, ::1] out
):
    """For each row of the blocks, the sums of many weights of the points whose balls
    contain it; ``tables`` (n_weights / 16, n_points / 4, 16, 16) has, for 16 weights
    and four points, the sums of all 16 sets of these points."""
    cdef Py_ssize_t s, g
    if bits.shape[1] == 0:
        return
    with nogil:
        for s in range(bits.shape[0]):
            for g in range(tables.shape[0]):
                add_tables_of(
                    &bits[s, 0], bits.shape[1], &tables[g, 0, 0, 0],
                    &out[8 * s, 16 * g], out.shape[1],
                )


cdef cloned count_balls_of(
    const uint8_t *line, Py_ssize_t n_points, int32_t *out
) noexcept nogil:
    """Add to the eight rows of one block the number of balls that contain them."""
    count_bits(line, n_points, out)


def count_balls(const uint8_t[:, ::1] bits, int32_t[::1] out):
    """Add to each row of the blocks the number of balls that contain it."""
    cdef Py_ssize_t s
    if bits.shape[1] == 0:
        return
    with nogil:
        for s in range(bits.shape[0]):
            count_balls_of(&bits[s, 0], bits.shape[1], &out[8 * s])
