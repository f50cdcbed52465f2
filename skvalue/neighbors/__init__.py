"""Rows by distance from points, and label counts within a radius.

A statistic is returned, and calls nobody back:

- ``balls(engine, space, points, radius)`` has ``counts``, (n_classes, n_points), and
  ``sum(weights)``, which adds up for each row the weights of the balls that it is in;
- ``ranks(engine, space, points)`` yields rows in order of distance, for a few points at a time.

`ball_parts` and `rank_parts` are the points that one task should take. `make_space` prepares rows
for a metric; `get_engine` chooses what computes. An engine, one a file, has ``balls`` and ``ranks``
of one tile of points, ``ball_tile_size`` and ``rank_tile_size``, and ``turn``, the context of a
task: where a device holds one tile at a time, other threads wait for it.

An exact engine gives what float64 distances of the rows would give: it decides again, from the
rows, what its products cannot tell apart (`_exact`), and balls are closed. tests/neighbors run on
every exact engine that is installed.
"""

from importlib import import_module

from ._balls import ball_parts, balls
from ._block_space import make_space
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
    "as_rows",
    "ball_parts",
    "balls",
    "check_engine",
    "concatenate_rows",
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
        "auto" is "torch" where device="cuda" asks for a GPU, else "numba", the fastest exact engine
        on a CPU.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the engine works. "auto" is the GPU where the engine is named, uses one and sees one.

    Returns
    -------
    engine : object
        With the methods that the docstring of this package lists.

    Raises
    ------
    ImportError
        If the engine's library is not installed; the message has the pip command.
    ValueError
        If the engine cannot work on the device.

    Examples
    --------
    >>> from skvalue.neighbors import get_engine
    >>> get_engine("auto").name
    'numba'
    """
    if name == "auto":
        name = "torch" if device == "cuda" else "numba"
    if name == "numba" and device == "cuda":
        raise ValueError("engine='numba' works on the CPU. Got device='cuda': pass engine='torch'.")
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
    """Refuse, before work starts, an engine that is missing or cannot take X.

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
        If the engine cannot take X or the metric.
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
