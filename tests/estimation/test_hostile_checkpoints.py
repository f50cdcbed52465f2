"""Checkpoints with valid checksums that hold no state of the run are refused."""

import zipfile

import numpy as np
import pytest

from skvalue import DataShapleyValuer
from skvalue.estimation import Checkpoint, read_arrays

SAMPLERS = ["exact", "stratified", "permutation", "process"]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def fit(path, sampler):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = (X[:, 0] > 0).astype(int)
    n = {"exact": 8, "process": 12}.get(sampler, 20)
    valuer = DataShapleyValuer(
        sampler=sampler,
        max_evaluations=100 if sampler == "process" else 400,
        random_state=0,
        checkpoint=path,
    )
    return valuer.fit(X[:n], y[:n], X_val=X[n:], y_val=y[n:])


@pytest.fixture(params=SAMPLERS)
def state(request, tmp_path):
    """A checkpoint, its arrays, and the sampler."""
    path = tmp_path / "state.npz"
    fit(path, request.param)
    arrays = read_arrays(path)
    arrays.pop("version")
    return path, arrays, request.param


def refused(path, arrays, sampler):
    Checkpoint(path).write(arrays)
    with pytest.raises(ValueError, match="checkpoint must .* Delete"):
        fit(path, sampler)


def test_an_unchanged_checkpoint_is_resumed(state):
    path, arrays, sampler = state
    Checkpoint(path).write(arrays)
    fit(path, sampler)


def test_a_missing_entry_is_refused(state):
    path, arrays, sampler = state
    for name in arrays:
        rest = {other: array for other, array in arrays.items() if other != name}
        refused(path, rest, sampler)


@pytest.mark.parametrize("entry", [np.array("x"), np.array([]), np.zeros((1, 1, 1, 1))])
def test_an_entry_of_another_type_is_refused(state, entry):
    path, arrays, sampler = state
    for name in ("game_index", "n_failed", "seeds", "0/counts", "0/plan", "0/full"):
        refused(path, arrays | {name: entry}, sampler)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("game_index", np.array(7)),
        ("game_index", np.array(-1)),
        ("n_failed", np.array(-1)),
        ("sampler", np.array("none")),
        ("seeds", np.array(["-1"])),
        ("0/counts", np.array([-1, 3])),
        ("0/full", np.array(np.inf)),
    ],
)
def test_an_entry_out_of_range_is_refused(state, name, entry):
    path, arrays, sampler = state
    refused(path, arrays | {name: entry}, sampler)


def test_a_file_that_expands_is_refused_unread(state):
    path, _, sampler = state
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("full.npy", bytes(10**7))
    with pytest.raises(ValueError, match="would take 10,000,000 bytes"):
        fit(path, sampler)
