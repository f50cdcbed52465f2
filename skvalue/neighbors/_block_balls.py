"""Balls as bits, in blocks of eight rows of one class."""

import numpy as np

from .kernels import ball as ball_kernels


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

    def totals(self, numbers):
        """For each point, the sum of a number of each row in its ball."""
        in_blocks = np.zeros(len(self.blocks.order))
        in_blocks[self.blocks.position] = numbers
        totals = np.zeros(self.bits.shape[1])
        ball_kernels.add_rows(self.bits, in_blocks, totals)
        return totals
