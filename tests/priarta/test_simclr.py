"""SimCLR: its loss, its invariance, examples of every kind, and its export.

Some tests are of `GaussianVAE`, too, which is trained by the same loop.
"""

import json
import pickle
from contextlib import contextmanager

import numpy as np
import pytest
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

FAST = {"n_epochs": 1, "batch_size": 64, "random_state": 0}
NETWORKS = pytest.mark.parametrize("cls", [SimCLR, GaussianVAE])


@parametrize_with_checks([SimCLR(n_epochs=1), GaussianVAE(2, n_epochs=1)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    images, y = load_digits(return_X_y=True)
    return images.reshape(-1, 8, 8).astype(np.float32), y


@pytest.fixture(scope="module")
def fitted(digits):
    return SimCLR(n_epochs=3, batch_size=128, random_state=0).fit(digits[0][:1000])


class TestLoss:
    @pytest.mark.parametrize("temperature", [0.1, 1.0])
    def test_is_that_of_a_plain_loop(self, rng, temperature):
        n = 5
        views = rng.normal(size=(2 * n, 3))
        directions = views / np.linalg.norm(views, axis=1, keepdims=True)
        total = 0.0
        for i, direction in enumerate(directions):
            similarities = np.exp(directions @ direction / temperature)
            others = sum(similarities[k] for k in range(2 * n) if k != i)
            total -= np.log(similarities[(i + n) % (2 * n)] / others)
        first, second = torch.from_numpy(views).chunk(2)
        loss = nt_xent_loss(first, second, temperature)
        assert float(loss) == pytest.approx(total / (2 * n), rel=1e-5)

    def test_is_in_full_precision_in_mixed_precision(self, rng):
        first, second = torch.from_numpy(rng.normal(size=(2, 20, 8)).astype(np.float32))
        expected = nt_xent_loss(first, second, 0.1)
        with torch.autocast("cpu", torch.bfloat16):
            assert nt_xent_loss(first, second, 0.1) == expected


class TestInvariance:
    def test_moved_copies_come_nearer(self, digits, fitted):
        X = digits[0]
        moved = np.roll(X, 1, axis=2)  # by one pixel of eight

        def relative_distance(rows, copies):
            """Mean distance of copies, relative to that of other examples."""
            distance = np.linalg.norm(rows - copies, axis=1).mean()
            return distance / np.linalg.norm(rows - rows[::-1], axis=1).mean()

        raw = relative_distance(X.reshape(len(X), -1), moved.reshape(len(X), -1))
        learned = relative_distance(fitted.transform(X), fitted.transform(moved))
        assert learned < 0.7 * raw

    def test_loss_decreases(self, fitted):
        assert fitted.loss_curve_[-1] < fitted.loss_curve_[0] - 0.15
        assert fitted.n_iter_ == len(fitted.loss_curve_) == 3

    @pytest.mark.slow
    def test_classes_stay_apart(self, digits):
        X, y = digits
        simclr = SimCLR(n_epochs=8, batch_size=128, random_state=0).fit(X[:1000])
        rows = simclr.transform(X)
        copies = simclr.transform(np.roll(X, 1, axis=2))
        classifier = KNeighborsClassifier().fit(rows[:1000], y[:1000])
        assert classifier.score(rows[1000:], y[1000:]) > 0.8
        assert classifier.score(copies[1000:], y[1000:]) > 0.6


class TestOutputs:
    def test_projection_has_norm_one(self, digits, fitted):
        rows = fitted.transform(digits[0][:700])
        assert rows.shape == (700, 64)
        assert rows.dtype == np.float64
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
        assert list(fitted.get_feature_names_out()[:2]) == ["simclr0", "simclr1"]

    def test_output_may_be_changed_to_the_backbone(self, digits, fitted):
        fitted.set_params(output="backbone")
        try:
            assert fitted.transform(digits[0][:700]).shape == (700, 64)
            assert len(fitted.get_feature_names_out()) == 64
        finally:
            fitted.set_params(output="projection")

    def test_output_of_an_image_does_not_depend_on_others(self, digits, fitted):
        X = digits[0][:600]
        rows = fitted.transform(X)
        np.testing.assert_allclose(fitted.transform(X[5:6]), rows[5:6], atol=1e-6)
        np.testing.assert_allclose(fitted.transform(X[::-1])[::-1], rows, atol=1e-6)
        assert not fitted.network_.training

    def test_rows_of_a_table_have_different_outputs(self, rng):
        X = rng.normal(size=(200, 6)) * [1, 10, 100, 1, 1, 1]
        rows = SimCLR(projection_dim=5, **FAST).fit(X).transform(X)
        assert rows.shape == (200, 5)
        assert np.unique(rows.round(6), axis=0).shape == (200, 5)


class ArrayLike:
    """Images in a file, as h5py gives them: without the methods of an array."""

    def __init__(self, images):
        self.images = images
        self.shape = images.shape
        self.ndim = images.ndim
        self.dtype = images.dtype

    def __array__(self, dtype=None, copy=None):
        return self.images.astype(dtype or self.dtype)

    def __len__(self):
        return len(self.images)


class TestForms:
    """Images of every form give the same network."""

    @pytest.fixture
    def X(self, digits):
        return digits[0][:80]

    @pytest.mark.parametrize(
        ("reshape", "image_shape"),
        [
            (lambda X: X.reshape(80, -1), (8, 8)),
            (lambda X: X[..., None], None),
            (lambda X: X.reshape(80, -1), (8, 8, 1)),
            (lambda X: X.reshape(80, -1).tolist(), [8, 8]),
        ],
        ids=["flat", "channel", "flat channel", "lists"],
    )
    def test_images_of_one_channel(self, X, reshape, image_shape):
        expected = SimCLR(**FAST).fit(X).transform(X)
        other_form = reshape(X)
        simclr = SimCLR(image_shape=image_shape, **FAST).fit(other_form)
        np.testing.assert_allclose(simclr.transform(other_form), expected, atol=1e-5)
        np.testing.assert_allclose(simclr.transform(X), expected, atol=1e-5)
        assert simclr.n_features_in_ == 64

    def test_images_of_three_channels(self, X):
        simclr = SimCLR(**FAST).fit(np.repeat(X[..., None], 3, axis=3))
        assert simclr.network_.backbone[0].in_channels == 3

    def test_images_of_a_file(self, X):
        expected = SimCLR(**FAST).fit(X).transform(X)
        stored = ArrayLike(X)
        rows = SimCLR(**FAST).fit(stored).transform(stored)
        np.testing.assert_array_equal(rows, expected)


class TestExamples:
    def test_shape_of_a_row_is_its_number_of_features(self):
        assert example_shape((3, 9), None) == (9,)

    def test_bytes_stay_bytes_until_a_batch_is_taken(self):
        images = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
        examples = Examples.of(images, None)
        assert examples.shape == (3, 4, 5)
        tensor = examples.tensor(images)
        assert tensor.dtype == torch.uint8
        assert tensor[1, 2, 3, 4] == images[1, 3, 4, 2]
        unit = examples.unit(tensor)
        assert unit.dtype == torch.float32
        assert unit[1, 2, 3, 4] == np.float32(images[1, 3, 4, 2] / 255)

    def test_numbers_of_images_are_clipped_to_the_range_of_the_buyer(self):
        images = np.linspace(-3, 5, 2 * 64).reshape(2, 8, 8)
        examples = Examples.of(images, None)
        scaled = examples.tensor(images)[:, 0]
        np.testing.assert_allclose(scaled, (images + 3) / 8, atol=1e-6)
        doubled = examples.tensor(images * 2)
        assert float(doubled.min()) == 0
        assert float(doubled.max()) == 1

    def test_images_of_one_number_are_zero(self):
        images = np.full((2, 8, 8), 3.0)
        assert Examples.of(images, None).tensor(images).max() == 0

    def test_columns_of_a_table_are_standardized_unless_constant(self):
        table = np.array([[1.0, 7.0, 0.1], [3.0, 7.0, 0.1], [5.0, 7.0, 0.1]])
        tensor = Examples.of(table, None).tensor(table)
        np.testing.assert_allclose(tensor[:, 0], [-(1.5**0.5), 0, 1.5**0.5])
        assert not tensor[:, 1].any()

    def test_entries_of_a_table_are_clipped_to_ten(self):
        table = np.array([[1.0, 7.0, 0.1], [3.0, 7.0, 0.1], [5.0, 7.0, 0.1]])
        examples = Examples.of(table, None)
        assert examples.tensor(table + 1e30).max() == 10
        assert torch.isfinite(examples.tensor(table + 1e300)).all()


class TestTraining:
    @pytest.fixture
    def table(self, rng):
        return rng.normal(size=(150, 6)) * [9, 5, 2, 1, 1, 1]

    def test_views_of_a_callable_are_of_scaled_images(self, digits):
        batches = []

        def augment(batch):
            batches.append(batch)
            return batch + 0.1 * torch.randn_like(batch)

        SimCLR(augmentations=augment, **FAST).fit(digits[0][:130])
        shapes = [tuple(batch.shape) for batch in batches]
        assert shapes == [(128, 1, 8, 8)] * 2
        for batch in batches:
            assert (float(batch.min()), float(batch.max())) == (0.0, 1.0)

    @NETWORKS
    def test_random_state_decides_the_network(self, cls, table):
        first, second, other = (
            cls(**FAST | {"random_state": seed}).fit(table) for seed in (0, 0, 1)
        )
        assert first.loss_curve_ == second.loss_curve_ != other.loss_curve_
        np.testing.assert_array_equal(second.transform(table), first.transform(table))

    @NETWORKS
    def test_pickle_gives_the_same_outputs(self, cls, table):
        network = cls(**FAST).fit(table)
        copy = pickle.loads(pickle.dumps(network))
        np.testing.assert_array_equal(copy.transform(table), network.transform(table))

    @pytest.mark.parametrize(
        "error",
        [torch.OutOfMemoryError("no room"), KeyboardInterrupt("")],
        ids=["out of memory", "interrupted"],
    )
    @NETWORKS
    def test_fit_that_fails_leaves_the_former(self, cls, error, rng, monkeypatch):
        """Neither on the GPU, nor in training mode, nor half trained."""
        X = rng.normal(size=(100, 5))
        fitted = cls(**FAST).fit(X)
        curve = fitted.loss_curve_
        rows = fitted.transform(X)
        step = torch.optim.AdamW.step
        calls = []

        def step_that_fails_once(self, *args):
            calls.append(None)
            if len(calls) == 2:
                raise error
            return step(self, *args)

        monkeypatch.setattr(torch.optim.AdamW, "step", step_that_fails_once)
        with pytest.raises(type(error)) as caught:
            fitted.fit(rng.normal(size=(400, 7)))
        assert str(caught.value) == str(error)
        monkeypatch.undo()
        assert not fitted.network_.training
        assert fitted.loss_curve_ == curve
        np.testing.assert_array_equal(fitted.transform(X), rows)

    def test_divergence_names_the_learning_rate(self, rng):
        simclr = SimCLR(**FAST | {"learning_rate": 1e30, "n_epochs": 5})
        with pytest.raises(
            RuntimeError, match=r"The loss was nan .* Lower learning_rate .1e.30"
        ):
            simclr.fit(rng.normal(size=(100, 3)))


class Stop:
    """A callback that stops, or interrupts, after the first epoch."""

    def __init__(self, interrupts=False):
        self.interrupts = interrupts
        self.n_calls = 0

    def nothing(self, estimator, context, **kwargs):
        pass

    setup = teardown = on_fit_task_begin = nothing

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.n_calls += 1
        if self.interrupts and self.n_calls == 1:
            raise KeyboardInterrupt
        return True


@NETWORKS
class TestCallbacks:
    @pytest.fixture
    def X(self, rng):
        return rng.normal(size=(60, 4))

    def test_stopped_fit_keeps_its_epochs_and_warns(self, cls, X):
        network = cls(n_epochs=5, random_state=0).set_callbacks(Stop())
        with pytest.warns(
            IncompleteFitWarning, match="stopped by a callback after 1 of 5 epochs"
        ):
            network.fit(X)
        assert network.n_iter_ == 1

    def test_interrupted_fit_keeps_its_epochs(self, cls, X):
        stopped = cls(n_epochs=5, random_state=0).set_callbacks(Stop())
        with pytest.warns(IncompleteFitWarning):
            stopped.fit(X)
        callback = Stop(interrupts=True)
        interrupted = cls(n_epochs=5, random_state=0).set_callbacks(callback)
        with pytest.raises(KeyboardInterrupt):
            interrupted.fit(X)
        np.testing.assert_array_equal(interrupted.transform(X), stopped.transform(X))

    def test_progress_bar_lets_the_fit_end(self, cls, X):
        pytest.importorskip("rich")
        network = cls(n_epochs=2).set_callbacks(ProgressBar())
        assert network.fit(X).n_iter_ == 2


class TestExport:
    @pytest.mark.parametrize("output", ["projection", "backbone"])
    @pytest.mark.parametrize("kind", ["bytes", "floats", "table"])
    def test_copy_has_the_same_outputs_and_arrays(self, digits, output, kind):
        X = digits[0][:100]
        if kind == "bytes":
            X = (X * 15).astype(np.uint8)
        elif kind == "table":
            X = X.reshape(100, -1)
        simclr = SimCLR(output=output, projection_dim=7, **FAST).fit(X)
        arrays, config = simclr.to_arrays()
        assert any("head" in name for name in arrays) == (output == "projection")

        copy = SimCLR.from_arrays(arrays, json.loads(json.dumps(config)))
        np.testing.assert_allclose(copy.transform(X), simclr.transform(X), atol=1e-6)
        copied_arrays, copied_config = copy.to_arrays()
        assert copied_config == config
        for name, array in arrays.items():
            np.testing.assert_array_equal(copied_arrays[name], array)
        assert make_pipeline(copy).transform(X).shape == copy.transform(X).shape


@pytest.fixture(scope="module")
def exported(digits):
    """Arrays and configuration of a network."""
    return SimCLR(**FAST).fit(digits[0][:100]).to_arrays()


class TestUntrustedExport:
    WEIGHT = "backbone.0.weight"
    VARIANCE = "backbone.1.running_var"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"code": 1}, "config must be a record of the fields bytes, o.*Got"),
            ({"shape": [1, 8]}, r"config\['shape'\] must be"),
            ({"shape": [1, 2**12, 2**13]}, r"config\['shape'\] must be"),
            ({"shape": [1, -8, 8]}, r"config\['shape'\] must be"),
            ({"shape": [1.0, 8, 8]}, r"config\['shape'\] must be"),
            ({"shape": "188"}, r"config\['shape'\] must be"),
            ({"bytes": 1}, r"config\['bytes'\] must be"),
            ({"projection_dim": 10**9}, r"config\['projection_dim'\] must be"),
            ({"projection_dim": True}, r"config\['projection_dim'\] must be"),
            ({"output": None}, r"config\['output'\] must be"),
            ({"shape": [1, 4, 4]}, "X must hold images whose .* Got 4 x 4"),
            (
                {"projection_dim": 2**16},
                "must be a float32 array of shape .65536",
            ),
        ],
        ids=lambda case: str(case)[:40],
    )
    def test_invalid_field_is_refused(self, exported, change, message):
        arrays, config = exported
        with pytest.raises(ValueError, match=message):
            SimCLR.from_arrays(arrays, config | change)

    def test_configuration_that_is_no_record_is_refused(self, exported):
        arrays, _ = exported
        with pytest.raises(
            ValueError, match="config must be a record of the fields .* Got 'list'"
        ):
            SimCLR.from_arrays(arrays, [])

    def test_missing_array_is_refused(self, exported):
        arrays, config = exported
        arrays = {name: a for name, a in arrays.items() if name != self.WEIGHT}
        with pytest.raises(ValueError, match="missing"):
            SimCLR.from_arrays(arrays, config)

    @pytest.mark.parametrize(
        ("name", "change", "message"),
        [
            ("odd", lambda array: np.zeros(3), "'odd' is not among them"),
            (
                WEIGHT,
                lambda array: np.zeros(3),
                f"{WEIGHT} must be a float32 array of shape .*float64",
            ),
            (
                WEIGHT,
                lambda array: array * np.float32(np.nan),
                f"{WEIGHT} must hold finite",
            ),
            (
                VARIANCE,
                lambda array: -array,
                f"{VARIANCE} must be of variances",
            ),
            (
                "scale",
                lambda array: np.zeros(3),
                r"scale must be a float64 array of shape \(1\)",
            ),
            ("scale", lambda array: np.zeros(1), "scale must be of positive"),
        ],
        ids=["unknown", "shape", "nan", "variance", "scale shape", "scale"],
    )
    def test_invalid_array_is_refused(self, exported, name, change, message):
        arrays, config = exported
        changed = change(arrays.get(name))
        with pytest.raises(ValueError, match=message):
            SimCLR.from_arrays(arrays | {name: changed}, config)

    def test_huge_sizes_are_refused_before_memory_is_allocated(self, exported):
        _, config = exported
        config = config | {"shape": [2**20], "projection_dim": 2**16}
        arrays = {"centre": np.zeros(2**20), "scale": np.ones(2**20)}
        with pytest.raises(ValueError, match="arrays must hold exactly"):
            SimCLR.from_arrays(arrays, config)


class TestErrors:
    @pytest.fixture
    def X(self, digits):
        return digits[0][:20]

    @pytest.mark.parametrize(
        ("parameters", "reshape", "message"),
        [
            ({"image_shape": (2, 2, 2, 2)}, lambda X: X[:, :4, :4], "image_shape"),
            (
                {"image_shape": (8, 9)},
                lambda X: X.reshape(20, 64),
                r"image_shape \(8, 9\)",
            ),
            ({"temperature": 0}, lambda X: X, "'temperature' parameter of SimCLR"),
            ({}, lambda X: np.full((4, 8, 8), np.nan), "Input X contains NaN"),
            ({}, lambda X: np.zeros((2, 5, 4, 3, 2)), r"Got \(5, 4, 3, 2\)|dim"),
        ],
        ids=["sides", "image_shape", "temperature", "nan", "dimensions"],
    )
    def test_invalid_images_and_parameters_are_refused(
        self, X, parameters, reshape, message
    ):
        with pytest.raises(ValueError, match=message):
            SimCLR(**parameters).fit(reshape(X))

    def test_bytes_after_floats_are_refused(self, X):
        simclr = SimCLR(**FAST).fit(X)
        with pytest.raises(ValueError, match="X .*Got uint8"):
            simclr.transform(X.astype(np.uint8))

    def test_floats_after_bytes_are_refused(self, X):
        simclr = SimCLR(**FAST).fit(X.astype(np.uint8))
        with pytest.raises(ValueError, match="X .*Got float32"):
            simclr.transform(X)

    @pytest.mark.parametrize(
        ("shape", "n_features"), [((2, 70), 70), ((2, 7, 7), 49)], ids=str
    )
    def test_examples_of_another_size_are_refused(self, X, shape, n_features):
        simclr = SimCLR(**FAST).fit(X)
        with pytest.raises(ValueError, match=f"X has {n_features} features"):
            simclr.transform(np.zeros(shape))


# Devices and precision ----------------------------------------------------------------


@contextmanager
def recorded_layers(records):
    """Adds mode, device and precision of outputs of linear layers to a set."""

    def record(layer, inputs, output):
        if isinstance(layer, torch.nn.Linear):
            records.add((layer.training, output.device.type, output.dtype))

    hook = torch.nn.modules.module.register_module_forward_hook(record)
    try:
        yield
    finally:
        hook.remove()


def recorded_fit(X, **options):
    """A fit, and the devices and precisions of its training."""
    records = set()
    with recorded_layers(records):
        simclr = SimCLR(random_state=0, **options).fit(X)
    trained = {(device, dtype) for training, device, dtype in records if training}
    return simclr, trained


def test_fit_on_a_gpu_gives_a_network_on_the_cpu(gpu, digits):
    X = digits[0][:130]
    simclr = SimCLR(device="cuda", **FAST).fit(X)
    assert next(simclr.network_.parameters()).device.type == "cpu"
    rows = simclr.transform(X)
    simclr.set_params(device="cpu")
    np.testing.assert_allclose(simclr.transform(X), rows, atol=1e-3)


def test_gpu_trains_in_mixed_precision_and_transforms_in_full(gpu, rng):
    X = rng.normal(size=(64, 6))
    simclr, trained = recorded_fit(X, n_epochs=2, device="cuda")
    device = find_device("cuda")
    dtype = torch.bfloat16 if gains_from_bfloat16(device) else torch.float32
    assert trained == {(device, dtype)}
    records = set()
    with recorded_layers(records):
        simclr.transform(X)
    assert records == {(False, device, torch.float64)}


def test_gpu_that_emulates_bfloat16_trains_in_full_precision(rng, monkeypatch):
    """As those before Ampere: convolutions have no kernels, and products are slower."""
    simulate_a_gpu(monkeypatch)
    module = torch.get_device_module(find_device("cuda"))
    monkeypatch.setattr(
        module, "is_bf16_supported", lambda including_emulation=True: False
    )
    _, trained = recorded_fit(rng.normal(size=(64, 6)), n_epochs=1, device="cuda")
    assert {dtype for _, dtype in trained} == {torch.float32}


@pytest.mark.parametrize(
    ("mixed_precision", "dtype"), [("auto", torch.float32), (True, torch.bfloat16)]
)
def test_cpu_trains_in_mixed_precision_only_if_asked(mixed_precision, dtype, rng):
    _, trained = recorded_fit(
        rng.normal(size=(64, 6)),
        n_epochs=1,
        device="cpu",
        mixed_precision=mixed_precision,
    )
    assert {trained_dtype for _, trained_dtype in trained} == {dtype}
