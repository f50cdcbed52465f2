"""The torch engine: exact ranks and balls on a CPU or a CUDA device. Imports torch.

Products are float32 or float64, as X is, never half precision or TF32: with those most
pairs would be near-ties, and comparing them again takes longer than the faster product
saves. Near-ties are resolved on the CPU from the rows, in float64 (`_exact`).
"""

from contextlib import contextmanager
from threading import RLock

import numpy as np
import torch
from sklearn import get_config

from .._utils.parallel import tiles
from .._utils.torch_device import (
    block_bytes,
    current_gpu,
    default_settings,
    find_device,
    free_memory,
    in_any_order,
    on_gpu,
)
from ._ball_rule import ball_rule
from ._block_space import BlockSpace
from ._exact import (
    EXACT_RANKS,
    count_ranked,
    long_runs,
    pair_keys,
    resolve_pairs,
    run_positions,
)
from ._ranks import Order
from .kernels.kinds import COSINE, EUCLIDEAN, GENERIC

# One tile at a time, since torch runs its operations in several threads.
_LOCK = RLock()

# With at most that many classes, counts and sums are matrix products.
_FEW_CLASSES = 32


@contextmanager
def _device_lock(gpu):
    """One tile at a time, on one GPU in all threads, with torch's default settings."""
    with _LOCK, on_gpu(gpu), default_settings(), in_any_order(), torch.no_grad():
        yield


def make_engine(name, device):
    """Return the engine on a device, see `find_device`."""
    return TorchEngine(find_device(device))


class TorchEngine:
    """Exact ranks and balls by torch, on a device: "cpu" or "cuda"."""

    name = "torch"

    # Memory of the result of `balls`.
    bytes_per_pair = 1

    def __init__(self, device):
        self.device = device
        self._gpu = current_gpu(device)

    def __reduce__(self):
        # Another process may have other GPUs.
        return TorchEngine, (self.device,)

    def rank_tile_size(self, n_rows, n_points, n_features, workers, max_rank):
        """Number of points in one call of `ranks`; a pair takes up to 48 bytes."""
        room = block_bytes(self.device) // (48 * n_rows)
        return int(max(1, min(n_points, room)))

    def ball_tile_size(self, n_rows, n_points, workers):
        """Number of points in one call of `balls`; a pair takes one byte."""
        room = block_bytes(self.device) // n_rows
        return int(max(1, min(n_points, 8192, room)))

    def device_lock(self):
        """Context manager of one task; others wait until its device memory is free."""
        return _device_lock(self._gpu)

    def to_device(self, array):
        """An array as a tensor on the device."""
        array = np.ascontiguousarray(array)
        if not array.flags.writeable:
            array = array.copy()
        return torch.from_numpy(array).to(self.device)

    def _blocks(self, space, n_points):
        """Yield slices of the rows, and the rows, prepared for the product."""
        if isinstance(space, BlockSpace):
            for rows, block in space.blocks(n_points):
                block = space.centred(block)
                if space.kind == COSINE:
                    block = block * space.scale[rows, None]
                yield rows, self.to_device(block)
            return

        n, d = space.work.shape
        work = self._rows_on_device(space)
        n_numbers = d + 8 * n_points if work is None else 16 * n_points
        room = block_bytes(self.device) // (space.work.dtype.itemsize * n_numbers)
        for rows in tiles(n, min(n, max(16, int(room)))):
            yield rows, self._scaled(space, rows) if work is None else work[rows]

    def _rows_on_device(self, space):
        """All rows on the device; None if they do not fit, or the device is the CPU."""
        cached = space.buffers.cached
        with space.buffers.lock:
            # The first tile decides by the free memory.
            if "torch" not in cached:
                n_bytes = space.work.nbytes
                fits = self.device != "cpu" and n_bytes < free_memory() // 4
                cached["torch"] = self._scaled(space, slice(None)) if fits else None
        return cached["torch"]

    def _scaled(self, space, rows):
        """Rows on the device, scaled for the product."""
        work = self.to_device(space.work[rows])
        if space.kind == COSINE:
            return work * self.to_device(space.scale[rows])[:, None]
        return work

    def _distances(self, space, points):
        """Yield slices of the rows, and their distances for metrics without a product.

        The distances (n_points, n_block) are computed on the CPU.
        """
        room = get_config()["working_memory"] * 2**20 // 2
        for rows in tiles(len(space), max(16, int(room // (8 * len(points))))):
            yield rows, self.to_device(space.distances(points, rows))

    # Ranks ----------------------------------------------------------------------------

    def ranks(self, space, points, self_index=None, max_rank=None):
        """Rank the rows for a tile of points, see `neighbors.ranks`."""
        n = len(space)
        max_rank = n if max_rank is None else max_rank
        blocks = []
        with self.device_lock():
            for lines, order, tied in self.device_ranks(
                space, points, self_index, max_rank
            ):
                order = torch.where(tied, ~order, order).to(torch.int32).cpu().numpy()
                if max_rank < n:
                    tied = tied.cpu().numpy()
                n_ranked = count_ranked(tied, max_rank)
                n_playing = n
                if self_index is not None:
                    n_playing = n - (self_index[lines] >= 0)
                blocks.append((lines, Order(order, np.minimum(n_ranked, n_playing))))
        yield from blocks

    def device_ranks(self, space, points, self_index=None, max_rank=None):
        """Rank the rows for a tile of points; use what it yields within `device_lock`.

        Yields positions of points, and tensors of shape (n_points, n_sorted): their
        rows by distance, and which are tied with the one before. Points whose last rank
        is tied come later.
        """
        points = space.read(points)
        queries, query_half = space.queries(points)
        keys = self._keys(space, points, queries)
        if self_index is not None:
            absent = np.flatnonzero(self_index >= 0)
            keys[absent, self_index[absent].astype(np.int64)] = torch.inf

        # The rounding of keys, from the sizes of both rows.
        row_rounding = self.to_device(space.half) * space.rank_tolerance
        query_half = self.to_device(query_half)[:, None].to(keys.dtype)
        query_rounding = query_half * space.rank_tolerance

        # Sort the first ranks, and more of the points whose last run may continue.
        n = len(space)
        lines = np.arange(len(points))
        n_sorted = n + 1 if max_rank is None else max_rank + 1
        while n_sorted < n // 4 and len(lines):
            order, near = self._sort(
                space, keys, row_rounding, query_rounding, n_sorted
            )
            is_open = near[:, -1]
            ended = (~is_open).nonzero()[:, 0]
            to_sort = is_open.nonzero()[:, 0]
            ended_lines = lines[ended.cpu().numpy()]
            if len(ended_lines):
                order, tied = self._resolve(
                    space, points[ended_lines], order[ended], near[ended]
                )
                yield ended_lines, order, tied
            lines = lines[to_sort.cpu().numpy()]
            keys = keys[to_sort]
            query_rounding = query_rounding[to_sort]
            n_sorted = 2 * n_sorted

        if len(lines):
            order, near = self._sort(space, keys, row_rounding, query_rounding, n)
            # Free the memory.
            del keys
            order, tied = self._resolve(space, points[lines], order, near)
            yield lines, order, tied

    def _keys(self, space, points, queries):
        """Keys, which increase with the distance, of shape (n_points, n_rows)."""
        shape = points.shape[0], len(space)
        if space.kind == GENERIC:
            keys = torch.empty(shape, dtype=torch.float64, device=self.device)
            for rows, distances in self._distances(space, points):
                keys[:, rows] = distances
            return keys
        queries = self.to_device(queries)
        half = self.to_device(space.half)
        keys = torch.empty(shape, dtype=queries.dtype, device=self.device)
        for rows, block in self._blocks(space, len(points)):
            torch.addmm(half[rows], queries, block.T, alpha=-1, out=keys[:, rows])
        return keys

    def _sort(self, space, keys, row_rounding, query_rounding, n_sorted):
        """Rows with the smallest keys, and a mask of near-ties with the one before.

        Both of shape (n_points, n_sorted). For "euclidean", keys that differ by at most
        the sum of ``row_rounding`` (n_rows,) and ``query_rounding`` (n_points, 1) are
        near-ties.
        """
        if n_sorted < len(space):
            sorted_keys, order = torch.topk(
                keys, n_sorted, dim=1, largest=False, sorted=True
            )
        else:
            sorted_keys, order = torch.sort(keys, dim=1)
        near = torch.zeros(order.shape, dtype=torch.bool, device=self.device)
        gaps = sorted_keys[:, 1:] - sorted_keys[:, :-1]
        if space.kind == EUCLIDEAN:
            near[:, 1:] = gaps <= row_rounding[order[:, 1:]] + query_rounding
        elif space.kind == COSINE:
            near[:, 1:] = gaps <= space.rank_tolerance
        else:
            near[:, 1:] = gaps <= 0.0
        return order, near

    def _resolve(self, space, points, order, near):
        """Resolve near-ties from the rows, in place; return the order and the ties."""
        if space.kind == GENERIC:
            return order, near
        front = near[:, : EXACT_RANKS + 1].cpu().numpy()
        lines = long_runs(front)
        tail = near[lines, EXACT_RANKS:].cpu().numpy()
        v, p = run_positions(front, lines, tail)
        if len(v):
            cells = (
                torch.from_numpy(v).to(self.device),
                torch.from_numpy(p).to(self.device),
            )
            rows, tied = resolve_pairs(
                space,
                points,
                v,
                order[cells].cpu().numpy(),
                near[cells].cpu().numpy(),
                torch.get_num_threads(),
            )
            order[cells] = self.to_device(rows)
            near[cells] = self.to_device(tied)
        return order, near

    # Balls ----------------------------------------------------------------------------

    def balls(self, space, points, radius, self_index=None):
        """Find the rows in the balls of a tile of points, see `neighbors.balls`."""
        # Rows whose distance is not stored are in no ball.
        points = space.read(points, np.inf)
        n_points = len(points)
        rule = ball_rule(space, points, radius)
        with self.device_lock():
            inside = torch.empty(
                (len(space), n_points), dtype=torch.bool, device=self.device
            )
            if space.kind == GENERIC:
                threshold = self.to_device(rule.threshold).to(torch.float64)
                for rows, distances in self._distances(space, points):
                    inside[rows] = -threshold >= distances.T
            else:
                self._fill_inside(inside, space, points, rule)
            if self_index is not None:
                lines = np.flatnonzero(self_index >= 0)
                inside[self_index[lines].astype(np.int64), lines] = False
            return DeviceBalls(self, space, inside)

    def _fill_inside(self, inside, space, points, rule):
        """Fill the mask (n_rows, n_points) of the rows in the balls, by products."""
        queries = self.to_device(rule.queries)
        half = self.to_device(space.half)
        threshold = self.to_device(rule.threshold).to(half.dtype)
        point_slack = self.to_device(rule.slack).to(half.dtype)
        for rows, block in self._blocks(space, len(points)):
            x = torch.addmm(half[rows, None], block, queries.T, beta=-1)
            slack = point_slack + space.ball_tolerance * half[rows, None]
            mask = x >= threshold + slack

            # Where rounding may decide, the exact keys do.
            is_open = (x >= threshold - slack) & ~mask
            r, v = is_open.nonzero(as_tuple=True)
            if len(r):
                keys = pair_keys(
                    space,
                    r.cpu().numpy() + rows.start,
                    points,
                    v.cpu().numpy(),
                    torch.get_num_threads(),
                )
                mask[r, v] = self.to_device(keys <= rule.limit)
            inside[rows] = mask


class DeviceBalls:
    """The balls of a tile of points, as a mask of rows and points on the device."""

    def __init__(self, engine, space, inside):
        self._engine = engine
        self._inside = inside
        self._n_classes = space.n_classes
        self._codes = engine.to_device(np.asarray(space.codes, dtype=np.int64))
        n, n_points = inside.shape
        # Sums are computed by blocks of rows, in which a pair takes 16 bytes.
        room = min(2**20, block_bytes(engine.device) // (16 * n_points))
        self._blocks = tiles(n, int(max(16, room)))
        counts = torch.zeros(
            (space.n_classes, n_points), dtype=torch.int64, device=engine.device
        )
        for rows in self._blocks:
            codes = self._codes[rows]
            if space.n_classes <= _FEW_CLASSES:
                # At most 2**20 ones: exact in float32.
                one_hot = torch.nn.functional.one_hot(codes, space.n_classes).T
                products = one_hot.to(torch.float32) @ inside[rows].to(torch.float32)
                counts += products.long()
            else:
                counts.index_add_(0, codes, inside[rows].long())
        self.counts = counts.cpu().numpy()

    def sum(self, weights):
        """For each row, the sum of the weights of the balls that contain it."""
        with self._engine.device_lock():
            weights = self._engine.to_device(np.asarray(weights, dtype=np.float64))
            totals = torch.zeros(
                len(self._inside), dtype=torch.float64, device=weights.device
            )
            for rows in self._blocks:
                codes = self._codes[rows]
                inside = self._inside[rows]
                if self._n_classes <= _FEW_CLASSES:
                    sums = inside.to(torch.float64) @ weights.T
                    totals[rows] = sums.gather(1, codes[:, None])[:, 0]
                else:
                    totals[rows] = (inside * weights[codes]).sum(dim=1)
            return totals.cpu().numpy()

    def totals(self, numbers):
        """For each point, the sum of a number of each row in its ball."""
        with self._engine.device_lock():
            numbers = self._engine.to_device(np.asarray(numbers, dtype=np.float64))
            totals = torch.zeros(
                self._inside.shape[1], dtype=torch.float64, device=numbers.device
            )
            for rows in self._blocks:
                totals += numbers[rows] @ self._inside[rows].to(torch.float64)
            return totals.cpu().numpy()
