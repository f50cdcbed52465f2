"""Distances to neighbours: players ranked by distance, and label counts inside a radius.

One engine a file, the same functions in each; `get_engine` chooses. An engine has

- ``rank_tile_size(n_players, n_judges, n_features, workers, max_rank)`` and
  ``ball_tile_size(n_players, n_judges, workers)``: judges that one task should take;
- ``rank_values(space, Q, own, max_rank, consume)``: hands ``consume`` the players by distance;
- ``Strips(labels, n_classes)`` and ``ball_values(space, strips, Q, radius, own, weigh)``: counts of
  each class in every ball, and the sum of the weights of the balls that each player is in;
- where orders should not leave a device, ``class_values(space, Q, own, game, labels, class_counts,
  codes, weights)``: the values of the classification game of `KNNShapleyValuer` in one go.

An exact engine gives what float64 distances of the rows would give: it decides again, from the
rows, what its products cannot tell apart (`_settle`), and balls are closed. `_numba.py` documents
the arguments; tests/neighbors run on every exact engine that is installed. Players are a `Space`,
or a `BlockSpace` where they are read block by block (`make_space`).
"""

from importlib import import_module

from ._block_space import make_space
from ._rows import Rows, as_rows, concatenate_rows, read_rows
from ._space import METRICS, Space

__all__ = [
    "APPROXIMATE",
    "DEVICES",
    "ENGINES",
    "METRICS",
    "Rows",
    "Space",
    "as_rows",
    "check_engine",
    "concatenate_rows",
    "get_engine",
    "make_space",
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
    engine : module or object
        With the functions that the docstring of this package lists.

    Raises
    ------
    ImportError
        If the engine's library is not installed; the message has the pip command.
    ValueError
        If the engine cannot work on the device.

    Examples
    --------
    >>> from skvalue.neighbors import get_engine
    >>> get_engine("auto").__name__
    'skvalue.neighbors._numba'
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
    return module if name == "numba" else module.make_engine(device)


def check_engine(name, device, X, metric):
    """Refuse, before work starts, an engine that is missing or cannot take X.

    Parameters
    ----------
    name, device : str
        As in `get_engine`.
    X : ndarray or Rows
        The players.
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
