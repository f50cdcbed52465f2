"""Exact ranks and balls by tensors on a CPU or a GPU. Importing this imports torch.

An engine differs from another by its products of rows and points. These are float32 or
float64, never half precision or TF32: with those most pairs would be near-ties, and
comparing them again takes longer than the faster product saves. Near-ties are resolved
on the CPU from the rows, in float64 (`_exact`).
"""

from abc import ABC, abstractmethod
from contextlib import contextmanager
from threading import RLock

import numpy as np
import torch
from sklearn import get_config

from .._utils.fixed_point import exact_sum
from .._utils.parallel import tiles
from .._utils.torch_device import (
    block_bytes,
    current_gpu,
    default_settings,
    free_memory,
    in_any_order,
    is_out_of_memory,
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
from ._norms import check_narrow_norms
from ._ranks import Order
from ._space import POINTS
from .kernels.kinds import COSINE, EUCLIDEAN, GENERIC

# One tile at a time, since torch runs its operations in several threads.
_LOCK = RLock()

# With at most that many classes, counts and sums are matrix products.
_FEW_CLASSES = 32

# Rows whose sums of many weights are computed at a time, at most.
_ROWS_OF_SUMS = 2**16

# Products add integers of 61 bits in two halves: sums of either are exact in float64.
_LOW_BITS = 31

# Where the memory of the device is not enough, tiles are halved that many times.
_HALVINGS = 3


@contextmanager
def _device_lock(gpu):
    """One tile at a time, on one GPU in all threads, with torch's default settings.

    Where memory is short, the error is one for users.
    """
    with _LOCK, on_gpu(gpu), default_settings(), in_any_order(), torch.no_grad():
        try:
            yield
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise _memory_error("") from error


def _memory_error(tried):
    """The error of a device whose memory is short, whatever was tried."""
    return MemoryError(
        f"device='cuda' has too little free memory{tried}. Pass device='cpu', free "
        "memory of the GPU, or pass fewer validation points at a time."
    )


def _has_no_memory(error):
    """Whether an error, or what caused it, says that the memory of the GPU is full."""
    cause = error.__cause__
    return is_out_of_memory(error) or (cause is not None and is_out_of_memory(cause))


class DeviceEngine(ABC):
    """Exact ranks and balls on a device: "cpu" or "cuda".

    Parameters
    ----------
    device : {"cpu", "cuda"}
        The device.
    """

    # Whether ranks and balls stay on the device, see `device_ranks`.
    keeps_on_device = True

    # Memory of the result of `balls`.
    bytes_per_pair = 1

    def __init__(self, device):
        self.device = device
        self._gpu = current_gpu(device)

    def __reduce__(self):
        # Another process may have other GPUs.
        return type(self), (self.device,)

    # What an engine implements -------------------------------------------------------

    @abstractmethod
    def _product_dtype(self, space):
        """The dtype of products of the rows of a space."""

    @abstractmethod
    def _fill_keys(self, keys, half, queries, block):
        """Fill ``keys`` (n_points, n_block) with ``half - <q, x>``."""

    @abstractmethod
    def _scores(self, half, block, queries):
        """``<x, q> - half`` of shape (n_block, n_points)."""

    @abstractmethod
    def _nearest(self, space, queries, k):
        """Sorted keys and rows of the k nearest rows, (n_points, k).

        None if the engine has no search of its own, or not for these rows.
        """

    # Sizes and memory ----------------------------------------------------------------

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

    def halving(self, n_points):
        """`Halving` of a tile of points."""
        return Halving([slice(0, n_points)])

    def to_device(self, array):
        """An array as a tensor on the device."""
        array = np.ascontiguousarray(array)
        if not array.flags.writeable:
            array = array.copy()
        return torch.from_numpy(array).to(self.device)

    def _rank_tolerance(self, space):
        """Usual size of the rounding error of keys, relative to the sizes of rows.

        The sum of a product grows by one term after the other on a card, where a CPU
        adds partial sums: errors grow with the root of the number of terms.
        """
        eps = float(np.finfo(self._product_dtype(space)).eps)
        if self.device == "cpu" and self._product_dtype(space) == space.X.dtype:
            return space.rank_tolerance
        return eps * (8.0 + np.sqrt(space.X.shape[1]))

    def _ball_tolerance(self, space):
        """Bound of the rounding error of scores, relative to the sizes of rows."""
        eps = float(np.finfo(self._product_dtype(space)).eps)
        own = eps / float(np.finfo(space.X.dtype).eps)
        return space.ball_tolerance * own

    def _blocks(self, space, n_points, divisor=1):
        """Yield slices of the rows, and the rows, prepared for the product.

        Blocks have a ``divisor``-th of the usual number of rows.
        """
        if isinstance(space, BlockSpace):
            for rows, block in space.blocks(n_points * divisor):
                block = space.centred(block)
                if space.kind == COSINE:
                    block = block * space.scale[rows, None]
                yield rows, self.to_device(self._for_product(space, block))
            return

        n, d = space.work.shape
        work = self._rows_on_device(space)
        n_numbers = d + 8 * n_points if work is None else 16 * n_points
        room = block_bytes(self.device) // (space.work.dtype.itemsize * n_numbers)
        size = max(16, int(room) // divisor)
        for rows in tiles(n, min(n, size)):
            yield rows, self._scaled(space, rows) if work is None else work[rows]

    def _for_product(self, space, rows):
        """Rows in the dtype of products."""
        return rows.astype(self._product_dtype(space), copy=False)

    def _rows_on_device(self, space):
        """All rows on the device; None if they do not fit, or the device is the CPU."""
        cached = space.buffers.cached
        with space.buffers.lock:
            # The first tile decides by the free memory.
            if self.name not in cached:
                itemsize = np.dtype(self._product_dtype(space)).itemsize
                n_bytes = space.work.size * itemsize
                fits = self.device != "cpu" and n_bytes < free_memory() // 4
                cached[self.name] = self._scaled(space, slice(None)) if fits else None
        return cached[self.name]

    def _scaled(self, space, rows):
        """Rows on the device, scaled for the product."""
        work = space.work[rows]
        is_narrowed = self._product_dtype(space) != work.dtype
        if space.kind == COSINE and is_narrowed:
            # Before they are scaled, they may not fit.
            return self._narrowed_directions(space, rows)
        work = self.to_device(self._for_product(space, work))
        if space.kind == COSINE:
            return work * self.to_device(space.scale[rows])[:, None]
        return work

    def _narrowed_directions(self, space, rows):
        """Rows of norm 1 on the device, scaled on the CPU by blocks."""
        work = space.work[rows]
        scale = space.scale[rows, None]
        directions = torch.empty(work.shape, dtype=torch.float32, device=self.device)
        for block in tiles(len(work), max(16, 2**22 // work.shape[1])):
            scaled = self._for_product(space, work[block] * scale[block])
            directions[block] = self.to_device(scaled)
        return directions

    def _check_narrow_norms(self, space, point_half):
        """Refuse rows or points that do not fit the dtype of products."""
        dtype = self._product_dtype(space)
        if space.kind == EUCLIDEAN and dtype != space.X.dtype:
            largest_half = {
                "X": space.largest_half,
                POINTS: float(np.max(point_half, initial=0.0)),
            }
            check_narrow_norms(largest_half, dtype, self.name)

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
        is tied come later. Where the device has too little memory, the points are
        ranked by halves.
        """
        points = space.read(points)
        waiting = [(np.arange(points.shape[0]), 0)]
        while waiting:
            lines, n_halvings = waiting.pop()
            index = None if self_index is None else self_index[lines]
            try:
                blocks = [*self._rank_points(space, points[lines], index, max_rank)]
            except (RuntimeError, MemoryError) as error:
                refuse_too_small(error, n_halvings, len(lines))
                middle = len(lines) // 2
                waiting.append((lines[middle:], n_halvings + 1))
                waiting.append((lines[:middle], n_halvings + 1))
                continue
            for places, order, tied in blocks:
                yield lines[places], order, tied

    def _rank_points(self, space, points, self_index, max_rank):
        """`device_ranks` of points that are ranked together."""
        queries, query_half = space.queries(points)
        self._check_narrow_norms(space, query_half)

        # The rounding of keys, from the sizes of both rows.
        tolerance = self._rank_tolerance(space)
        dtype = np.dtype(np.float64)
        if space.kind != GENERIC:
            dtype = np.dtype(self._product_dtype(space))
        row_rounding = self.to_device(space.half.astype(dtype)) * tolerance
        query_half = self.to_device(query_half.astype(dtype))[:, None]
        query_rounding = query_half * tolerance

        search = self._search(space, points, queries, self_index)

        # Sort the first ranks, and more of the points whose last run may continue.
        n = len(space)
        lines = np.arange(len(points))
        n_sorted = n + 1 if max_rank is None else max_rank + 1
        while n_sorted < n // 4 and len(lines):
            keys, order = search.first(lines, n_sorted)
            near = self._near(space, keys, order, row_rounding, query_rounding[lines])
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
            n_sorted = 2 * n_sorted

        if len(lines):
            keys, order = search.all(lines)
            # Free the memory.
            del search
            near = self._near(space, keys, order, row_rounding, query_rounding[lines])
            del keys
            order, tied = self._resolve(space, points[lines], order, near)
            yield lines, order, tied

    def _search(self, space, points, queries, self_index):
        """What sorts the rows by their distance from points."""
        absent = np.full(len(points), -1, dtype=np.int64)
        if self_index is not None:
            absent = np.asarray(self_index, dtype=np.int64)
        if space.kind != GENERIC:
            queries = self.to_device(self._for_product(space, queries))
        return Search(self, space, points, queries, absent)

    def _keys(self, space, points, queries):
        """Keys, which increase with the distance, of shape (n_points, n_rows)."""
        shape = points.shape[0], len(space)
        if space.kind == GENERIC:
            keys = torch.empty(shape, dtype=torch.float64, device=self.device)
            for rows, distances in self._distances(space, points):
                keys[:, rows] = distances
            return keys
        half = self.to_device(self._for_product(space, space.half))
        keys = torch.empty(shape, dtype=queries.dtype, device=self.device)
        for rows, block in self._blocks(space, len(points)):
            self._fill_keys(keys[:, rows], half[rows], queries, block)
        return keys

    def _near(self, space, sorted_keys, order, row_rounding, query_rounding):
        """Mask of near-ties with the row before, (n_points, n_sorted).

        For "euclidean", keys that differ by at most the sum of ``row_rounding``
        (n_rows,) and ``query_rounding`` (n_points, 1) are near-ties.
        """
        near = torch.zeros(order.shape, dtype=torch.bool, device=self.device)
        gaps = sorted_keys[:, 1:] - sorted_keys[:, :-1]
        if space.kind == EUCLIDEAN:
            near[:, 1:] = gaps <= row_rounding[order[:, 1:]] + query_rounding
        elif space.kind == COSINE:
            near[:, 1:] = gaps <= self._rank_tolerance(space)
        else:
            near[:, 1:] = gaps <= 0.0
        return near

    def _resolve(self, space, points, order, near):
        """Resolve near-ties from the rows, in place; return the order and the ties."""
        if space.kind == GENERIC:
            return order, near
        # Keys of fewer digits than the rows have say nothing of ties.
        head = EXACT_RANKS
        if self._product_dtype(space) != space.X.dtype:
            head = order.shape[1]
        front = near[:, : head + 1].cpu().numpy()
        lines = long_runs(front, head)
        tail = near[lines, head:].cpu().numpy()
        v, p = run_positions(front, lines, tail, head)
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
        self._check_narrow_norms(space, rule.slack / space.ball_tolerance)
        with self.device_lock():
            inside = torch.empty(
                (len(space), n_points), dtype=torch.bool, device=self.device
            )
            if space.kind == GENERIC:
                threshold = self.to_device(rule.threshold).to(torch.float64)
                for rows, distances in self._distances(space, points):
                    inside[rows] = -threshold >= distances.T
            else:
                self._fill_halving(inside, space, points, rule)
            if self_index is not None:
                lines = np.flatnonzero(self_index >= 0)
                inside[self_index[lines].astype(np.int64), lines] = False
            return DeviceBalls(self, space, inside)

    def _fill_halving(self, inside, space, points, rule):
        """`_fill_inside`, by blocks of half as many rows if memory is short."""
        for n_halvings in range(_HALVINGS + 1):
            try:
                return self._fill_inside(inside, space, points, rule, 2**n_halvings)
            except (RuntimeError, MemoryError) as error:
                refuse_too_small(error, n_halvings, len(space))

    def _fill_inside(self, inside, space, points, rule, divisor):
        """Fill the mask (n_rows, n_points) of the rows in the balls, by products."""
        tolerance = self._ball_tolerance(space)
        queries = self.to_device(self._for_product(space, rule.queries))
        half = self.to_device(self._for_product(space, space.half))
        threshold = self.to_device(rule.threshold).to(half.dtype)
        slack_of_points = rule.slack * (tolerance / space.ball_tolerance)
        point_slack = self.to_device(slack_of_points).to(half.dtype)
        for rows, block in self._blocks(space, len(points), divisor):
            x = self._scores(half[rows], block, queries)
            slack = point_slack + tolerance * half[rows, None]
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


class Search:
    """The rows by their distance from points, on the device.

    Rows that are absent for a point come last. ``queries`` (n_points, d) are the
    factors of products, on the device.
    """

    def __init__(self, engine, space, points, queries, absent):
        self._engine = engine
        self._space = space
        self._points = points
        self._queries = queries
        self._absent = absent
        self._keys = None
        # The points whose keys these are.
        self._lines = None

    def first(self, lines, k):
        """Sorted keys and rows of the k nearest rows of points, (n_lines, k)."""
        if self._keys is None:
            found = self._search(lines, k)
            if found is not None:
                return found
        return torch.topk(self._keys_of(lines), k, dim=1, largest=False, sorted=True)

    def all(self, lines):
        """Sorted keys and rows of all rows, (n_lines, n_rows)."""
        return torch.sort(self._keys_of(lines), dim=1)

    def _search(self, lines, k):
        """`first` by a search of the engine; None if it has none."""
        if self._space.kind == GENERIC:
            return None
        # One more for a row that is absent.
        found = self._engine._nearest(self._space, self._queries[lines], k + 1)
        if found is None:
            return None
        keys, order = found
        absent = self._engine.to_device(self._absent[lines])
        keys = torch.where(order == absent[:, None], torch.inf, keys)
        keys, place = torch.sort(keys, dim=1, stable=True)
        return keys[:, :k], order.gather(1, place)[:, :k]

    def _keys_of(self, lines):
        """Keys of points, which are computed once; later calls ask for some of them."""
        if self._keys is None:
            queries = self._queries
            if self._space.kind != GENERIC:
                queries = queries[lines]
            self._keys = self._engine._keys(self._space, self._points[lines], queries)
            here = np.flatnonzero(self._absent[lines] >= 0)
            self._keys[here, self._absent[lines][here]] = torch.inf
            self._lines = lines
        if len(lines) < len(self._lines):
            places = np.searchsorted(self._lines, lines)
            self._keys = self._keys[torch.from_numpy(places).to(self._keys.device)]
            self._lines = lines
        return self._keys


class Halving:
    """Slices, each of which is halved up to three times where memory is short.

    >>> halving = Halving([slice(0, 4)])
    >>> for rows in halving:
    ...     with halving:
    ...         print(rows)
    slice(0, 4, None)
    """

    def __init__(self, slices):
        # Each with the number of times that it was halved; the last is the next.
        self._waiting = [(rows, 0) for rows in reversed(slices)]
        self._rows = None
        self._n_halvings = 0

    def __iter__(self):
        while self._waiting:
            self._rows, self._n_halvings = self._waiting.pop()
            yield self._rows

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        """Take the halves of a slice next, instead of raising an error of memory."""
        if error is None or not _has_no_memory(error):
            return False
        start = self._rows.start
        stop = self._rows.stop
        refuse_too_small(error, self._n_halvings, stop - start)
        middle = (start + stop) // 2
        self._waiting.append((slice(middle, stop), self._n_halvings + 1))
        self._waiting.append((slice(start, middle), self._n_halvings + 1))
        return True


def refuse_too_small(error, n_halvings, size):
    """Raise what a computation on a device raised, unless halves may fit its memory.

    Raises
    ------
    MemoryError
        If the tile was halved as often as it may be.
    """
    if not _has_no_memory(error):
        raise error
    if n_halvings == _HALVINGS or size < 2:
        raise _memory_error(
            ", also for tiles of an eighth of the usual size"
        ) from error


class DeviceBalls:
    """The balls of a tile of points, as a mask of rows and points on the device."""

    def __init__(self, engine, space, inside):
        self._engine = engine
        self._inside = inside
        self._n_classes = space.n_classes
        self._space = space
        self._codes = engine.to_device(np.asarray(space.codes, dtype=np.int64))
        n_points = inside.shape[1]
        # Sums are computed by blocks of rows, in which a pair takes 16 bytes.
        room = min(2**20, block_bytes(engine.device) // (16 * n_points))
        self._blocks = tiles(len(inside), int(max(16, room)))
        self.counts = self._count()

    def _count(self):
        """Number of rows of each class in each ball, (n_classes, n_points)."""
        shape = self._n_classes, self._inside.shape[1]
        counts = torch.zeros(shape, dtype=torch.int64, device=self._inside.device)
        halving = Halving(self._blocks)
        for rows in halving:
            with halving:
                codes = self._codes[rows]
                inside = self._inside[rows]
                if self._n_classes <= _FEW_CLASSES:
                    # At most 2**20 ones: exact in float32.
                    one_hot = torch.nn.functional.one_hot(codes, self._n_classes).T
                    products = one_hot.to(torch.float32) @ inside.to(torch.float32)
                    counts += products.long()
                else:
                    counts.index_add_(0, codes, inside.long())
        return counts.cpu().numpy()

    def sum(self, weights):
        """For each row, the sum of the weights of the balls that contain it."""
        return exact_sum(self.integer_sum, weights)

    def integer_sum(self, weights):
        """As `sum`, of integers."""
        with self._engine.device_lock():
            totals = torch.zeros(
                len(self._inside), dtype=torch.int64, device=self._inside.device
            )
            is_product = self._n_classes <= _FEW_CLASSES
            if is_product:
                weights = _halves(weights)
            weights = self._engine.to_device(weights)
            halving = Halving(self._blocks)
            for rows in halving:
                with halving:
                    codes = self._codes[rows]
                    inside = self._inside[rows]
                    if is_product:
                        sums = _joined(inside.to(torch.float64) @ weights.T)
                        totals[rows] = sums.gather(1, codes[:, None])[:, 0]
                    else:
                        totals[rows] = (inside * weights[codes]).sum(dim=1)
            return totals.cpu().numpy()

    def n_balls(self):
        """For each row, the number of balls that contain it."""
        with self._engine.device_lock():
            return self._inside.sum(dim=1).cpu().numpy()

    def parts(self):
        """These balls, as all of them fit in memory, see `BallTiles.parts`."""
        yield slice(0, len(self._inside)), self

    def members(self, rows):
        """Mask of the balls that contain some rows, (n_rows, n_points)."""
        with self._engine.device_lock():
            rows = self._engine.to_device(np.asarray(rows, dtype=np.int64))
            return self._inside[rows].cpu().numpy()

    def row_blocks(self):
        """Yield classes, and blocks of their rows for `block_sums`."""
        codes = np.asarray(self._space.codes)
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(self._n_classes + 1))
        size = min(_ROWS_OF_SUMS, self._blocks[0].stop)
        for code in range(self._n_classes):
            rows = order[starts[code] : starts[code + 1]]
            for block in tiles(len(rows), size):
                yield code, rows[block]

    def prepared(self, weights, many):
        """Weights of one class, see `BlockBalls.prepared`."""
        with self._engine.device_lock():
            many = np.asarray(many, dtype=np.float32)
            return (
                self._engine.to_device(_halves(weights)),
                self._engine.to_device(many),
            )

    def block_sums(self, block, weights):
        """Sums for the rows of a block, see `BlockBalls.block_sums`."""
        with self._engine.device_lock():
            halves, many = weights
            rows = self._engine.to_device(np.asarray(block, dtype=np.int64))
            inside = self._inside[rows]
            sums = _joined(inside.to(torch.float64) @ halves.T)
            many_sums = inside.to(torch.float32) @ many.T
            return block, sums.T.cpu().numpy(), many_sums.cpu().numpy()

    def totals(self, numbers):
        """For each point, the sum of a number of each row in its ball."""
        with self._engine.device_lock():
            numbers = self._engine.to_device(np.asarray(numbers, dtype=np.float64))
            totals = torch.zeros(
                self._inside.shape[1], dtype=torch.float64, device=numbers.device
            )
            halving = Halving(self._blocks)
            for rows in halving:
                with halving:
                    totals += numbers[rows] @ self._inside[rows].to(torch.float64)
            return totals.cpu().numpy()


def _halves(weights):
    """The high and the low bits of integer weights, (2 * n_weights, n_points)."""
    high = weights >> _LOW_BITS
    low = weights & (2**_LOW_BITS - 1)
    return np.concatenate([high, low]).astype(np.float64)


def _joined(sums):
    """Sums of weights, (n_rows, n_weights), from those of their `_halves`."""
    high, low = sums.to(torch.int64).chunk(2, dim=1)
    return (high << _LOW_BITS) + low
