"""The torch engine: which GPU, how much of its memory, and what the user has set
there."""

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

N, V = 800, 240


def problem(rng):
    X, y = rng.normal(size=(N, 5)).astype(np.float32).round(1), rng.integers(0, 3, N)
    return (X, y), dict(X_val=X[:V] + np.float32(0.05), y_val=y[:V])


@pytest.fixture
def copied(monkeypatch):
    """The tensors that the engine has copied to its device."""
    tensors, engine = [], type(get_engine("torch", "cpu"))
    copy = engine.to_device

    def watched(self, array):
        tensors.append(copy(self, array))
        return tensors[-1]

    monkeypatch.setattr(engine, "to_device", watched)
    return tensors


def test_threads_compute_on_the_gpu_of_their_caller(rng, monkeypatch, copied):
    monkeypatch.setattr(simulate_a_gpu(monkeypatch), "FREE", 2**23)  # several tiles
    rows, points = problem(rng)
    for valuer in (
        KNNShapleyValuer(5, device="cuda"),
        TKNNShapleyValuer(1.0, device="cuda"),
    ):
        expected = clone(valuer).set_params(device="cpu").fit(*rows, **points).values_
        with on_gpu(1):
            found = valuer.set_params(n_jobs=3).fit(*rows, **points).values_
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert {tensor.gpu for tensor in copied} == {1}


@pytest.mark.parametrize(
    "mode", ["error", pytest.param("warn", marks=pytest.mark.slow)]
)
def test_deterministic_algorithms_are_not_needed(rng, gpu, mode):
    rows, points = problem(rng)
    valuer = KNNShapleyValuer(5, engine="torch")
    expected = valuer.fit(*rows, **points).values_
    try:
        torch.set_deterministic_debug_mode(mode)
        found = valuer.set_params(device="cuda").fit(*rows, **points).values_
        assert torch.get_deterministic_debug_mode() > 0
    finally:
        torch.set_deterministic_debug_mode("default")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kept", [True, False])
def test_rows_are_copied_once_or_block_by_block(rng, monkeypatch, copied, kept):
    """Also where less memory is left for the later tiles, or more."""
    simulated_gpu = simulate_a_gpu(monkeypatch)
    (X, y), points = problem(rng)
    X_val, y_val = points["X_val"][:12], points["y_val"][:12]  # tiles of one point
    first, later = (4.5, 3.5) if kept else (3.5, 4.5)

    def blocks():
        return [
            len(tensor) for tensor in copied if tensor.ndim == 2 and len(tensor) >= 16
        ]

    def memory(self):
        free = X.nbytes * (later if blocks() else first)
        return free - self.memory_reserved() + self.memory_allocated(), None

    monkeypatch.setattr(
        type(torch.get_device_module(simulated_gpu.NAME)), "mem_get_info", memory
    )
    KNNShapleyValuer(5, device="cuda").fit(X, y, X_val=X_val, y_val=y_val)
    if kept:
        assert blocks() == [N]
    else:
        assert max(blocks()) < N
        assert sum(blocks()) == 12 * N


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(5), TKNNShapleyValuer(1.0)])
def test_distances_from_the_cpu_keep_to_its_memory(valuer, rng, monkeypatch):
    """However much the GPU has."""
    simulated_gpu = simulate_a_gpu(monkeypatch)
    rows, points = problem(rng)
    valuer.set_params(metric="manhattan")
    expected = clone(valuer).fit(*rows, **points).values_
    space = type(make_space(rows[0], "manhattan"))
    sizes, distances = [], space.distances

    def watched(self, *args):
        found = distances(self, *args)
        sizes.append(found.nbytes)
        return found

    monkeypatch.setattr(space, "distances", watched)
    monkeypatch.setattr(simulated_gpu, "FREE", 2**34)
    with config_context(working_memory=1):
        found = clone(valuer).set_params(device="cuda").fit(*rows, **points).values_
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert sum(sizes) == 8 * N * V
    assert max(sizes) <= 2**20


def ranked(engine, X, Q, max_rank=None):
    """Rows in their order for each point, up to the last rank."""
    found = {}
    for places, (order, n_ranked) in ranks(
        engine, make_space(X, "euclidean"), Q, None, max_rank
    ):
        for v, line, n in zip(places, order, n_ranked):
            found[v] = np.where(line < 0, ~line, line)[:n]
    return found


def test_only_points_whose_last_rank_is_tied_are_sorted_further(rng, monkeypatch):
    X, Q = rng.normal(size=(2000, 3)), rng.normal(size=(40, 3))
    Q[17] = 10.0  # away from all but 300 rows, which are as far from it
    X[:300] = 10.1
    sorted_up_to, topk = [], torch.topk

    def watched(keys, n_sorted, **options):
        sorted_up_to.append((len(keys), n_sorted))
        return topk(keys, n_sorted, **options)

    monkeypatch.setattr(torch, "topk", watched)
    found = {
        v: set(rows) for v, rows in ranked(get_engine("torch", "cpu"), X, Q, 50).items()
    }
    assert sorted_up_to == [(40, 51), (1, 102), (1, 204), (1, 408)]
    assert found.pop(17) == set(range(300))
    exact = np.argsort(cdist(Q, X), axis=1)[:, :50]
    assert found == {v: set(exact[v]) for v in found}
    assert len(found) == 39


@pytest.mark.parametrize("n_threads", [1, 3])
def test_exact_distances_by_threads(n_threads, rng):
    # Rows in pairs that the product cannot tell apart: all of them are compared
    # exactly.
    X = np.repeat(rng.normal(size=(1500, 3)), 2, axis=0) + 1e-17 * rng.normal(
        size=(3000, 3)
    )
    X[1::2, 0] *= 1 + 1e-15
    Q = rng.normal(size=(9, 3))
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        found = ranked(get_engine("torch", "cpu"), X, Q)
    finally:
        torch.set_num_threads(before)
    squares = ((X - Q[:, None]) ** 2).sum(axis=2)
    for v, rows in found.items():
        assert sorted(rows) == list(range(3000))
        assert (np.diff(squares[v][rows]) >= -1e-15 * squares[v][rows][1:]).all()


def test_another_process_takes_its_own_gpu(monkeypatch):
    simulate_a_gpu(monkeypatch)
    with on_gpu(1):
        engine = get_engine("torch", "cuda")
        kept = pickle.dumps(engine)
    there = pickle.loads(kept)
    assert there.device == engine.device
    for one, gpu in ((engine, 1), (there, 0)):
        with one.device_lock():
            assert one.to_device(np.zeros(1)).gpu == gpu
