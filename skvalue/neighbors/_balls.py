"""Rows within a radius of points: counts by class and weighted sums, for any engine."""

from functools import cached_property

import numpy as np
from sklearn import get_config

from .._utils.fixed_point import exact_sum
from .._utils.parallel import n_workers, ordered_map, tiles

# With fewer pairs, starting threads takes longer than the work.
_MIN_PAIRS = 2**18


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
    tiles : list of slices
        The tiles.

    Examples
    --------
    >>> from skvalue.neighbors import ball_tiles, get_engine
    >>> ball_tiles(get_engine("native"), n_rows=100, n_points=10)
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
    neighbours : object
        ``neighbours.counts``, of shape (n_classes, n_points), are the numbers of rows
        of each class in each ball. ``neighbours.sum(weights)``, with weights of the
        same shape, is for each row the sum, over the balls that contain it, of the
        weight of its class in that ball: to the bit the same by all engines, as
        integers are added. ``neighbours.integer_sum(weights)`` adds integers itself,
        and ``neighbours.n_balls()`` counts the balls. Conversely,
        ``neighbours.totals(numbers)``, with one number per row, are sums over the rows
        in each ball.

        ``neighbours.parts()`` yields slices of the rows, and the balls of these rows
        alone: they are computed once for any number of sums, also where those of all
        rows do not fit in memory. Those of a part also have ``members(rows)``, the mask
        (n_rows, n_points) of the balls that contain some rows; ``row_blocks()``, which
        yields a class and a block of its rows at a time; and ``block_sums(block,
        prepared(weights, many))``, the rows of a block, sums (n_weights, n_rows) of
        integer weights (n_weights, n_points) of its class, and sums (n_rows, n_many) of
        many weights (n_many, n_points) at once, in float32.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.neighbors import balls, get_engine, make_space
    >>> X, codes = np.array([[2.0], [0.0], [1.0]]), np.array([0, 1, 1], dtype=np.uint8)
    >>> space = make_space(X, "euclidean", codes, n_classes=2)
    >>> points = np.array([[0.5], [1.5]])
    >>> neighbours = balls(get_engine("native"), space, points, radius=0.5)
    >>> neighbours.counts.tolist()
    [[0, 1], [2, 1]]
    >>> neighbours.sum(np.ones((2, 2))).tolist()
    [1.0, 1.0, 2.0]
    """
    n_pairs = len(space) * len(points)
    workers = 1
    if n_jobs != 1 and n_pairs >= _MIN_PAIRS:
        workers = n_workers(n_jobs)
    slices = ball_tiles(engine, len(space), len(points), workers)
    if len(slices) <= 1:
        return engine.balls(space, points, radius, self_index)
    return BallTiles(engine, space, points, radius, self_index, n_jobs, slices)


class BallTiles:
    """Several tiles of points with the interface of one.

    A private fit needs all counts before any weight: the balls are kept in memory if
    they fit in the working memory, else computed twice.
    """

    def __init__(self, engine, space, points, radius, self_index, n_jobs, slices):
        self._engine = engine
        self._space = space
        self._points = points
        self._radius = radius
        self._self_index = self_index
        self._n_jobs = n_jobs
        self._slices = slices
        n_bytes = engine.bytes_per_pair * len(space) * len(points)
        self._keeps_tiles = n_bytes <= _working_bytes()
        self._tiles = {}

    @cached_property
    def counts(self):
        return np.concatenate(self._map(self._tile_counts), axis=1)

    def sum(self, weights):
        return exact_sum(self.integer_sum, weights)

    def integer_sum(self, weights):
        return sum(self._map(self._tile_sum, weights))

    def n_balls(self):
        return sum(self._map(self._tile_n_balls))

    def totals(self, numbers):
        return np.concatenate(self._map(self._tile_totals, numbers))

    def parts(self):
        """Yield slices of the rows, and their balls around all points, which are kept.

        That is one part if the balls of all rows fit in the working memory.
        """
        if self._keeps_tiles:
            yield slice(0, len(self._space)), self
            return
        n_bytes = self._engine.bytes_per_pair * len(self._points)
        for rows in tiles(len(self._space), max(8, int(_working_bytes() // n_bytes))):
            self_index = self._self_index
            if self_index is not None:
                is_here = (self_index >= rows.start) & (self_index < rows.stop)
                self_index = np.where(is_here, self_index - rows.start, -1)
            part = BallTiles(
                self._engine,
                self._space.part(rows),
                self._points,
                self._radius,
                self_index,
                self._n_jobs,
                self._slices,
            )
            part._keeps_tiles = True
            yield rows, part

    def members(self, rows):
        """Mask of the balls that contain some rows, (n_rows, n_points)."""
        masks = [self._tile(i).members(rows) for i in range(len(self._slices))]
        return np.concatenate(masks, axis=1)

    def row_blocks(self):
        """Yield classes, and blocks of their rows for `block_sums`."""
        # The same for all tiles.
        yield from self._tile(0).row_blocks()

    def prepared(self, weights, many):
        """Weights of one class, see `BlockBalls.prepared`."""
        return [
            self._tile(number).prepared(weights[:, points], many[:, points])
            for number, points in enumerate(self._slices)
        ]

    def block_sums(self, block, weights):
        """Sums for the rows of a block, see `BlockBalls.block_sums`."""
        rows, sums, many_sums = self._tile(0).block_sums(block, weights[0])
        for number in range(1, len(self._slices)):
            _, of_tile, many_of_tile = self._tile(number).block_sums(
                block, weights[number]
            )
            sums += of_tile
            many_sums += many_of_tile
        return rows, sums, many_sums

    def _map(self, function, *arguments):
        """The function of each tile, by its number, in threads; a list."""
        tasks = [(number, *arguments) for number in range(len(self._slices))]
        return list(ordered_map(function, tasks, self._n_jobs, shared=True))

    def _tile_counts(self, number):
        with self._engine.device_lock():
            return self._tile(number).counts

    def _tile_sum(self, number, weights):
        with self._engine.device_lock():
            return self._tile(number).integer_sum(weights[:, self._slices[number]])

    def _tile_n_balls(self, number):
        with self._engine.device_lock():
            return self._tile(number).n_balls()

    def _tile_totals(self, number, numbers):
        with self._engine.device_lock():
            return self._tile(number).totals(numbers)

    def _tile(self, number):
        """The balls of one tile, which are kept if all fit in memory."""
        if number in self._tiles:
            return self._tiles[number]
        points = self._slices[number]
        self_index = self._self_index
        if self_index is not None:
            self_index = self_index[points]
        tile = self._engine.balls(
            self._space, self._points[points], self._radius, self_index
        )
        if self._keeps_tiles:
            self._tiles[number] = tile
        return tile


def _working_bytes():
    """Bytes of scikit-learn's `working_memory`."""
    return get_config()["working_memory"] * 2**20
