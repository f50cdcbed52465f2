"""Fixed tiles, an ordered map over them, one BLAS thread a task."""

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController


def tiles(n, size):
    """Slices that cover ``range(n)``, nearly equal and at most ``size`` long.

    Examples
    --------
    >>> tiles(10, 4)
    [slice(0, 4, None), slice(4, 8, None), slice(8, 10, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def n_workers(n_jobs, controller=None):
    """Workers for ``n_jobs``; None means the threads that BLAS would take here.

    A joblib context (``parallel_config``) and the limits that process pools set are respected,
    since both show in the number of threads that BLAS is allowed.
    """
    backend, configured = get_active_backend()
    if n_jobs is not None or configured not in (None, 1) or backend.nesting_level:
        return effective_n_jobs(n_jobs)
    controller = ThreadpoolController() if controller is None else controller
    threads = [lib["num_threads"] for lib in controller.info() if lib["user_api"] == "blas"]
    return max(threads, default=1)


def ordered_map(function, tasks, n_jobs=None):
    """Yield ``function(*task)`` for every task, in order, computed by ``n_jobs`` workers.

    Threads of this process unless the caller chose another joblib back end. The results do not
    depend on ``n_jobs``: tasks are fixed by the caller, and each runs on one BLAS thread.
    """
    controller = ThreadpoolController()
    workers = n_workers(n_jobs, controller)
    with controller.limit(limits=1, user_api="blas"):
        if workers == 1:
            for task in tasks:
                yield function(*task)
            return
        parallel = Parallel(n_jobs=workers, prefer="threads", return_as="generator")
        results = parallel(delayed(function)(*task) for task in tasks)
        try:
            yield from results
        finally:
            results.close()
