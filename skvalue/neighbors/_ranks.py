"""Rows in order of distance from points, for any engine."""

from typing import NamedTuple

import numpy as np
from sklearn import get_config

from .._utils.parallel import tiles

# Memory of a task on rows that are read block by block: bytes of a row for its records,
# places and values, beside one key for each point, and one that is sorted.
_TASK_BYTES = 45


class Order(NamedTuple):
    """Rows in order of distance from some points.

    Parameters
    ----------
    rows : ndarray of int of shape (n_points, n_sorted)
        ``rows[v, :n_ranked[v]]`` are the rows from the nearest to the farthest; ``~i``
        in place of ``i`` says that row ``i`` is tied with the one before it.
    n_ranked : ndarray of int of shape (n_points,)
        Number of rows that are ranked: `max_rank`, plus those tied with the last of
        them.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.neighbors import get_engine, make_space, ranks
    >>> space = make_space(np.array([[2.0], [0.0], [1.0]]), "euclidean")
    >>> [(_, order)] = ranks(get_engine("native"), space, np.array([[0.5]]))

    Rows 1 and 2 are tied.

    >>> order.rows.tolist(), order.n_ranked.tolist()
    ([[1, -3, 0]], [3])
    """

    rows: np.ndarray
    n_ranked: np.ndarray


def most_rank_workers(n_rows, itemsize):
    """Number of tasks that have room in the working memory, for rows in blocks.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    itemsize : int
        Number of bytes of a key, which has the dtype of the rows.

    Returns
    -------
    most : int
        The number; at least 1.

    Examples
    --------
    >>> from skvalue.neighbors import most_rank_workers
    >>> most_rank_workers(n_rows=10_000_000, itemsize=4)
    2
    """
    return max(1, int(_working_memory() // (n_rows * (_TASK_BYTES + 2 * itemsize))))


def rank_tiles(
    engine,
    n_rows,
    n_points,
    n_features,
    max_rank=None,
    workers=1,
    block_itemsize=None,
):
    """Cut the points into tiles, one for each task.

    Parameters
    ----------
    engine : object
        An engine, see `get_engine`.
    n_rows, n_points, n_features : int
        Sizes of the problem.
    max_rank : int, default=None
        Number of ranks needed; all by default.
    workers : int, default=1
        Number of tasks that run at the same time.
    block_itemsize : int, default=None
        Number of bytes of a key, for rows that are read block by block: the keys of all
        tasks have to fit in the working memory.

    Returns
    -------
    tiles : list of slices
        The tiles.

    Examples
    --------
    >>> from skvalue.neighbors import get_engine, rank_tiles
    >>> rank_tiles(get_engine("native"), n_rows=100, n_points=10, n_features=2)
    [slice(0, 10, None)]
    """
    max_rank = max_rank or n_rows
    size = engine.rank_tile_size(n_rows, n_points, n_features, workers, max_rank)
    if block_itemsize is not None:
        room = _working_memory() / workers / n_rows - _TASK_BYTES
        size = min(size, max(1, int(room // block_itemsize) - 1))
    return tiles(n_points, size)


def _working_memory():
    """Scikit-learn's working memory, in bytes."""
    return get_config()["working_memory"] * 2**20


def ranks(engine, space, points, self_index=None, max_rank=None):
    """Rank the rows for any number of points, tile by tile.

    Parameters
    ----------
    engine : object
        An engine, see `get_engine`.
    space : Space
        The rows.
    points : ndarray or Rows of shape (n_points, d)
        The points.
    self_index : ndarray of int of shape (n_points,), default=None
        Row that is not ranked for the point; -1 for none.
    max_rank : int, default=None
        Number of ranks needed; all by default.

    Yields
    ------
    places : ndarray of int
        Positions of the points of a block.
    order : Order
        The rows in order of their distance from these points. The arrays are
        overwritten by the next step.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.neighbors import get_engine, make_space, ranks
    >>> space = make_space(np.array([[2.0], [0.0], [1.0]]), "euclidean")
    >>> [(places, order)] = ranks(get_engine("native"), space, np.array([[0.1], [2.1]]))
    >>> places.tolist(), order.rows.tolist()
    ([0, 1], [[1, 2, 0], [0, 2, 1]])
    """
    n_features = points.shape[1]
    for tile in rank_tiles(engine, len(space), len(points), n_features, max_rank):
        tile_index = None if self_index is None else self_index[tile]
        places = np.arange(tile.start, tile.stop)
        blocks = engine.ranks(space, points[tile], tile_index, max_rank)
        for block, order in blocks:
            yield places[block], order
