"""What fits of the neighbour methods cost, estimated from a few of their validation
points."""

import time
import tracemalloc

import numpy as np
import pytest

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.privacy import Ledger

KEYS = {"seconds", "n_points", "seconds_per_point", "memory", "n_players", "solver"}


def problem(rng, n=60, n_points=30, d=3):
    X, X_val = rng.normal(size=(n, d)), rng.normal(size=(n_points, d))
    return (X, (X[:, 0] > 0).astype(int)), {
        "X_val": X_val,
        "y_val": (X_val[:, 0] > 0).astype(int),
    }


@pytest.mark.parametrize(
    "valuer",
    [
        KNNShapleyValuer(),
        KNNShapleyValuer(utility="hard"),
        KNNShapleyValuer(max_rank=10, engine="torch", device="cpu"),
        TKNNShapleyValuer(),
    ],
    ids=["knn", "hard", "torch", "tknn"],
)
def test_what_is_estimated(valuer, rng):
    if valuer.engine == "torch":
        pytest.importorskip("torch")
    data, points = problem(rng)
    cost = valuer.estimate_cost(*data, **points)
    assert set(cost) == KEYS
    assert not hasattr(valuer, "values_")
    assert (cost.n_points, cost.n_players) == (30, 60)
    assert cost.solver == ("numba" if valuer.engine == "auto" else "torch")
    assert cost.seconds_per_point == pytest.approx(cost.seconds / 30)
    assert cost.seconds > 0 < cost.memory
    groups = np.arange(60) % 7
    weights = np.ones(30)
    cost = valuer.estimate_cost(
        *data, **points, groups=groups, sample_weight_val=weights
    )
    assert cost.n_players == 7
    values = valuer.fit(*data, **points).values_.copy()
    valuer.estimate_cost(data[0][:20], data[1][:20])
    np.testing.assert_array_equal(valuer.values_, values)


@pytest.mark.parametrize(
    "valuer", [KNNShapleyValuer(), TKNNShapleyValuer(radius=0.5)], ids=str
)
def test_points_of_held_out_rows(valuer, rng):
    (X, y), _ = problem(rng)
    for cv in ("leave-one-out", 5):
        assert valuer.set_params(cv=cv).estimate_cost(X, y).n_points == 60
    valuer.set_params(cv="leave-one-out")
    assert valuer.estimate_cost(X, X[:, 0]).n_points == 60  # a regression


def slow_distance(a, b):
    time.sleep(2e-4)
    return abs(a[0] - b[0])


@pytest.mark.slow  # looks at the clock
@pytest.mark.parametrize("cv", ["points", "leave-one-out", 5])
def test_seconds_are_those_of_a_fit(cv, rng):
    (X, y), points = problem(rng, 24, 90)
    if cv != "points":
        X, y = rng.normal(size=(45, 3)), np.arange(45) % 2
        points = {}
    held_out = "leave-one-out" if cv == "points" else cv
    valuer = KNNShapleyValuer(metric=slow_distance, cv=held_out, n_jobs=1)
    cost = valuer.estimate_cost(X, y, **points)
    start = time.perf_counter()
    valuer.fit(X, y, **points)
    assert 0.5 < (time.perf_counter() - start) / cost.seconds < 2
    if cv == "points":  # threads sleep side by side
        assert (
            valuer.set_params(n_jobs=3).estimate_cost(X, y, **points).seconds
            < cost.seconds / 1.5
        )


@pytest.mark.parametrize(
    ("valuer", "n_points"),
    [(KNNShapleyValuer(n_jobs=1), 300), (TKNNShapleyValuer(0.9, n_jobs=1), 20)],
    ids=["knn", "tknn"],
)
def test_memory_is_that_of_a_fit(valuer, n_points, rng):
    data, points = problem(rng, 3000, n_points)
    valuer.fit(*data, **points)  # compiles
    tracemalloc.start()
    try:
        cost = valuer.estimate_cost(
            *data, **points
        )  # of its own arrays, if already traced
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        valuer.fit(*data, **points)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert cost.memory == pytest.approx(peak, rel=0.3)
    assert valuer.estimate_cost(*data, **points).memory == pytest.approx(peak, rel=0.3)
    assert not tracemalloc.is_tracing()


def test_errors_are_those_of_fit(rng):
    (X, y), points = problem(rng)
    with pytest.raises(ValueError, match="max_rank must be at least n_neighbors=5"):
        KNNShapleyValuer(max_rank=2).estimate_cost(X, y, **points)
    with pytest.raises(ValueError, match="The 'n_neighbors' parameter"):
        KNNShapleyValuer(0).estimate_cost(X, y, **points)
    with pytest.raises(ValueError, match="only one of X_val and y_val|passed together"):
        TKNNShapleyValuer().estimate_cost(X, y, X_val=X)


def test_private_fits_are_not_timed(rng, tmp_path):
    data, points = problem(rng)
    ledger = Ledger(tmp_path / "ledger", "rows", epsilon=1.0, delta=1e-4)
    valuer = TKNNShapleyValuer(0.5, epsilon=0.5, ledger=ledger)
    with pytest.raises(
        ValueError, match=r"estimate_cost needs epsilon=None.*Got epsilon=0\.5"
    ):
        valuer.estimate_cost(*data, **points)
    assert not ledger.n_charges
