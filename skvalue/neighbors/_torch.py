"""The torch engine: exact ranks and balls on a CPU or a CUDA device. Importing this
imports torch.

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
from ._space import ball_rule
from .kernels.kinds import COSINE, EUCLIDEAN, GENERIC

_LOCK = (
    RLock()
)  # one tile at a time, since torch runs its operations in several threads
_FEW_CLASSES = 32  # up to this many classes, counts and sums are matrix products


@contextmanager
def _device_lock(gpu):
    """One tile at a time, on the same GPU in all threads, whatever torch settings the
    user has."""
    with _LOCK, on_gpu(gpu), default_settings(), in_any_order(), torch.no_grad():
        yield


def make_engine(name, device):
    """Return the engine on a device, see `find_device`."""
    return TorchEngine(find_device(device))


class TorchEngine:
    """Exact ranks and balls by torch, on a device: "cpu" or "cuda"."""

    name = "torch"
    bytes_per_pair = 1  # kept by `balls`

    def __init__(self, device):
        self.device, self._gpu = device, current_gpu(device)

    def __reduce__(self):
        return TorchEngine, (self.device,)  # another process may have other GPUs

    def rank_tile_size(self, n_rows, n_points, n_features, workers, max_rank):
        """Number of points in one call of `ranks`; a pair takes up to 48 bytes."""
        return int(max(1, min(n_points, block_bytes(self.device) // (48 * n_rows))))

    def ball_tile_size(self, n_rows, n_points, workers):
        """Number of points in one call of `balls`; a pair takes one byte."""
        return int(max(1, min(n_points, 8192, block_bytes(self.device) // n_rows)))

    def device_lock(self):
        """Context manager of one task: other threads wait until its device memory is
        free."""
        return _device_lock(self._gpu)

    def to_device(self, array):
        """An array as a tensor on the device."""
        array = np.ascontiguousarray(array)
        if not array.flags.writeable:
            array = array.copy()
        return torch.from_numpy(array).to(self.device)

    def _blocks(self, space, n_points):
        """Yield the rows in blocks, centered or scaled for the product."""
        if isinstance(space, BlockSpace):
            for part, block in space.blocks(n_points):
                block = space.centred(block)
                if space.kind == COSINE:
                    block = block * space.scale[part, None]
                yield part, self.to_device(block)
            return
        n, d = space.work.shape
        size = space.work.dtype.itemsize

        cached = space.buffers.cached
        with space.buffers.lock:
            if (
                "torch" not in cached
            ):  # all rows or none: the first tile decides by the free memory
                fits = self.device != "cpu" and n * d * size < free_memory() // 4
                cached["torch"] = self._scaled(space, slice(None)) if fits else None
        work = cached["torch"]
        each = 16 * n_points if work is not None else d + 8 * n_points
        for part in tiles(
            n, min(n, max(16, int(block_bytes(self.device) // (size * each))))
        ):
            yield part, self._scaled(space, part) if work is None else work[part]

    def _scaled(self, space, part):
        work = self.to_device(space.work[part])
        return (
            work * self.to_device(space.scale[part])[:, None]
            if space.kind == COSINE
            else work
        )

    def _distances(self, space, points):
        """Yield blocks of rows and their distances, computed on the CPU, for other
        metrics."""
        room = get_config()["working_memory"] * 2**20 // 2
        for part in tiles(len(space), max(16, int(room // (8 * len(points))))):
            yield part, self.to_device(space.distances(points, part))

    # Ranks ----------------------------------------------------------------------------

    def _keys(self, space, points, queries):
        """Keys, which increase with the distance, of shape (n_points, n_rows)."""
        shape = points.shape[0], len(space)
        if space.kind == GENERIC:
            keys = torch.empty(shape, dtype=torch.float64, device=self.device)
            for part, distances in self._distances(space, points):
                keys[:, part] = distances
            return keys
        queries, half = self.to_device(queries), self.to_device(space.half)
        keys = torch.empty(shape, dtype=queries.dtype, device=self.device)
        for part, block in self._blocks(space, len(points)):
            torch.addmm(half[part], queries, block.T, alpha=-1, out=keys[:, part])
        return keys

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
            lines = np.flatnonzero(self_index >= 0)
            keys[lines, self_index[lines].astype(np.int64)] = torch.inf
        n, lines = len(space), np.arange(len(points))
        n_sorted = n + 1 if max_rank is None else max_rank + 1
        half = self.to_device(space.half) * space.rank_tolerance
        query_half = (
            self.to_device(query_half)[:, None].to(keys.dtype) * space.rank_tolerance
        )
        while n_sorted < n // 4 and len(lines):
            order, near = self._first(space, keys, half, query_half, n_sorted)
            open_ = near[:, -1]  # the run may continue
            ended, to_sort = (mask.nonzero()[:, 0] for mask in (~open_, open_))
            some = lines[ended.cpu().numpy()]
            if len(some):
                yield (
                    some,
                    *self._resolved(space, points[some], order[ended], near[ended]),
                )
            lines, keys = lines[to_sort.cpu().numpy()], keys[to_sort]
            query_half, n_sorted = query_half[to_sort], 2 * n_sorted
        if len(lines):
            order, near = self._first(space, keys, half, query_half, n)
            del keys
            yield lines, *self._resolved(space, points[lines], order, near)

    def _first(self, space, keys, half, query_half, n_sorted):
        """Rows with the smallest keys, and which are within rounding of the one
        before."""
        if n_sorted < len(space):
            line, order = torch.topk(keys, n_sorted, dim=1, largest=False, sorted=True)
        else:
            line, order = torch.sort(keys, dim=1)
        near = torch.zeros(line.shape, dtype=torch.bool, device=self.device)
        gap = line[:, 1:] - line[:, :-1]
        if space.kind == EUCLIDEAN:
            near[:, 1:] = gap <= half[order[:, 1:]] + query_half
        else:
            near[:, 1:] = gap <= (space.rank_tolerance if space.kind == COSINE else 0.0)
        return order, near

    def _resolved(self, space, points, order, near):
        """Resolve near-ties from the rows, in place; returns the order and a mask of
        ties."""
        if space.kind == GENERIC:
            return order, near
        front = near[:, : EXACT_RANKS + 1].cpu().numpy()
        lines = long_runs(front)
        v, p = run_positions(front, lines, near[lines, EXACT_RANKS:].cpu().numpy())
        if len(v):
            at = (
                torch.from_numpy(v).to(self.device),
                torch.from_numpy(p).to(self.device),
            )
            i, tied = order[at].cpu().numpy(), near[at].cpu().numpy()
            i, tied = resolve_pairs(space, points, v, i, tied, torch.get_num_threads())
            order[at], near[at] = self.to_device(i), self.to_device(tied)
        return order, near

    def ranks(self, space, points, self_index=None, max_rank=None):
        """Rank the rows for a tile of points, see `neighbors.ranks`."""
        n, found = len(space), []
        max_rank = n if max_rank is None else max_rank
        with self.device_lock():
            for lines, order, tied in self.device_ranks(
                space, points, self_index, max_rank
            ):
                order = torch.where(tied, ~order, order).to(torch.int32).cpu().numpy()
                n_ranked = count_ranked(
                    tied.cpu().numpy() if max_rank < n else tied, max_rank
                )
                n_in = n if self_index is None else n - (self_index[lines] >= 0)
                found.append((lines, Order(order, np.minimum(n_ranked, n_in))))
        yield from found

    # Balls ----------------------------------------------------------------------------

    def balls(self, space, points, radius, self_index=None):
        """Find the rows in the balls of a tile of points, see `neighbors.balls`."""
        points = space.read(points, np.inf)
        n, n_points = len(space), len(points)
        queries, threshold, slack, limit = ball_rule(space, points, radius)
        dtype = torch.float64 if space.kind == GENERIC else None
        with self.device_lock():
            inside = torch.empty((n, n_points), dtype=torch.bool, device=self.device)
            threshold = self.to_device(threshold).to(dtype)
            slack = self.to_device(slack).to(dtype)
            if space.kind == GENERIC:
                for part, distances in self._distances(space, points):
                    inside[part] = -threshold >= distances.T
            else:
                queries, half = self.to_device(queries), self.to_device(space.half)
                threshold, slack = threshold.to(half.dtype), slack.to(half.dtype)
                for part, block in self._blocks(space, n_points):
                    x = torch.addmm(half[part, None], block, queries.T, beta=-1)
                    near = slack + space.ball_tolerance * half[part, None]
                    mask = x >= threshold + near
                    r, v = ((x >= threshold - near) & ~mask).nonzero(as_tuple=True)
                    if len(r):
                        i, j = r.cpu().numpy() + part.start, v.cpu().numpy()
                        keys = pair_keys(space, i, points, j, torch.get_num_threads())
                        mask[r, v] = self.to_device(keys <= limit)
                    inside[part] = mask
            if self_index is not None:
                lines = np.flatnonzero(self_index >= 0)
                inside[self_index[lines].astype(np.int64), lines] = False
            return DeviceBalls(self, space, inside)


class DeviceBalls:
    """The balls of a tile of points, as a mask of rows and points on the device."""

    def __init__(self, engine, space, inside):
        self._engine, self._inside, self._n_classes = engine, inside, space.n_classes
        self._codes = engine.to_device(np.asarray(space.codes, dtype=np.int64))
        n, n_points = inside.shape
        # Sums are computed by blocks of rows, in which a pair takes 16 bytes.
        room = min(2**20, block_bytes(engine.device) // (16 * n_points))
        self._parts = tiles(n, int(max(16, room)))
        counts = torch.zeros(
            (space.n_classes, n_points), dtype=torch.int64, device=engine.device
        )
        for part in self._parts:
            codes = self._codes[part]
            if space.n_classes <= _FEW_CLASSES:  # at most 2**20 ones: exact in float32
                kinds = torch.nn.functional.one_hot(codes, space.n_classes).T
                counts += (
                    kinds.to(torch.float32) @ inside[part].to(torch.float32)
                ).long()
            else:
                counts.index_add_(0, codes, inside[part].long())
        self.counts = counts.cpu().numpy()

    def sum(self, weights):
        """For each row, the sum of the weights of the balls that contain it."""
        with self._engine.device_lock():
            weights = self._engine.to_device(np.asarray(weights, dtype=np.float64))
            total = torch.zeros(
                len(self._inside), dtype=torch.float64, device=weights.device
            )
            for part in self._parts:
                codes, inside = self._codes[part], self._inside[part]
                if self._n_classes <= _FEW_CLASSES:
                    sums = inside.to(torch.float64) @ weights.T
                    total[part] = sums.gather(1, codes[:, None])[:, 0]
                else:
                    total[part] = (inside * weights[codes]).sum(dim=1)
            return total.cpu().numpy()

    def totals(self, numbers):
        """For each point, the sum of a number of each row in its ball."""
        with self._engine.device_lock():
            numbers = self._engine.to_device(np.asarray(numbers, dtype=np.float64))
            total = torch.zeros(
                self._inside.shape[1], dtype=torch.float64, device=numbers.device
            )
            for part in self._parts:
                total += numbers[part] @ self._inside[part].to(torch.float64)
            return total.cpu().numpy()
