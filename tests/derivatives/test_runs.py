"""Runs of gradient descent: games of steps, engines, clipping."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest

from skvalue.derivatives import LinearRowModel, Run, Utility, descend, shuffled_batches
from skvalue.privacy import clipping_margin

N, RATE = 6, 0.7


def problem(n_classes, n=N, n_points=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X, X_val = rng.normal(size=(n, d)), rng.normal(size=(n_points, d))
    if n_classes:
        y, y_val = (
            rng.integers(n_classes, size=n),
            rng.integers(n_classes, size=n_points),
        )
    else:
        y, y_val = rng.normal(size=n), rng.normal(size=n_points)
    weights = rng.random(n_points)
    return X, y, X_val, y_val, weights / weights.sum()


def linear(n_classes, **shape):
    X, y, X_val, y_val, weights = problem(n_classes, **shape)
    model = LinearRowModel(3, n_classes)
    return Utility(model, model.rows(X_val, y_val), weights), model.rows(X, y)


def engines(n_classes, n=N):
    """The compiled and the torch model of the same problem, and their rows."""
    torch = pytest.importorskip("torch")
    from skvalue.derivatives import TorchRowModel

    X, y, X_val, y_val, weights = problem(n_classes, n=n)
    module = torch.nn.Linear(3, n_classes or 1, dtype=torch.float64)
    torch.nn.init.zeros_(module.weight)
    torch.nn.init.zeros_(module.bias)
    module.bias.requires_grad_(True)
    models = (
        LinearRowModel(3, n_classes),
        TorchRowModel(module, None, X_val, n_classes=n_classes),
    )
    return [(Utility(m, m.rows(X_val, y_val), weights), m.rows(X, y)) for m in models]


def as_linear(vector, n_classes):
    """Parameters of a torch Linear, weights (C, d) and biases, as (d + 1, C)."""
    k = n_classes or 1
    return np.vstack([vector[: 3 * k].reshape(k, 3).T, vector[3 * k :]]).ravel()


def shapley(game, n):
    """Shapley values by enumeration of all coalitions."""
    values = np.zeros(n)
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            for some in combinations(rest, size):
                values[i] += weight * (game([*some, i]) - game(list(some)))
    return values


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_a_step_is_valued_by_the_shapley_value_of_its_game(n_classes, order, clip):
    utility, rows = linear(n_classes)
    model = utility.model
    theta = np.random.default_rng(1).normal(size=model.n_parameters)
    none = np.zeros((0, model.n_parameters))
    each = np.array(
        [
            model.gradient_sum_and_products(theta, rows[[i]], none, clip)[0]
            for i in range(N)
        ]
    )
    gradient = utility.gradient(theta)
    if clip is not None:
        assert (np.linalg.norm(each, axis=1) <= clip * (1 + 1e-15)).all()

    def game(coalition):
        step = -RATE / N * each[coalition].sum(axis=0)
        if order == 1:
            return gradient @ step
        half = (
            utility.gradient(theta, step) - gradient
        )  # half the Hessian times the step
        return gradient @ step + half @ step

    run = Run(utility, N, clip, RATE, order, [theta])
    ((batch, products),) = descend(run, rows, shuffled_batches(N, None, None), 1)
    assert batch is None
    np.testing.assert_allclose(
        run.thetas[1], theta - RATE / N * each.sum(axis=0), atol=1e-12
    )
    np.testing.assert_allclose(products, shapley(game, N), atol=1e-12)
    assert products.sum() == pytest.approx(game(list(range(N))), abs=1e-12)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_gradients_and_curvature_equal_differences_of_the_utility(n_classes):
    utility, _ = linear(n_classes)
    rng, h = np.random.default_rng(1), 1e-5
    theta, step = rng.normal(size=(2, utility.model.n_parameters))
    gradient = utility.gradient(theta)
    slope = (utility.value(theta + h * step) - utility.value(theta - h * step)) / (
        2 * h
    )
    assert gradient @ step == pytest.approx(slope, rel=1e-7)
    ends = [utility.gradient(theta + sign * h * step) for sign in (1, -1)]
    half = (ends[0] - ends[1]) / (4 * h)
    np.testing.assert_allclose(
        utility.gradient(theta, step) - gradient, half, atol=1e-8
    )
    weights = problem(n_classes)[-1]
    for change in (None, step):
        by_point = utility.point_gradients(theta, slice(0, 5), change)
        expected = utility.gradient(theta, change)
        np.testing.assert_allclose(weights @ by_point, expected, atol=1e-12)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_the_torch_engine_equals_the_linear_one(n_classes, clip):
    (one, rows), (other, tensors) = engines(n_classes)
    rng = np.random.default_rng(2)
    theta, direction, second = rng.normal(size=(3, one.model.n_parameters))
    theta_1, direction_1, second_1 = (
        as_linear(v, n_classes) for v in (theta, direction, second)
    )
    assert one.value(theta_1) == pytest.approx(other.value(theta), rel=1e-12)
    for step in (None, direction):
        step_1 = None if step is None else direction_1
        found = as_linear(other.gradient(theta, step), n_classes)
        np.testing.assert_allclose(found, one.gradient(theta_1, step_1), atol=1e-12)
        points = [
            as_linear(v, n_classes)
            for v in other.point_gradients(theta, slice(1, 4), step)
        ]
        expected = one.point_gradients(theta_1, slice(1, 4), step_1)
        np.testing.assert_allclose(points, expected, atol=1e-12)
    for k in (1, 2):  # one direction takes another way than several
        total, products = other.model.gradient_sum_and_products(
            theta, tensors, np.array([direction, second])[:k], clip
        )
        total_1, products_1 = one.model.gradient_sum_and_products(
            theta_1, rows, np.array([direction_1, second_1])[:k], clip
        )
        np.testing.assert_allclose(as_linear(total, n_classes), total_1, atol=1e-12)
        np.testing.assert_allclose(products, products_1, atol=1e-12)
    X = problem(n_classes)[0]
    np.testing.assert_allclose(
        one.model.probabilities(theta_1, X),
        other.model.probabilities(theta, X),
        atol=1e-12,
    )
    if n_classes == 0:
        assert one.model.probabilities(theta_1, X).shape == (N,)


def test_labels_above_the_last_class_have_no_gradient():
    for utility, _ in engines(3):
        model = utility.model
        X, y, *_ = problem(3)
        y = np.array([0, 1, 3, 2, 3, 0])
        theta = np.random.default_rng(0).normal(size=model.n_parameters)
        direction = np.random.default_rng(1).normal(size=(1, model.n_parameters))
        for clip in (None, 0.3):
            total, products = model.gradient_sum_and_products(
                theta, model.rows(X, y), direction, clip
            )
            known = y < 3
            less = model.gradient_sum_and_products(
                theta, model.rows(X[known], y[known]), direction, clip
            )[0]
            np.testing.assert_allclose(total, less, atol=1e-12)
            assert (products[0] == 0).tolist() == (~known).tolist()


@pytest.mark.parametrize("bad", [1e200, 1e308])
def test_clipped_rows_of_any_size_stay_below_the_bound(bad):
    model = linear(0)[0].model
    rows = model.rows(np.full((3, 3), bad), np.array([bad, -bad, 0.0]))
    with np.errstate(over="ignore"):
        theta = np.full(model.n_parameters, 1e10)
    total, products = model.gradient_sum_and_products(
        theta, rows, np.ones((1, model.n_parameters)), 0.5
    )
    assert np.isfinite(total).all()
    assert np.isfinite(products).all()
    assert np.linalg.norm(total) <= 1.5 * (1 + clipping_margin(4))


def test_batches_of_an_epoch_hold_every_row_once():
    batches = shuffled_batches(10, 5, np.random.default_rng(0))
    some = [next(batches) for _ in range(4)]
    assert [size for _, size in some] == [5] * 4
    for first, second in (some[:2], some[2:]):
        assert sorted([*first[0], *second[0]]) == list(range(10))
    assert next(shuffled_batches(10, None, None)) == (None, 10)


def test_a_run_that_diverges_names_the_learning_rate():
    utility, rows = linear(0)
    run = Run(utility, N, None, 1e3, 1, [np.zeros(4)])
    with (
        pytest.raises(ValueError, match="learning_rate must be smaller"),
        np.errstate(all="ignore"),
    ):
        list(descend(run, rows, shuffled_batches(N, None, None), 3000))
