"""Balls as bits, in blocks of eight rows of one class. Imports numba."""

import numpy as np

from .kernels import ball as ball_kernels


class ClassBlocks:
    """Rows sorted by class, in blocks of eight rows of one class, padded with -1."""

    def __init__(self, space):
        sizes = np.bincount(space.codes, minlength=space.n_classes)
        padded = -(-sizes // 8) * 8
        starts = np.cumsum(padded) - padded
        by_class = np.argsort(space.codes, kind="stable")
        places = np.arange(len(space)) + np.repeat(
            starts - (np.cumsum(sizes) - sizes), sizes
        )
        self.order = np.full(padded.sum(), -1, dtype=np.int64)
        self.order[places] = by_class
        self.position = np.empty(len(space), dtype=np.int64)
        self.position[by_class] = places
        self.classes = np.repeat(np.arange(space.n_classes), padded // 8)
        padding = self.order < 0
        self.half = space.half[self.order]
        self.half[padding] = 0
        self.slack = space.ball_tolerance * self.half.reshape(-1, 8).max(axis=1)
        self.half[padding] = np.inf  # never inside


class BlockBalls:
    """The balls of a tile: one byte for each block of eight rows and point, one bit per
    row."""

    def __init__(self, space, n_points):
        self._buffers, self._codes, cached = (
            space.buffers,
            space.codes,
            space.buffers.cached,
        )
        with space.buffers.lock:
            if "class blocks" not in cached:
                cached["class blocks"] = ClassBlocks(space)
        self.blocks = cached["class blocks"]
        n_blocks = len(self.blocks.classes)
        self._memory = space.buffers.take("bits")
        if self._memory is None or self._memory.size < n_blocks * n_points:
            self._memory = np.empty(n_blocks * n_points, dtype=np.uint8)
        self.bits = self._memory[: n_blocks * n_points].reshape(n_blocks, n_points)
        self.counts = np.zeros((space.n_classes, n_points), dtype=np.int64)

    def add(self, part, inside):
        """Add some rows to the balls, which are cleared first; a mask (n_rows,
        n_points)."""
        places, codes = self.blocks.position[part], self._codes[part]
        ball_kernels.pack_rows(
            inside.view(np.uint8), places, codes, self.bits, self.counts
        )

    def __del__(self):
        self._buffers.give("bits", self._memory)  # reused by the next tile

    def sum(self, weights):
        """For each row, the sum of the weights of the balls that contain it."""
        total = np.zeros(len(self.blocks.order))
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        ball_kernels.add_weights(self.bits, self.blocks.classes, weights, total)
        return total[self.blocks.position]

    def totals(self, numbers):
        """For each point, the sum of a number of each row in its ball."""
        in_blocks, total = (
            np.zeros(len(self.blocks.order)),
            np.zeros(self.bits.shape[1]),
        )
        in_blocks[self.blocks.position] = numbers
        ball_kernels.add_rows(self.bits, in_blocks, total)
        return total
