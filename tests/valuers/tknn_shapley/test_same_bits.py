"""Values for classes have the same bits, whatever computes them and in which order."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from skvalue import TKNNShapleyValuer
from skvalue.neighbors import release_gpu_memory

from ...conftest import simulate_a_gpu

pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.RadiusWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.NoiseExceedsSignalWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ErrorsTooSmallWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning"),
]

# What computes, beside the engine of the CPU on one thread, and the megabytes of its
# working memory.
WAYS = {
    "three threads": ({"n_jobs": 3}, 1024),
    "little memory": ({}, 0.02),
    "torch": ({"engine": "torch", "device": "cpu"}, 1024),
    "faiss": ({"engine": "faiss", "device": "cpu"}, 1024),
    "torch on a card": ({"engine": "torch", "device": "cuda"}, 1024),
    "faiss on a card": ({"engine": "faiss", "device": "cuda"}, 1024),
    "a card, little memory": ({"engine": "torch", "device": "cuda"}, 0.5),
}

PRIVATE = {"epsilon": 1.0, "noise_random_state": 0}

# Parameters of a valuer, and which arguments `fit` gets.
CALLS = {
    "points": ({}, ["points"]),
    "leave-one-out": ({}, []),
    "cv": ({"cv": 3}, []),
    "groups": ({}, ["points", "groups"]),
    "groups, cv": ({"cv": 3}, ["groups"]),
    "class weights": ({"class_weight": "balanced"}, ["points"]),
    "weights": ({}, ["points", "weights"]),
    "banzhaf": ({"semivalue": "banzhaf"}, ["points"]),
    "private": ({**PRIVATE, "max_contributions": None}, ["points"]),
    "private, capped": ({**PRIVATE, "max_contributions": 3}, ["points"]),
    "private, raw": ({**PRIVATE, "denoise": False}, ["points", "groups"]),
}


@pytest.fixture
def card(monkeypatch):
    pytest.importorskip("faiss")
    pytest.importorskip("torch")
    simulate_a_gpu(monkeypatch)
    from ... import simulated_faiss

    release_gpu_memory()
    yield simulated_faiss.install(monkeypatch)
    release_gpu_memory()


def cases():
    """Names of `CALLS`, metrics and numbers of columns; the default tier has a few."""
    for name in CALLS:
        for metric in ("euclidean", "cosine"):
            for d in (2, 64, 4096):
                is_fast = d == 2 and name in ("points", "cv", "private, capped")
                marks = [] if is_fast else [pytest.mark.slow]
                yield pytest.param(name, metric, d, marks=marks)


@pytest.mark.parametrize(("name", "metric", "d"), list(cases()))
def test_values_have_the_same_bits(name, metric, d, rng, card):
    """Of rows with ties, copies, and differences in the last digit."""
    X = rng.integers(1, 8, (330, d)).astype(np.float32) / 2
    X[100:140] = X[:40]
    X[140:180] = X[:40]
    X[140:180, 0] = np.nextafter(X[:40, 0], np.float32(9))
    X[0] = 0
    y = rng.integers(0, 3, len(X))
    X_val = X[:150] + np.float32(0.25) * (np.arange(150) % 2)[:, None]
    arguments = {
        "points": {"X_val": X_val, "y_val": rng.integers(0, 3, 150)},
        "groups": {"groups": np.arange(len(y)) % 7},
        "weights": {"sample_weight_val": rng.random(150)},
    }
    radius = 0.05 if metric == "cosine" else np.sqrt(d)
    options, names = CALLS[name]
    arguments = {k: v for kind in names for k, v in arguments[kind].items()}
    new = X[:20] * np.float32(1.25)

    def bits(way, memory):
        """All values of a valuer that computes in this way."""
        valuer = TKNNShapleyValuer(radius, metric=metric, **{"n_jobs": 1, **options})
        with config_context(working_memory=memory):
            valuer = clone(valuer).set_params(**way).fit(X, y, **arguments)
            results = {
                "values_": valuer.values_,
                "utility_": valuer.utility_,
                "new rows": valuer.score_samples(new),
                "new rows with labels": valuer.score_samples(new, y[:20]),
            }
        if valuer.epsilon is not None:
            results["baseline_"] = valuer.baseline_
        return results

    expected = bits({}, 1024)
    assert np.abs(expected["values_"]).max() > 0
    for way, memory in WAYS.values():
        results = bits(way, memory)
        for attribute in expected:
            np.testing.assert_array_equal(
                results[attribute], expected[attribute], err_msg=f"{attribute}, {way}"
            )
