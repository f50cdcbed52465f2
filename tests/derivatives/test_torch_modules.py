"""What torch modules must be: checks, starts and errors."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from skvalue.derivatives import warn_of_dropout

from ..conftest import simulate_a_gpu
from .torch_models import (
    Net,
    TorchGradientModel,
    cross_entropy,
    image_data,
    layer,
    make,
    table_data,
)


@pytest.fixture
def images(rng):
    return image_data(rng)


@pytest.fixture
def table(rng):
    return table_data(rng)


# Starts -------------------------------------------------------------------------------


def test_a_random_start_is_a_function_of_the_generator(images):
    model = make(Net(), images)
    assert model.rows.start_kind == "random"
    state = torch.random.get_rng_state()
    start = model.start(np.random.default_rng(1))
    again = model.start(np.random.default_rng(1))
    other = model.start(np.random.default_rng(2))
    assert torch.equal(torch.random.get_rng_state(), state)
    np.testing.assert_array_equal(start, again)
    assert not np.isin(other[start != 0], start).all()
    # As Conv2d draws its weights: 1 / sqrt(fan in).
    assert np.abs(start[:27]).max() <= 1 / 3


def test_frozen_modules_start_as_given(images):
    module = Net(frozen=True)
    model = make(module, images)
    assert model.rows.start_kind == "given"
    head = torch.cat([p.detach().reshape(-1) for p in module.head.parameters()]).numpy()
    np.testing.assert_array_equal(model.start(np.random.default_rng(0)), head)
    fresh = make(module, images, start="random").start(np.random.default_rng(0))
    assert fresh.shape == head.shape
    assert not np.isin(fresh, head).any()


class Scale(torch.nn.Module):
    """A layer without `reset_parameters`."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 3))

    def forward(self, x):
        return x @ self.weight


def test_layers_without_a_reset_start_as_given(table):
    assert make(Scale(), table).rows.start_kind == "given"
    message = "needs layers with reset_parameters. Got Scale"
    with pytest.raises(ValueError, match=message):
        make(Scale(), table, start="random")


def test_the_module_itself_is_left_alone(images):
    module = Net().train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    model = make(module, images)
    model.gradient(model.start(np.random.default_rng(0)), 0)
    assert module.training
    for name, value in module.state_dict().items():
        assert torch.equal(before[name], value)


class Renamed(torch.nn.Linear):
    """In a saved state its parameters have other names, as those of wrappers may
    have."""

    def _load_from_state_dict(self, state, prefix, *args):
        super()._load_from_state_dict(state, f"{prefix}old_", *args)


def test_a_trained_module_has_the_parameters(table):
    trained = make(Renamed(4, 3), table).rows.trained(np.arange(15.0))
    vector = torch.nn.utils.parameters_to_vector(trained.parameters()).detach()
    np.testing.assert_array_equal(vector, np.arange(15.0))


# Refusals -----------------------------------------------------------------------------


class Centered(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x - x.mean(0))


class Random(torch.nn.Linear):
    def forward(self, x):
        return super().forward(torch.nn.functional.dropout(x, training=True))


class Branching(torch.nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return y if float(self.weight.detach().sum()) > -1e9 else -y


def batch_norm(**options):
    return torch.nn.Sequential(
        torch.nn.BatchNorm1d(4, **options), torch.nn.Linear(4, 3)
    )


REFUSED = {
    "no parameter": (
        torch.nn.Flatten,
        "must have a parameter to train. Got no parameter.",
    ),
    "frozen": (
        lambda: torch.nn.Linear(4, 3).requires_grad_(False),
        "must have a parameter to train. Got parameters that are all frozen.",
    ),
    "batch norm": (
        batch_norm,
        "batch norm in training mode would mix those of all parties. Got BatchNorm1d",
    ),
    "batch norm without statistics": (
        lambda: batch_norm(track_running_stats=False).eval(),
        "batch norm in training mode would mix",
    ),
    "mixes rows": (lambda: Centered(4, 3), "must not mix rows nor be random"),
    "random": (lambda: Random(4, 3), "must not mix rows nor be random"),
    "columns": (
        lambda: torch.nn.Linear(5, 3),
        r"must accept rows of shape \(4,\). Got: ",
    ),
    "too few outputs": (
        lambda: torch.nn.Linear(4, 2),
        "Got 2 outputs and class number 2",
    ),
    "one output": (
        lambda: torch.nn.Linear(4, 1),
        "one output is for two classes. Got one output and class",
    ),
    "lazy": (
        lambda: torch.nn.LazyLinear(3),
        "must be initialised: run its lazy layers once",
    ),
    "two dtypes": (
        lambda: torch.nn.Sequential(
            torch.nn.Linear(4, 4), torch.nn.Linear(4, 3, dtype=torch.float64)
        ),
        "must train parameters of one floating dtype. Got torch.float32, torch.float64",
    ),
    "branches": (
        lambda: Branching(4, 3),
        "operations that torch.func.vmap and torch.func.grad support",
    ),
}


@pytest.mark.parametrize(
    ("make_module", "message"), REFUSED.values(), ids=REFUSED.keys()
)
def test_modules_that_cannot_be_valued_are_refused(table, make_module, message):
    with pytest.raises(ValueError, match=message):
        make(make_module(), table)


def two_losses(outputs, y):
    return cross_entropy(outputs, y, reduction="none").repeat(2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "tpu"}, "device must be 'auto', 'cpu' or 'cuda'. Got 'tpu'."),
        ({"start": "zero"}, "start must be 'auto', 'given' or 'random'. Got 'zero'."),
        ({"loss": two_losses}, "loss must return one number for a batch"),
    ],
    ids=["device", "start", "loss"],
)
def test_wrong_parameters_are_refused(table, options, message):
    with pytest.raises(ValueError, match=message):
        make(layer(dtype=torch.float32), table, **options)


def test_what_is_no_module_is_refused():
    message = "model must be .* torch.nn.Module.* Got 'net'."
    with pytest.raises(TypeError, match=message):
        TorchGradientModel("net", None, [[0.0]], [0], [0], [[0.0]], [0], clip=1.0)


def test_accuracy_needs_an_output_a_class(table):
    X, y, players, X_val, y_val = table
    data = X, y % 2, players, X_val, y_val % 2
    loss = torch.nn.BCEWithLogitsLoss()
    message = "utility='accuracy' needs a module with an output for"
    with pytest.raises(ValueError, match=message):
        make(torch.nn.Linear(4, 1), data, loss, utility="accuracy")


def test_cuda_where_there_is_none_is_refused(table, no_gpu):
    message = "device='cuda' needs a CUDA GPU that torch sees"
    with pytest.raises(ValueError, match=message):
        make(torch.nn.Linear(4, 3), table, device="cuda")


def test_the_device_is_the_cpu_where_there_is_no_gpu(table, no_gpu):
    assert make(torch.nn.Linear(4, 3), table, device="auto").device == "cpu"


# Layers that depend on the mode -------------------------------------------------------


def test_batch_norm_of_public_constants_is_taken(table):
    assert make(batch_norm().eval(), table).n_parameters == 8 + 15


def test_dropout_is_off_and_says_so(table):
    module = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(4, 3))
    with pytest.warns(UserWarning, match="Dropout is off"):
        warn_of_dropout(module)
    model = make(module, table)
    theta = np.linspace(-1, 1, 15)
    np.testing.assert_array_equal(model.gradient(theta, 0), model.gradient(theta, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_dropout(module.eval())


# Rounding and memory ------------------------------------------------------------------


class OtherKernel(torch.nn.Linear):
    """One row alone comes out with another last digit, as on a GPU."""

    def forward(self, x):
        y = super().forward(x)
        return y * (1 + torch.finfo(y.dtype).eps) if len(x) == 1 else y


@pytest.fixture
def rows(rng):
    """Rows of eight players, which are validation points too."""
    X = rng.normal(size=(8, 4))
    y = rng.integers(0, 2, 8)
    return X, y, np.arange(8), X, y


each_dtype = pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float16, torch.bfloat16]
)


@each_dtype
def test_another_last_digit_of_a_row_alone_is_rounding(dtype, rows):
    model = make(OtherKernel(4, 3, dtype=dtype), rows)
    assert model.n_parameters == 15


@each_dtype
def test_mixed_rows_are_no_rounding(dtype, rows):
    with pytest.raises(ValueError, match="must not mix rows nor be random"):
        make(Centered(4, 3, dtype=dtype), rows)


def no_room(*args):
    raise torch.OutOfMemoryError("no room")


class NoRoomForGradients(torch.nn.CrossEntropyLoss):
    """A loss that has room for a batch, and none for its gradients."""

    def forward(self, output, y):
        if torch._C._functorch.maybe_current_level() is not None:
            no_room()
        return super().forward(output, y)


@pytest.mark.parametrize("where", ["module", "loss"])
def test_out_of_memory_is_no_fault_of_the_module(rows, where):
    module = torch.nn.Linear(4, 2)
    loss = None
    if where == "module":
        module.forward = no_room
    else:
        loss = NoRoomForGradients()
    with pytest.raises(torch.OutOfMemoryError, match="no room"):
        make(module, rows, loss)


def test_free_memory_of_a_gpu_is_read_once_a_fit(rows, rng, monkeypatch):
    simulated_gpu = simulate_a_gpu(monkeypatch)
    device = type(torch.get_device_module(simulated_gpu.NAME))
    mem_get_info = device.mem_get_info
    calls = []

    def counted(self):
        calls.append(None)
        return mem_get_info(self)

    monkeypatch.setattr(device, "mem_get_info", counted)
    model = make(torch.nn.Linear(4, 2), rows, device="cuda")
    theta = model.start(rng)
    for player in range(8):
        model.gradient(theta, player)
    model.utilities(theta[None])
    assert len(calls) == 1
    model.rows.memory()  # of rows that a fitted valuer keeps
    assert len(calls) == 2
