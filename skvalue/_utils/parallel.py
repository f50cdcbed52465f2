"""Tiles of a computation, and ordered maps over tasks that use one BLAS thread each."""

import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from threading import Lock

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController


def tiles(n, size):
    """Slices that cover ``range(n)``, of nearly equal length, at most ``size``.

    >>> tiles(10, 4)
    [slice(0, 4, None), slice(4, 8, None), slice(8, 10, None)]
    """
    count = -(-n // size)
    step = -(-n // max(count, 1))
    return [slice(start, min(start + step, n)) for start in range(0, n, max(step, 1))]


@lru_cache(maxsize=1)
def _controller(n_modules):
    """The thread pools of this process; cached because finding them takes milliseconds."""
    return ThreadpoolController()


def _thread_pools():
    return _controller(len(sys.modules))  # a new module may have loaded a new library


def _configured():
    """Whether the caller set a joblib backend or number of jobs, or is itself a joblib task."""
    backend, n_jobs = get_active_backend()
    return n_jobs not in (None, 1) or bool(backend.nesting_level) or _of_a_cluster(backend)


def _of_a_cluster(backend):
    """Whether the backend uses all of its workers by default, as those of clusters do."""
    return getattr(backend, "default_n_jobs", 1) != 1


def n_workers(n_jobs):
    """Number of workers for ``n_jobs``; None means the number of threads that BLAS would use.

    A joblib context (``parallel_config``) takes precedence. The BLAS limit reflects the limits that
    process pools set for their workers.
    """
    backend, given = get_active_backend()
    if n_jobs is None and given in (None, 1) and _of_a_cluster(backend):
        return backend.effective_n_jobs(backend.default_n_jobs)
    if n_jobs is not None or _configured():
        return effective_n_jobs(n_jobs)
    libraries = _thread_pools().info()
    threads = [lib["num_threads"] for lib in libraries if lib["user_api"] == "blas"]
    return max(threads, default=1)


def ordered_map(function, tasks, n_jobs=None, n_tasks=None):
    """Yield ``function(*task)`` for every task, in order, computed by ``n_jobs`` workers.

    Tasks are drawn when a worker is free; a generator needs ``n_tasks``. Each uses one BLAS thread,
    in a thread of this process (not joblib's: it polls every 10 ms) unless a joblib context is set.
    """
    workers = min(n_workers(n_jobs), len(tasks) if n_tasks is None else n_tasks)
    with one_blas_thread():
        if workers <= 1:
            for task in tasks:
                yield function(*task)
                del task  # free it before the next one is made
        elif _configured():
            yield from joblib_map(function, tasks, n_jobs, prefer="threads")
        else:
            yield from _threaded(function, tasks, workers)


def thread_map(function, tasks, n_jobs=None):
    """As `ordered_map`, but always in threads of this process, for tasks that share memory."""
    workers = min(n_workers(n_jobs), len(tasks))
    with one_blas_thread():
        if workers > 1:
            yield from _threaded(function, tasks, workers)
        else:
            yield from (function(*task) for task in tasks)


def joblib_map(function, tasks, n_jobs=None, prefer=None):
    """Yield ``function(*task)`` for every task, in order, on joblib's backend.

    A backend that returns all results at once (Ray, multiprocessing) gets a few tasks per worker at
    a time: this bounds memory, and a fit can be monitored and stopped.
    """
    backend, _ = get_active_backend(prefer=prefer)
    if getattr(backend, "supports_return_generator", False):
        parallel = Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator")
        # A fit that ends early, such as at its `tol`, needs no advice on cancelled tasks. (Filters
        # of warnings are changed by the threads of tasks.)
        parallel._warn_exit_early = lambda: None
        yield from parallel(delayed(function)(*task) for task in tasks)
        return
    tasks = iter(tasks)
    with Parallel(n_jobs=n_jobs, prefer=prefer) as parallel:
        while some := list(islice(tasks, 4 * effective_n_jobs(n_jobs))):
            yield from parallel(delayed(function)(*task) for task in some)


def _threaded(function, tasks, workers):
    pool = ThreadPoolExecutor(workers)
    tasks, running = iter(tasks), deque()
    try:
        while True:
            # At most one task ahead of the consumer, which bounds memory.
            for task in islice(tasks, workers + 1 - len(running)):
                running.append(pool.submit(function, *task))
            if not running:
                return
            yield running.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def background_map(function, items, threaded=True):
    """Yield ``function(*item)`` for every item, computed in a second thread, one item ahead.

    The number of BLAS threads is not changed: see `one_blas_thread`.
    """
    if threaded:
        return _threaded(function, items, workers=1)
    return (function(*item) for item in items)


class _OneBlasThread:
    """Context in which BLAS uses one thread; the setting is one for the whole process.

    The first thread that enters sets it and the last one that leaves restores it: if each thread
    restored what it found, overlapping fits could leave BLAS at one thread.
    """

    def __init__(self):
        self._lock, self._users, self._before = Lock(), 0, {}

    @contextmanager
    def __call__(self):
        with self._lock:
            self._users += 1
            for library in _libraries("blas"):
                if library.filepath not in self._before:  # may have been loaded since
                    self._before[library.filepath] = library, library.num_threads
                    _set_threads(library, 1)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    for library, number in self._before.values():
                        _set_threads(library, number)
                    self._before.clear()


def _libraries(user_api):
    return _thread_pools().select(user_api=user_api).lib_controllers


def _set_threads(library, number):
    # Since threadpoolctl 3.7 one thread controls the number; calls of other threads have no effect.
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(number)
    release(force=True)


one_blas_thread = _OneBlasThread()  # a context manager


@contextmanager
def one_thread():
    """Context in which BLAS uses one thread, and OpenMP one for calls from this thread."""
    with one_blas_thread(), _thread_pools().select(user_api="openmp").limit(limits=1):
        yield


def may_overlap(n_jobs):
    """Whether ``n_jobs`` allows a second thread and no joblib context is set."""
    return n_workers(n_jobs) > 1 and not _configured()


def row_map(function, X, n_jobs=None):
    """``function(X)`` of a row-wise function, on blocks of rows in threads of this process."""
    size = max(1, 2**22 // max(X[:1].nbytes, 1))
    blocks = [(X[part],) for part in tiles(len(X), size)]
    workers = min(n_workers(n_jobs), len(blocks))
    if workers <= 1:
        return function(X)
    return np.concatenate(list(_threaded(function, blocks, workers)))
