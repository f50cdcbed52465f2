"""The CPU engine for rows that are read block by block: sparse, in a file, or Dask's.

`_native` calls these functions for a `BlockSpace`. Each tile of points takes one pass
over the rows, which keeps one key, or one bit, for each pair of a row and a point.
"""

from typing import NamedTuple

import numpy as np

from ._ball_rule import ball_rule
from ._block_balls import BlockBalls
from ._exact import block_keys, ranked
from .kernels.kinds import GENERIC


def ranks(space, points, self_index, max_rank):
    """Rank the rows for a tile of points, see `NativeEngine.ranks`."""
    points = space.read(points)
    queries, query_half = space.queries(points)
    n = len(space)
    n_points = points.shape[0]
    dtype = np.float64 if space.kind == GENERIC else space.X.dtype
    keys = np.empty((n_points, n), dtype=dtype)
    for rows, block in space.blocks(n_points):
        products = space.products(queries, block, rows)
        np.subtract(space.half[rows], products.T, out=keys[:, rows])

    absent = np.zeros(n_points, dtype=bool)
    if self_index is not None:
        absent = self_index >= 0
        keys[absent, self_index[absent]] = np.inf
    yield from ranked(
        space,
        points,
        query_half,
        search=KeySearch(keys, int(space.budget) // (32 * n)),
        absent=absent,
        max_rank=max_rank,
        tolerance=space.rank_tolerance,
    )


class KeySearch(NamedTuple):
    """The nearest rows of points, by all of their keys."""

    # (n_points, n_rows)
    keys: np.ndarray
    # Number of points at a time.
    n_lines: int

    def size(self, k):
        """Number of points at a time."""
        return self.n_lines

    def nearest(self, lines, k):
        """Sorted keys and rows, (n_lines, k)."""
        keys = self.keys[lines]
        if k >= keys.shape[1] // 2:
            order = np.argsort(keys, axis=1)[:, :k]
        else:
            order = np.argpartition(keys, k - 1, axis=1)[:, :k]
            ranks = np.argsort(np.take_along_axis(keys, order, axis=1), axis=1)
            order = np.take_along_axis(order, ranks, axis=1)
        return np.take_along_axis(keys, order, axis=1), order


def balls(space, points, radius, self_index):
    """Find the rows in the balls of a tile of points, see `NativeEngine.balls`."""
    dtype = space.X.dtype
    rule = ball_rule(space, points, radius)
    threshold = rule.threshold.astype(dtype)
    point_slack = rule.slack.astype(dtype)
    ball_tolerance = dtype.type(space.ball_tolerance)
    points = space.read(points)
    n_points = points.shape[0]
    neighbours = BlockBalls(space, n_points)
    neighbours.bits[:] = 0
    for rows, block in space.blocks(n_points):
        half = space.half[rows, None]
        x = space.products(rule.queries, block, rows) - half
        slack = point_slack + ball_tolerance * half
        inside = x >= threshold + slack

        # Where rounding may decide, the exact keys do.
        if space.kind != GENERIC:
            i, v = np.nonzero((x >= threshold - slack) & ~inside)
            if len(i):
                keys = block_keys(space.kind, block, i, points, v)
                inside[i, v] = keys <= rule.limit

        if self_index is not None:
            is_in_block = (self_index >= rows.start) & (self_index < rows.stop)
            lines = np.flatnonzero(is_in_block)
            inside[self_index[lines] - rows.start, lines] = False
        neighbours.add(rows, inside)
    return neighbours
