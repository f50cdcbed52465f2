"""Tiles and the ordered map: order, workers, back ends, early ends."""

import math
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import csr_array
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from skvalue import (
    DataOOBValuer,
    DataShapleyValuer,
    KNNShapleyValuer,
    TKNNShapleyValuer,
)
from skvalue._utils.parallel import (
    background_map,
    n_workers,
    one_blas_thread,
    one_thread,
    ordered_map,
    row_map,
    tiles,
)

from ..cases import one_of_each


@pytest.mark.parametrize(("n", "size"), [(1, 5), (5, 5), (11, 5), (100, 7), (0, 3)])
def test_tiles_cover_evenly(n, size):
    slices = tiles(n, size)
    numbers = [i for tile in slices for i in range(n)[tile]]
    assert numbers == list(range(n))
    lengths = [tile.stop - tile.start for tile in slices]
    assert max(lengths, default=0) <= size
    assert max(lengths, default=0) - min(lengths, default=0) <= len(lengths)
    assert len(slices) == math.ceil(n / size)


def slow_first(i):
    time.sleep(0.05 if i == 0 else 0)
    return i


@pytest.mark.parametrize("n_jobs", [1, 2, 3, None])
def test_results_come_in_order(n_jobs):
    tasks = [(i,) for i in range(20)]
    assert list(ordered_map(slow_first, tasks, n_jobs)) == list(range(20))


def test_tasks_run_beside_each_other():
    # A deadlock if they ran one after the other.
    list(ordered_map(threading.Barrier(2, timeout=120).wait, [(), ()], 2))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tasks_have_the_settings_of_the_caller(n_jobs):
    with config_context(working_memory=7, assume_finite=True):
        expected = get_config()
        settings = list(ordered_map(get_config, [()] * 4, n_jobs))
        settings += background_map(get_config, [()] * 4, n_jobs)
    assert settings == [expected] * 8


def blas_threads():
    """Threads of the BLAS that numpy uses; an engine's library may bring another."""
    blas = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    return max(lib["num_threads"] for lib in blas if "faiss" not in lib["filepath"])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_tasks_have_one_blas_thread_and_the_old_number_is_restored(n_jobs):
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert list(ordered_map(blas_threads, [()] * 4, n_jobs)) == [1] * 4
        assert blas_threads() == before


def test_contexts_that_overlap_restore_the_old_number():
    with threadpool_limits(2, user_api="blas"):
        first = one_blas_thread()
        second = one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == 1  # the second is still there
        second.__exit__(None, None, None)
        assert blas_threads() == 2


def test_contexts_that_overlap_in_threads_restore_the_old_number():
    """threadpoolctl itself lets one thread at a time set the number."""
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        context = one_blas_thread()
        pool.submit(context.__enter__).result()
        with one_thread():
            pool.submit(context.__exit__, None, None, None).result()
            assert blas_threads() == 1
        assert blas_threads() == 2


def test_a_library_that_comes_later_is_limited_too(monkeypatch):
    class Library:
        def __init__(self, name):
            self.filepath = name
            self.num_threads = 4

        def set_num_threads(self, number):
            self.num_threads = number

    libraries = [Library("first")]
    selection = Mock(lib_controllers=libraries)
    monkeypatch.setattr(ThreadpoolController, "select", lambda *_, **__: selection)

    def numbers():
        return [library.num_threads for library in libraries]

    with one_blas_thread():
        libraries.append(Library("second"))
        with one_blas_thread():
            assert numbers() == [1, 1]
        assert numbers() == [1, 1]
    assert numbers() == [4, 4]


def test_workers_follow_blas_joblib_and_n_jobs():
    with threadpool_limits(1, user_api="blas"):
        assert n_workers(None) == 1
        assert n_workers(3) == 3
        with parallel_config(n_jobs=2):
            assert n_workers(None) == 2


def test_results_do_not_pile_up_and_an_early_end_stops_the_work():
    started = []
    results = ordered_map(started.append, [(i,) for i in range(100)], 2)
    next(results)
    time.sleep(0.1)
    results.close()
    time.sleep(0.1)
    assert len(started) <= 5


def fail(i):
    if i == 3:
        raise RuntimeError("task 3")
    return i


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_of_tasks_are_raised(n_jobs):
    with pytest.raises(RuntimeError, match="task 3"):
        list(ordered_map(fail, [(i,) for i in range(9)], n_jobs))


@pytest.mark.parametrize(
    ("backend", "valuer"),
    one_of_each(
        ["threading", "multiprocessing", "loky"],
        [
            KNNShapleyValuer(),
            DataOOBValuer(n_estimators=20, random_state=0),
            TKNNShapleyValuer(),
        ],
    ),
)
def test_a_joblib_back_end_gives_the_same_values(valuer, backend, rng):
    X = rng.normal(size=(300, 3))
    y = rng.integers(0, 2, 300)
    expected = clone(valuer).fit(X, y).values_
    with parallel_config(backend=backend, n_jobs=2):
        values = clone(valuer).fit(X, y).values_
    np.testing.assert_allclose(values, expected, atol=1e-15)


def test_row_map_is_the_function_of_all_rows(rng):
    X = rng.normal(size=(5000, 300))
    with threadpool_limits(2, user_api="blas"):
        norms = row_map(lambda block: np.vecdot(block, block), X)
    np.testing.assert_array_equal(norms, np.vecdot(X, X))


@pytest.mark.slow
@pytest.mark.parametrize(
    "valuer",
    [
        KNNShapleyValuer(),
        TKNNShapleyValuer(0.5),
        DataShapleyValuer(DecisionTreeClassifier(random_state=0), max_evaluations=200),
        DataOOBValuer(n_estimators=20),
    ],
    ids=["knn", "tknn", "shapley", "oob"],
)
def test_ray_gives_the_same_values(valuer, rng, monkeypatch):
    ray = pytest.importorskip("ray")
    from ray.util.joblib import register_ray

    register_ray()
    X = rng.normal(size=(60, 3))
    y = rng.integers(0, 2, 60)
    valuer = clone(valuer)
    if "random_state" in valuer.get_params():
        valuer.set_params(random_state=0)
    expected = valuer.fit(X, y).values_
    # Workers find this package as this process does.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with parallel_config(backend="ray", n_jobs=2):
            values = valuer.fit(X, y).values_
    finally:
        ray.shutdown()
    np.testing.assert_allclose(values, expected, atol=1e-15)


def leave_a_mark(folder, i):
    (folder / str(i)).touch()
    return i


def test_a_back_end_without_a_generator_gets_few_tasks_at_a_time(tmp_path):
    with parallel_config(backend="multiprocessing", n_jobs=2):
        results = ordered_map(leave_a_mark, [(tmp_path, i) for i in range(100)])
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        results.close()
    assert 3 <= len(list(tmp_path.iterdir())) <= 8


CLUSTER = pytest.mark.xdist_group("cluster")


@pytest.fixture(
    scope="module", params=[False, pytest.param(True, marks=pytest.mark.slow)]
)
def cluster(request):
    """Two workers of Dask, in this process or in processes: whether they are such."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            processes=request.param,
        ) as cluster,
        distributed.Client(cluster),  # which joblib finds
    ):
        yield request.param


@CLUSTER
@pytest.mark.parametrize(
    ("kind", "valuer"),
    [
        ("memory", KNNShapleyValuer(task="regression")),
        ("memory", TKNNShapleyValuer(0.5)),
        ("dask", KNNShapleyValuer()),
        ("file", TKNNShapleyValuer(0.5)),
        ("sparse", KNNShapleyValuer()),
    ],
)
def test_a_dask_cluster_gives_the_same_values(valuer, kind, cluster, rng, tmp_path):
    import dask.array as da

    X = rng.normal(size=(1000, 8))
    y = rng.integers(0, 2, 1000)
    X_val = rng.normal(size=(200, 8))
    y_val = y[:200]
    expected = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    np.save(tmp_path / "X.npy", X)
    rows = {
        "memory": X,
        "dask": da.from_array(X, chunks=(300, 8)),
        "file": np.load(tmp_path / "X.npy", mmap_mode="r"),
        "sparse": csr_array(X),
    }[kind]
    with parallel_config(backend="dask"):
        values = valuer.fit(rows, y, X_val=X_val, y_val=y_val).values_
    np.testing.assert_allclose(values, expected, atol=1e-13)


def worker(_):
    time.sleep(0.1)
    return os.getpid(), threading.get_ident()


@CLUSTER
def test_tiles_are_spread_over_a_dask_cluster(cluster):
    with parallel_config(backend="dask"):
        workers = set(ordered_map(worker, [(i,) for i in range(10)]))
        assert n_workers(None) == 2
    assert len(workers) == 2
    assert worker(0) not in workers
    other_processes = {process for process, _ in workers} - {os.getpid()}
    assert len(other_processes) == (2 if cluster else 0)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_come_while_items_are_made(n_jobs):
    threads = {"items": set(), "results": set()}

    def items():
        for i in range(20):
            threads["items"].add(threading.get_ident())
            yield (i,)

    def result(i):
        threads["results"].add(threading.get_ident())
        return slow_first(i)

    assert list(background_map(result, items(), n_jobs)) == list(range(20))
    assert (threads["items"] == threads["results"]) == (n_jobs == 1)
    assert list(background_map(result, [], n_jobs)) == []


def test_items_are_not_made_far_ahead_and_errors_come_through():
    n_made = 0

    def items():
        nonlocal n_made
        for i in range(100):
            n_made += 1
            yield (i,)

    results = background_map(lambda i: i, items(), 2)
    assert next(results) == 0
    assert n_made <= 2
    results.close()
    assert n_made <= 2
    with pytest.raises(ZeroDivisionError):
        list(background_map(lambda i: 1 / i, [(1,), (0,), (1,)], 2))


def test_a_second_thread_is_one_that_blas_or_joblib_leaves():
    def is_second():
        return next(background_map(threading.get_ident, [()])) != threading.get_ident()

    with threadpool_limits(2, user_api="blas"):
        assert is_second()
        with one_blas_thread():
            assert not is_second()
        with parallel_config(n_jobs=2):
            assert not is_second()
        assert blas_threads() == 2


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(), TKNNShapleyValuer(0.5)])
def test_steps_are_those_that_were_counted_whatever_else_computes(
    valuer, rng, monkeypatch
):
    """Another fit, in another thread or on the same GPU, changes what is free."""
    X = rng.normal(size=(300, 3))
    y = rng.integers(0, 2, 300)
    expected = clone(valuer).fit(X, y, X_val=X[:200], y_val=y[:200]).values_
    threads = iter(range(1, 1000))
    monkeypatch.setattr(
        ThreadpoolController,
        "info",
        lambda self: [{"user_api": "blas", "num_threads": next(threads)}],
    )
    valuer.fit(X, y, X_val=X[:150], y_val=y[:150])
    valuer.add_validation(X[150:200], y[150:200])
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)
    valuer.fit(X, y, X_val=X[:200], y_val=y[:200])
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)
    assert next(threads) > 3  # the number was looked up, and changed


def test_fits_in_threads_have_the_same_values(rng):
    X = rng.normal(size=(600, 20))
    y = rng.integers(0, 2, 600)
    sizes = [250, 600, 350, 450] * 2

    def fit(n):
        valuer = KNNShapleyValuer()
        return valuer.fit(X[:n], y[:n], X_val=X[:100], y_val=y[:100]).values_

    with threadpool_limits(2, user_api="blas"):
        expected = [fit(n) for n in sizes]
        with ThreadPoolExecutor(3) as pool:
            in_threads = list(pool.map(fit, sizes))
        assert blas_threads() == 2
    for values, expected_values in zip(in_threads, expected):
        np.testing.assert_allclose(values, expected_values, atol=1e-12)
