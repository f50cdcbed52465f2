"""The CPU engine: single-threaded numpy products and compiled loops that release the
GIL.

Each call processes one tile of points and is meant to run in its own thread. Memory is
bounded by the size of the tile, whatever the number of points.
"""

from contextlib import nullcontext

import numpy as np
from sklearn import get_config

from .._utils.parallel import tiles
from . import _blocks
from ._block_balls import BlockBalls
from ._block_space import BlockSpace
from ._ranks import Order
from ._space import ball_rule
from .kernels import ball as ball_kernels
from .kernels import rank as rank_kernels
from .kernels.kinds import COSINE, GENERIC
from .kernels.ties import KeyParameters

_ROWS = 512  # rows of one product of the ball engine: the tile stays in the cache


def _even_size(n_points, largest, workers):
    """Size of tiles, at most ``largest``, of which each worker gets the same number."""
    rounds = -(-n_points // (largest * workers))
    return -(-n_points // (rounds * workers))


class NumbaEngine:
    """Exact ranks and balls on the CPU."""

    name = "numba"
    bytes_per_pair = 1 / 8  # kept by `balls`

    def rank_tile_size(self, n_rows, n_points, n_features, workers, max_rank):
        """Number of points in one call of `ranks`."""
        # A product with few points spends most of its time packing the rows, especially
        # wide ones.
        wide = 512 if n_features > 128 else 128
        # An eighth of the working memory holds the keys of a tile.
        room = int(get_config()["working_memory"] * 2**17 // (4 * n_rows))
        return _even_size(n_points, max(1, min(wide, room)), workers)

    def ball_tile_size(self, n_rows, n_points, workers):
        """Number of points in one call of `balls`."""
        largest = max(
            1, min(512, int(get_config()["working_memory"] * 2**20 // n_rows))
        )
        return min(largest, max(64, _even_size(n_points, largest, workers)))

    def device_lock(self):
        """Context manager of one task: any number of tasks run in parallel."""
        return nullcontext()

    def ranks(self, space, points, self_index=None, max_rank=None):
        """Rank the rows for a tile of points, see `neighbors.ranks`."""
        max_rank = len(space) if max_rank is None else max_rank
        if isinstance(space, BlockSpace):
            yield from _blocks.ranks(space, points, self_index, max_rank)
            return
        points = space.read(points)
        n, n_points = len(space), len(points)
        queries, query_half = space.queries(points)
        dtype = np.dtype(np.float64) if space.kind == GENERIC else space.work.dtype
        step = min(max(8, 2**16 // n), n_points)

        buffers = space.buffers.take("ranks")
        if buffers is None or buffers[0].size < n_points * n or len(buffers[2]) < step:
            scratch = rank_kernels.workspace(n, dtype)
            buffers = (
                np.empty(n_points * n, dtype),
                scratch,
                np.empty((step, n), dtype=np.int32),
            )
        product, scratch, order = buffers
        product = product[: n_points * n].reshape(n_points, n)
        X = space.X
        if space.kind == GENERIC:  # rows are not compared again
            product[:] = space.distances(points)
            X, points = np.empty((n, 0)), np.empty((n_points, 0))
        else:
            np.matmul(queries, space.work.T, out=product)
        # Read-only views, as users' data may be: the loop is compiled for one kind of
        # array.
        X, points = np.broadcast_to(X, X.shape), np.broadcast_to(points, points.shape)
        params = KeyParameters(
            space.kind, space.half.astype(dtype, copy=False), space.scale.astype(dtype, copy=False),
            X, space.rank_tolerance, space.far_tolerance, space.largest_half, space.mean_half,
        )  # fmt: skip
        head = (
            n if n <= 4096 else 1024
        )  # ranks that are resolved exactly, see `rank_tile`
        left_out = np.full(n_points, -1) if self_index is None else self_index
        absent_ptr = np.concatenate([[0], np.cumsum(left_out >= 0)])
        absent = left_out[left_out >= 0].astype(np.int64)
        n_ranked = np.empty(step, dtype=np.int64)
        for part in tiles(n_points, step):
            size = part.stop - part.start
            rank_kernels.rank_tile(
                params, product[part], points[part], query_half[part], absent_ptr[part.start :],
                absent, max_rank, head, scratch, order, n_ranked,
            )  # fmt: skip
            yield part, Order(order[:size], n_ranked[:size])
        space.buffers.give("ranks", buffers)

    def balls(self, space, points, radius, self_index=None):
        """Find the rows in the balls of a tile of points, see `neighbors.balls`."""
        if isinstance(space, BlockSpace):
            return _blocks.balls(space, points, radius, self_index)
        points = space.read(
            points, np.inf
        )  # rows whose distance is not stored are in no ball
        dtype, n_points = space.work.dtype, len(points)
        work, threshold, point_slack, limit = ball_rule(space, points, radius)
        columns = np.ascontiguousarray(work.T)
        threshold, point_slack = threshold.astype(dtype), point_slack.astype(dtype)
        X, queries = (
            np.broadcast_to(space.X, space.X.shape),
            np.broadcast_to(points, points.shape),
        )
        found = BlockBalls(space, n_points)
        blocks, counts = found.blocks, found.counts
        buffer = space.buffers.take("products")
        if buffer is None or buffer.size < _ROWS * n_points:
            buffer = np.empty(_ROWS * n_points, dtype)
        product = buffer[: _ROWS * n_points].reshape(_ROWS, n_points)
        for start in range(0, len(blocks.order), _ROWS):
            order = blocks.order[start : start + _ROWS]
            part = slice(start // 8, (start + len(order)) // 8)
            tile, half = product[: len(order)], blocks.half[start : start + _ROWS]
            if space.kind == GENERIC:
                np.negative(space.distances(points, order).T, out=tile)
            else:
                rows = space.work.take(
                    order, axis=0
                )  # faster than an index; -1 is the last row
                if space.kind == COSINE:
                    rows *= space.scale[order, None]
                np.matmul(rows, columns, out=tile)
            ball_kernels.pack_blocks(
                space.kind, tile, half, blocks.slack[part], threshold, point_slack, order,
                X, queries, limit, blocks.classes[part], found.bits[part], counts,
            )  # fmt: skip
        space.buffers.give("products", buffer)
        if self_index is not None:
            ball_kernels.remove_self(
                found.bits, counts, blocks.position, space.codes, self_index
            )
        return found


def make_engine(name, device):
    """Return the engine; ``device`` is not "cuda"."""
    return NumbaEngine()
