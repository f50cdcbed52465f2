"""Balls that contain a row only if they are around its nearest validation points."""

from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn import get_config
from sklearn.metrics import pairwise_distances

from ..._utils.fixed_point import exact_sum
from ..._utils.parallel import tiles
from ...neighbors import balls, read_rows


def capped_balls(X, X_val, radius, metric, cap):
    """Yield slices of rows, and masks of the balls that contain them.

    These are at most the ``cap`` nearest to each row, (n_rows, n_points). They depend
    on the distances of the row to public points; of tied points the first is nearer.
    """
    for rows, distances, inside in all_balls(X, X_val, radius, metric):
        distances[~inside] = np.inf
        yield rows, _nearest(distances, cap) & inside


def _nearest(distances, cap):
    """Mask of the ``cap`` smallest distances of each row; of equal ones the first."""
    limit = np.partition(distances, cap - 1, axis=1)[:, cap - 1, None]
    is_near = distances <= limit
    tied = np.flatnonzero(np.count_nonzero(is_near, axis=1) > cap)
    if len(tied):
        is_below = distances[tied] < limit[tied]
        is_limit = distances[tied] == limit[tied]
        room = cap - np.count_nonzero(is_below, axis=1)
        is_first = np.cumsum(is_limit, axis=1) <= room[:, None]
        is_near[tied] = is_below | (is_limit & is_first)
    return is_near


def all_balls(X, X_val, radius, metric):
    """Yield slices of rows, their distances from all points, and masks of their balls.

    Both are of shape (n_rows, n_points), and depend on each row and point alone.
    """
    X_val = X_val.astype(np.float64)
    # The ball is closed: distances are rounded.
    limit = radius * (1 + 1e-12)
    if metric == "cosine":
        limit = radius + 1e-12
    n_bytes = 64 * len(X_val) + 16 * X_val.shape[1]
    room = int(get_config()["working_memory"] * 2**20 // n_bytes)
    step = max(1, room)
    for start in range(0, len(X), step):
        rows = slice(start, min(start + step, len(X)))
        block = read_rows(X[rows])
        if sparse.issparse(block):
            block = block.toarray()
        distances = _distances(block.astype(np.float64), X_val, metric)
        yield rows, distances, distances <= limit


def _distances(X, X_val, metric):
    """Distances of rows from points, (n_rows, n_points), each from these two alone."""
    if metric not in ("cosine", "euclidean", "l2"):
        return pairwise_distances(X, X_val, metric=metric)
    # In a matrix product the rounding of a row may depend on its position and break
    # ties.
    distances = cdist(X, X_val, "euclidean" if metric == "l2" else metric)
    # Cosine distances of rows of zeros.
    return np.nan_to_num(distances, nan=1.0)


class CappedBalls:
    """As `skvalue.neighbors.balls`, where a row is in at most ``cap`` balls.

    These are the nearest ones. The engine finds all balls; distances are computed only
    for rows that are in more than ``cap``.
    """

    def __init__(self, engine, space, points, radius, cap, n_jobs=1):
        self._balls = balls(engine, space, points, radius, n_jobs=n_jobs)
        self._space = space
        self._points = points
        self._radius = radius
        self._cap = cap
        # The balls of all rows, with their masks, if they fit in memory.
        self._kept = None

    @cached_property
    def counts(self):
        return sum(part.counts for _, part in self.parts())

    def sum(self, weights):
        return exact_sum(self._integer_sum, weights)

    def _integer_sum(self, weights):
        sums = [part.integer_sum(weights) for _, part in self.parts()]
        return np.concatenate(sums)

    def parts(self):
        """Yield slices of the rows, and their balls."""
        if self._kept is not None:
            yield self._kept
            return
        for rows, part in self._balls.parts():
            capped = CappedPart(
                part,
                self._space.X[rows],
                self._space.codes[rows],
                self._points,
                self._radius,
                self._space.metric,
                self._cap,
            )
            if part is self._balls:
                self._kept = rows, capped
            yield rows, capped


class CappedPart:
    """The balls of some rows, of which some are only in the nearest to them.

    ``part`` are all balls of these rows, by an engine.
    """

    def __init__(self, part, X, codes, points, radius, metric, cap):
        self._part = part
        self._codes = codes
        # Rows that are in too many balls, and the number of each among these, or -1.
        self._rows = np.flatnonzero(part.n_balls() > cap)
        self._number = np.full(len(codes), -1, dtype=np.int32)
        self._number[self._rows] = np.arange(len(self._rows))
        # The balls in which these are counted, as bits: no more than all balls take.
        n_bytes = -(-len(points) // 8)
        self._n_points = len(points)
        self._bits = np.empty((len(self._rows), n_bytes), dtype=np.uint8)
        if len(self._rows):
            blocks = capped_balls(X[self._rows], points, radius, metric, cap)
            for rows, inside in blocks:
                self._bits[rows] = np.packbits(inside, axis=1)

    @cached_property
    def counts(self):
        counts = self._part.counts.copy()
        for numbers in self._tiles():
            rows = self._rows[numbers]
            change = self._inside(numbers).astype(np.int64) - self._part.members(rows)
            codes = self._codes[rows]
            for code in np.unique(codes):
                counts[code] += change[codes == code].sum(axis=0)
        return counts

    def integer_sum(self, weights):
        sums = self._part.integer_sum(weights)
        for numbers in self._tiles():
            rows = self._rows[numbers]
            inside = self._inside(numbers)
            sums[rows] = np.einsum("iv,iv->i", inside, weights[self._codes[rows]])
        return sums

    def row_blocks(self):
        """Yield classes, and blocks of their rows for `block_sums`."""
        return self._part.row_blocks()

    def prepared(self, weights, many):
        """Weights of one class, for `block_sums`: integers, and many in float32."""
        return weights, many, self._part.prepared(weights, many)

    def block_sums(self, block, weights):
        """The rows of a block, and their sums of both kinds of weights."""
        weights, many, of_part = weights
        rows, sums, many_sums = self._part.block_sums(block, of_part)
        numbers = self._number[rows]
        places = np.flatnonzero(numbers >= 0)
        if len(places):
            inside = self._inside(numbers[places])
            sums[:, places] = weights @ inside.T
            many_sums[places] = inside.astype(np.float32) @ many.T
        return rows, sums, many_sums

    def _tiles(self):
        """Slices of the rows in too many balls; a pair takes up to 32 bytes."""
        n_bytes = 32 * self._n_points
        room = int(get_config()["working_memory"] * 2**20 // n_bytes)
        return tiles(len(self._rows), max(1, room))

    def _inside(self, numbers):
        """Masks of the balls in which rows are counted, (n_rows, n_points)."""
        bits = np.unpackbits(self._bits[numbers], axis=1, count=self._n_points)
        return bits.view(bool)
