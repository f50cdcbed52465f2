"""Common to the neighbour methods: the checks of the engine and of the rows."""

from itertools import chain

from .._utils.sklearn import HasMethods, StrOptions
from ..neighbors import APPROXIMATE, DEVICES, ENGINES, Rows, check_engine

ENGINE_CONSTRAINTS = {
    "engine": [StrOptions({"auto", *ENGINES} - APPROXIMATE)],
    "device": [StrOptions(DEVICES)],
    "embedding": [HasMethods(["fit", "transform"]), callable, None],
}


def check_neighbors(problem, engine, device, metric, private=False):
    """Check that the engine is installed and supports the rows; return if it is approximate."""
    check_engine(engine, device, problem.X, metric)
    if private and isinstance(problem.X, Rows):
        raise ValueError(
            "X must be dense and in memory with epsilon. Got sparse rows, rows in a file or a Dask "
            "array."
        )
    if private and (device == "cuda" or engine not in ("auto", "numba")):
        raise ValueError(
            f"epsilon needs engine='numba' or 'auto', on the CPU. Got engine={engine!r} and "
            f"device={device!r}."
        )
    return engine in APPROXIMATE


def started(tasks):
    """The same tasks; the first is created now, so that all threads compute its norms."""
    return chain([next(tasks)], tasks)
