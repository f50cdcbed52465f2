"""Common to the neighbour methods: checks of the engine and of the rows, and the cost of a fit."""

import tracemalloc
from dataclasses import replace
from itertools import chain
from time import perf_counter

import numpy as np
from sklearn.utils import Bunch

from .._utils.parallel import n_workers
from .._utils.sklearn import HasMethods, StrOptions
from ..base import make_problem
from ..neighbors import APPROXIMATE, DEVICES, ENGINES, Rows, check_engine, get_engine

_LONG_ENOUGH = 0.1  # seconds, at least, by which the two fits of an estimate differ

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


def estimated_cost(valuer, X, y, X_val, y_val, **metadata):
    """What an exact fit costs, see `KNNShapleyValuer.estimate_cost`.

    Seconds, and bytes of the tiles that are computed at the same time, are linear in the number of
    validation points. Both lines go through two fits with some of the points of the first split.
    """
    start = perf_counter()
    problem = make_problem(valuer, X, y, X_val, y_val, **metadata)
    attributes = valuer._prepare(problem)
    seconds, release = perf_counter() - start, valuer._release(problem, attributes)
    points, workers = [len(split.points) for split in problem.splits], n_workers(valuer.n_jobs)
    _, n_tasks = valuer._parts(problem, attributes, release)
    at_once = min(points[0], workers * -(-sum(points) // n_tasks))

    def measured(count):
        """Seconds and bytes of a fit with evenly spaced points."""
        split = problem.splits[0]
        some = split.points[np.linspace(0, points[0] - 1, count).astype(np.int64)]
        few = replace(problem, splits=(replace(split, points=some),))
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        start = perf_counter()
        valuer._combine(few, attributes, valuer._parts(few, attributes, release)[0])
        seconds = perf_counter() - start
        return np.array([seconds, tracemalloc.get_traced_memory()[1] - before])

    fewest = min(points[0], 2 * workers)
    measured(fewest)  # compiles, and touches memory for the first time
    traced = tracemalloc.is_tracing()
    if not traced:
        tracemalloc.start()
    try:
        count, least = fewest, measured(fewest)
        most = least
        while count < points[0] and most[0] - least[0] < max(least[0], _LONG_ENOUGH):
            count = min(points[0], 4 * count)
            most = measured(count)
    finally:
        if not traced:
            tracemalloc.stop()
    between = np.maximum([count - fewest, min(count, at_once) - fewest], 1)
    each, memory = np.maximum(most - least, 0) / between
    rows = np.array([problem.n_rows(split) for split in problem.splits])
    seconds += len(rows) * max(least[0] - fewest * each, 0) + each * (rows / rows[0]) @ points
    return Bunch(
        seconds=float(seconds),
        n_points=sum(points),
        seconds_per_point=float(seconds / sum(points)),
        memory=int(least[1] + memory * max(at_once - fewest, 0)),
        n_players=problem.n_players,
        solver=get_engine(valuer.engine, valuer.device).name,
    )
