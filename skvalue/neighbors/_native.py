"""The CPU engine: single-threaded numpy products and compiled loops without the GIL.

Each call processes one tile of points and is meant to run in its own thread. Memory is
bounded by the size of the tile, whatever the number of points.
"""

from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from sklearn import get_config

from .._utils.parallel import tiles
from . import _blocks
from ._ball_rule import ball_rule
from ._block_balls import BlockBalls
from ._block_space import BlockSpace
from ._ranks import Order
from ._whole_tile import WholeTile
from .kernels import ball as ball_kernels
from .kernels import rank as rank_kernels
from .kernels.kinds import COSINE, GENERIC
from .kernels.ties import KeyParameters

# Rows of one product of the ball engine: the tile stays in the cache.
_ROWS = 512


class RankBuffers(NamedTuple):
    """Memory that ranks of tiles use again."""

    # (n_points * n_rows,)
    products: np.ndarray
    scratch: object
    # (n_points at a time, n_rows)
    order: np.ndarray


class NativeEngine:
    """Exact ranks and balls on the CPU."""

    name = "native"
    device = "cpu"

    # Whether ranks and balls stay on a device.
    keeps_on_device = False

    # Memory of the result of `balls`.
    bytes_per_pair = 1 / 8

    def rank_tile_size(self, n_rows, n_points, n_features, workers, max_rank):
        """Number of points in one call of `ranks`."""
        # A product with few points spends most of its time packing the rows, especially
        # wide ones.
        largest = 128
        if n_features > 128:
            largest = 512
        # An eighth of the working memory holds the keys of a tile.
        room = int(get_config()["working_memory"] * 2**17 // (4 * n_rows))
        return _even_size(n_points, max(1, min(largest, room)), workers)

    def ball_tile_size(self, n_rows, n_points, workers):
        """Number of points in one call of `balls`."""
        # A quarter of the working memory holds the bits of a tile.
        room = int(get_config()["working_memory"] * 2**21 // n_rows)
        largest = max(1, min(512, room))
        return min(largest, max(64, _even_size(n_points, largest, workers)))

    def device_lock(self):
        """Context manager of one task: any number of tasks run in parallel."""
        return nullcontext()

    def halving(self, n_points):
        """A tile of points, which is not halved: see `DeviceEngine.halving`."""
        return WholeTile(n_points)

    def ranks(self, space, points, self_index=None, max_rank=None):
        """Rank the rows for a tile of points, see `neighbors.ranks`."""
        n = len(space)
        if max_rank is None:
            max_rank = n
        if isinstance(space, BlockSpace):
            yield from _blocks.ranks(space, points, self_index, max_rank)
            return

        points = space.read(points)
        queries, query_half = space.queries(points)
        n_points = len(points)
        # Points whose order is yielded at a time: 65,536 ranks, or 8 points.
        step = min(max(8, 2**16 // n), n_points)
        buffers = _rank_buffers(space, n_points, step)
        products = buffers.products[: n_points * n].reshape(n_points, n)
        X = space.X
        if space.kind == GENERIC:
            # Rows are not compared again.
            products[:] = space.distances(points)
            X = np.empty((n, 0))
            points = np.empty((n_points, 0))
        else:
            np.matmul(queries, space.work.T, out=products)

        # Read-only views, as users' data may be: the loop is compiled for one kind of
        # array.
        X = np.broadcast_to(X, X.shape)
        points = np.broadcast_to(points, points.shape)
        params = KeyParameters(
            kind=space.kind,
            half=space.half.astype(products.dtype, copy=False),
            scale=space.scale.astype(products.dtype, copy=False),
            rows=X,
            tolerance=space.rank_tolerance,
            far_tolerance=space.far_tolerance,
            largest_half=space.largest_half,
            mean_half=space.mean_half,
        )
        # Rows that are left out, and where those of each point begin.
        left_out = self_index
        if self_index is None:
            left_out = np.full(n_points, -1)
        is_left_out = left_out >= 0
        absent_ptr = np.concatenate([[0], np.cumsum(is_left_out)])
        absent = left_out[is_left_out].astype(np.int64)
        # Near-ties from this rank on are ties, see `rank_tile`.
        head = 1024
        if n <= 4096:
            head = n
        n_ranked = np.empty(step, dtype=np.int64)
        for tile in tiles(n_points, step):
            size = tile.stop - tile.start
            rank_kernels.rank_tile(
                params,
                products[tile],
                queries=points[tile],
                query_half=query_half[tile],
                absent_ptr=absent_ptr[tile.start :],
                absent=absent,
                max_rank=max_rank,
                head=head,
                work=buffers.scratch,
                order=buffers.order,
                n_ranked=n_ranked,
            )
            yield tile, Order(buffers.order[:size], n_ranked[:size])
        space.buffers.give("ranks", buffers)

    def balls(self, space, points, radius, self_index=None):
        """Find the rows in the balls of a tile of points, see `neighbors.balls`."""
        if isinstance(space, BlockSpace):
            return _blocks.balls(space, points, radius, self_index)

        # Rows whose distance is not stored are in no ball.
        points = space.read(points, np.inf)
        n_points = len(points)
        dtype = space.work.dtype
        rule = ball_rule(space, points, radius)
        columns = np.ascontiguousarray(rule.queries.T)
        threshold = rule.threshold.astype(dtype)
        point_slack = rule.slack.astype(dtype)
        X = np.broadcast_to(space.X, space.X.shape)
        queries = np.broadcast_to(points, points.shape)

        neighbours = BlockBalls(space, n_points)
        blocks = neighbours.blocks
        n_at_once = min(_ROWS, len(blocks.order))
        memory = space.buffers.take("products")
        if memory is None or memory.size < n_at_once * n_points:
            memory = np.empty(n_at_once * n_points, dtype)
        products = memory[: n_at_once * n_points].reshape(n_at_once, n_points)
        for start in range(0, len(blocks.order), _ROWS):
            order = blocks.order[start : start + _ROWS]
            tile = slice(start // 8, (start + len(order)) // 8)
            product = products[: len(order)]
            _fill_products(product, space, points, columns, order)
            ball_kernels.pack_blocks(
                space.kind,
                product,
                half=blocks.half[start : start + _ROWS],
                slack=blocks.slack[tile],
                threshold=threshold,
                point_slack=point_slack,
                order=order,
                rows=X,
                queries=queries,
                limit=rule.limit,
                block_class=blocks.classes[tile],
                bits=neighbours.bits[tile],
                counts=neighbours.counts,
            )
        space.buffers.give("products", memory)
        if self_index is not None:
            ball_kernels.remove_self(
                neighbours.bits,
                neighbours.counts,
                blocks.position,
                space.codes,
                self_index,
            )
        return neighbours


def make_engine(name, device):
    """Return the engine; ``device`` is not "cuda"."""
    return NativeEngine()


def _even_size(n_points, largest, workers):
    """Size of tiles, at most ``largest``, of which each worker gets the same number."""
    rounds = -(-n_points // (largest * workers))
    return -(-n_points // (rounds * workers))


def _rank_buffers(space, n_points, step):
    """The `RankBuffers` of a tile: those of a former one if they are large enough."""
    n = len(space)
    buffers = space.buffers.take("ranks")
    if buffers is not None:
        fits = buffers.products.size >= n_points * n and len(buffers.order) >= step
        if fits:
            return buffers
    dtype = np.dtype(np.float64)
    if space.kind != GENERIC:
        dtype = space.work.dtype
    return RankBuffers(
        products=np.empty(n_points * n, dtype),
        scratch=rank_kernels.workspace(n, dtype),
        order=np.empty((step, n), dtype=np.int32),
    )


def _fill_products(product, space, points, columns, order):
    """Fill (n_order, n_points) with products of rows and points, or minus distances.

    ``columns`` (d, n_points) are the factors of the points.
    """
    if space.kind == GENERIC:
        np.negative(space.distances(points, order).T, out=product)
        return
    # Faster than an index; -1 is the last row.
    rows = space.work.take(order, axis=0)
    if space.kind == COSINE:
        rows *= space.scale[order, None]
    np.matmul(rows, columns, out=product)
