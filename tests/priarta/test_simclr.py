"""SimCLR: its loss, what it is invariant to, examples of every kind, and how it
travels."""

import json
import pickle
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

torch = pytest.importorskip("torch")

from skvalue._utils.torch_device import find_device, gains_from_bfloat16
from skvalue.exceptions import IncompleteFitWarning
from skvalue.priarta import GaussianVAE, SimCLR, nt_xent_loss
from skvalue.priarta.maps import Examples, example_shape

from ..conftest import simulate_a_gpu

SMALL = {"n_epochs": 1, "batch_size": 64, "random_state": 0}
NETWORKS = pytest.mark.parametrize("cls", [SimCLR, GaussianVAE])


@pytest.fixture
def table(rng):
    return rng.normal(size=(150, 6)) * [9, 5, 2, 1, 1, 1]


@parametrize_with_checks([SimCLR(n_epochs=1), GaussianVAE(2, n_epochs=1)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_the_loss_is_that_of_a_plain_loop(rng, temperature):
    n, d = 5, 3
    views = rng.normal(size=(2 * n, d))
    unit = views / np.linalg.norm(views, axis=1, keepdims=True)
    total = 0.0
    for i, view in enumerate(unit):
        similar = np.exp(unit @ view / temperature)
        others = sum(similar[k] for k in range(2 * n) if k != i)
        total -= np.log(similar[(i + n) % (2 * n)] / others)
    loss = nt_xent_loss(*torch.from_numpy(views).chunk(2), temperature)
    assert float(loss) == pytest.approx(total / (2 * n), rel=1e-5)


@pytest.fixture(scope="module")
def digits():
    images, y = load_digits(return_X_y=True)
    return images.reshape(-1, 8, 8).astype(np.float32), y


@pytest.fixture(scope="module")
def fitted(digits):
    return SimCLR(n_epochs=3, batch_size=128, random_state=0).fit(digits[0][:1000])


def test_augmented_copies_come_near(digits, fitted):
    X = digits[0]
    moved = np.roll(X, 1, axis=2)  # a shift by one pixel of eight
    raw = np.linalg.norm((moved - X).reshape(len(X), -1), axis=1).mean()
    raw /= np.linalg.norm((X - X[::-1]).reshape(len(X), -1), axis=1).mean()
    rows, copies = fitted.transform(X), fitted.transform(moved)
    near = np.linalg.norm(rows - copies, axis=1).mean()
    near /= np.linalg.norm(rows - rows[::-1], axis=1).mean()
    assert near < 0.7 * raw
    assert fitted.loss_curve_[-1] < fitted.loss_curve_[0] - 0.15
    assert fitted.n_iter_ == len(fitted.loss_curve_) == 3


@pytest.mark.slow
def test_classes_stay_apart(digits):
    X, y = digits
    simclr = SimCLR(n_epochs=8, batch_size=128, random_state=0).fit(X[:1000])
    rows, copies = simclr.transform(X), simclr.transform(np.roll(X, 1, axis=2))
    classifier = KNeighborsClassifier().fit(rows[:1000], y[:1000])
    assert classifier.score(rows[1000:], y[1000:]) > 0.8
    assert classifier.score(copies[1000:], y[1000:]) > 0.6


def test_outputs(digits, fitted):
    X = digits[0][:700]
    rows = fitted.transform(X)
    assert rows.shape == (700, 64)
    assert rows.dtype == np.float64
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert list(fitted.get_feature_names_out()[:2]) == ["simclr0", "simclr1"]
    fitted.set_params(output="backbone")
    try:
        assert fitted.transform(X).shape == (700, 64)
        assert len(fitted.get_feature_names_out()) == 64
    finally:
        fitted.set_params(output="projection")


def test_a_row_depends_on_itself_alone(digits, fitted):
    X = digits[0][:600]
    rows = fitted.transform(X)
    np.testing.assert_allclose(fitted.transform(X[5:6]), rows[5:6], atol=1e-6)
    np.testing.assert_allclose(fitted.transform(X[::-1])[::-1], rows, atol=1e-6)
    assert not fitted.network_.training


def test_images_of_every_form_are_the_same_images(digits):
    X = digits[0][:80]
    grey = SimCLR(**SMALL).fit(X)
    rows = grey.transform(X)
    flat = X.reshape(80, -1)
    forms = (
        (flat, (8, 8)),
        (X[..., None], None),
        (flat, (8, 8, 1)),
        (flat.tolist(), [8, 8]),
    )
    for form, image_shape in forms:
        other = clone(grey).set_params(image_shape=image_shape).fit(form)
        np.testing.assert_allclose(other.transform(form), rows, atol=1e-5)
        np.testing.assert_allclose(other.transform(X), rows, atol=1e-5)
        assert other.n_features_in_ == 64
    colour = clone(grey).fit(np.repeat(X[..., None], 3, axis=3))
    assert colour.network_.backbone[0].in_channels == 3


class DataSet:
    """Images in a file, as h5py gives them: an array-like without the methods of an
    array."""

    def __init__(self, images):
        self.images, self.shape, self.ndim = images, images.shape, images.ndim
        self.dtype = images.dtype

    def __array__(self, dtype=None, copy=None):
        return self.images.astype(dtype or self.dtype)

    def __len__(self):
        return len(self.images)


def test_images_of_a_file(digits):
    X = digits[0][:80]
    simclr, stored = SimCLR(**SMALL), DataSet(X)
    rows = simclr.fit(X).transform(X)
    np.testing.assert_array_equal(simclr.fit(stored).transform(stored), rows)


def test_channels_come_last():
    assert example_shape((3, 9), None) == (9,)
    images = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    examples = Examples.of(images, None)
    assert examples.shape == (3, 4, 5)
    tensor = examples.tensor(images)
    assert tensor.dtype == torch.uint8  # a quarter of the memory of floats
    assert tensor[1, 2, 3, 4] == images[1, 3, 4, 2]
    unit = examples.unit(tensor)
    assert unit.dtype == torch.float32
    assert unit[1, 2, 3, 4] == np.float32(images[1, 3, 4, 2] / 255)


def test_scales():
    floats = np.linspace(-3, 5, 2 * 64).reshape(2, 8, 8)
    examples = Examples.of(floats, None)
    tensor = examples.tensor(floats * 2)
    assert float(tensor.min()) == 0
    assert float(tensor.max()) == 1  # outside the buyer's range: clipped
    np.testing.assert_allclose(
        examples.tensor(floats)[:, 0], (floats + 3) / 8, atol=1e-6
    )
    table = np.array([[1.0, 7.0, 0.1], [3.0, 7.0, 0.1], [5.0, 7.0, 0.1]])
    examples = Examples.of(table, None)
    np.testing.assert_allclose(examples.tensor(table)[:, 0], [-(1.5**0.5), 0, 1.5**0.5])
    assert not examples.tensor(table)[:, 1].any()
    assert examples.tensor(table + 1e30).max() == 10
    assert torch.isfinite(examples.tensor(table + 1e300)).all()
    assert (
        Examples.of(np.full((2, 8, 8), 3.0), None).tensor(np.full((2, 8, 8), 3.0)).max()
        == 0
    )


def test_tables(rng):
    X = rng.normal(size=(200, 6)) * [1, 10, 100, 1, 1, 1]
    simclr = SimCLR(projection_dim=5, **SMALL).fit(X)
    assert simclr.transform(X).shape == (200, 5)
    assert np.unique(simclr.transform(X).round(6), axis=0).shape == (200, 5)


def test_views_of_the_users_own(digits):
    seen = []

    def views(batch):
        seen.append((tuple(batch.shape), float(batch.min()), float(batch.max())))
        return batch + 0.1 * torch.randn_like(batch)

    SimCLR(augmentations=views, **SMALL).fit(digits[0][:130])
    assert [shape for shape, _, _ in seen] == [(128, 1, 8, 8)] * 2
    assert {(low, high) for _, low, high in seen} == {(0.0, 1.0)}


@NETWORKS
def test_random_state(cls, table):
    first, again, other = (
        cls(**SMALL | {"random_state": s}).fit(table) for s in (0, 0, 1)
    )
    assert first.loss_curve_ == again.loss_curve_ != other.loss_curve_
    for same in (again, pickle.loads(pickle.dumps(first))):
        np.testing.assert_array_equal(same.transform(table), first.transform(table))


@pytest.mark.parametrize("error", ["no room", ""])
@NETWORKS
def test_a_fit_that_fails_leaves_what_was_learnt(cls, error, rng, monkeypatch):
    """Out of memory, say: neither on the GPU, nor in training mode, nor half
    trained."""
    X = rng.normal(size=(100, 5))
    fitted = cls(**SMALL).fit(X)
    curve, kind = (
        fitted.loss_curve_,
        torch.OutOfMemoryError if error else KeyboardInterrupt,
    )
    rows, step, calls = fitted.transform(X), torch.optim.AdamW.step, []

    def second_fails(self, *args):
        calls.append(None)
        if len(calls) == 2:
            raise kind(error)
        return step(self, *args)

    monkeypatch.setattr(torch.optim.AdamW, "step", second_fails)
    with pytest.raises(kind, match=error):
        fitted.fit(rng.normal(size=(400, 7)))
    monkeypatch.undo()
    assert not fitted.network_.training
    assert fitted.loss_curve_ == curve
    np.testing.assert_array_equal(fitted.transform(X), rows)


class Stop:
    """A callback that stops, or interrupts, after the first epoch."""

    def __init__(self, interrupts=False):
        self.interrupts, self.n_calls = interrupts, 0

    def nothing(self, estimator, context, **kwargs):
        pass

    setup = teardown = on_fit_task_begin = nothing

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.n_calls += 1
        if self.interrupts and self.n_calls == 1:
            raise KeyboardInterrupt
        return True


@NETWORKS
def test_callbacks(cls, rng):
    X = rng.normal(size=(60, 4))
    with pytest.warns(
        IncompleteFitWarning, match="stopped by a callback after 1 of 5 epochs"
    ):
        stopped = cls(n_epochs=5, random_state=0).set_callbacks(Stop()).fit(X)
    assert stopped.n_iter_ == 1
    interrupted = cls(n_epochs=5, random_state=0).set_callbacks(Stop(interrupts=True))
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(X)
    np.testing.assert_array_equal(interrupted.transform(X), stopped.transform(X))
    pytest.importorskip("rich")
    assert cls(n_epochs=2).set_callbacks(ProgressBar()).fit(X).n_iter_ == 2


def test_divergence_says_what_to_do(rng):
    with pytest.raises(
        RuntimeError, match=r"The loss was nan .* Lower learning_rate .1e.30"
    ):
        SimCLR(**SMALL | {"learning_rate": 1e30, "n_epochs": 5}).fit(
            rng.normal(size=(100, 3))
        )


@pytest.mark.parametrize("output", ["projection", "backbone"])
@pytest.mark.parametrize("kind", ["bytes", "floats", "table"])
def test_it_travels(digits, output, kind):
    X = digits[0][:100]
    X = {"bytes": (X * 15).astype(np.uint8), "floats": X, "table": X.reshape(100, -1)}[
        kind
    ]
    simclr = SimCLR(output=output, projection_dim=7, **SMALL).fit(X)
    arrays, config = simclr.to_arrays()
    assert any("head" in name for name in arrays) == (output == "projection")
    copy = SimCLR.from_arrays(arrays, json.loads(json.dumps(config)))
    np.testing.assert_allclose(copy.transform(X), simclr.transform(X), atol=1e-6)
    again, same = copy.to_arrays()
    assert same == config
    for name, array in arrays.items():
        np.testing.assert_array_equal(again[name], array)
    assert make_pipeline(copy).transform(X).shape == copy.transform(X).shape


def test_an_untrusted_folder_is_checked(digits):
    arrays, config = SimCLR(**SMALL).fit(digits[0][:100]).to_arrays()
    word = "backbone.0.weight"

    def refuses(match, arrays=arrays, config=config):
        with pytest.raises(ValueError, match=match):
            SimCLR.from_arrays(arrays, config)

    refuses(
        "config must be a record of the fields bytes, o.*Got",
        config=config | {"code": 1},
    )
    refuses("config must be a record of the fields .* Got 'list'", config=[])
    for name, *values in (
        ("shape", [1, 8], [1, 2**12, 2**13], [1, -8, 8], [1.0, 8, 8], "188"),
        ("bytes", 1),
        ("projection_dim", 10**9, True),
        ("output", None),
    ):
        for value in values:
            refuses(rf"config\['{name}'\] must be", config=config | {name: value})
    refuses(
        "X must hold images whose .* Got 4 x 4", config=config | {"shape": [1, 4, 4]}
    )
    refuses(
        "must be a float32 array of shape .65536",
        config=config | {"projection_dim": 2**16},
    )
    refuses("missing", {name: array for name, array in arrays.items() if name != word})
    refuses("'odd' is not among them", arrays | {"odd": np.zeros(3)})
    refuses(
        f"{word} must be a float32 array of shape .*float64",
        arrays | {word: np.zeros(3)},
    )
    refuses(
        f"{word} must hold finite", arrays | {word: arrays[word] * np.float32(np.nan)}
    )
    variance = "backbone.1.running_var"
    refuses(f"{variance} must be of variances", arrays | {variance: -arrays[variance]})
    refuses(
        r"scale must be a float64 array of shape \(1\)", arrays | {"scale": np.zeros(3)}
    )
    refuses("scale must be of positive", arrays | {"scale": np.zeros(1)})
    huge = config | {"shape": [2**20], "projection_dim": 2**16}
    vectors = {"centre": np.zeros(2**20), "scale": np.ones(2**20)}
    refuses(
        "arrays must hold exactly", vectors, huge
    )  # and nothing of that size was allocated


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda X: SimCLR(image_shape=(2, 2, 2, 2)).fit(X[:, :4, :4]), "image_shape"),
        (
            lambda X: SimCLR(image_shape=(8, 9)).fit(X.reshape(20, 64)),
            r"image_shape \(8, 9\)",
        ),
        (lambda X: SimCLR(temperature=0).fit(X), "'temperature' parameter of SimCLR"),
        (lambda X: SimCLR().fit(np.full((4, 8, 8), np.nan)), "Input X contains NaN"),
        (lambda X: SimCLR().fit(np.zeros((2, 5, 4, 3, 2))), r"Got \(5, 4, 3, 2\)|dim"),
        (
            lambda X: SimCLR(**SMALL).fit(X).transform(X.astype(np.uint8)),
            "X .*Got uint8",
        ),
        (
            lambda X: SimCLR(**SMALL).fit(X.astype(np.uint8)).transform(X),
            "X .*Got float32",
        ),
        (
            lambda X: SimCLR(**SMALL).fit(X).transform(np.zeros((2, 70))),
            "X has 70 features",
        ),
        (
            lambda X: SimCLR(**SMALL).fit(X).transform(np.zeros((2, 7, 7))),
            "X has 49 features",
        ),
    ],
)
def test_refusals(fit, message, digits):
    with pytest.raises(ValueError, match=message):
        fit(digits[0][:20])


def test_on_a_gpu(gpu, digits):
    X = digits[0][:130]
    simclr = SimCLR(device="cuda", **SMALL).fit(X)
    assert next(simclr.network_.parameters()).device.type == "cpu"
    rows = simclr.transform(X)
    np.testing.assert_allclose(
        simclr.set_params(device="cpu").transform(X), rows, atol=1e-3
    )


@contextmanager
def watched(seen):
    """Adds the mode, the device and the precision of what linear layers return to a
    set."""

    def see(layer, inputs, out):
        if isinstance(layer, torch.nn.Linear):
            seen.add((layer.training, out.device.type, out.dtype))

    hook = torch.nn.modules.module.register_module_forward_hook(see)
    try:
        yield
    finally:
        hook.remove()


def watched_fit(X, **options):
    """A fit, and the devices and precisions of its training."""
    seen = set()
    with watched(seen):
        simclr = SimCLR(random_state=0, **options).fit(X)
    return simclr, {(device, dtype) for training, device, dtype in seen if training}


def test_a_gpu_learns_in_mixed_precision_and_transforms_in_full(gpu, rng):
    X = rng.normal(size=(64, 6))
    simclr, learnt = watched_fit(X, n_epochs=2, device="cuda")
    device = find_device("cuda")
    assert learnt == {
        (device, torch.bfloat16 if gains_from_bfloat16(device) else torch.float32)
    }
    seen = set()
    with watched(seen):
        simclr.transform(X)
    assert seen == {(False, device, torch.float64)}


def test_a_gpu_that_emulates_bfloat16_learns_in_full(rng, monkeypatch):
    """Those before Ampere: convolutions have no kernels for it, and products are
    slower."""
    simulate_a_gpu(monkeypatch)
    module = torch.get_device_module(find_device("cuda"))
    monkeypatch.setattr(
        module, "is_bf16_supported", lambda including_emulation=True: False
    )
    learnt = watched_fit(rng.normal(size=(64, 6)), n_epochs=1, device="cuda")[1]
    assert {dtype for _, dtype in learnt} == {torch.float32}


def test_the_loss_is_in_full_in_mixed_precision(rng):
    views = torch.from_numpy(rng.normal(size=(2, 20, 8)).astype(np.float32))
    expected = nt_xent_loss(*views, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        assert nt_xent_loss(*views, 0.1) == expected


@pytest.mark.parametrize(
    ("mixed_precision", "dtype"), [("auto", torch.float32), (True, torch.bfloat16)]
)
def test_precision_on_a_cpu(mixed_precision, dtype, rng):
    options = dict(n_epochs=1, device="cpu", mixed_precision=mixed_precision)
    learnt = watched_fit(rng.normal(size=(64, 6)), **options)[1]
    assert {dtype for _, dtype in learnt} == {dtype}
