"""Rows by distance from points, and label counts within a radius.

Functions return statistics and take no callbacks:

- ``balls(engine, space, points, radius)`` has ``counts``, of shape (n_classes,
  n_points), and ``sum(weights)``, which sums for each row the weights of the balls that
  contain it;
- ``ranks(engine, space, points)`` yields rows in order of distance, for a few points at
  a time.

`ball_tiles` and `rank_tiles` cut the points into tiles, one for each task, and
`most_rank_workers` says how many tasks on rows of a file have room. `make_space`
prepares rows for a metric; `get_engine` returns the engine that computes. Each engine
is in a separate file, with ``balls`` and ``ranks`` of one tile of points,
``ball_tile_size``, ``rank_tile_size``, ``device_lock``, the context manager of a task
(where a device can process one tile at a time, other threads wait), and ``halving``,
which yields slices of the points of a task, and their halves if memory is short.

An exact engine returns what float64 distances of the rows would give: pairs that are
within the rounding error of the matrix product are compared again from the rows
(`_exact`). Balls are closed. tests/neighbors run on every exact engine that is
installed.
"""

from .._utils.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
