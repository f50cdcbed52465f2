"""Balls as bits, in blocks of eight rows of one class."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._utils.fixed_point import exact_sum
from .._utils.parallel import tiles
from .kernels import ball as ball_kernels

# Blocks of eight rows whose sums of many weights are computed at a time.
_BLOCKS_OF_SUMS = 512


class ClassBlocks:
    """Rows sorted by class, in blocks of eight rows of one class, padded with -1."""

    def __init__(self, space):
        sizes = np.bincount(space.codes, minlength=space.n_classes)
        padded = -(-sizes // 8) * 8
        # Where each class starts among the padded rows, and among the sorted ones.
        padded_starts = np.cumsum(padded) - padded
        starts = np.cumsum(sizes) - sizes

        by_class = np.argsort(space.codes, kind="stable")
        places = np.arange(len(space))
        places += np.repeat(padded_starts - starts, sizes)
        self.order = np.full(padded.sum(), -1, dtype=np.int64)
        self.order[places] = by_class
        self.position = np.empty(len(space), dtype=np.int64)
        self.position[by_class] = places
        # The class of each block, and the first block of each class.
        self.classes = np.repeat(np.arange(space.n_classes), padded // 8)
        self.starts = np.append(padded_starts, padded.sum()) // 8

        self._row_half = space.half
        self._ball_tolerance = space.ball_tolerance

    @cached_property
    def half(self):
        """Half the squared norm of each row; padding is never inside."""
        return np.where(self.order < 0, np.inf, self._row_half[self.order])

    @cached_property
    def slack(self):
        """What rounding may change of the keys of each block."""
        half = np.where(self.order < 0, 0.0, self._row_half[self.order])
        return self._ball_tolerance * half.reshape(-1, 8).max(axis=1)


class BlockBalls:
    """The balls of a tile: one byte for each block and point, one bit per row."""

    def __init__(self, space, n_points):
        self._codes = space.codes
        self._buffers = space.buffers
        cached = space.buffers.cached
        with space.buffers.lock:
            if "class blocks" not in cached:
                cached["class blocks"] = ClassBlocks(space)
        self.blocks = cached["class blocks"]

        n_blocks = len(self.blocks.classes)
        n_bytes = n_blocks * n_points
        self._memory = space.buffers.take("bits")
        if self._memory is None or self._memory.size < n_bytes:
            self._memory = np.empty(n_bytes, dtype=np.uint8)
        self.bits = self._memory[:n_bytes].reshape(n_blocks, n_points)
        self.counts = np.zeros((space.n_classes, n_points), dtype=np.int64)

    def __del__(self):
        # The next tile uses the memory again.
        self._buffers.give("bits", self._memory)

    def add(self, rows, inside):
        """Add rows to the balls, whose bits were set to 0.

        ``inside`` (n_rows, n_points) is a mask of the rows of an index.
        """
        ball_kernels.pack_rows(
            inside.view(np.uint8),
            self.blocks.position[rows],
            self._codes[rows],
            self.bits,
            self.counts,
        )

    def sum(self, weights):
        """For each row, the sum of the weights of the balls that contain it."""
        return exact_sum(self.integer_sum, weights)

    def integer_sum(self, weights):
        """As `sum`, of integers."""
        totals = np.zeros(len(self.blocks.order), dtype=np.int64)
        weights = np.ascontiguousarray(weights)
        ball_kernels.add_weights(self.bits, self.blocks.classes, weights, totals)
        return totals[self.blocks.position]

    def n_balls(self):
        """For each row, the number of balls that contain it."""
        numbers = np.zeros(len(self.blocks.order), dtype=np.int32)
        ball_kernels.count_balls(self.bits, numbers)
        return numbers[self.blocks.position]

    def parts(self):
        """These balls, as all of them fit in memory, see `BallTiles.parts`."""
        yield slice(0, len(self._codes)), self

    def members(self, rows):
        """Mask of the balls that contain some rows, (n_rows, n_points)."""
        position = self.blocks.position[rows]
        bits = self.bits[position >> 3] >> (position & 7)[:, None].astype(np.uint8)
        return (bits & 1).view(bool)

    def row_blocks(self):
        """Yield classes, and blocks of their rows for `block_sums`."""
        starts = self.blocks.starts
        for code in range(len(starts) - 1):
            first = starts[code]
            for block in tiles(starts[code + 1] - first, _BLOCKS_OF_SUMS):
                yield code, slice(first + block.start, first + block.stop)

    def prepared(self, weights, many):
        """Weights of one class, for `block_sums`.

        ``weights`` (n_weights, n_points) are integers, ``many`` (n_many, n_points) are
        added in float32.
        """
        return BlockWeights(np.ascontiguousarray(weights), len(many), _tables(many))

    def block_sums(self, block, weights):
        """Sums of some weights, and of many at once, for the rows of a block.

        ``weights`` are those of its class, see `prepared`. Returns the rows, and for
        each the sums, over the balls that contain it, of both kinds of weights,
        (n_weights, n_rows) and (n_rows, n_many).
        """
        rows = self.blocks.order[8 * block.start : 8 * block.stop]
        bits = self.bits[block]
        sums = np.zeros((len(weights.integers), len(rows)), dtype=np.int64)
        ball_kernels.add_weights_of_class(bits, weights.integers, sums)
        n_columns = 16 * len(weights.tables)
        many_sums = np.empty((len(rows), n_columns), dtype=np.float32)
        ball_kernels.add_many_weights(bits, weights.tables, many_sums)
        # Padding is at the end of a class.
        n_rows = np.count_nonzero(rows >= 0)
        return rows[:n_rows], sums[:, :n_rows], many_sums[:n_rows, : weights.n_many]

    def totals(self, numbers):
        """For each point, the sum of a number of each row in its ball."""
        in_blocks = np.zeros(len(self.blocks.order))
        in_blocks[self.blocks.position] = numbers
        totals = np.zeros(self.bits.shape[1])
        ball_kernels.add_rows(self.bits, in_blocks, totals)
        return totals


class BlockWeights(NamedTuple):
    """Weights of one class, for `BlockBalls.block_sums`."""

    # (n_weights, n_points)
    integers: np.ndarray
    # The number of many weights, and their tables, see `_tables`.
    n_many: int
    tables: np.ndarray


def _tables(weights):
    """Sums of weights (n_weights, n_points) over all sets of four points.

    Of shape (n_weights / 16, n_points / 4, 16, 16): for each 16 weights and each four
    points, one line of 16 sums for each set. Both numbers are rounded up, that of the
    points to a multiple of eight.
    """
    n_weights, n_points = weights.shape
    padded = np.zeros((-(-n_weights // 16) * 16, -(-n_points // 8) * 8), np.float32)
    padded[:n_weights, :n_points] = weights
    # For each 16 weights and four points: point, weight.
    fours = padded.reshape(-1, 16, padded.shape[1] // 4, 4).transpose(0, 2, 3, 1)
    tables = _aligned_zeros((*fours.shape[:2], 16, 16))
    for i in range(4):
        # Sets of the first i points, and each with the next one.
        first = tables[:, :, : 2**i]
        tables[:, :, 2**i : 2 ** (i + 1)] = first + fours[:, :, i, None]
    return tables


def _aligned_zeros(shape):
    """Zeros in float32 of which no 16, from the first on, are in two lines of cache."""
    memory = np.zeros(np.prod(shape) + 16, dtype=np.float32)
    first = -memory.ctypes.data % 64 // memory.itemsize
    return memory[first : first + np.prod(shape)].reshape(shape)
