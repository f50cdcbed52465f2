"""Balls in which a row is only if they are around the nearest of the validation
points."""

from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist
from sklearn import get_config
from sklearn.metrics import pairwise_distances

from ...neighbors import balls, make_space


def capped_balls(X, X_val, radius, metric, cap):
    """Yield slices of rows, and masks of the balls of at most ``cap`` nearest points of
    each row.

    They depend on the distances of the row to public points; of tied points the first
    is nearer.
    """
    X_val = X_val.astype(np.float64)
    closed = radius + 1e-12 if metric == "cosine" else radius * (1 + 1e-12)
    step = max(1, int(get_config()["working_memory"] * 2**20 // (64 * len(X_val))))
    for start in range(0, len(X), step):
        part = slice(start, min(start + step, len(X)))
        rows = X[part].astype(np.float64)
        # In a matrix product the rounding of a row may depend on its position and break
        # ties.
        if metric in ("cosine", "euclidean", "l2"):
            distances = cdist(rows, X_val, "euclidean" if metric == "l2" else metric)
            distances = np.nan_to_num(
                distances, nan=1.0
            )  # cosine distances of rows of zeros
        else:
            distances = pairwise_distances(rows, X_val, metric=metric)
        inside = distances <= closed
        distances[~inside] = np.inf
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :cap]
        chosen = np.zeros_like(inside)
        np.put_along_axis(chosen, nearest, True, axis=1)
        yield part, chosen & inside


class CappedBalls:
    """As `skvalue.neighbors.balls`, where a row is in at most ``cap`` balls, the
    nearest ones.

    The engine finds all balls; distances are sorted only for rows that are in more than
    ``cap``.
    """

    def __init__(self, engine, space, points, radius, cap, n_jobs=1):
        self._found = balls(engine, space, points, radius, n_jobs=n_jobs)
        n_balls = self._found.sum(np.ones((space.n_classes, len(points))))
        self._rows = np.flatnonzero(n_balls > cap + 0.5)
        self._engine, self._codes = engine, space.codes[self._rows]
        self._nearest = space.X[self._rows], points, radius, space.metric, cap

    @cached_property
    def counts(self):
        counts = self._found.counts.copy()
        if len(self._rows):
            X, points, radius, metric, _ = self._nearest
            space = make_space(X, metric, self._codes, len(counts))
            counts -= balls(self._engine, space, points, radius).counts
            for part, inside in capped_balls(*self._nearest):
                for code in np.unique(self._codes[part]):
                    counts[code] += inside[self._codes[part] == code].sum(axis=0)
        return counts

    def sum(self, weights):
        values = self._found.sum(weights)
        for part, inside in capped_balls(*self._nearest):
            capped = np.einsum("iv,iv->i", inside, weights[self._codes[part]])
            values[self._rows[part]] = capped
        return values
