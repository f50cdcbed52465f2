"""What fits of the neighbour methods cost, estimated from a few validation points."""

import time
import tracemalloc

import numpy as np
import pytest
from problems import Problem

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.privacy import Ledger

KEYS = {"seconds", "n_points", "seconds_per_point", "memory", "n_players", "solver"}


def make_problem(rng, n=60, n_points=30):
    X = rng.normal(size=(n, 3))
    X_val = rng.normal(size=(n_points, 3))
    y = (X[:, 0] > 0).astype(int)
    return Problem(X, y, X_val, (X_val[:, 0] > 0).astype(int))


def cost_of(valuer, problem, **options):
    return valuer.estimate_cost(*problem.rows, **problem.points, **options)


# What is estimated --------------------------------------------------------------------


@pytest.fixture(params=["knn", "hard", "torch", "tknn"])
def valuer(request):
    if request.param == "torch":
        pytest.importorskip("torch")
        return KNNShapleyValuer(max_rank=10, engine="torch", device="cpu")
    if request.param == "hard":
        return KNNShapleyValuer(utility="hard")
    return KNNShapleyValuer() if request.param == "knn" else TKNNShapleyValuer()


def test_a_cost_has_numbers_of_points_players_seconds_and_bytes(valuer, rng):
    cost = cost_of(valuer, make_problem(rng))
    assert set(cost) == KEYS
    assert cost.n_points == 30
    assert cost.n_players == 60
    assert cost.solver == ("native" if valuer.engine == "auto" else "torch")
    assert cost.seconds > 0
    assert cost.seconds_per_point == pytest.approx(cost.seconds / 30)
    assert cost.memory > 0


def test_groups_are_the_players_of_a_cost(valuer, rng):
    options = {"groups": np.arange(60) % 7, "sample_weight_val": np.ones(30)}
    assert cost_of(valuer, make_problem(rng), **options).n_players == 7


def test_an_estimate_does_not_fit(valuer, rng):
    cost_of(valuer, make_problem(rng))
    assert not hasattr(valuer, "values_")


def test_an_estimate_leaves_the_values_of_a_fit(valuer, rng):
    problem = make_problem(rng)
    values = problem.fit(valuer).values_.copy()
    valuer.estimate_cost(problem.X[:20], problem.y[:20])
    np.testing.assert_array_equal(valuer.values_, values)


@pytest.mark.parametrize("cv", ["leave-one-out", 5])
@pytest.mark.parametrize(
    "valuer", [KNNShapleyValuer(), TKNNShapleyValuer(radius=0.5)], ids=str
)
def test_held_out_rows_are_points(valuer, cv, rng):
    problem = make_problem(rng)
    valuer.set_params(cv=cv)
    assert valuer.estimate_cost(*problem.rows).n_points == 60


@pytest.mark.parametrize(
    "valuer", [KNNShapleyValuer(), TKNNShapleyValuer(radius=0.5)], ids=str
)
def test_held_out_rows_are_points_of_a_regression(valuer, rng):
    X = make_problem(rng).X
    valuer.set_params(cv="leave-one-out")
    assert valuer.estimate_cost(X, X[:, 0]).n_points == 60


# Against fits -------------------------------------------------------------------------


def slow_distance(a, b):
    time.sleep(2e-4)
    return abs(a[0] - b[0])


# These look at the clock.
@pytest.mark.slow
def test_seconds_are_those_of_a_fit(rng):
    problem = make_problem(rng, 24, 90)
    valuer = KNNShapleyValuer(metric=slow_distance, n_jobs=1)
    cost = cost_of(valuer, problem)
    start = time.perf_counter()
    problem.fit(valuer)
    assert 0.5 < (time.perf_counter() - start) / cost.seconds < 2


@pytest.mark.slow
@pytest.mark.parametrize("cv", ["leave-one-out", 5])
def test_seconds_of_held_out_rows_are_those_of_a_fit(cv, rng):
    X = rng.normal(size=(45, 3))
    y = np.arange(45) % 2
    valuer = KNNShapleyValuer(metric=slow_distance, cv=cv, n_jobs=1)
    cost = valuer.estimate_cost(X, y)
    start = time.perf_counter()
    valuer.fit(X, y)
    assert 0.5 < (time.perf_counter() - start) / cost.seconds < 2


@pytest.mark.slow
def test_threads_take_fewer_seconds(rng):
    # They sleep side by side.
    problem = make_problem(rng, 24, 90)
    one = KNNShapleyValuer(metric=slow_distance, n_jobs=1)
    three = KNNShapleyValuer(metric=slow_distance, n_jobs=3)
    assert cost_of(three, problem).seconds < cost_of(one, problem).seconds / 1.5


@pytest.mark.parametrize("is_traced", [True, False])
@pytest.mark.parametrize(
    ("valuer", "n_points"),
    [(KNNShapleyValuer(n_jobs=1), 300), (TKNNShapleyValuer(0.9, n_jobs=1), 20)],
    ids=["knn", "tknn"],
)
def test_memory_is_that_of_a_fit(valuer, n_points, is_traced, rng):
    """Also where somebody traces memory already."""
    problem = make_problem(rng, 3000, n_points)
    # Compiles.
    problem.fit(valuer)
    if not is_traced:
        cost = cost_of(valuer, problem)
        assert not tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        if is_traced:
            cost = cost_of(valuer, problem)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        problem.fit(valuer)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert cost.memory == pytest.approx(peak - before, rel=0.3)


# What is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_rank": 2}, "max_rank must be at least n_neighbors=5"),
        ({"n_neighbors": 0}, "The 'n_neighbors' parameter"),
    ],
    ids=str,
)
def test_parameters_that_fit_refuses_are_refused(parameters, message, rng):
    with pytest.raises(ValueError, match=message):
        cost_of(KNNShapleyValuer(**parameters), make_problem(rng))


def test_points_without_labels_are_refused(rng):
    X, y, *_ = make_problem(rng)
    with pytest.raises(ValueError, match="only one of X_val and y_val|passed together"):
        TKNNShapleyValuer().estimate_cost(X, y, X_val=X)


def test_private_fits_are_not_timed(rng, tmp_path):
    ledger = Ledger(tmp_path / "ledger", "rows", epsilon=1.0, delta=1e-4)
    valuer = TKNNShapleyValuer(0.5, epsilon=0.5, ledger=ledger)
    message = r"estimate_cost needs epsilon=None.*Got epsilon=0\.5"
    with pytest.raises(ValueError, match=message):
        cost_of(valuer, make_problem(rng))
    assert not ledger.n_charges
