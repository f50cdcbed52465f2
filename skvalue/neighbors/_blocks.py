"""The CPU engine for rows that are read block by block: sparse, in a file, or Dask's.

`_native` calls these functions for a `BlockSpace`. Each tile of points takes one pass
over the rows, which keeps one key, or one bit, for each pair of a row and a point.
"""

from typing import NamedTuple

import numpy as np

from ._ball_rule import ball_rule
from ._block_balls import BlockBalls
from ._exact import block_keys, ranked
from .kernels import rank as rank_kernels
from .kernels.kinds import GENERIC


def ranks(space, points, self_index, max_rank):
    """Rank the rows for a tile of points, see `NativeEngine.ranks`."""
    points = space.read(points)
    queries, query_half = space.queries(points)
    n = len(space)
    n_points = points.shape[0]
    dtype = np.float64 if space.kind == GENERIC else space.X.dtype
    n_lines = max(1, int(space.budget) // (32 * n))
    buffers = _sort_buffers(space, n_points, min(n_lines, n_points), dtype)
    keys = buffers.keys[: n_points * n].reshape(n_points, n)
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
        search=KeySearch(keys, buffers, n_lines),
        absent=absent,
        max_rank=max_rank,
        tolerance=space.rank_tolerance,
    )
    space.buffers.give("sort", buffers)


class SortBuffers(NamedTuple):
    """Memory that ranks of tiles use again."""

    # (n_points * n_rows,)
    keys: np.ndarray
    scratch: object
    # (n_points at a time * n_rows,)
    order: np.ndarray
    sorted_keys: np.ndarray


def _sort_buffers(space, n_points, n_lines, dtype):
    """The `SortBuffers` of a tile: those of a former one if they are large enough."""
    n = len(space)
    buffers = space.buffers.take("sort")
    if buffers is not None:
        has_keys = buffers.keys.size >= n_points * n
        if has_keys and buffers.order.size >= n_lines * n:
            return buffers
    return SortBuffers(
        keys=np.empty(n_points * n, dtype),
        scratch=rank_kernels.workspace(n, dtype),
        order=np.empty(n_lines * n, np.int32),
        sorted_keys=np.empty(n_lines * n, dtype),
    )


class KeySearch(NamedTuple):
    """The nearest rows of points, by all of their keys; equal ones by number.

    What it finds is overwritten by the next search.
    """

    # (n_points, n_rows)
    keys: np.ndarray
    buffers: SortBuffers
    # Number of points at a time.
    n_lines: int

    def size(self, k):
        """Number of points at a time."""
        return self.n_lines

    def nearest(self, lines, k):
        """Sorted keys and rows, (n_lines, k)."""
        size = len(lines) * k
        order = self.buffers.order[:size].reshape(-1, k)
        keys = self.buffers.sorted_keys[:size].reshape(-1, k)
        rank_kernels.sort_lines(self.keys, lines, self.buffers.scratch, order, keys)
        return keys, order


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
            is_open = (x >= threshold - slack) & ~inside
            # They are few: a search along one axis passes over the others fast.
            places = np.flatnonzero(is_open)
            if len(places):
                i, v = np.divmod(places, n_points)
                keys = block_keys(space.kind, block, i, points, v)
                inside[i, v] = keys <= rule.limit

        if self_index is not None:
            is_in_block = (self_index >= rows.start) & (self_index < rows.stop)
            lines = np.flatnonzero(is_in_block)
            inside[self_index[lines] - rows.start, lines] = False
        neighbours.add(rows, inside)
    return neighbours
