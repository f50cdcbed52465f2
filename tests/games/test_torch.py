"""Batches by torch give what the compiled solvers give."""

import sys

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB

from skvalue import LeaveOneOutValuer
from skvalue.games import ModelGame

from .test_batched import KINDS, check_same, classes, coalitions, some, targets

torch = pytest.importorskip("torch")

from skvalue._utils.torch_device import find_device


def check_equal(estimator, data, masks, device="cpu", **parameters):
    """Utilities by torch are those of the CPU's solver, to 1e-6; return the game."""
    settings = {"batch": "torch", "device": device}, {"n_jobs": 1}
    by_torch, compiled = check_same(estimator, data, masks, settings, **parameters)
    assert by_torch.solver == f"{compiled.solver} (torch, {find_device(device)})"
    return by_torch


def all_kinds(rng, n, each=10):
    return np.concatenate([some(coalitions(rng, n, kind), each) for kind in KINDS])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "parameters", [{}, {"C": 100.0}, {"C": 1e-3, "fit_intercept": False}]
)
def test_logistic(n_classes, parameters, rng):
    model = LogisticRegression(**parameters)
    game = check_equal(
        model, classes(n_classes), all_kinds(rng, 50), scoring="neg_log_loss"
    )
    status = game._solver.tile_scores(
        masks := coalitions(rng, 50, "random"), masks.sum(axis=1)
    )[1]
    assert (status <= 1).all()  # solved, or of one class: none is left to the loop
    assert game._solver._max_dual_rows == 0  # nor to the compiled solver of few rows


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_and_groups(n_classes, rng):
    X, y, X_val, y_val = classes(n_classes)
    weights = rng.random(50) * 3
    weights[::7] = 0
    check_equal(
        LogisticRegression(), (X, y, X_val, y_val), rng.random((30, 10)) < 0.5,
        scoring="neg_log_loss", sample_weight=weights, groups=np.arange(50) % 10,
        sample_weight_val=rng.random(len(y_val)),
    )  # fmt: skip


def test_rows_far_from_the_origin(rng):
    X, y, X_val, y_val = classes(2)
    shifted = [part * [1e-2, 1, 1, 10, 30] + [0, 1, 100, 0, 0] for part in (X, X_val)]
    masks = coalitions(rng, 50, "permutation")
    model = LogisticRegression(C=10.0)
    check_equal(
        model, (shifted[0], y, shifted[1], y_val), masks, scoring="neg_log_loss"
    )


@pytest.mark.parametrize(
    "estimator",
    [Ridge(), Ridge(alpha=50, fit_intercept=False), LinearRegression()],
    ids=str,
)
def test_linear(estimator, rng):
    masks = all_kinds(rng, 40)
    check_equal(estimator, targets(), masks)
    check_equal(
        estimator, targets(), coalitions(rng, 40, "small")
    )  # none for torch, maybe
    weights = rng.random(40)
    weights[::9] = 0
    check_equal(estimator, targets(), masks, sample_weight=weights)


@pytest.mark.parametrize("estimator", [Ridge(), LogisticRegression()], ids=str)
def test_tiles_fit_into_the_working_memory(estimator, rng):
    data = targets() if isinstance(estimator, Ridge) else classes(3)
    game = ModelGame(estimator, *data, batch="torch", device="cpu")
    masks = rng.random((6, len(data[0]))) < 0.5
    expected = game.utility(masks)
    with config_context(working_memory=0.08):
        small = ModelGame(estimator, *data, batch="torch", device="cpu")
    assert small._solver.tile < game._solver.tile
    assert (
        small._solver.engine.n_at_once < len(data[0]) <= game._solver.engine.n_at_once
    )
    np.testing.assert_allclose(small.utility(masks), expected, atol=1e-6)


def test_in_a_valuer():
    X, y, X_val, y_val = classes(2)
    points = dict(X_val=X_val, y_val=y_val)
    plain = LeaveOneOutValuer(scoring="neg_log_loss").fit(X, y, **points)
    by_torch = LeaveOneOutValuer(scoring="neg_log_loss", batch="torch", device="cpu")
    np.testing.assert_allclose(
        by_torch.fit(X, y, **points).values_, plain.values_, atol=1e-6
    )
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
)
def test_what_torch_does_not_do(estimator, parameters, message):
    with pytest.raises(ValueError, match=message):
        ModelGame(estimator, *classes(2), **parameters)


def test_a_device_that_is_not_there_is_refused(no_gpu):
    with pytest.raises(ValueError, match="device='cuda' needs a CUDA GPU"):
        ModelGame(LogisticRegression(), *classes(2), device="cuda")


def test_without_torch_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "skvalue.games.solvers.torch", raising=False)
    with pytest.raises(
        ImportError, match=r"needs torch: pip install 'skvalue\[torch\]'"
    ):
        ModelGame(LogisticRegression(), *classes(2), batch="torch")


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), Ridge(), LinearRegression()], ids=str
)
def test_on_a_gpu(estimator, rng, gpu):
    if isinstance(estimator, LogisticRegression):
        for n_classes in (2, 3):
            masks = all_kinds(rng, 50, each=3)
            check_equal(
                estimator, classes(n_classes), masks, "cuda", scoring="neg_log_loss"
            )
    else:
        check_equal(estimator, targets(), all_kinds(rng, 40, each=3), "cuda")
