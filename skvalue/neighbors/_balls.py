"""Rows within a radius of points: counts by class and weighted sums, for any engine."""

from functools import cached_property

import numpy as np
from sklearn import get_config

from .._utils.parallel import n_workers, ordered_map, tiles

_FEW_PAIRS = 2**18  # below this, starting threads takes longer than the work


def ball_tiles(engine, n_rows, n_points, workers=1):
    """Cut the points into tiles, one for each task.

    Parameters
    ----------
    engine : object
        An engine, see `get_engine`.
    n_rows, n_points : int
        Sizes of the problem.
    workers : int, default=1
        Number of tasks that run at the same time.

    Returns
    -------
    parts : list of slices
        The tiles.

    Examples
    --------
    >>> from skvalue.neighbors import ball_tiles, get_engine
    >>> ball_tiles(get_engine("numba"), n_rows=100, n_points=10)
    [slice(0, 10, None)]
    """
    return tiles(n_points, engine.ball_tile_size(n_rows, n_points, workers))


def balls(engine, space, points, radius, self_index=None, n_jobs=1):
    """Find the rows within a closed ball around each point.

    Parameters
    ----------
    engine : object
        An engine, see `get_engine`.
    space : Space
        The rows and their classes.
    points : ndarray or Rows of shape (n_points, d)
        The points.
    radius : float
        Radius of the balls.
    self_index : ndarray of int of shape (n_points,), default=None
        Row that is left out of the ball of the point, whatever its distance; -1 for
        none.
    n_jobs : int, default=1
        Number of threads.

    Returns
    -------
    found : object
        ``found.counts``, of shape (n_classes, n_points), are the numbers of rows of
        each class in each ball. ``found.sum(weights)``, with weights of the same shape,
        is for each row the sum, over the balls that contain it, of the weight of its
        class in that ball. Conversely, ``found.totals(numbers)``, with one number per
        row, are sums over the rows in each ball.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.neighbors import balls, get_engine, make_space
    >>> X, codes = np.array([[2.0], [0.0], [1.0]]), np.array([0, 1, 1], dtype=np.uint8)
    >>> space = make_space(X, "euclidean", codes, n_classes=2)
    >>> found = balls(get_engine("numba"), space, np.array([[0.5], [1.5]]), 0.5)
    >>> found.counts.tolist(), found.sum(np.ones((2, 2))).tolist()
    ([[0, 1], [2, 1]], [1.0, 1.0, 2.0])
    """
    alone = n_jobs == 1 or len(space) * len(points) < _FEW_PAIRS
    parts = ball_tiles(
        engine, len(space), len(points), 1 if alone else n_workers(n_jobs)
    )
    if len(parts) <= 1:
        return engine.balls(space, points, radius, self_index)
    return BallTiles(parts, engine, space, points, radius, self_index, n_jobs)


class BallTiles:
    """Several tiles with the interface of one: a private fit needs all counts before
    any weight.

    The balls are kept in memory if they fit in the working memory, else computed twice.
    """

    def __init__(self, parts, engine, space, points, radius, self_index, n_jobs):
        self._engine, self._parts, self._n_jobs = engine, parts, n_jobs
        self._tasks = [
            (space, points[p], radius, None if self_index is None else self_index[p])
            for p in parts
        ]
        n_bytes = engine.bytes_per_pair * len(space) * len(points)
        self._keeps, self._kept = n_bytes <= get_config()["working_memory"] * 2**20, {}

    def _each(self, what, arguments):
        """``what`` of each tile ("counts", "sum" or "totals") of its argument, in
        threads."""

        def task(number, argument):
            with self._engine.device_lock():
                tile = self._kept.get(number) or self._engine.balls(
                    *self._tasks[number]
                )
                if self._keeps:
                    self._kept[number] = tile
                return (
                    tile.counts if what == "counts" else getattr(tile, what)(argument)
                )

        return list(
            ordered_map(task, list(enumerate(arguments)), self._n_jobs, shared=True)
        )

    @cached_property
    def counts(self):
        return np.concatenate(self._each("counts", self._parts), axis=1)

    def sum(self, weights):
        weights = [np.ascontiguousarray(weights[:, part]) for part in self._parts]
        return sum(self._each("sum", weights))

    def totals(self, numbers):
        return np.concatenate(self._each("totals", [numbers] * len(self._parts)))
