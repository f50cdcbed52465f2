"""The torch engine: which GPU, how much of its memory, and what the user has set there."""

import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.base import clone

torch = pytest.importorskip("torch")

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue._utils.torch_device import on_gpu
from skvalue.neighbors import _exact, _torch, make_space, ranks
from skvalue.neighbors._space import DenseSpace

from ..conftest import simulate_a_gpu

N, V = 2000, 600  # three tiles of judges, with the memory of the simulated GPU


def problem(rng):
    X, y = rng.normal(size=(N, 5)).astype(np.float32).round(1), rng.integers(0, 3, N)
    return (X, y), dict(X_val=X[:V] + np.float32(0.05), y_val=y[:V])


def test_threads_compute_on_the_gpu_of_their_caller(rng, monkeypatch):
    simulate_a_gpu(monkeypatch)
    seen, copy = set(), _torch.TorchEngine.to_device

    def watched(self, array):
        tensor = copy(self, array)
        seen.add(tensor.gpu)
        return tensor

    monkeypatch.setattr(_torch.TorchEngine, "to_device", watched)
    rows, judges = problem(rng)
    for valuer in (KNNShapleyValuer(5, device="cuda"), TKNNShapleyValuer(1.0, device="cuda")):
        expected = clone(valuer).set_params(device="cpu").fit(*rows, **judges).values_
        with on_gpu(1):
            found = valuer.set_params(n_jobs=3).fit(*rows, **judges).values_
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert seen == {1}


@pytest.mark.parametrize("mode", ["error", "warn"])
def test_deterministic_algorithms_are_not_asked_for(rng, gpu, mode):
    rows, judges = problem(rng)
    valuer = KNNShapleyValuer(5, engine="torch")
    expected = valuer.fit(*rows, **judges).values_
    try:
        torch.set_deterministic_debug_mode(mode)
        found = valuer.set_params(device="cuda").fit(*rows, **judges).values_
        assert torch.get_deterministic_debug_mode() > 0
    finally:
        torch.set_deterministic_debug_mode("default")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kept", [True, False])
def test_rows_are_copied_once_or_block_by_block(rng, monkeypatch, kept):
    """Also where less memory is left for the later tiles, or more."""
    simulate_a_gpu(monkeypatch)
    rows, judges = problem(rng)
    nbytes, asked, copied = rows[0].nbytes, [], []
    first, later = (4.5, 3.5) if kept else (3.5, 4.5)

    def free_memory():
        asked.append(None)
        return nbytes * (first if len(asked) == 1 else later)

    scale = _torch.TorchEngine._scaled
    monkeypatch.setattr(_torch, "free_memory", free_memory)
    monkeypatch.setattr(
        _torch.TorchEngine,
        "_scaled",
        lambda self, space, part: copied.append(part) or scale(self, space, part),
    )
    KNNShapleyValuer(5, device="cuda").fit(*rows, **judges)
    assert len(asked) == 1
    whole = [part for part in copied if part == slice(None)]
    assert (len(whole), len(copied)) == ((1, 1) if kept else (0, len(copied)))
    assert kept or len(copied) >= 3


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(5), TKNNShapleyValuer(1.0)])
def test_distances_from_the_cpu_keep_to_its_memory(valuer, rng, monkeypatch):
    """However much the GPU has."""
    simulate_a_gpu(monkeypatch)
    rows, judges = problem(rng)
    valuer.set_params(metric="manhattan")
    expected = clone(valuer).fit(*rows, **judges).values_
    sizes, distances = [], DenseSpace.distances

    def watched(self, *args):
        found = distances(self, *args)
        sizes.append(found.nbytes)
        return found

    monkeypatch.setattr(DenseSpace, "distances", watched)
    monkeypatch.setattr(_torch, "block_bytes", lambda device: 2**32)
    with config_context(working_memory=1):
        found = clone(valuer).set_params(device="cuda").fit(*rows, **judges).values_
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert sum(sizes) == 8 * N * V
    assert max(sizes) <= 2**20


def test_only_judges_whose_last_rank_is_tied_are_sorted_further(rng, monkeypatch):
    X, Q = rng.normal(size=(2000, 3)), rng.normal(size=(40, 3))
    Q[17] = 10.0  # away from all but 300 rows, which are as far from it
    X[:300] = 10.1
    asked, first = [], _torch.TorchEngine._first

    def watched(self, space, keys, half, query_half, n_sorted):
        asked.append((len(keys), n_sorted))
        return first(self, space, keys, half, query_half, n_sorted)

    monkeypatch.setattr(_torch.TorchEngine, "_first", watched)
    found = {}
    space = make_space(X, "euclidean")
    for places, (order, n_ranked) in ranks(_torch.make_engine("cpu"), space, Q, None, 50):
        for v, line, n in zip(places, order, n_ranked):
            found[v] = set(np.where(line < 0, ~line, line)[:n])
    assert asked == [(40, 51), (1, 102), (1, 204), (1, 408)]
    assert found.pop(17) == set(range(300))
    exact = np.argsort(cdist(Q, X), axis=1)[:, :50]
    assert found == {v: set(exact[v]) for v in found}
    assert len(found) == 39


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_exact_keys_by_threads(workers, rng, monkeypatch):
    monkeypatch.setattr(_exact, "_PAIRS", 10)
    X, Q = rng.normal(size=(50, 3)), rng.normal(size=(4, 3))
    space, i, v = make_space(X, "euclidean"), rng.integers(0, 50, 95), rng.integers(0, 4, 95)
    expected = _exact.pair_keys(space, i, Q, v)
    np.testing.assert_allclose(expected, ((X[i] - Q[v]) ** 2).sum(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(_exact.pair_keys(space, i, Q, v, workers), expected)
    assert len(_exact.pair_keys(space, i[:0], Q, v[:0], workers)) == 0


def test_another_process_takes_its_own_gpu(monkeypatch):
    simulate_a_gpu(monkeypatch)
    with on_gpu(1):
        engine = _torch.make_engine("cuda")
        kept = pickle.dumps(engine)
    there = pickle.loads(kept)
    assert (engine._gpu, there._gpu, there.device) == (1, 0, engine.device)
