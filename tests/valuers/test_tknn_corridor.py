"""From `fit` to the compiled loop and back: which functions the rows pass through."""

import sys
from pathlib import Path

import numpy as np
import pytest

import skvalue
from skvalue import KNNShapleyValuer, TKNNShapleyValuer
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
    fit(epsilon=1.0)
    exact, private = ways
    assert exact == private


@pytest.mark.parametrize("valuer", [TKNNShapleyValuer(), KNNShapleyValuer()])
def test_a_fitted_valuer_has_few_private_attributes(valuer, rng):
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
    names = [name for name in vars(valuer.fit(X, y)) if name.startswith("_")]
    assert len([name for name in names if name not in vars(type(valuer)())]) <= 3


def test_no_function_of_neighbors_takes_a_function(engine, rng):
    """But a metric, which may be one."""
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    public, seen = dict(X_val=X[:70] + 0.1, y_val=y[:70]), set()

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and "/skvalue/neighbors/" in code.co_filename:
            for name in code.co_varnames[: code.co_argcount]:
                seen.add((code.co_name, name, callable(frame.f_locals.get(name))))

    for valuer in (
        TKNNShapleyValuer(0.5), KNNShapleyValuer(), KNNShapleyValuer(max_rank=9),
        TKNNShapleyValuer(0.5, epsilon=1.0),
    ):  # fmt: skip
        if valuer.epsilon is None:
            valuer.set_params(engine=engine, device="cpu")
        valuer.set_params(n_jobs=1)
        sys.setprofile(watch)
        try:
            valuer.fit(X, y, **public).transform(X[:5] + 1)
        finally:
            sys.setprofile(None)
    assert {"balls", "ranks"} <= {function for function, _, _ in seen}
    functions = {(function, name) for function, name, is_callable in seen if is_callable}
    assert {name for _, name in functions} <= {"metric", "cls"}
