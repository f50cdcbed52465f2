"""What fits of the neighbour methods cost, estimated from a few validation points."""

import time
import tracemalloc
from threading import Lock

import numpy as np
import pytest
from problems import Problem
from scipy import sparse
from sklearn import config_context

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.neighbors import get_engine, most_rank_workers, rank_tiles
from skvalue.privacy import Ledger

KEYS = {"seconds", "n_points", "seconds_per_point", "memory", "n_players", "solver"}


def make_problem(rng, n=60, n_points=30):
    X = rng.normal(size=(n, 3))
    X_val = rng.normal(size=(n_points, 3))
    y = (X[:, 0] > 0).astype(int)
    return Problem(X, y, X_val, (X_val[:, 0] > 0).astype(int))


def cost_of(valuer, problem, **options):
    return valuer.estimate_cost(*problem.rows, **problem.points, **options)


# What is estimated --------------------------------------------------------------------


@pytest.fixture(params=["knn", "hard", "torch", "tknn"])
def valuer(request):
    if request.param == "torch":
        pytest.importorskip("torch")
        return KNNShapleyValuer(max_rank=10, engine="torch", device="cpu")
    if request.param == "hard":
        return KNNShapleyValuer(utility="hard")
    return KNNShapleyValuer() if request.param == "knn" else TKNNShapleyValuer()


def test_a_cost_has_numbers_of_points_players_seconds_and_bytes(valuer, rng):
    cost = cost_of(valuer, make_problem(rng))
    assert set(cost) == KEYS
    assert cost.n_points == 30
    assert cost.n_players == 60
    assert cost.solver == ("native" if valuer.engine == "auto" else "torch")
    assert cost.seconds > 0
    assert cost.seconds_per_point == pytest.approx(cost.seconds / 30)
    assert cost.memory > 0


def test_groups_are_the_players_of_a_cost(valuer, rng):
    options = {"groups": np.arange(60) % 7, "sample_weight_val": np.ones(30)}
    assert cost_of(valuer, make_problem(rng), **options).n_players == 7


def test_an_estimate_does_not_fit(valuer, rng):
    cost_of(valuer, make_problem(rng))
    assert not hasattr(valuer, "values_")


def test_an_estimate_leaves_the_values_of_a_fit(valuer, rng):
    problem = make_problem(rng)
    values = problem.fit(valuer).values_.copy()
    valuer.estimate_cost(problem.X[:20], problem.y[:20])
    np.testing.assert_array_equal(valuer.values_, values)


@pytest.mark.parametrize("cv", ["leave-one-out", 5])
@pytest.mark.parametrize(
    "valuer", [KNNShapleyValuer(), TKNNShapleyValuer(radius=0.5)], ids=str
)
def test_held_out_rows_are_points(valuer, cv, rng):
    problem = make_problem(rng)
    valuer.set_params(cv=cv)
    assert valuer.estimate_cost(*problem.rows).n_points == 60


@pytest.mark.parametrize(
    "valuer", [KNNShapleyValuer(), TKNNShapleyValuer(radius=0.5)], ids=str
)
def test_held_out_rows_are_points_of_a_regression(valuer, rng):
    X = make_problem(rng).X
    valuer.set_params(cv="leave-one-out")
    assert valuer.estimate_cost(X, X[:, 0]).n_points == 60


# Against fits -------------------------------------------------------------------------


def slow_distance(a, b):
    time.sleep(2e-4)
    return abs(a[0] - b[0])


# These look at the clock.
@pytest.mark.slow
def test_seconds_are_those_of_a_fit(rng):
    problem = make_problem(rng, 24, 90)
    valuer = KNNShapleyValuer(metric=slow_distance, n_jobs=1)
    cost = cost_of(valuer, problem)
    start = time.perf_counter()
    problem.fit(valuer)
    assert 0.5 < (time.perf_counter() - start) / cost.seconds < 2


@pytest.mark.slow
@pytest.mark.parametrize("cv", ["leave-one-out", 5])
def test_seconds_of_held_out_rows_are_those_of_a_fit(cv, rng):
    X = rng.normal(size=(45, 3))
    y = np.arange(45) % 2
    valuer = KNNShapleyValuer(metric=slow_distance, cv=cv, n_jobs=1)
    cost = valuer.estimate_cost(X, y)
    start = time.perf_counter()
    valuer.fit(X, y)
    assert 0.5 < (time.perf_counter() - start) / cost.seconds < 2


@pytest.mark.slow
def test_threads_take_fewer_seconds(rng):
    # They sleep side by side.
    problem = make_problem(rng, 24, 90)
    one = KNNShapleyValuer(metric=slow_distance, n_jobs=1)
    three = KNNShapleyValuer(metric=slow_distance, n_jobs=3)
    assert cost_of(three, problem).seconds < cost_of(one, problem).seconds / 1.5


@pytest.mark.parametrize("is_traced", [True, False])
@pytest.mark.parametrize(
    ("valuer", "n_points"),
    [(KNNShapleyValuer(n_jobs=1), 300), (TKNNShapleyValuer(0.9, n_jobs=1), 20)],
    ids=["knn", "tknn"],
)
def test_memory_is_that_of_a_fit(valuer, n_points, is_traced, rng):
    """Also where somebody traces memory already."""
    problem = make_problem(rng, 3000, n_points)
    # Compiles.
    problem.fit(valuer)
    if not is_traced:
        cost = cost_of(valuer, problem)
        assert not tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        if is_traced:
            cost = cost_of(valuer, problem)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        problem.fit(valuer)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert cost.memory == pytest.approx(peak - before, rel=0.3)


def in_a_file(X, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    return np.load(tmp_path / "rows.npy", mmap_mode="r")


class Tasks:
    """Tasks of an engine, each of which takes a while; how many run at a time."""

    def __init__(self, engine, monkeypatch):
        self.most = 0
        self._n_running = 0
        self._lock = Lock()
        rank_one_tile = type(engine).ranks

        def watched(engine, *args):
            with self._lock:
                self._n_running += 1
                self.most = max(self.most, self._n_running)
            # Time for a second one to begin, and for a third one, which should not.
            end = time.monotonic() + 10
            while self.most < 2 and time.monotonic() < end:
                time.sleep(0.002)
            time.sleep(0.02)
            yield from rank_one_tile(engine, *args)
            with self._lock:
                self._n_running -= 1

        monkeypatch.setattr(type(engine), "ranks", watched)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("container", ["file", "sparse"])
def test_threads_on_rows_in_blocks_are_as_many_as_have_memory(
    container, dtype, rng, tmp_path, monkeypatch
):
    """Of eight threads two, in fits and in what is asked of them later."""
    tasks = Tasks(get_engine("native"), monkeypatch)
    n = 2000
    problem = make_problem(rng, n, 16)
    X = problem.X.astype(dtype)
    X = in_a_file(X, tmp_path) if container == "file" else sparse.csr_array(X)
    itemsize = X.dtype.itemsize
    memory_of_two_tasks = 2 * n * (45 + 2 * itemsize)
    valuer = KNNShapleyValuer(n_jobs=8)
    with config_context(working_memory=1.2 * memory_of_two_tasks / 2**20):
        assert most_rank_workers(n, itemsize) == 2
        valuer.fit(X, problem.y, **problem.points)
        assert tasks.most == 2
        tasks.most = 0
        assert (valuer.validation_error_ > 0).any()
        assert tasks.most == 2


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("n_rows", [1000, 10**6, 10**7, 10**8])
@pytest.mark.parametrize("n_jobs", [1, 2, 16, 64])
def test_keys_of_rows_in_blocks_fit_in_the_working_memory(n_jobs, n_rows, itemsize):
    workers = min(n_jobs, most_rank_workers(n_rows, itemsize))
    slices = rank_tiles(
        get_engine("native"),
        n_rows,
        500,
        n_features=16,
        workers=workers,
        block_itemsize=itemsize,
    )
    n_points = max(tile.stop - tile.start for tile in slices)
    memory = workers * n_rows * (45 + (n_points + 1) * itemsize)
    # One thread with one point works in any memory.
    assert memory <= 2**30 or workers == n_points == 1


# What is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_rank": 2}, "max_rank must be at least n_neighbors=5"),
        ({"n_neighbors": 0}, "The 'n_neighbors' parameter"),
    ],
    ids=str,
)
def test_parameters_that_fit_refuses_are_refused(parameters, message, rng):
    with pytest.raises(ValueError, match=message):
        cost_of(KNNShapleyValuer(**parameters), make_problem(rng))


def test_points_without_labels_are_refused(rng):
    X, y, *_ = make_problem(rng)
    with pytest.raises(ValueError, match="only one of X_val and y_val|passed together"):
        TKNNShapleyValuer().estimate_cost(X, y, X_val=X)


def test_private_fits_are_not_timed(rng, tmp_path):
    ledger = Ledger(tmp_path / "ledger", "rows", epsilon=1.0, delta=1e-4)
    valuer = TKNNShapleyValuer(0.5, epsilon=0.5, ledger=ledger)
    message = r"estimate_cost needs epsilon=None.*Got epsilon=0\.5"
    with pytest.raises(ValueError, match=message):
        cost_of(valuer, make_problem(rng))
    assert not ledger.n_charges
