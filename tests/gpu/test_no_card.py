"""device="cuda" where there is no card: one clear error, and nothing on the CPU."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

torch = pytest.importorskip("torch")

import skvalue
from skvalue import priarta

ROOT = Path(__file__).resolve().parents[2]
NO_GPU = "device='cuda' needs a CUDA GPU that torch sees. Got none"
ONLY_MODULES = "only torch modules have another. Got 'cuda'"
ONLY_BATCHES = "batch='torch' and device='cuda' need LogisticRegression"


def module():
    return torch.nn.Linear(3, 2)


# Class, its parameters, and its error.
CASES = [
    ("KNNShapleyValuer", {}, NO_GPU),
    ("KNNShapleyValuer", {"engine": "torch"}, NO_GPU),
    ("KNNShapleyValuer", {"max_rank": 9}, NO_GPU),
    ("KNNShapleyValuer", {"utility": "hard"}, NO_GPU),
    ("KNNShapleyValuer", {"metric": "manhattan"}, NO_GPU),
    ("KNNShapleyValuer", {"engine": "native"}, "engine='native' runs on the CPU"),
    ("TKNNShapleyValuer", {}, NO_GPU),
    ("TKNNShapleyValuer", {"engine": "torch", "epsilon": 1.0}, NO_GPU),
    ("TKNNShapleyValuer", {"engine": "native"}, "engine='native' runs on the CPU"),
    ("DataShapleyValuer", {}, NO_GPU),
    ("DataShapleyValuer", {"estimator": DecisionTreeClassifier()}, ONLY_BATCHES),
    ("DataBanzhafValuer", {}, NO_GPU),
    ("BetaShapleyValuer", {}, NO_GPU),
    ("SemivalueValuer", {}, NO_GPU),
    ("LeaveOneOutValuer", {}, NO_GPU),
    ("LeaveOneOutValuer", {"method": "newton"}, "batch and device must be 'auto'"),
    ("InRunShapleyValuer", {"model": module()}, NO_GPU),
    ("InRunShapleyValuer", {}, ONLY_MODULES),
    ("GradientSemivalueValuer", {"model": module()}, NO_GPU),
    ("GradientSemivalueValuer", {}, ONLY_MODULES),
    ("UnrolledValuer", {"model": module()}, NO_GPU),
    ("UnrolledValuer", {}, ONLY_MODULES),
    ("FederatedSemivalueValuer", {"model": module()}, NO_GPU),
    ("FederatedSemivalueValuer", {}, ONLY_MODULES),
    ("SimCLR", {}, NO_GPU),
    ("GaussianVAE", {}, NO_GPU),
]


def class_named(name):
    return getattr(skvalue if hasattr(skvalue, name) else priarta, name)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    CASES,
    ids=[f"{name} {', '.join(parameters)}" for name, parameters, _ in CASES],
)
def test_a_card_that_is_not_there_is_an_error(name, parameters, message, rng, no_gpu):
    X = rng.normal(size=(30, 3)).astype(np.float32)
    y = rng.integers(0, 2, 30)
    estimator = class_named(name)(device="cuda", **parameters)
    points = {}
    if "X_val" in inspect.signature(estimator.fit).parameters:
        points = {"X_val": X[:8] + np.float32(0.1), "y_val": y[:8]}
    if name == "FederatedSemivalueValuer":
        points["groups"] = np.arange(30) % 3
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y, **points)


def classes_with_a_device():
    """Names of the public estimators that have the parameter."""
    for package in (skvalue, priarta):
        for name in package.__all__:
            cls = getattr(package, name)
            if not (inspect.isclass(cls) and hasattr(cls, "fit")):
                continue
            if "device" in inspect.signature(cls).parameters:
                yield name


def test_every_estimator_with_a_device_is_in_the_table_and_on_the_page():
    page = (ROOT / "doc/user_guide/gpu.rst").read_text(encoding="utf-8")
    names = set(classes_with_a_device())
    assert names == {name for name, _, _ in CASES}
    assert [name for name in names if f"{name}`" not in page] == []
