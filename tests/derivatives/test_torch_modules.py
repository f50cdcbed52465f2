"""Checks of torch modules: rounding is told from mixed rows, and errors keep their
cause."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from skvalue.derivatives import TorchGradientModel

from ..conftest import simulate_a_gpu

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


class ByAnotherKernel(torch.nn.Linear):
    """One row alone comes out with another last digit, as on a GPU."""

    digits = 1

    def forward(self, x):
        y = super().forward(x)
        return y * (1 + self.digits * torch.finfo(y.dtype).eps) if len(x) == 1 else y


class Mixing(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x - x.mean(0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_apart_are_told_from_rounding(dtype, rng):
    X, y = rng.normal(size=(8, 4)), rng.integers(0, 2, 8)
    data = X, y, np.arange(8), X, y
    model = TorchGradientModel(
        ByAnotherKernel(4, 3, dtype=dtype), None, *data, clip=1.0, device="cpu"
    )
    assert model.n_parameters == 15
    with pytest.raises(ValueError, match="must not mix rows nor be random"):
        TorchGradientModel(
            Mixing(4, 3, dtype=dtype), None, *data, clip=1.0, device="cpu"
        )


def no_room(*args):
    raise torch.OutOfMemoryError("no room")


def test_out_of_memory_is_no_fault_of_the_module(rng):
    X, y = rng.normal(size=(8, 4)), rng.integers(0, 2, 8)
    data = X, y, np.arange(8), X, y
    module = torch.nn.Linear(4, 2)
    module.forward = no_room
    for parts in ((module, None), (torch.nn.Linear(4, 2), Late())):
        with pytest.raises(torch.OutOfMemoryError, match="no room"):
            TorchGradientModel(*parts, *data, clip=1.0, device="cpu")


def test_free_memory_of_a_gpu_is_read_once_a_fit(rng, monkeypatch):
    simulated_gpu = simulate_a_gpu(monkeypatch)
    device = type(torch.get_device_module(simulated_gpu.NAME))
    calls, found = [], device.mem_get_info
    monkeypatch.setattr(
        device, "mem_get_info", lambda self: calls.append(None) or found(self)
    )
    X, y = rng.normal(size=(8, 4)), rng.integers(0, 2, 8)
    data = X, y, np.arange(8), X, y
    model = TorchGradientModel(
        torch.nn.Linear(4, 2), None, *data, clip=1.0, device="cuda"
    )
    theta = model.start(rng)
    for player in range(8):
        model.gradient(theta, player)
    model.utilities(theta[None])
    assert len(calls) == 1
    model.rows.memory()  # of rows that a fitted valuer keeps
    assert len(calls) == 2


class Late(torch.nn.CrossEntropyLoss):
    """A loss that has room for a batch, and none for its gradients."""

    def forward(self, output, y):
        if torch._C._functorch.maybe_current_level() is not None:
            no_room()
        return super().forward(output, y)
