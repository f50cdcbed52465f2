"""Rows by distance from points, and label counts within a radius.

Functions return statistics and take no callbacks:

- ``balls(engine, space, points, radius)`` has ``counts``, of shape (n_classes, n_points), and
  ``sum(weights)``, which sums for each row the weights of the balls that contain it;
- ``ranks(engine, space, points)`` yields rows in order of distance, for a few points at a time.

`ball_parts` and `rank_parts` cut the points into tiles, one for each task. `make_space` prepares
rows for a metric; `get_engine` returns the engine that computes. Each engine is in a separate file,
with ``balls`` and ``ranks`` of one tile of points, ``ball_tile_size``, ``rank_tile_size``, and
``device_lock``, the context manager of a task: where a device can process one tile at a time, other
threads wait.

An exact engine returns what float64 distances of the rows would give: pairs that are within the
rounding error of the matrix product are compared again from the rows (`_exact`). Balls are closed.
tests/neighbors run on every exact engine that is installed.
"""

from importlib import import_module

from ._balls import ball_parts, balls
from ._block_space import make_space
from ._copies import copy_clusters, copy_radius
from ._distances import append_columns, exact_distances
from ._ranks import Order, rank_parts, ranks
from ._rows import Rows, as_rows, concatenate_rows, read_rows
from ._space import METRICS, Space

__all__ = [
    "APPROXIMATE",
    "DEVICES",
    "ENGINES",
    "METRICS",
    "Order",
    "Rows",
    "Space",
    "append_columns",
    "as_rows",
    "ball_parts",
    "balls",
    "check_engine",
    "concatenate_rows",
    "copy_clusters",
    "copy_radius",
    "exact_distances",
    "get_engine",
    "make_space",
    "rank_parts",
    "ranks",
    "read_rows",
]

ENGINES = {
    "numba": "skvalue.neighbors._numba",
    "torch": "skvalue.neighbors._torch",
    "faiss": "skvalue.neighbors._faiss",
    "faiss-ivf": "skvalue.neighbors._faiss_ivf",
}
APPROXIMATE = {"faiss-ivf"}  # never chosen by "auto"
DEVICES = {"auto", "cpu", "cuda"}
_NEEDS = {"torch": ("torch", "torch"), "faiss": ("faiss", "faiss"), "faiss-ivf": ("faiss", "faiss")}


def get_engine(name, device="auto"):
    """Return an engine.

    Parameters
    ----------
    name : {"auto", "numba", "torch", "faiss", "faiss-ivf"}
        "auto" is "torch" if device="cuda", else "numba", the fastest exact engine on a CPU.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the engine computes. "auto" is the GPU if the engine is given by name, supports GPUs
        and finds one.

    Returns
    -------
    engine : object
        The methods are listed in the docstring of this package.

    Raises
    ------
    ImportError
        If the engine's library is not installed; the message contains the pip command.
    ValueError
        If the engine does not support the device.

    Examples
    --------
    >>> from skvalue.neighbors import get_engine
    >>> get_engine("auto").name
    'numba'
    """
    if name == "auto":
        name = "torch" if device == "cuda" else "numba"
    if name == "numba" and device == "cuda":
        raise ValueError("engine='numba' runs on the CPU. Got device='cuda': pass engine='torch'.")
    try:
        module = import_module(ENGINES[name])
    except ImportError as error:
        library, extra = _NEEDS.get(name, (None, None))
        if error.name != library:
            raise
        raise ImportError(
            f"engine={name!r} needs {library}, which is not installed: "
            f"pip install 'skvalue[{extra}]'",
            name=library,
        ) from error
    return module.make_engine(device)


def check_engine(name, device, X, metric):
    """Raise an error if the engine is not installed or does not support X.

    Parameters
    ----------
    name, device : str
        As in `get_engine`.
    X : ndarray or Rows
        The rows.
    metric : str or callable
        The metric.

    Raises
    ------
    ImportError
        If the engine's library is not installed.
    ValueError
        If the engine does not support X or the metric.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.neighbors import check_engine
    >>> check_engine("numba", "cpu", np.zeros((3, 2)), "euclidean")
    """
    get_engine(name, device)
    if name.startswith("faiss") and metric not in ("cosine", "euclidean"):
        raise ValueError(
            f"metric must be 'cosine' or 'euclidean' for engine={name!r}. Got {metric!r}."
        )
    if name == "auto" and device == "cuda":
        name = "torch"
    if not isinstance(X, Rows):
        return
    if X.is_sparse and name not in ("auto", "numba"):
        raise ValueError(f"engine={name!r} does not take sparse X: pass engine='numba'.")
    if name.startswith("faiss"):
        raise ValueError(
            f"engine={name!r} takes X in memory. Got rows in a file or a Dask array: pass "
            "engine='numba' or 'torch'."
        )
