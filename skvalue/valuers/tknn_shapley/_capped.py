"""Balls that contain a row only if they are around its nearest validation points."""

from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn import get_config
from sklearn.metrics import pairwise_distances

from ...neighbors import balls, make_space, read_rows


def capped_balls(X, X_val, radius, metric, cap):
    """Yield slices of rows, and masks of the balls that contain them.

    These are at most the ``cap`` nearest to each row, (n_rows, n_points). They depend
    on the distances of the row to public points; of tied points the first is nearer.
    """
    for rows, distances, inside in all_balls(X, X_val, radius, metric):
        distances[~inside] = np.inf
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :cap]
        is_near = np.zeros_like(inside)
        np.put_along_axis(is_near, nearest, True, axis=1)
        yield rows, is_near & inside


def all_balls(X, X_val, radius, metric):
    """Yield slices of rows, their distances from all points, and masks of their balls.

    Both are of shape (n_rows, n_points), and depend on each row and point alone.
    """
    X_val = X_val.astype(np.float64)
    closed = radius + 1e-12 if metric == "cosine" else radius * (1 + 1e-12)
    n_bytes = 64 * len(X_val) + 16 * X_val.shape[1]
    room = int(get_config()["working_memory"] * 2**20 // n_bytes)
    step = max(1, room)
    for start in range(0, len(X), step):
        rows = slice(start, min(start + step, len(X)))
        block = read_rows(X[rows])
        if sparse.issparse(block):
            block = block.toarray()
        distances = _distances(block.astype(np.float64), X_val, metric)
        yield rows, distances, distances <= closed


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

    These are the nearest ones. The engine finds all balls; distances are sorted only
    for rows that are in more than ``cap``.
    """

    def __init__(self, engine, space, points, radius, cap, n_jobs=1):
        self._balls = balls(engine, space, points, radius, n_jobs=n_jobs)
        n_balls = self._balls.sum(np.ones((space.n_classes, len(points))))
        # Positions, rows and classes of the rows that are in too many balls.
        self._rows = np.flatnonzero(n_balls > cap + 0.5)
        self._X = space.X[self._rows]
        self._codes = space.codes[self._rows]
        self._engine = engine
        self._points = points
        self._radius = radius
        self._metric = space.metric
        self._cap = cap

    @cached_property
    def counts(self):
        counts = self._balls.counts.copy()
        if len(self._rows):
            space = make_space(self._X, self._metric, self._codes, len(counts))
            all_balls = balls(self._engine, space, self._points, self._radius)
            counts -= all_balls.counts
            for rows, inside in self._capped():
                codes = self._codes[rows]
                for code in np.unique(codes):
                    counts[code] += inside[codes == code].sum(axis=0)
        return counts

    def sum(self, weights):
        values = self._balls.sum(weights)
        for rows, inside in self._capped():
            capped = np.einsum("iv,iv->i", inside, weights[self._codes[rows]])
            values[self._rows[rows]] = capped
        return values

    def _capped(self):
        """Slices of the rows in too many balls, and masks, see `capped_balls`."""
        return capped_balls(
            self._X, self._points, self._radius, self._metric, self._cap
        )
