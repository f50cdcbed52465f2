"""The CPU engine for rows that are read block by block: sparse, in a file, or a Dask array.

`_numba` calls these functions for a `BlockSpace`. Each tile of points takes one pass over the rows,
which keeps one key, or one bit, for each pair of a row and a point. Imports numba.
"""

import numpy as np

from .._utils.compiled import compiled
from .._utils.parallel import tiles
from ._exact import block_keys, count_ranked, resolve
from ._ranks import Order
from ._space import ball_rule
from .kernels.kinds import COSINE, GENERIC


def ranks(space, points, self_index, max_rank):
    """Rank the rows for a tile of points, see `NumbaEngine.ranks`."""
    queries, query_half = space.queries(points)
    points, n = space.read(points), len(space)
    n_points = points.shape[0]
    keys = np.empty((n_points, n), dtype=np.float64 if space.kind == GENERIC else space.X.dtype)
    for part, block in space.blocks(n_points):
        np.subtract(space.half[part], space.products(queries, block, part).T, out=keys[:, part])
    n_out = np.zeros(n_points, dtype=np.int64)
    if self_index is not None:
        lines = np.flatnonzero(self_index >= 0)
        keys[lines, self_index[lines]] = np.inf
        n_out[lines] = 1
    step = max(1, int(space.budget // (32 * n)))
    for part in tiles(n_points, step):
        order, tied = _order(space, points[part], query_half[part], keys[part], max_rank)
        n_ranked = np.minimum(count_ranked(tied, max_rank), n - n_out[part])
        yield part, Order(np.where(tied, ~order, order).astype(np.int32), n_ranked)


def _order(space, points, query_half, keys, max_rank):
    """Nearest rows in order and a mask of ties: ``max_rank`` rows or more, and ties of the last."""
    n = keys.shape[1]
    n_sorted = min(n, max_rank + 1)
    while True:
        if n_sorted < n // 2:
            order = np.argpartition(keys, n_sorted - 1, axis=1)[:, :n_sorted]
            some = np.take_along_axis(keys, order, axis=1)
            place = np.argsort(some, axis=1)
            order = np.take_along_axis(order, place, axis=1)
            line = np.take_along_axis(some, place, axis=1)
        else:
            n_sorted = n
            order = np.argsort(keys, axis=1)
            line = np.take_along_axis(keys, order, axis=1)
        tied = resolve(space, points, query_half, line, order)
        # A run of near-ties that reaches the last sorted rank may continue after it.
        if n_sorted == n or not _open(space, query_half, line, order).any():
            return order, tied
        n_sorted *= 2


def _open(space, query_half, keys, order):
    """Whether the last two sorted keys of each point differ by no more than rounding."""
    if keys.shape[1] < 2:
        return np.ones(len(keys), dtype=bool)
    gap = keys[:, -1] - keys[:, -2]
    if space.kind == GENERIC:
        return gap == 0
    if space.kind == COSINE:
        return gap <= space.rank_tolerance
    return gap <= space.rank_tolerance * (space.half[order[:, -1]] + query_half)


@compiled
def _tally(inside, codes, counts):
    for r in range(inside.shape[0]):
        line = counts[codes[r]]
        for v in range(inside.shape[1]):
            line[v] += inside[r, v]


@compiled
def _add_weights(bits, codes, weights, out):
    for r in range(len(bits)):
        line, w = bits[r], weights[codes[r]]
        total = 0.0
        for v in range(len(w)):
            total += w[v] if (line[v >> 3] >> (7 - (v & 7))) & 1 else 0.0
        out[r] = total


@compiled
def _add_rows(bits, numbers, out):
    for r in range(len(bits)):
        line, number = bits[r], numbers[r]
        for v in range(len(out)):
            out[v] += number if (line[v >> 3] >> (7 - (v & 7))) & 1 else 0.0


def balls(space, points, radius, self_index):
    """Find the rows in the balls of a tile of points, see `NumbaEngine.balls`."""
    queries, threshold, point_slack, limit = ball_rule(space, points, radius)
    threshold, point_slack = threshold.astype(space.X.dtype), point_slack.astype(space.X.dtype)
    points = space.read(points)
    n_points = points.shape[0]
    counts = np.zeros((space.n_classes, n_points), dtype=np.int64)
    bits = np.empty((len(space), -(-n_points // 8)), dtype=np.uint8)
    for part, block in space.blocks(n_points):
        x = space.products(queries, block, part) - space.half[part, None]
        near = point_slack + space.X.dtype.type(space.ball_tolerance) * space.half[part, None]
        inside = x >= threshold + near
        if space.kind != GENERIC:
            r, v = np.nonzero((x >= threshold - near) & ~inside)
            if len(r):
                inside[r, v] = block_keys(space.kind, block, r, points, v) <= limit
        if self_index is not None:
            lines = np.flatnonzero((self_index >= part.start) & (self_index < part.stop))
            inside[self_index[lines] - part.start, lines] = False
        _tally(inside, space.codes[part], counts)
        bits[part] = np.packbits(inside, axis=1)
    return RowBalls(space.codes, bits, counts)


class RowBalls:
    """The balls of a tile of points: one bit for each row and point."""

    def __init__(self, codes, bits, counts):
        self._codes, self._bits, self.counts = codes, bits, counts

    def sum(self, weights):
        """For each row, the sum of the weights of the balls that contain it."""
        total = np.empty(len(self._bits))
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        _add_weights(self._bits, self._codes, weights, total)
        return total

    def totals(self, numbers):
        """For each point, the sum of a number of each row in its ball."""
        total = np.zeros(self.counts.shape[1])
        _add_rows(self._bits, np.ascontiguousarray(numbers, dtype=np.float64), total)
        return total
