"""Batches by torch give what the compiled solvers give."""

import sys

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB

from skvalue import LeaveOneOutValuer
from skvalue.games import ModelGame

from .batched import check_same, classes, coalitions, of_all_kinds, targets

torch = pytest.importorskip("torch")

from skvalue._utils.torch_device import find_device

LINEAR = [Ridge(), Ridge(alpha=50, fit_intercept=False), LinearRegression()]


def check_equal(estimator, data, masks, device="cpu", **parameters):
    """Utilities by torch are those of the CPU's solver, to 1e-6; return the game."""
    settings = ({"batch": "torch", "device": device}, {"n_jobs": 1})
    by_torch, compiled = check_same(estimator, data, masks, settings, **parameters)
    assert by_torch.solver == f"{compiled.solver} (torch, {find_device(device)})"
    return by_torch


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "parameters", [{}, {"C": 100.0}, {"C": 1e-3, "fit_intercept": False}], ids=str
)
def test_logistic_regression_is_that_of_the_compiled_solver(n_classes, parameters, rng):
    model = LogisticRegression(**parameters)
    masks = of_all_kinds(rng, 50, 10)
    game = check_equal(model, classes(n_classes), masks, scoring="neg_log_loss")

    # None is left to the loop, nor to the compiled solver of few rows: all are solved,
    # or of one class.
    masks = coalitions(rng, 50, "random")
    _, status = game._solver.tile_scores(masks, masks.sum(axis=1))
    assert (status <= 1).all()
    assert game._solver._max_dual_rows == 0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_and_groups_are_those_of_the_compiled_solver(n_classes, rng):
    data = classes(n_classes)
    weights = rng.random(50) * 3
    weights[::7] = 0
    check_equal(
        LogisticRegression(),
        data,
        rng.random((30, 10)) < 0.5,
        scoring="neg_log_loss",
        sample_weight=weights,
        groups=np.arange(50) % 10,
        sample_weight_val=rng.random(len(data[3])),
    )


def test_rows_far_from_the_origin_are_those_of_the_compiled_solver(rng):
    X, y, X_val, y_val = classes(2)
    scale = np.array([1e-2, 1, 1, 10, 30])
    shift = np.array([0, 1, 100, 0, 0])
    data = X * scale + shift, y, X_val * scale + shift, y_val
    masks = coalitions(rng, 50, "permutation")
    check_equal(LogisticRegression(C=10.0), data, masks, scoring="neg_log_loss")


@pytest.mark.parametrize("estimator", LINEAR, ids=str)
def test_linear_regression_is_that_of_the_compiled_solver(estimator, rng):
    masks = of_all_kinds(rng, 40, 10)
    check_equal(estimator, targets(), masks)
    small = coalitions(rng, 40, "small")  # none of them may be left for torch
    check_equal(estimator, targets(), small)
    weights = rng.random(40)
    weights[::9] = 0
    check_equal(estimator, targets(), masks, sample_weight=weights)


@pytest.mark.parametrize("estimator", [Ridge(), LogisticRegression()], ids=str)
def test_tiles_fit_into_the_working_memory(estimator, rng):
    data = targets() if isinstance(estimator, Ridge) else classes(3)
    n_rows = len(data[0])
    game = ModelGame(estimator, *data, batch="torch", device="cpu")
    masks = rng.random((6, n_rows)) < 0.5
    expected = game.utility(masks)
    with config_context(working_memory=0.08):
        small = ModelGame(estimator, *data, batch="torch", device="cpu")
    assert small._solver.tile < game._solver.tile
    assert small._solver.engine.block_size < n_rows <= game._solver.engine.block_size
    np.testing.assert_allclose(small.utility(masks), expected, atol=1e-6)


def test_a_valuer_by_torch_has_the_values_of_the_compiled_solver():
    X, y, X_val, y_val = classes(2)
    points = {"X_val": X_val, "y_val": y_val}
    compiled = LeaveOneOutValuer(scoring="neg_log_loss").fit(X, y, **points)
    by_torch = LeaveOneOutValuer(scoring="neg_log_loss", batch="torch", device="cpu")
    by_torch.fit(X, y, **points)
    np.testing.assert_allclose(by_torch.values_, compiled.values_, atol=1e-6)
    cost = by_torch.estimate_cost(X, y, **points)
    assert cost.solver == "logistic (torch, cpu)"


@pytest.mark.parametrize(
    ("estimator", "parameters", "message"),
    [
        (
            GaussianNB(),
            {"batch": "torch"},
            "need LogisticRegression, Ridge.* Got GaussianNB",
        ),
        (
            LogisticRegression(C=np.inf),
            {"device": "cuda"},
            "need LogisticRegression, Ridge.* Got",
        ),
        (
            GaussianNB(),
            {"batch": "never", "device": "cuda"},
            "needs a batched solver, since single fits",
        ),
        (
            GaussianNB(),
            {"device": "tpu"},
            "device must be 'auto', 'cpu' or 'cuda'. Got 'tpu'",
        ),
    ],
    ids=["estimator", "parameter", "loop", "device"],
)
def test_games_that_torch_cannot_play_are_refused(estimator, parameters, message):
    with pytest.raises(ValueError, match=message):
        ModelGame(estimator, *classes(2), **parameters)


def test_a_device_that_is_not_there_is_refused(no_gpu):
    with pytest.raises(ValueError, match="device='cuda' needs a CUDA GPU"):
        ModelGame(LogisticRegression(), *classes(2), device="cuda")


def test_without_torch_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "skvalue.games.solvers.torch", raising=False)
    message = r"needs torch: pip install 'skvalue\[torch\]'"
    with pytest.raises(ImportError, match=message):
        ModelGame(LogisticRegression(), *classes(2), batch="torch")


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), Ridge(), LinearRegression()], ids=str
)
def test_utilities_on_a_gpu_are_those_of_the_compiled_solver(estimator, rng, gpu):
    if not isinstance(estimator, LogisticRegression):
        check_equal(estimator, targets(), of_all_kinds(rng, 40, 3), "cuda")
        return
    for n_classes in (2, 3):
        masks = of_all_kinds(rng, 50, 3)
        data = classes(n_classes)
        check_equal(estimator, data, masks, "cuda", scoring="neg_log_loss")
