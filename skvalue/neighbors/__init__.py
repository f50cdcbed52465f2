"""Distances to neighbours: players ranked by distance, and label counts inside a radius.

One engine a file, the same functions in each; `get_engine` chooses.
"""

from importlib import import_module

from ._space import METRICS, Space

__all__ = ["ENGINES", "METRICS", "Space", "get_engine"]

ENGINES = {"numba": "skvalue.neighbors._numba"}


def get_engine(name):
    """Return the module of an engine.

    Parameters
    ----------
    name : {"auto", "numba"}
        "auto" takes the fastest exact engine for data in the memory of this process.

    Returns
    -------
    engine : module
        With the functions `rank_values` and `ball_values`.
    """
    return import_module(ENGINES["numba" if name == "auto" else name])
