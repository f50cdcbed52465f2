"""Balls as bits, in blocks of eight rows of one class."""

import numpy as np

from .._utils.parallel import tiles
from .kernels import ball as ball_kernels

# Blocks of eight rows whose sums of many weights are computed at a time.
_BLOCKS_OF_SUMS = 256


class ClassBlocks:
    """Rows sorted by class, in blocks of eight rows of one class, padded with -1."""

    def __init__(self, space):
        sizes = np.bincount(space.codes, minlength=space.n_classes)
        padded = -(-sizes // 8) * 8
        # Where each class starts among the padded rows, and among the sorted ones.
        padded_starts = np.cumsum(padded) - padded
        starts = np.cumsum(sizes) - sizes

        by_class = np.argsort(space.codes, kind="stable")
        places = np.arange(len(space)) + np.repeat(padded_starts - starts, sizes)
        self.order = np.full(padded.sum(), -1, dtype=np.int64)
        self.order[places] = by_class
        self.position = np.empty(len(space), dtype=np.int64)
        self.position[by_class] = places
        # The class of each block.
        self.classes = np.repeat(np.arange(space.n_classes), padded // 8)

        is_padding = self.order < 0
        self.half = space.half[self.order]
        self.half[is_padding] = 0
        self.slack = space.ball_tolerance * self.half.reshape(-1, 8).max(axis=1)
        # Padding is never inside.
        self.half[is_padding] = np.inf


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
        totals = np.zeros(len(self.blocks.order))
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        ball_kernels.add_weights(self.bits, self.blocks.classes, weights, totals)
        return totals[self.blocks.position]

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
        classes = self.blocks.classes
        for code in np.unique(classes):
            first, last = np.searchsorted(classes, [code, code + 1])
            for block in tiles(last - first, _BLOCKS_OF_SUMS):
                yield code, slice(first + block.start, first + block.stop)

    def prepared(self, weights):
        """Weights (n_weights, n_points) of one class, for `block_sums`."""
        return len(weights), _tables(weights)

    def block_sums(self, block, weights):
        """Sums of many weights at once, in float32, for the rows of a block.

        ``weights`` are those of its class, see `prepared`. Returns the rows, and for
        each the sums, over the balls that contain it, (n_rows, n_weights).
        """
        n_weights, tables = weights
        rows = self.blocks.order[8 * block.start : 8 * block.stop]
        sums = np.empty((len(rows), 16 * len(tables)), dtype=np.float32)
        ball_kernels.add_many_weights(self.bits[block], tables, sums)
        # Padding is at the end of a class.
        n_rows = np.count_nonzero(rows >= 0)
        return rows[:n_rows], sums[:n_rows, :n_weights]

    def totals(self, numbers):
        """For each point, the sum of a number of each row in its ball."""
        in_blocks = np.zeros(len(self.blocks.order))
        in_blocks[self.blocks.position] = numbers
        totals = np.zeros(self.bits.shape[1])
        ball_kernels.add_rows(self.bits, in_blocks, totals)
        return totals


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
    tables = np.zeros((*fours.shape[:2], 16, 16), dtype=np.float32)
    for i in range(4):
        # Sets of the first i points, and each with the next one.
        first = tables[:, :, : 2**i]
        tables[:, :, 2**i : 2 ** (i + 1)] = first + fours[:, :, i, None]
    return tables
