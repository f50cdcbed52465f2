"""The CPU engine for rows that are read block by block: sparse, in a file, or a Dask
array.

`_numba` calls these functions for a `BlockSpace`. Each tile of points takes one pass
over the rows, which keeps one key, or one bit, for each pair of a row and a point.
Imports numba.
"""

from typing import NamedTuple

import numpy as np

from ._block_balls import BlockBalls
from ._exact import block_keys, ranked
from ._space import ball_rule
from .kernels.kinds import GENERIC


def ranks(space, points, self_index, max_rank):
    """Rank the rows for a tile of points, see `NumbaEngine.ranks`."""
    points, n = space.read(points), len(space)
    queries, query_half = space.queries(points)
    n_points = points.shape[0]
    keys = np.empty(
        (n_points, n), dtype=np.float64 if space.kind == GENERIC else space.X.dtype
    )
    for part, block in space.blocks(n_points):
        np.subtract(
            space.half[part], space.products(queries, block, part).T, out=keys[:, part]
        )
    absent = np.zeros(n_points, dtype=bool) if self_index is None else self_index >= 0
    if self_index is not None:
        keys[absent, self_index[absent]] = np.inf

    search = KeySearch(keys, int(space.budget) // (32 * n))
    yield from ranked(
        space, points, query_half, search, absent, max_rank, space.rank_tolerance
    )  # fmt: skip


class KeySearch(NamedTuple):
    """The nearest rows of points, by all of their keys."""

    keys: np.ndarray
    n_lines: int  # at a time

    def size(self, k):
        """Number of points at a time."""
        return self.n_lines

    def nearest(self, lines, k):
        """Sorted keys and rows, (n_lines, k)."""
        keys = self.keys[lines]
        if k >= keys.shape[1] // 2:
            order = np.argsort(keys, axis=1)[:, :k]
            return np.take_along_axis(keys, order, axis=1), order
        order = np.argpartition(keys, k - 1, axis=1)[:, :k]
        some = np.take_along_axis(keys, order, axis=1)
        place = np.argsort(some, axis=1)
        return np.take_along_axis(some, place, axis=1), np.take_along_axis(
            order, place, axis=1
        )


def balls(space, points, radius, self_index):
    """Find the rows in the balls of a tile of points, see `NumbaEngine.balls`."""
    queries, threshold, point_slack, limit = ball_rule(space, points, radius)
    threshold, point_slack = (
        threshold.astype(space.X.dtype),
        point_slack.astype(space.X.dtype),
    )
    points = space.read(points)
    n_points = points.shape[0]
    found = BlockBalls(space, n_points)
    found.bits[:] = 0
    for part, block in space.blocks(n_points):
        x = space.products(queries, block, part) - space.half[part, None]
        near = (
            point_slack
            + space.X.dtype.type(space.ball_tolerance) * space.half[part, None]
        )
        inside = x >= threshold + near
        if space.kind != GENERIC:
            r, v = np.nonzero((x >= threshold - near) & ~inside)
            if len(r):
                inside[r, v] = block_keys(space.kind, block, r, points, v) <= limit
        if self_index is not None:
            lines = np.flatnonzero(
                (self_index >= part.start) & (self_index < part.stop)
            )
            inside[self_index[lines] - part.start, lines] = False
        found.add(part, inside)
    return found
