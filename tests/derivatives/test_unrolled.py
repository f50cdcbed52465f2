"""Derivatives through training, against central differences and against the other
engine."""

import weakref
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn import config_context

from skvalue.derivatives import LinearRowModel, Utility
from skvalue.derivatives.optimizers import OPTIMIZERS, SCHEDULES, Optimizer
from skvalue.derivatives.unrolled import draw_batches, train, unrolled_derivatives

N = 12
STEP = 1e-5


def warm_up(fraction):
    return min(1.0, 4 * (fraction + 0.1))


RATES = {"sgd": 0.2, "adamw": 0.05}
TRAININGS = [
    Optimizer(name, RATES[name], momentum, decay, schedule)
    for name, momentum, decay, schedule in product(
        OPTIMIZERS, (0.0, 0.8), (0.0, 0.1), (*SCHEDULES, warm_up)
    )
]


def name_of(optimizer):
    schedule = getattr(optimizer.schedule, "__name__", optimizer.schedule)
    return f"{optimizer.name}-{optimizer.momentum}-{optimizer.weight_decay}-{schedule}"


each_training = pytest.mark.parametrize("optimizer", TRAININGS, ids=name_of)
some_trainings = pytest.mark.parametrize("optimizer", TRAININGS[::5], ids=name_of)
both_losses = pytest.mark.parametrize("n_classes", [0, 3], ids=["squares", "softmax"])

# Models -------------------------------------------------------------------------------

POINT_WEIGHTS = np.arange(1, 7) / 21


class Problem(NamedTuple):
    """A model, its rows, and the utility of its parameters at the points."""

    model: Any
    rows: Any
    utility: Utility

    def start(self):
        return self.model.parameters(self.model.start(None))


def data(n_classes=3, n=N):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    X_val = rng.normal(size=(6, 4))
    X[:, 3] = 0  # parameters that no row moves
    X_val[:, 3] = 0
    if n_classes:
        return X, np.arange(n) % n_classes, X_val, np.arange(6) % n_classes
    return X, rng.normal(size=n), X_val, rng.normal(size=6)


def problem_of(model, X, y, X_val, y_val):
    utility = Utility(model, model.rows(X_val, y_val), POINT_WEIGHTS)
    return Problem(model, model.rows(X, y), utility)


def linear_problem(n_classes=3, n=N):
    return problem_of(LinearRowModel(4, n_classes), *data(n_classes, n))


def torch_problem(make_module, n_classes=3, loss=None):
    torch = pytest.importorskip("torch")
    from skvalue.derivatives import TorchRowModel

    X, *others = data(n_classes)
    module = make_module(torch).to(torch.float64)
    model = TorchRowModel(module, loss, X, start="given", device="cpu")
    return problem_of(model, X, *others)


def network(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)
    )


def frozen_network(torch):
    net = network(torch)
    net[0].requires_grad_(False)
    return net


def network_with_an_unused_layer(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used = network(torch)
            self.unused = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.used(x)

    return Net()


# Derivatives --------------------------------------------------------------------------


def make_batches(n=N, size=5, epochs=3):
    return draw_batches(n, size, epochs, np.random.default_rng(1))


def derivatives_of(problem, optimizer, batches):
    """Derivatives of the weighted loss of the points, and the trained parameters."""

    def slope(theta):
        return -problem.utility.gradient(theta)

    return unrolled_derivatives(
        problem.model, problem.rows, problem.start(), batches, optimizer, slope
    )


def differences(problem, optimizer, batches, rows=range(N)):
    """Central differences of the weighted loss of the points by the weights of rows."""

    def loss(row, change):
        weights = np.ones(N)
        weights[row] += change
        start = problem.start()
        theta = train(problem.model, problem.rows, start, batches, optimizer, weights)
        return -problem.utility.value(theta)

    return np.array([(loss(row, STEP) - loss(row, -STEP)) / (2 * STEP) for row in rows])


def check(problem, optimizer, batches, rows=(0, 4, 7, 11)):
    """Derivatives by the weights of rows equal central differences."""
    derivatives, _ = derivatives_of(problem, optimizer, batches)
    exact = differences(problem, optimizer, batches, rows)
    errors = derivatives[list(rows)] - exact
    assert np.abs(errors).max() < 1e-6 * np.abs(exact).max()


@pytest.fixture(autouse=True)
def no_working_memory():
    """States are kept every sqrt(T) steps, however small they are."""
    with config_context(working_memory=0):
        yield


@each_training
@both_losses
def test_linear_models_equal_central_differences(optimizer, n_classes):
    check(linear_problem(n_classes), optimizer, make_batches(), range(N))


@each_training
@both_losses
def test_the_trained_parameters_are_those_of_the_training(optimizer, n_classes):
    problem = linear_problem(n_classes)
    batches = make_batches()
    _, end = derivatives_of(problem, optimizer, batches)
    expected = train(problem.model, problem.rows, problem.start(), batches, optimizer)
    np.testing.assert_array_equal(end, expected)


@some_trainings
def test_networks_equal_central_differences(optimizer):
    check(torch_problem(network), optimizer, make_batches(epochs=2))


@some_trainings
@both_losses
def test_torch_gives_the_derivatives_of_the_linear_engine(optimizer, n_classes):
    def zeros(torch):
        layer = torch.nn.Linear(4, n_classes or 1)
        for parameter in layer.parameters():
            torch.nn.init.zeros_(parameter)
        return layer

    batches = make_batches()
    linear, _ = derivatives_of(linear_problem(n_classes), optimizer, batches)
    by_torch, _ = derivatives_of(torch_problem(zeros, n_classes), optimizer, batches)
    np.testing.assert_allclose(by_torch, linear, rtol=1e-9, atol=1e-13)


def smoothed_loss(outputs, y):
    torch = pytest.importorskip("torch")
    return torch.nn.functional.cross_entropy(outputs, y, label_smoothing=0.1)


@pytest.mark.parametrize(
    ("make_module", "loss"),
    [(frozen_network, smoothed_loss), (network_with_an_unused_layer, None)],
)
def test_modules_and_losses_of_any_kind_equal_central_differences(make_module, loss):
    problem = torch_problem(make_module, loss=loss)
    check(problem, Optimizer("sgd", 0.1, 0.5), make_batches(epochs=2))


@pytest.mark.parametrize("n_steps", [1, 2, 3, 4, 7, 10])
def test_any_number_of_steps_equals_central_differences(n_steps):
    batches = make_batches(epochs=4)[:n_steps]
    check(linear_problem(), Optimizer("sgd", 0.1), batches, range(N))


@pytest.mark.parametrize("n_steps", [1, 2])
def test_rows_in_no_batch_have_a_derivative_of_zero(n_steps):
    batches = make_batches(epochs=4)[:n_steps]
    derivatives, _ = derivatives_of(linear_problem(), Optimizer("sgd", 0.1), batches)
    absent = np.setdiff1d(np.arange(N), np.concatenate(batches))
    assert len(absent)
    np.testing.assert_array_equal(derivatives[absent], 0)


# Optimizers ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sgd", "adamw"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_steps_are_those_of_torch(name, momentum, decay):
    torch = pytest.importorskip("torch")
    theta = torch.ones(5, dtype=torch.float64, requires_grad=True)
    if name == "sgd":
        options = {"momentum": momentum, "weight_decay": decay}
        of_torch = torch.optim.SGD([theta], lr=0.1, **options)
    else:
        options = {"betas": (momentum, 0.999), "weight_decay": decay}
        of_torch = torch.optim.AdamW([theta], lr=0.1, **options)
    optimizer = Optimizer(name, 0.1, momentum, decay)
    state = optimizer.start(np.ones(5))
    for t, gradient in enumerate(np.random.default_rng(0).normal(size=(6, 5))):
        theta.grad = torch.tensor(gradient)
        of_torch.step()
        state = optimizer.step(state, gradient, t, 6)
    # In AdamW, 1e-8 is added under the root, and not to the root.
    rtol = 1e-12 if name == "sgd" else 1e-5
    np.testing.assert_allclose(state[0], theta.detach().numpy(), rtol=rtol)


# Memory -------------------------------------------------------------------------------


class Counted(LinearRowModel):
    """Knows the most parameters that were alive at a time."""

    alive = []
    n_most = 0

    def count(self, theta):
        self.alive = [reference for reference in self.alive if reference() is not None]
        if not any(reference() is theta for reference in self.alive):
            self.alive.append(weakref.ref(theta))
        self.n_most = max(self.n_most, len(self.alive))

    def gradient_sum(self, theta, rows, weights, step=None):
        self.count(theta)
        return super().gradient_sum(theta, rows, weights, step)

    def linearized(self, theta, rows):
        self.count(theta)
        return super().linearized(theta, rows)


@pytest.mark.parametrize("n_steps", [25, 100])
def test_at_most_two_roots_of_the_steps_are_kept(n_steps):
    model = Counted(4, 3)
    problem = problem_of(model, *data())
    optimizer = Optimizer("sgd", 0.1, 0.9)
    batches = make_batches(size=N, epochs=n_steps)
    root = int(np.sqrt(n_steps))
    derivatives, _ = derivatives_of(problem, optimizer, batches)
    assert 1.5 * root < model.n_most <= 2 * root + 2

    # With memory all are kept, and the derivatives are the same.
    model.n_most = 0
    with config_context(working_memory=1024):
        with_memory, _ = derivatives_of(problem, optimizer, batches)
    assert model.n_most >= n_steps
    np.testing.assert_array_equal(with_memory, derivatives)
