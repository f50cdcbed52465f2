"""Passes over balls: weights that need all counts first, and rows that count in few balls."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn import get_config
from sklearn.metrics import pairwise_distances

__all__ = ["count_capped", "weigh_after_counting", "weigh_capped"]


class _Abandoned(Exception):
    """The weights never came."""


def weigh_after_counting(engine, space, strips, X_val, radius, parts, workers, settle):
    """Count in all balls, then weigh: one pass over the distances.

    Every tile of validation points is a thread that pauses between its counts and its weights,
    with one bit a row and point in hand. Where these would take more than scikit-learn's working
    memory, there are two passes. Limit BLAS to one thread around it.

    Parameters
    ----------
    engine, space, strips, X_val, radius
        As for `ball_values` of the engine.
    parts : list of slices
        The tiles.
    workers : int
        How many of them may compute at a time.
    settle : callable
        From the counts, (n_codes, n_validation), to weights of the same shape.

    Returns
    -------
    values : ndarray of shape (n,)
        Sums of weights over the balls that a row is in.
    """
    counts = np.zeros((strips.n_classes, len(X_val)), dtype=np.int64)

    def sums(part, weigh):
        return engine.ball_values(space, strips, X_val[part], radius, None, weigh)

    if len(space) * len(X_val) / 8 <= get_config()["working_memory"] * 2**20:
        return _paused(sums, counts, parts, workers, settle)
    with ThreadPoolExecutor(workers) as pool:
        for part, tile in zip(parts, pool.map(lambda part: sums(part, np.zeros_like), parts)):
            counts[:, part] = tile[1]
        weights = settle(counts)
        return sum(pool.map(lambda part: sums(part, lambda _: weights[:, part])[0], parts))


def _paused(sums, counts, parts, workers, settle):
    slots, counted, ready = Semaphore(workers), Semaphore(0), Event()
    weights, failures = [], []

    def run(part):
        def weigh(tile):
            counts[:, part] = tile
            counted.release()
            slots.release()
            ready.wait()
            slots.acquire()
            if not weights:
                raise _Abandoned
            return weights[0][:, part]

        with slots:
            try:
                return sums(part, weigh)[0]
            except _Abandoned:
                return 0.0
            except BaseException as error:
                failures.append(error)
                counted.release()
                return 0.0

    with ThreadPoolExecutor(len(parts)) as pool:
        tasks = [pool.submit(run, part) for part in parts]
        try:
            for _ in parts:
                counted.acquire()
            if not failures:
                weights.append(settle(counts))
        finally:
            ready.set()
        values = sum(task.result() for task in tasks)
    if failures:
        raise failures[0]
    return values


def _pair_distances(X, X_val, metric):
    """Distances in float64, of which no row's depend on what other rows there are.

    A matrix product may round a row by its place among the others, and rounding decides ties.
    """
    X = X.astype(np.float64)
    metric = "euclidean" if metric == "l2" else metric
    if issparse(X) or metric not in ("cosine", "euclidean"):
        return pairwise_distances(X, X_val, metric=metric)
    return np.nan_to_num(cdist(X, X_val, metric), nan=1.0)  # cosines with a row of zeros


def capped_balls(X, X_val, radius, metric, cap):
    """Yield slices of rows and the balls each counts in: those of its nearest points, at most cap.

    A row chooses by its own distances to public points, the earlier of two at the same.
    """
    X_val = X_val.astype(np.float64)
    closed = radius + 1e-12 if metric == "cosine" else radius * (1 + 1e-12)
    step = max(1, int(get_config()["working_memory"] * 2**20 // (64 * len(X_val))))
    for start in range(0, len(X), step):
        part = slice(start, min(start + step, len(X)))
        distances = _pair_distances(X[part], X_val, metric)
        inside = distances <= closed
        distances[~inside] = np.inf
        nearest = np.argsort(distances, axis=1, kind="stable")[:, :cap]
        chosen = np.zeros_like(inside)
        np.put_along_axis(chosen, nearest, True, axis=1)
        yield part, chosen & inside


def count_capped(X, y, X_val, radius, metric, cap, n_codes):
    """Numbers of rows of every code that count in every ball, (n_codes, n_validation)."""
    counts = np.zeros((n_codes, len(X_val)), dtype=np.int64)
    for part, inside in capped_balls(X, X_val, radius, metric, cap):
        for code in range(n_codes):
            counts[code] += inside[y[part] == code].sum(axis=0)
    return counts


def weigh_capped(X, y, X_val, radius, metric, cap, weights):
    """Sums of weights, (n_codes, n_validation), over the balls that every row counts in."""
    values = np.empty(len(X))
    for part, inside in capped_balls(X, X_val, radius, metric, cap):
        values[part] = np.einsum("iv,iv->i", inside, weights[y[part]])
    return values
