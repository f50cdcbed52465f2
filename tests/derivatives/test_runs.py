"""Runs of gradient descent: games of steps, engines, clipping."""

import tracemalloc
from itertools import combinations
from math import factorial

import numpy as np
import pytest
from sklearn import config_context

from skvalue.derivatives import (
    LinearRowModel,
    Run,
    Utility,
    descend,
    public_run_rate,
    shuffled_batches,
)
from skvalue.privacy import clipping_margin

N = 6
RATE = 0.7
each_task = pytest.mark.parametrize("n_classes", [0, 2, 3])
clipped_or_not = pytest.mark.parametrize("clip", [None, 0.3])


def problem(n_classes, n=N, n_points=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X_val = rng.normal(size=(n_points, d))
    if n_classes:
        y = rng.integers(n_classes, size=n)
        y_val = rng.integers(n_classes, size=n_points)
    else:
        y = rng.normal(size=n)
        y_val = rng.normal(size=n_points)
    weights = rng.random(n_points)
    return X, y, X_val, y_val, weights / weights.sum()


def of_problem(model, n_classes):
    """The utility of a model, and its rows."""
    X, y, X_val, y_val, weights = problem(n_classes)
    return Utility(model, model.rows(X_val, y_val), weights), model.rows(X, y)


def linear_model(n_classes):
    return LinearRowModel(3, n_classes)


def torch_model(n_classes):
    """The same model as a torch module."""
    torch = pytest.importorskip("torch")
    from skvalue.derivatives import TorchRowModel

    module = torch.nn.Linear(3, n_classes or 1, dtype=torch.float64)
    torch.nn.init.zeros_(module.weight)
    torch.nn.init.zeros_(module.bias)
    X_val = problem(n_classes)[2]
    return TorchRowModel(module, None, X_val, n_classes=n_classes)


def as_linear(vector, n_classes):
    """Parameters of a torch Linear, weights (C, d) and biases, as (d + 1, C)."""
    k = n_classes or 1
    return np.vstack([vector[: 3 * k].reshape(k, 3).T, vector[3 * k :]]).ravel()


# Values of a step ---------------------------------------------------------------------


def shapley_values(game, n):
    """Shapley values by enumeration of all coalitions."""
    values = np.zeros(n)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            for coalition in combinations(others, size):
                contribution = game([*coalition, i]) - game(list(coalition))
                values[i] += weight * contribution
    return values


@each_task
@pytest.mark.parametrize("order", [1, 2])
@clipped_or_not
def test_a_step_is_valued_by_the_shapley_value_of_its_game(n_classes, order, clip):
    model = linear_model(n_classes)
    utility, rows = of_problem(model, n_classes)
    p = model.n_parameters
    theta = np.random.default_rng(1).normal(size=p)
    gradients = np.empty((N, p))
    for i in range(N):
        gradients[i], _ = model.gradient_sum_and_products(
            theta, rows[[i]], np.zeros((0, p)), clip
        )
    if clip is not None:
        assert (np.linalg.norm(gradients, axis=1) <= clip * (1 + 1e-15)).all()
    slope = utility.gradient(theta)

    def game(coalition):
        step = -RATE / N * gradients[coalition].sum(axis=0)
        if order == 1:
            return slope @ step
        half_hessian_step = utility.gradient(theta, step) - slope
        return slope @ step + half_hessian_step @ step

    run = Run(utility, N, clip, RATE, order, [theta])
    ((batch, products),) = descend(run, rows, shuffled_batches(N, None, None), 1)
    assert batch is None
    after_step = theta - RATE / N * gradients.sum(axis=0)
    np.testing.assert_allclose(run.thetas[1], after_step, atol=1e-12)
    np.testing.assert_allclose(products, shapley_values(game, N), atol=1e-12)
    assert products.sum() == pytest.approx(game(list(range(N))), abs=1e-12)


def test_batches_of_an_epoch_hold_every_row_once():
    batches = shuffled_batches(10, 5, np.random.default_rng(0))
    drawn = [next(batches) for _ in range(4)]
    assert [size for _, size in drawn] == [5] * 4
    for epoch in (drawn[:2], drawn[2:]):
        rows = np.concatenate([rows for rows, _ in epoch])
        assert sorted(rows) == list(range(10))


def test_a_batch_of_all_rows_is_none():
    assert next(shuffled_batches(10, None, None)) == (None, 10)


def test_a_run_that_diverges_names_the_learning_rate():
    utility, rows = of_problem(linear_model(0), 0)
    run = Run(utility, N, None, 1e3, 1, [np.zeros(4)])
    with (
        pytest.raises(ValueError, match="learning_rate must be smaller"),
        np.errstate(all="ignore"),
    ):
        list(descend(run, rows, shuffled_batches(N, None, None), 3000))


# Derivatives --------------------------------------------------------------------------


@pytest.fixture
def directions(n_classes):
    """Parameters and a step of a model."""
    size = linear_model(n_classes).n_parameters
    return np.random.default_rng(1).normal(size=(2, size))


@each_task
def test_the_gradient_of_a_utility_equals_differences(n_classes, directions):
    utility, _ = of_problem(linear_model(n_classes), n_classes)
    theta, step = directions
    h = 1e-5
    difference = utility.value(theta + h * step) - utility.value(theta - h * step)
    slope = utility.gradient(theta) @ step
    assert slope == pytest.approx(difference / (2 * h), rel=1e-7)


@each_task
def test_the_curvature_of_a_utility_equals_differences(n_classes, directions):
    utility, _ = of_problem(linear_model(n_classes), n_classes)
    theta, step = directions
    h = 1e-5
    above = utility.gradient(theta + h * step)
    below = utility.gradient(theta - h * step)
    half = utility.gradient(theta, step) - utility.gradient(theta)
    np.testing.assert_allclose(half, (above - below) / (4 * h), atol=1e-8)


@each_task
@pytest.mark.parametrize("with_step", [False, True])
def test_gradients_of_points_average_to_that_of_the_utility(
    n_classes, directions, with_step
):
    utility, _ = of_problem(linear_model(n_classes), n_classes)
    theta, step = directions
    step = step if with_step else None
    by_point = utility.point_gradients(theta, slice(0, 5), step)
    mean = problem(n_classes)[-1] @ by_point
    np.testing.assert_allclose(mean, utility.gradient(theta, step), atol=1e-12)


# Engines ------------------------------------------------------------------------------


@pytest.fixture
def vectors(n_classes):
    """Parameters and two directions of the torch model, and of the linear one."""
    size = linear_model(n_classes).n_parameters
    of_torch = np.random.default_rng(2).normal(size=(3, size))
    of_linear = np.array([as_linear(vector, n_classes) for vector in of_torch])
    return of_torch, of_linear


@each_task
@pytest.mark.parametrize("with_step", [False, True])
def test_utilities_by_torch_are_those_of_the_linear_engine(
    n_classes, vectors, with_step
):
    (theta, step, _), (linear_theta, linear_step, _) = vectors
    if not with_step:
        step = linear_step = None
    by_torch, _ = of_problem(torch_model(n_classes), n_classes)
    linear, _ = of_problem(linear_model(n_classes), n_classes)
    value = linear.value(linear_theta)
    assert by_torch.value(theta) == pytest.approx(value, rel=1e-12)

    gradient = as_linear(by_torch.gradient(theta, step), n_classes)
    expected = linear.gradient(linear_theta, linear_step)
    np.testing.assert_allclose(gradient, expected, atol=1e-12)

    points = slice(1, 4)
    by_point = by_torch.point_gradients(theta, points, step)
    by_point = [as_linear(gradient, n_classes) for gradient in by_point]
    expected = linear.point_gradients(linear_theta, points, linear_step)
    np.testing.assert_allclose(by_point, expected, atol=1e-12)


@each_task
@clipped_or_not
@pytest.mark.parametrize("n_directions", [1, 2])  # one takes another way than several
def test_sums_and_products_by_torch_are_those_of_the_linear_engine(
    n_classes, vectors, clip, n_directions
):
    (theta, *directions), (linear_theta, *linear_directions) = vectors
    by_torch, tensors = of_problem(torch_model(n_classes), n_classes)
    linear, rows = of_problem(linear_model(n_classes), n_classes)
    total, products = by_torch.model.gradient_sum_and_products(
        theta, tensors, np.array(directions[:n_directions]), clip
    )
    expected_total, expected_products = linear.model.gradient_sum_and_products(
        linear_theta, rows, np.array(linear_directions[:n_directions]), clip
    )
    total = as_linear(total, n_classes)
    np.testing.assert_allclose(total, expected_total, atol=1e-12)
    np.testing.assert_allclose(products, expected_products, atol=1e-12)


@each_task
def test_probabilities_by_torch_are_those_of_the_linear_engine(n_classes, vectors):
    (theta, *_), (linear_theta, *_) = vectors
    X = problem(n_classes)[0]
    by_torch = torch_model(n_classes).probabilities(theta, X)
    linear = linear_model(n_classes).probabilities(linear_theta, X)
    assert linear.shape == ((N, n_classes) if n_classes else (N,))
    np.testing.assert_allclose(by_torch, linear, atol=1e-12)


@pytest.mark.parametrize("make_model", [linear_model, torch_model])
@clipped_or_not
def test_labels_above_the_last_class_have_no_gradient(make_model, clip):
    model = make_model(3)
    X = problem(3)[0]
    y = np.array([0, 1, 3, 2, 3, 0])
    theta = np.random.default_rng(0).normal(size=model.n_parameters)
    direction = np.random.default_rng(1).normal(size=(1, model.n_parameters))
    total, products = model.gradient_sum_and_products(
        theta, model.rows(X, y), direction, clip
    )
    has_class = y < 3
    rows = model.rows(X[has_class], y[has_class])
    expected, _ = model.gradient_sum_and_products(theta, rows, direction, clip)
    np.testing.assert_allclose(total, expected, atol=1e-12)
    assert (products[0] == 0).tolist() == (~has_class).tolist()


@pytest.mark.parametrize("large", [1e200, 1e308])
def test_clipped_rows_of_any_size_stay_below_the_bound(large):
    model = linear_model(0)
    rows = model.rows(np.full((3, 3), large), np.array([large, -large, 0.0]))
    theta = np.full(model.n_parameters, 1e10)
    total, products = model.gradient_sum_and_products(
        theta, rows, np.ones((1, model.n_parameters)), 0.5
    )
    assert np.isfinite(total).all()
    assert np.isfinite(products).all()
    assert np.linalg.norm(total) <= 1.5 * (1 + clipping_margin(4))


# Rounding -----------------------------------------------------------------------------


def large_torch_model(n_classes):
    torch = pytest.importorskip("torch")
    from skvalue.derivatives import TorchRowModel

    module = torch.nn.Sequential(
        torch.nn.Linear(20, 8), torch.nn.Tanh(), torch.nn.Linear(8, n_classes or 1)
    )
    X_val = np.random.default_rng(0).normal(size=(5, 20))
    return TorchRowModel(module, None, X_val, n_classes=n_classes, device="cpu")


def large_linear_model(n_classes):
    return LinearRowModel(20, n_classes)


@each_task
@pytest.mark.parametrize("make_model", [large_linear_model, large_torch_model])
def test_a_clipped_gradient_has_the_same_bits_in_any_sample(make_model, n_classes):
    """Whatever the size of the sample, and the place of the row in it."""
    n = 300
    row = 137
    rng = np.random.default_rng(0)
    model = make_model(n_classes)
    # The other rows have no gradient: those of no class, or that are not finite.
    X = rng.normal(size=(n, 20))
    if n_classes:
        y = np.full(n, n_classes)
        y[row] = 0
    else:
        y = np.full(n, np.inf)
        y[row] = 0.3
    rows = model.rows(X, y)
    theta = rng.normal(size=model.n_parameters)
    directions = np.ones((1, model.n_parameters))
    totals = []
    for size in (0, 1, 2, 3, 7, 40, 128, 200, n - 1):
        others = rng.choice(np.delete(np.arange(n), row), size, replace=False)
        sample = np.sort(np.append(others, row))
        total, _ = model.gradient_sum_and_products(
            theta, rows[sample], directions, 1e3, is_secret=True
        )
        totals.append(total)
    assert totals[0].any()
    np.testing.assert_array_equal(totals, totals[:1] * len(totals))


# The public rate ----------------------------------------------------------------------


def rate_and_peak(working_memory, *, noise_std, n_steps=100, n_features=1600):
    """The rate of runs of a regression on 12 points, and bytes at the peak."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, n_features))
    y = X[:, 0]
    model = LinearRowModel(n_features, 0)

    def make_utility(points):
        n_points = len(points)
        return Utility(
            model, model.rows(X[points], y[points]), np.full(n_points, 1 / n_points)
        )

    tracemalloc.start()
    try:
        with config_context(working_memory=working_memory):
            rate = public_run_rate(
                make_utility,
                X,
                y,
                np.random.default_rng(2),
                n_steps=n_steps,
                clip=1.0,
                noise_std=noise_std,
            )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return rate, peak


def test_the_noise_of_trial_runs_needs_the_working_memory():
    # That of all steps is 1.3 megabytes.
    assert rate_and_peak(1, noise_std=0.01)[1] < 2**20


@pytest.mark.parametrize("noise_std", [0.0, 0.001, 0.01, 0.1])
def test_the_public_rate_depends_on_no_memory(noise_std):
    rates = {
        rate_and_peak(memory, noise_std=noise_std, n_steps=20, n_features=30)[0]
        for memory in (0.001, 0.01, 1024)
    }
    assert len(rates) == 1
