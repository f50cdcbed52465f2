"""Derivatives through training, against central differences and against the other
engine."""

import weakref
from itertools import product

import numpy as np
import pytest
from sklearn import config_context

from skvalue.derivatives import LinearRowModel, Utility
from skvalue.derivatives.optimizers import OPTIMIZERS, SCHEDULES, Optimizer
from skvalue.derivatives.unrolled import draw_batches, train, unrolled_derivatives

N, H = 12, 1e-5


def warm_up(fraction):
    return min(1.0, 4 * (fraction + 0.1))


HOW = [
    Optimizer(name, 0.2 if name == "sgd" else 0.05, momentum, decay, schedule)
    for name, momentum, decay, schedule in product(
        OPTIMIZERS, (0.0, 0.8), (0.0, 0.1), (*SCHEDULES, warm_up)
    )
]


def name_of(how):
    schedule = getattr(how.schedule, "__name__", how.schedule)
    return f"{how.name}-{how.momentum}-{how.weight_decay}-{schedule}"


each_how = pytest.mark.parametrize("how", HOW, ids=name_of)


def data(n_classes=3, n=N):
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(n, 4)), rng.normal(size=(6, 4))
    X[:, 3] = X_val[:, 3] = 0  # parameters that no row moves
    if n_classes:
        return X, np.arange(n) % n_classes, X_val, np.arange(6) % n_classes
    return X, rng.normal(size=n), X_val, rng.normal(size=6)


WEIGHTS = np.arange(1, 7) / 21  # of the points


def pair_of(model, X, y, X_val, y_val):
    """The rows of a model, and minus its loss at the points, as a `Utility`."""
    return model.rows(X, y), Utility(model, model.rows(X_val, y_val), WEIGHTS)


def linear_pair(n_classes=3, n=N):
    X, y, X_val, y_val = data(n_classes, n)
    return pair_of(LinearRowModel(4, n_classes), X, y, X_val, y_val)


def torch_pair(module, n_classes=3, loss=None, dtype="float64"):
    torch = pytest.importorskip("torch")
    from skvalue.derivatives import TorchRowModel

    X, y, X_val, y_val = data(n_classes)
    module = module(torch).to(getattr(torch, dtype))
    model = TorchRowModel(module, loss, X, start="given", device="cpu")
    return pair_of(model, X, y, X_val, y_val)


def network(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3)
    )


def derivatives(pair, how, batches):
    rows, utility = pair
    return unrolled_derivatives(
        utility.model,
        rows,
        start_of(pair),
        batches,
        how,
        lambda end: -utility.gradient(end),
    )


def start_of(pair):
    model = pair[1].model
    return model.parameters(model.start(None))


def differences(pair, how, batches, rows_changed=range(N), step=H):
    """Central differences of the weighted loss of the points by the weights of rows."""
    rows, utility = pair

    def value(i, change):
        weights = np.ones(N)
        weights[i] += change
        return -utility.value(
            train(utility.model, rows, start_of(pair), batches, how, weights)
        )

    return np.array(
        [(value(i, step) - value(i, -step)) / (2 * step) for i in rows_changed]
    )


def check(pair, how, batches, some=(0, 4, 7, 11)):
    """Derivatives by the weights of some rows equal central differences."""
    found, _ = derivatives(pair, how, batches)
    exact = differences(pair, how, batches, some)
    assert np.abs(found[list(some)] - exact).max() < 1e-6 * np.abs(exact).max()


def batches(n=N, size=5, epochs=3):
    return draw_batches(n, size, epochs, np.random.default_rng(1))


@pytest.fixture(autouse=True)
def roots():
    """States are kept every sqrt(T) steps, however small they are."""
    with config_context(working_memory=0):
        yield


@each_how
@pytest.mark.parametrize("n_classes", [0, 3], ids=["squares", "softmax"])
def test_linear_models_equal_central_differences(how, n_classes):
    pair = linear_pair(n_classes)
    found, end = derivatives(pair, how, batches())
    exact = differences(pair, how, batches())
    assert np.abs(found - exact).max() < 1e-6 * np.abs(exact).max()
    np.testing.assert_array_equal(
        end, train(pair[1].model, pair[0], start_of(pair), batches(), how)
    )


@pytest.mark.parametrize("how", HOW[::5], ids=name_of)
def test_networks_equal_central_differences(how):
    pair = torch_pair(network)
    check(pair, how, batches(epochs=2))


@pytest.mark.parametrize("how", HOW[::5], ids=name_of)
@pytest.mark.parametrize("n_classes", [0, 3], ids=["squares", "softmax"])
def test_engines_agree(how, n_classes):
    def zeros(torch):
        layer = torch.nn.Linear(4, n_classes or 1)
        for parameter in layer.parameters():
            torch.nn.init.zeros_(parameter)
        return layer

    one, _ = derivatives(linear_pair(n_classes), how, batches())
    other, _ = derivatives(torch_pair(zeros, n_classes), how, batches())
    np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-13)


def frozen(torch):
    net = network(torch)
    net[0].requires_grad_(False)
    return net


def with_an_unused_layer(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = network(torch), torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.used(x)

    return Net()


def smoothed(outputs, y):
    torch = pytest.importorskip("torch")
    return torch.nn.functional.cross_entropy(outputs, y, label_smoothing=0.1)


@pytest.mark.parametrize(
    ("module", "loss"), [(frozen, smoothed), (with_an_unused_layer, None)]
)
def test_modules_and_losses(module, loss):
    check(torch_pair(module, loss=loss), Optimizer("sgd", 0.1, 0.5), batches(epochs=2))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_steps_are_those_of_torch(momentum, decay):
    torch = pytest.importorskip("torch")
    for name, options in [
        ("sgd", {"momentum": momentum}),
        ("adamw", {"betas": (momentum, 0.999)}),
    ]:
        gradients = np.random.default_rng(0).normal(size=(6, 5))
        theta = torch.ones(5, dtype=torch.float64, requires_grad=True)
        cls = torch.optim.SGD if name == "sgd" else torch.optim.AdamW
        theirs = cls([theta], lr=0.1, weight_decay=decay, **options)
        ours = Optimizer(name, 0.1, momentum, decay)
        state = ours.start(np.ones(5))
        for t, gradient in enumerate(gradients):
            theta.grad = torch.tensor(gradient)
            theirs.step()
            state = ours.step(state, gradient, t, 6)
        # In AdamW, 1e-8 is added under the root, and not to the root.
        rtol = 1e-12 if name == "sgd" else 1e-5
        np.testing.assert_allclose(state[0], theta.detach().numpy(), rtol=rtol)


def test_at_most_two_roots_of_the_steps_are_kept():
    class Counted(LinearRowModel):
        alive, most = [], 0

        def count(self, theta):
            self.alive = [one for one in self.alive if one() is not None]
            if not any(one() is theta for one in self.alive):
                self.alive.append(weakref.ref(theta))
            self.most = max(self.most, len(self.alive))

        def gradient_sum(self, theta, rows, weights, step=None):
            self.count(theta)
            return super().gradient_sum(theta, rows, weights, step)

        def linearized(self, theta, rows):
            self.count(theta)
            return super().linearized(theta, rows)

    X, y, X_val, y_val = data()
    for epochs in (25, 100):
        model, steps = Counted(4, 3), batches(size=N, epochs=epochs)
        pair = pair_of(model, X, y, X_val, y_val)
        how, root = Optimizer("sgd", 0.1, 0.9), int(np.sqrt(len(steps)))
        few, _ = derivatives(pair, how, steps)
        assert 1.5 * root < model.most <= 2 * root + 2
        model.most = 0
        with config_context(working_memory=1024):
            all_at_once, _ = derivatives(pair, how, steps)
        assert model.most >= len(steps)
        np.testing.assert_array_equal(all_at_once, few)


def test_any_number_of_steps_and_rows_in_no_batch():
    pair, how = linear_pair(), Optimizer("sgd", 0.1)
    for n_steps in (1, 2, 3, 4, 7, 10):
        steps = batches(epochs=4)[:n_steps]
        check(pair, how, steps, range(N))
        found, _ = derivatives(pair, how, steps)
        absent = np.setdiff1d(np.arange(N), np.concatenate(steps))
        np.testing.assert_array_equal(found[absent], 0)
