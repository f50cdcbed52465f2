"""Compiled loops of the CPU engine: which rows are in the ball of a point. Imports numba.

Rows are in blocks of eight rows of one class; a block and a point take one byte, one bit per row.
"""

import numpy as np

from ..._utils.compiled import compiled
from .kinds import GENERIC
from .ties import exact_key

_FULL = np.uint8(255)


@compiled
def _decide(kind, product, half, s, v, low, high, order, rows, query, limit):
    """Bits of the rows of one block that are in the ball by their exact keys."""
    byte = 0
    for j in range(8):
        i = order[8 * s + j]
        x = product[8 * s + j, v] - half[8 * s + j]
        if i >= 0 and low <= x < high and exact_key(kind, rows[i], query) <= limit:
            byte |= 1 << j
    return byte


@compiled
def pack_blocks(kind, product, half, slack, threshold, point_slack, order, rows, queries, limit,
                block_class, bits, counts):  # fmt: skip
    """Compare, count and pack one tile of blocks; ``product`` has shape (rows of the tile, points).

    Row ``r`` is in the ball of point ``v`` if ``product[r, v] - half[r] >= threshold[v]``; within
    ``slack[block] + point_slack[v]`` of the threshold, if its exact key is at most ``limit``.
    """
    n_points = product.shape[1]
    doubts = np.empty(n_points, np.uint8)  # rows of the block too near to a point's threshold
    for s in range(len(block_class)):
        h0, h1, h2, h3 = half[8 * s], half[8 * s + 1], half[8 * s + 2], half[8 * s + 3]
        h4, h5, h6, h7 = half[8 * s + 4], half[8 * s + 5], half[8 * s + 6], half[8 * s + 7]
        p0, p1, p2, p3 = product[8 * s], product[8 * s + 1], product[8 * s + 2], product[8 * s + 3]
        p4, p5, p6, p7 = (
            product[8 * s + 4], product[8 * s + 5], product[8 * s + 6], product[8 * s + 7]
        )  # fmt: skip
        total = counts[block_class[s]]
        line = bits[s]
        near = slack[s]
        doubtful = 0
        for v in range(n_points):
            high = threshold[v] + (point_slack[v] + near)
            low = threshold[v] - (point_slack[v] + near)
            x0, x1, x2, x3 = p0[v] - h0, p1[v] - h1, p2[v] - h2, p3[v] - h3
            x4, x5, x6, x7 = p4[v] - h4, p5[v] - h5, p6[v] - h6, p7[v] - h7
            b0, b1 = np.int32(x0 >= high), np.int32(x1 >= high)
            b2, b3 = np.int32(x2 >= high), np.int32(x3 >= high)
            b4, b5 = np.int32(x4 >= high), np.int32(x5 >= high)
            b6, b7 = np.int32(x6 >= high), np.int32(x7 >= high)
            inside = b0 + b1 + b2 + b3 + b4 + b5 + b6 + b7
            maybe = np.int32(x0 >= low) + np.int32(x1 >= low) + np.int32(x2 >= low)
            maybe += np.int32(x3 >= low) + np.int32(x4 >= low) + np.int32(x5 >= low)
            maybe += np.int32(x6 >= low) + np.int32(x7 >= low)
            doubtful += maybe - inside
            doubts[v] = np.uint8(maybe - inside)
            total[v] += inside
            line[v] = np.uint8(
                b0 | b1 << 1 | b2 << 2 | b3 << 3 | b4 << 4 | b5 << 5 | b6 << 6 | b7 << 7
            )
        if doubtful and kind != GENERIC:
            for v in range(n_points):
                if not doubts[v]:
                    continue
                high = threshold[v] + (point_slack[v] + near)
                low = threshold[v] - (point_slack[v] + near)
                byte = _decide(kind, product, half, s, v, low, high, order, rows, queries[v], limit)
                line[v] |= np.uint8(byte)
                while byte:
                    total[v] += byte & 1
                    byte >>= 1


@compiled
def pack_rows(inside, position, labels, bits, counts):
    """Count and pack some rows, at these positions in the blocks; ``inside`` holds 0 and 1."""
    for r in range(len(inside)):
        mask, line, total = inside[r], bits[position[r] >> 3], counts[labels[r]]
        bit = np.uint8(1 << (position[r] & 7))
        for v in range(len(mask)):
            line[v] |= np.uint8(bit * mask[v])
            total[v] += mask[v]


@compiled
def remove_self(bits, counts, position, labels, self_index):
    """Remove from the ball of each point the row ``self_index``, which is the point itself."""
    for v in range(len(self_index)):
        i = self_index[v]
        if i >= 0:
            s, bit = position[i] >> 3, np.uint8(1 << (position[i] & 7))
            if bits[s, v] & bit:
                bits[s, v] &= _FULL ^ bit
                counts[labels[i], v] -= 1


@compiled(fastmath={"reassoc", "contract"})
def add_rows(bits, numbers, out):
    """Add to each point the numbers of the rows in its ball; ``numbers`` in blocks of eight."""
    for s in range(len(bits)):
        line = bits[s]
        x0, x1, x2, x3 = numbers[8 * s], numbers[8 * s + 1], numbers[8 * s + 2], numbers[8 * s + 3]
        x4, x5, x6, x7 = (
            numbers[8 * s + 4], numbers[8 * s + 5], numbers[8 * s + 6], numbers[8 * s + 7]
        )  # fmt: skip
        for v in range(bits.shape[1]):
            b = np.int32(line[v])
            low = (x0 if b & 1 else 0.0) + (x1 if b & 2 else 0.0)
            low += (x2 if b & 4 else 0.0) + (x3 if b & 8 else 0.0)
            high = (x4 if b & 16 else 0.0) + (x5 if b & 32 else 0.0)
            high += (x6 if b & 64 else 0.0) + (x7 if b & 128 else 0.0)
            out[v] += low + high


@compiled(fastmath={"reassoc", "contract"})
def add_weights(bits, block_class, weights, out):
    """Add to each row of the blocks the weights of the points whose balls contain it."""
    n_points = bits.shape[1]
    for s in range(len(bits)):
        line = bits[s]
        w = weights[block_class[s]]
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for v in range(n_points):
            b = np.int32(line[v])
            x = w[v]
            s0 += x if b & 1 else 0.0
            s1 += x if b & 2 else 0.0
            s2 += x if b & 4 else 0.0
            s3 += x if b & 8 else 0.0
            s4 += x if b & 16 else 0.0
            s5 += x if b & 32 else 0.0
            s6 += x if b & 64 else 0.0
            s7 += x if b & 128 else 0.0
        out[8 * s] += s0
        out[8 * s + 1] += s1
        out[8 * s + 2] += s2
        out[8 * s + 3] += s3
        out[8 * s + 4] += s4
        out[8 * s + 5] += s5
        out[8 * s + 6] += s6
        out[8 * s + 7] += s7
