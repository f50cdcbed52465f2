"""From `fit` to the compiled loop and back: which functions the rows pass through."""

import sys
from pathlib import Path

import numpy as np
import pytest

import skvalue
from skvalue import TKNNShapleyValuer
from skvalue.neighbors.kernels import ball as ball_kernels

PACKAGE = Path(skvalue.__file__).parent
# What makes the tasks is done when the loop runs; what folds their results sees no rows.
MADE_BEFORE = {("valuers/tknn_shapley/_valuer.py", name) for name in ("_parts", "_tasks")}
FOLDS = {"_combine", "mean_over_splits"}


def functions_above():
    """Functions of the package on the stack but threads, progress and folds, outermost first."""
    frame, found = sys._getframe(2), []
    while frame is not None:
        path, name = Path(frame.f_code.co_filename), frame.f_code.co_name
        if path.is_relative_to(PACKAGE) and "_utils" not in path.parts and name not in FOLDS:
            found.append((path.relative_to(PACKAGE).as_posix(), name))
        frame = frame.f_back
    return [one for one in reversed(found) if not one[1].startswith("<")]


@pytest.fixture
def ways(monkeypatch):
    """The ways on which the compiled loop was reached."""
    found, kernel = [], ball_kernels.pack_blocks

    def watched(*args):
        found.append(functions_above())
        return kernel(*args)

    monkeypatch.setattr(ball_kernels, "pack_blocks", watched)
    return found


def fit(**parameters):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    valuer = TKNNShapleyValuer(0.5, n_jobs=1, **parameters)
    return valuer.fit(X, y, X_val=X[:40] + 0.1, y_val=y[:40])


def test_eight_functions_in_four_files(ways):
    fit()
    (way,) = ways
    assert [name for _, name in way] == [
        "fit", "_solve", "value_neighbors", "find_balls", "balls", "balls",
    ]  # fmt: skip
    assert len({*way, *MADE_BEFORE}) <= 8
    assert len({path for path, _ in {*way, *MADE_BEFORE}}) <= 4


def test_a_private_fit_goes_the_same_way(ways):
    fit()
    fit(epsilon=1.0, max_contributions=None)
    exact, private = ways
    assert exact == private
