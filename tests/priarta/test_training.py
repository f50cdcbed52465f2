"""The training loop that the representation and the latent map share."""

from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from skvalue._utils.torch_device import find_device, seeded
from skvalue.priarta import GaussianVAE, SimCLR
from skvalue.priarta.maps import Training, learning_rate_factor, train

from ..conftest import simulate_a_gpu


class LineFit:
    """A network for a line through points, and the loop that trains it.

    `batches` are the rows of each step.
    """

    def __init__(self, n=40, seed=0, **options):
        rng = np.random.RandomState(seed)
        self.x = torch.from_numpy(rng.normal(size=(n, 1))).float()
        self.network = torch.nn.Linear(1, 1)
        torch.nn.init.zeros_(self.network.weight)
        torch.nn.init.zeros_(self.network.bias)
        self.batches = []
        options = {
            "n_epochs": 60,
            "batch_size": 10,
            "learning_rate": 0.3,
            "weight_decay": 0.0,
            "mixed_precision": False,
            **options,
        }
        training = Training(self.network, None, torch.arange(n), self.loss_of)
        self.losses = train(SimpleNamespace(**options), training, rng, "cpu")

    def loss_of(self, rows, _):
        self.batches.append(rows)
        x = self.x[rows]
        return (self.network(x) - 3 * x - 1).square().mean()


def test_network_learns_the_line():
    fit = LineFit()
    assert len(list(fit.losses)) == 60
    learned = [fit.network.weight.item(), fit.network.bias.item()]
    np.testing.assert_allclose(learned, [3, 1], atol=0.02)


def test_last_smaller_batch_is_left_out_and_differs_between_epochs():
    fit = LineFit(n=35, n_epochs=3)
    list(fit.losses)
    assert [len(rows) for rows in fit.batches] == [10] * 9
    for epoch in range(3):
        rows = torch.cat(fit.batches[3 * epoch : 3 * epoch + 3])
        assert len(rows.unique()) == 30
    assert len(torch.cat(fit.batches).unique()) > 30


def test_fewer_rows_than_a_batch_are_one_batch():
    fit = LineFit(n=7, n_epochs=1)
    list(fit.losses)
    assert [len(rows) for rows in fit.batches] == [7]


def test_seed_decides_the_losses():
    fits = [LineFit(seed=seed, n_epochs=5) for seed in (0, 0, 1)]
    losses = [list(fit.losses) for fit in fits]
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


def test_training_leaves_the_generator_of_torch_unchanged():
    fit = LineFit(n_epochs=5)
    before = torch.random.get_rng_state()
    list(fit.losses)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_seeded_context_starts_from_the_seed():
    with seeded(3):
        expected = torch.rand(2)
    with seeded(3):
        assert torch.equal(torch.rand(2), expected)


def test_divergence_names_the_learning_rate():
    fit = LineFit(learning_rate=1e30)
    with pytest.raises(
        RuntimeError, match=r"The loss was .* in epoch .* Lower learning_rate .1e"
    ):
        list(fit.losses)


def test_learning_rate_rises_for_a_tenth_of_the_steps_and_falls_to_zero():
    factors = [learning_rate_factor(step, 100) for step in range(101)]
    assert np.argmax(factors) in (9, 10)
    assert max(factors) == 1
    assert np.all(np.diff(factors[:10]) > 0)
    assert np.all(np.diff(factors[10:]) < 0)
    assert factors[-1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n_steps", [1, 2])
def test_learning_rate_of_few_steps_starts_at_its_maximum(n_steps):
    assert learning_rate_factor(0, n_steps) == 1


# On a GPU ----------------------------------------------------------------------------

N_ROWS = 48

# What is trained, and on which rows; views of images need kornia.
TRAININGS = {
    "table": (SimCLR, (5,)),
    "digits": (SimCLR, (8, 8)),
    "bytes": (SimCLR, (8, 8)),
    "colour": (SimCLR, (8, 8, 3)),
    "latent map": (GaussianVAE, (5,)),
}
EACH_TRAINING = pytest.mark.parametrize("name", TRAININGS)
ROOM = pytest.mark.parametrize(
    "has_room", [True, False], ids=["all rows on the GPU", "batches on the GPU"]
)


def fit_training(name, device, batch_size):
    cls, shape = TRAININGS[name]
    if len(shape) > 1:
        pytest.importorskip("kornia")
    X = np.random.default_rng(0).random((N_ROWS, *shape), dtype=np.float32)
    if name == "bytes":
        X = (255 * X).astype(np.uint8)
    network = cls(
        n_epochs=1,
        batch_size=batch_size,
        mixed_precision=False,
        random_state=0,
        device=device,
    )
    return network.fit(X), X


def take_memory(monkeypatch):
    """Let the GPU have no free memory that torch knows of."""
    gpu = torch.get_device_module(find_device("cuda"))
    monkeypatch.setattr(gpu, "mem_get_info", lambda: (0, 2**30))
    monkeypatch.setattr(gpu, "memory_reserved", lambda: 0)
    monkeypatch.setattr(gpu, "memory_allocated", lambda: 0)


@ROOM
@EACH_TRAINING
def test_no_step_waits_for_the_gpu(name, has_room, monkeypatch):
    simulated_gpu = simulate_a_gpu(monkeypatch)
    if not has_room:
        take_memory(monkeypatch)
    n_waits = []
    n_copies = []
    for batch_size in (N_ROWS // 2, N_ROWS // 4):
        with (
            simulated_gpu.count_waits() as waits,
            simulated_gpu.count_copies() as copies,
        ):
            fit_training(name, "cuda", batch_size)
        n_waits.append(len(waits))
        n_copies.append(len(copies))
    assert 0 < n_waits[1] == n_waits[0]
    # Two batches more, which are copied if the GPU does not have all rows.
    assert n_copies[1] - n_copies[0] == (0 if has_room else 2)


@ROOM
@EACH_TRAINING
def test_a_gpu_trains_as_the_cpu(name, has_room, monkeypatch):
    """On the same batches and views."""
    if name in ("digits", "bytes") and version("kornia").startswith("0.8."):
        pytest.skip("kornia 0.8 has another unit of places in a warp")
    on_cpu, X = fit_training(name, "cpu", 16)
    simulate_a_gpu(monkeypatch)
    if not has_room:
        take_memory(monkeypatch)
    on_gpu, _ = fit_training(name, "cuda", 16)
    np.testing.assert_allclose(on_gpu.loss_curve_, on_cpu.loss_curve_, rtol=1e-3)
    on_gpu.set_params(device="cpu")
    np.testing.assert_allclose(on_gpu.transform(X), on_cpu.transform(X), atol=0.02)


def test_a_gpu_trains_as_the_cpu_in_more_steps_than_a_block_has(monkeypatch):
    simulate_a_gpu(monkeypatch)
    X = np.random.default_rng(0).random((140, 3), dtype=np.float32)
    parameters = {"n_epochs": 1, "batch_size": 2, "random_state": 0}
    on_gpu = SimCLR(device="cuda", mixed_precision=False, **parameters).fit(X)
    on_cpu = SimCLR(device="cpu", mixed_precision=False, **parameters).fit(X)
    np.testing.assert_allclose(on_gpu.loss_curve_, on_cpu.loss_curve_, rtol=1e-3)


def test_a_callable_makes_views_on_the_gpu(monkeypatch):
    """It draws for itself, and for each batch."""
    simulate_a_gpu(monkeypatch)
    devices = []

    def augment(batch):
        devices.append(batch.device.type)
        return batch + 0.1 * torch.randn_like(batch)

    X = np.random.default_rng(0).random((N_ROWS, 5), dtype=np.float32)
    parameters = {"n_epochs": 1, "batch_size": 16, "random_state": 0}
    SimCLR(augmentations=augment, device="cuda", **parameters).fit(X)
    assert devices == 3 * [find_device("cuda")]
