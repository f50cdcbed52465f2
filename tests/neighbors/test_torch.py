"""The torch engine: which GPU, how much of its memory, and the user's settings."""

import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.base import clone

torch = pytest.importorskip("torch")

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue._utils.torch_device import on_gpu
from skvalue.neighbors import get_engine, make_space, ranks

from ..conftest import simulate_a_gpu
from ..problems import Problem

N_ROWS = 800
N_POINTS = 240


@pytest.fixture
def problem(rng):
    """Rows in float32 with ties, and points next to the first of them."""
    X = rng.normal(size=(N_ROWS, 5)).astype(np.float32).round(1)
    y = rng.integers(0, 3, N_ROWS)
    return Problem(X, y, X[:N_POINTS] + np.float32(0.05), y[:N_POINTS])


@pytest.fixture
def tensors(monkeypatch):
    """The tensors that the engine has copied to its device."""
    copies = []
    engine = type(get_engine("torch", "cpu"))
    to_device = engine.to_device

    def watched(self, array):
        tensor = to_device(self, array)
        copies.append(tensor)
        return tensor

    monkeypatch.setattr(engine, "to_device", watched)
    return copies


def test_threads_compute_on_the_gpu_of_their_caller(problem, monkeypatch, tensors):
    # Several tiles.
    monkeypatch.setattr(simulate_a_gpu(monkeypatch), "FREE", 2**23)
    for valuer in (KNNShapleyValuer(5), TKNNShapleyValuer(1.0)):
        valuer.set_params(device="cuda")
        expected = problem.fit(clone(valuer).set_params(device="cpu")).values_
        with on_gpu(1):
            values = problem.fit(valuer.set_params(n_jobs=3)).values_
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)
    assert {tensor.gpu for tensor in tensors} == {1}


@pytest.mark.parametrize(
    "mode", ["error", pytest.param("warn", marks=pytest.mark.slow)]
)
def test_deterministic_algorithms_are_not_needed(problem, gpu, mode):
    valuer = KNNShapleyValuer(5, engine="torch")
    expected = problem.fit(valuer).values_
    try:
        torch.set_deterministic_debug_mode(mode)
        values = problem.fit(valuer.set_params(device="cuda")).values_
        assert torch.get_deterministic_debug_mode() > 0
    finally:
        torch.set_deterministic_debug_mode("default")
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)


def fit_with_free_memory(problem, monkeypatch, tensors, first, later):
    """Fit to tiles of one point; return the numbers of rows of the blocks copied.

    The GPU has free memory for ``first`` times the rows, and for ``later`` times once
    it has a block.
    """
    simulated_gpu = simulate_a_gpu(monkeypatch)
    n_bytes = problem.X.nbytes

    def blocks():
        return [
            len(tensor) for tensor in tensors if tensor.ndim == 2 and len(tensor) >= 16
        ]

    def memory(self):
        free = n_bytes * (later if blocks() else first)
        return free - self.memory_reserved() + self.memory_allocated(), None

    device_module = type(torch.get_device_module(simulated_gpu.NAME))
    monkeypatch.setattr(device_module, "mem_get_info", memory)
    few_points = problem._replace(X_val=problem.X_val[:12], y_val=problem.y_val[:12])
    few_points.fit(KNNShapleyValuer(5, device="cuda"))
    return blocks()


def test_rows_that_fit_are_copied_once(problem, monkeypatch, tensors):
    """Also where less memory is left for the later tiles."""
    blocks = fit_with_free_memory(problem, monkeypatch, tensors, first=4.5, later=3.5)
    assert blocks == [N_ROWS]


def test_rows_that_do_not_fit_are_copied_block_by_block(problem, monkeypatch, tensors):
    """Also where more memory is left for the later tiles."""
    blocks = fit_with_free_memory(problem, monkeypatch, tensors, first=3.5, later=4.5)
    assert max(blocks) < N_ROWS
    assert sum(blocks) == 12 * N_ROWS


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(5), TKNNShapleyValuer(1.0)])
def test_distances_from_the_cpu_keep_to_its_memory(valuer, problem, monkeypatch):
    """However much the GPU has."""
    simulated_gpu = simulate_a_gpu(monkeypatch)
    valuer.set_params(metric="manhattan")
    expected = problem.fit(clone(valuer)).values_
    space = type(make_space(problem.X, "manhattan"))
    sizes = []
    distances = space.distances

    def watched(self, *args):
        result = distances(self, *args)
        sizes.append(result.nbytes)
        return result

    monkeypatch.setattr(space, "distances", watched)
    monkeypatch.setattr(simulated_gpu, "FREE", 2**34)
    with config_context(working_memory=1):
        values = problem.fit(clone(valuer).set_params(device="cuda")).values_
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)
    assert sum(sizes) == 8 * N_ROWS * N_POINTS
    assert max(sizes) <= 2**20


def order_by_point(engine, X, Q, max_rank=None):
    """Rows in their order for each point, up to the last rank."""
    orders = {}
    space = make_space(X, "euclidean")
    for places, order in ranks(engine, space, Q, None, max_rank):
        for v, rows, n in zip(places, order.rows, order.n_ranked):
            orders[v] = np.where(rows < 0, ~rows, rows)[:n]
    return orders


def test_only_points_whose_last_rank_is_tied_are_sorted_further(rng, monkeypatch):
    X = rng.normal(size=(2000, 3))
    Q = rng.normal(size=(40, 3))
    # A point away from all but 300 rows, which are as far from it.
    Q[17] = 10.0
    X[:300] = 10.1
    calls = []
    topk = torch.topk

    def watched(keys, n_sorted, **options):
        calls.append((len(keys), n_sorted))
        return topk(keys, n_sorted, **options)

    monkeypatch.setattr(torch, "topk", watched)
    orders = order_by_point(get_engine("torch", "cpu"), X, Q, 50)
    assert calls == [(40, 51), (1, 102), (1, 204), (1, 408)]
    assert len(orders) == 40
    assert set(orders.pop(17)) == set(range(300))
    exact = np.argsort(cdist(Q, X), axis=1)[:, :50]
    for v, order in orders.items():
        assert set(order) == set(exact[v])


@pytest.mark.parametrize("n_threads", [1, 3])
def test_threads_compute_exact_distances(n_threads, rng):
    # Rows in pairs that the product cannot tell apart: all of them are compared
    # exactly.
    X = np.repeat(rng.normal(size=(1500, 3)), 2, axis=0)
    X = X + 1e-17 * rng.normal(size=(3000, 3))
    X[1::2, 0] *= 1 + 1e-15
    Q = rng.normal(size=(9, 3))
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        orders = order_by_point(get_engine("torch", "cpu"), X, Q)
    finally:
        torch.set_num_threads(before)
    squares = ((X - Q[:, None]) ** 2).sum(axis=2)
    for v, order in orders.items():
        assert sorted(order) == list(range(3000))
        ranked = squares[v][order]
        assert (np.diff(ranked) >= -1e-15 * ranked[1:]).all()


def test_another_process_takes_its_own_gpu(monkeypatch):
    simulate_a_gpu(monkeypatch)
    with on_gpu(1):
        engine = get_engine("torch", "cuda")
        data = pickle.dumps(engine)
    copy = pickle.loads(data)
    assert copy.device == engine.device
    with engine.device_lock():
        assert engine.to_device(np.zeros(1)).gpu == 1
    with copy.device_lock():
        assert copy.to_device(np.zeros(1)).gpu == 0
