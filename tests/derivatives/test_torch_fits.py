"""Torch modules in the valuer of gradients: batches of permutations, threads, noise."""

import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch")

from skvalue import GradientSemivalueValuer

from .plain import plain_walk
from .torch_models import Net, TorchGradientModel, image_data, layer, table_data

seeded = pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")


@pytest.fixture
def images(rng):
    return image_data(rng)


@pytest.fixture
def table(rng):
    return table_data(rng)


def fit(valuer, data):
    X, y, players, X_val, y_val = data
    return valuer.fit(X, y, groups=players, X_val=X_val, y_val=y_val)


def make_valuer(module, **parameters):
    return GradientSemivalueValuer(
        module, **{"device": "cpu", "random_state": 0, "clip": 0.5, **parameters}
    )


# Values -------------------------------------------------------------------------------


class Zeros(torch.nn.Linear):
    """A layer that starts as the built-in models do."""

    def reset_parameters(self):
        for parameter in self.parameters():
            torch.nn.init.zeros_(parameter)


def values_of(model, data, **parameters):
    valuer = make_valuer(
        model, n_permutations=5, standardize=False, **{"clip": 0.4, **parameters}
    )
    return fit(valuer, data).values_


@pytest.mark.parametrize(
    ("unit", "public"),
    [
        ("party", {}),
        ("example", {"n_components": 2}),
        ("party", {"n_components": 1, "clip": "median"}),
    ],
    ids=["party", "example-2", "party-median"],
)
def test_a_linear_layer_has_the_values_of_the_built_in_model(table, unit, public):
    # Coordinates are from the parameters that a module has, not from fresh ones.
    options = {"learning_rate": 0.3, "unit": unit, **public}
    built_in = values_of("softmax", table, **options)
    by_torch = values_of(Zeros(4, 3, dtype=torch.float64), table, **options)
    assert np.ptp(built_in) > 0.01
    np.testing.assert_allclose(by_torch, built_in, atol=1e-12)


def test_linear_regression_has_the_values_of_the_built_in_model(table, rng):
    X, _, players, X_val, _ = table
    y = X[:, 0] + rng.normal(size=10)
    data = X, y, players, X_val, X_val[:, 0]
    built_in = values_of("linear", data, learning_rate=0.1)
    module = Zeros(4, 1, dtype=torch.float64)
    by_torch = values_of(module, data, learning_rate=0.1)
    assert np.ptp(built_in) > 0.01
    np.testing.assert_allclose(by_torch, built_in, atol=1e-12)


def test_images_are_valued(images):
    valuer = make_valuer(Net(), n_permutations=3, learning_rate=0.1)
    values = fit(valuer, images).values_
    np.testing.assert_array_equal(values, fit(clone(valuer), images).values_)
    assert values.sum() == pytest.approx(valuer.utility_ - valuer.empty_utility_)


def test_images_are_valued_in_private(images):
    valuer = GradientSemivalueValuer(
        Net(frozen=True),
        n_permutations=3,
        learning_rate=0.1,
        device="cpu",
        epsilon=1.0,
        unit="example",
    )
    fit(valuer, images)
    assert valuer.values_.shape == (3,)
    assert valuer.privacy_.guarantee == "(1, 1e-05)-local differential privacy"


def test_validation_images_of_another_size_are_refused(images):
    X, y, players, X_val, y_val = images
    valuer = make_valuer(Net(), n_permutations=3, learning_rate=0.1)
    message = "X_val must be like X|must accept rows of shape"
    with pytest.raises(ValueError, match=message):
        fit(valuer, (X, y, players, X_val[:, :, :5], y_val))


def test_values_on_a_gpu_are_those_of_the_cpu(gpu, images):
    valuer = make_valuer(Net(), n_permutations=20, learning_rate=0.3, unit="example")
    cpu = fit(valuer, images).values_
    cuda = fit(clone(valuer).set_params(device="cuda"), images).values_
    np.testing.assert_allclose(cuda, cpu, rtol=1e-9, atol=1e-12)


# Permutations at once -----------------------------------------------------------------


@pytest.fixture
def walks(monkeypatch):
    """Numbers of walks and of steps of the calls of `TorchGradientModel.walk`."""
    shapes = []
    walk = TorchGradientModel.walk

    def recorded(self, orders, *args, **options):
        shapes.append(orders.shape)
        return walk(self, orders, *args, **options)

    monkeypatch.setattr(TorchGradientModel, "walk", recorded)
    return shapes


@pytest.fixture
def one_by_one(monkeypatch):
    """Call it to let models walk step by step."""

    def patch():
        monkeypatch.setattr(TorchGradientModel, "walk", plain_walk)
        monkeypatch.setattr(
            TorchGradientModel, "as_array", lambda self, thetas: np.asarray(thetas)
        )

    return patch


def wide_valuer(width, unit, noise=None):
    """A valuer of seven permutations, of which two do not count."""
    module = torch.nn.Sequential(
        torch.nn.Linear(4, width, dtype=torch.float64),
        torch.nn.Linear(width, 3, dtype=torch.float64),
    )
    private = {}
    if noise is not None:
        private = {"noise_multiplier": 0.1, "noise": noise, "noise_random_state": 1}
    return make_valuer(
        module,
        semivalue=(4, 1),
        n_permutations=7,
        burn_in=0.3,
        learning_rate=0.3,
        unit=unit,
        **private,
    )


def check_one_by_one(valuer, values, data, one_by_one):
    """The values are those of permutations that are walked step by step."""
    one_by_one()
    expected = fit(clone(valuer), data)
    assert expected.n_evaluations_ == 5 * 5
    assert np.ptp(expected.values_) > 1e-3
    np.testing.assert_allclose(values, expected.values_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("noise", "unit"), [(None, "party"), ("iid", "example")])
@seeded
def test_permutations_are_walked_at_once(table, walks, one_by_one, noise, unit):
    valuer = wide_valuer(5, unit, noise)
    values = fit(valuer, table).values_
    assert [n_walks for n_walks, _ in walks] == [5]
    check_one_by_one(valuer, values, table, one_by_one)


@pytest.mark.parametrize("unit", ["party", "example"])
@seeded
def test_permutations_that_average_releases_are_walked_one_by_one(
    table, walks, one_by_one, unit
):
    # Averages of releases depend on the permutations before.
    valuer = wide_valuer(5, unit, "correlated")
    values = fit(valuer, table).values_
    assert [n_walks for n_walks, _ in walks] == [1] * 7
    check_one_by_one(valuer, values, table, one_by_one)


@seeded
def test_walks_of_large_modules_are_taken_step_by_step(
    table, walks, one_by_one, monkeypatch
):
    # Noise is drawn for one step at a time.
    valuer = wide_valuer(8200, "party", "iid")
    monkeypatch.setattr(TorchGradientModel, "batch_size", lambda self, n_walks: (2, 1))
    values = fit(valuer, table).values_
    assert max(n_walks for n_walks, _ in walks) == 2
    assert {n_steps for _, n_steps in walks} == {1}
    check_one_by_one(valuer, values, table, one_by_one)


def test_a_bad_gradient_among_permutations_at_once_is_named(table):
    X, *others = table
    X = np.where(np.arange(10)[:, None] == 1, 1e70, X)
    valuer = make_valuer(layer(), n_permutations=3, learning_rate=1e250, clip=None)
    message = "Got one that is not, of the party [0-2] at step [1-4] of"
    with pytest.raises(ValueError, match=message):
        fit(valuer, (X, *others))


# Threads and noise --------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["iid", "correlated"])
@seeded
@pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning")
def test_threads_do_not_share_a_module(table, noise):
    """`torch.func.functional_call` changes the module: another thread would see its
    parameters."""
    running = {}
    is_shared = []

    class Slow(torch.nn.Linear):
        def forward(self, x):
            thread = threading.get_ident()
            first = running.setdefault(id(self), thread)
            time.sleep(1e-3)
            outputs = super().forward(x)
            is_shared.append(first != thread)
            if first == thread:
                running.pop(id(self))
            return outputs

    valuer = make_valuer(
        Slow(4, 3, dtype=torch.float64),
        n_permutations=3,
        learning_rate=0.3,
        noise_multiplier=0.1,
        noise=noise,
        noise_random_state=1,
        n_jobs=2,
    )
    fit(valuer, table)
    assert np.isfinite(valuer.values_error_).all()
    assert len(is_shared) > 10
    assert not any(is_shared)


def test_noise_relies_on_clipped_gradients(table, monkeypatch):
    def clips_nothing(x, min):
        return torch.ones_like(x)

    monkeypatch.setattr(torch, "clamp", clips_nothing)
    valuer = make_valuer(
        layer(dtype=torch.float32),
        n_permutations=2,
        noise_multiplier=1.0,
        noise="iid",
        clip=0.01,
        learning_rate=0.1,
    )
    message = "the model must clip gradients to norm 0.01"
    with pytest.raises(RuntimeError, match=message):
        fit(valuer, table)
