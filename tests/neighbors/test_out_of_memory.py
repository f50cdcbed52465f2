"""Memory of a card that is short in the middle of a fit."""

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("faiss")
pytest.importorskip("torch")

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.neighbors import release_gpu_memory

from ..conftest import simulate_a_gpu
from ..problems import Problem

pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.RadiusWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.NoiseExceedsSignalWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning"),
]

VALUERS = {
    "TKNN": TKNNShapleyValuer(1.0, metric="euclidean"),
    "KNN": KNNShapleyValuer(3),
    "KNN, max_rank": KNNShapleyValuer(3, max_rank=9),
    "private TKNN": TKNNShapleyValuer(
        1.0, metric="euclidean", epsilon=1.0, noise_random_state=0
    ),
}
# Their tiles are halved wherever memory is short once.
HALVED = ["TKNN", "KNN"]

# Where memory becomes short, as fractions of the operations of a fit.
MOMENTS = [0.0, 0.2, 0.5, 0.8, 0.999]


@pytest.fixture
def card(monkeypatch):
    simulated_gpu = simulate_a_gpu(monkeypatch)
    from .. import simulated_faiss

    release_gpu_memory()
    simulated_faiss.install(monkeypatch)
    yield simulated_gpu
    release_gpu_memory()


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(80, 3)).astype(np.float32)
    y = rng.integers(0, 2, 80)
    return Problem(X, y, X[:20] + np.float32(0.05), y[:20])


@pytest.mark.parametrize("engine", ["torch", "faiss"])
@pytest.mark.parametrize("name", VALUERS)
def test_a_fit_halves_its_tiles_or_says_what_is_short(name, engine, problem, card):
    """Memory that is short once, at any moment of the fit."""
    expected = problem.fit(clone(VALUERS[name])).values_
    valuer = clone(VALUERS[name]).set_params(engine=engine, device="cuda")
    with card.short_of_memory(lambda number: False) as count:
        problem.fit(clone(valuer))

    n_errors = 0
    for moment in MOMENTS:
        short = int(moment * count.n_operations)
        with card.short_of_memory(lambda number, short=short: number == short):
            try:
                values = problem.fit(clone(valuer)).values_
            except MemoryError:
                n_errors += 1
                continue
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-14)
    assert n_errors < len(MOMENTS)
    if name in HALVED:
        assert n_errors == 0


@pytest.mark.parametrize("engine", ["torch", "faiss"])
@pytest.mark.parametrize("name", VALUERS)
def test_memory_that_stays_short_is_one_error(name, engine, problem, card):
    valuer = clone(VALUERS[name]).set_params(engine=engine, device="cuda")
    with card.short_of_memory(lambda number: False) as count:
        problem.fit(clone(valuer))
    for moment in MOMENTS:
        short = int(moment * count.n_operations)
        refusal = pytest.raises(MemoryError, match="device='cuda' has too little free")
        with card.short_of_memory(lambda number, short=short: number >= short), refusal:
            problem.fit(clone(valuer))
