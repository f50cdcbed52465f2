"""Where torch computes, and the simulated GPU of the tests."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

torch = pytest.importorskip("torch")

from skvalue import (
    GradientSemivalueValuer,
    KNNShapleyValuer,
    LeaveOneOutValuer,
    TKNNShapleyValuer,
)
from skvalue._utils import torch_device as _torch_device
from skvalue._utils.torch_device import (
    block_bytes,
    current_gpu,
    find_device,
    full_precision,
    in_any_order,
    on_gpu,
    seeded,
)
from skvalue.neighbors import get_engine
from skvalue.priarta import GaussianVAE, SimCLR

from ..conftest import simulate_a_gpu


def test_find_device(monkeypatch):
    monkeypatch.setattr(_torch_device, "GPU", "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert [find_device(device) for device in ("auto", "cpu")] == ["cpu", "cpu"]
    with pytest.raises(
        ValueError, match="device='cuda' needs a CUDA GPU that torch sees. Got non"
    ):
        find_device("cuda")
    with pytest.raises(
        ValueError, match="device must be 'auto', 'cpu' or 'cuda'. Got 'tpu'"
    ):
        find_device("tpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [find_device(device) for device in ("auto", "cpu", "cuda")] == [
        "cuda",
        "cpu",
        "cuda",
    ]


def test_the_cpu_starts_no_gpu(monkeypatch):
    """Looking for a GPU starts CUDA, which then fails in a fork of the process."""

    def start(*_):
        raise AssertionError

    monkeypatch.setattr(_torch_device, "GPU", "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", start)
    assert find_device("cpu") == "cpu"
    faiss = pytest.importorskip("faiss")
    monkeypatch.setattr(faiss, "get_num_gpus", start, raising=False)
    get_engine("faiss", "cpu")


def test_seeds_are_put_back(gpu):
    for device in ("cpu", find_device("cuda")):
        before = torch.random.get_rng_state()
        draws = []
        for seed in (3, 3, 4):
            with seeded(seed, device):
                draws.append(torch.rand(2, device=device).cpu().numpy())
        np.testing.assert_array_equal(draws[0], draws[1])
        assert (draws[0] != draws[2]).all()
        assert torch.equal(torch.random.get_rng_state(), before)


def test_threads_draw_from_their_own_seeds():
    def draw(seed):
        with seeded(seed):
            numbers = []
            for _ in range(5):
                time.sleep(0.002)
                numbers.append(torch.rand(1).item())
            return numbers

    alone = list(map(draw, range(4)))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw, range(4))) == alone


def test_seeds_of_the_cpu_leave_gpus_alone(monkeypatch):
    def start(seed):
        raise AssertionError

    monkeypatch.setattr(torch.cuda, "manual_seed_all", start)
    with seeded(0):
        torch.rand(1)


def test_memory(gpu):
    n_bytes = block_bytes(find_device("cuda"))
    assert 0 < n_bytes < _torch_device.free_memory()
    assert block_bytes("cpu", 4) == 2 * block_bytes("cpu")


def test_two_devices_do_not_mix(gpu):
    here, there = torch.ones(3), torch.ones(3, device=find_device("cuda"))
    assert there.device.type != "cpu"
    np.testing.assert_array_equal((there + there).cpu().numpy(), 2 * np.ones(3))
    for wrong in (
        lambda: here + there,
        lambda: there @ here,
        lambda: torch.cat([there, here]),
        lambda: torch.where(here > 0, there, 0.0),
        lambda: (
            there.__setitem__(slice(2), here[:2] > 0)
            or there.index_add(0, here.long(), here)
        ),
        lambda: here[there.long()],
        lambda: there.index_put((torch.arange(2),), here[:2]),
    ):
        with pytest.raises(
            RuntimeError, match="same device|indices should be either on cpu or"
        ):
            wrong()
    with pytest.raises((RuntimeError, TypeError), match="not supported|can't convert"):
        there.numpy()
    there[torch.tensor([0, 2])] = 5.0  # places may be named on the CPU
    assert there[torch.tensor([0, 1])].tolist() == [5.0, 1.0] if there.is_cuda else True


def test_the_simulated_gpu_is_two(monkeypatch):
    simulate_a_gpu(monkeypatch)
    device = find_device("cuda")
    first = torch.ones(3, device=device)
    with on_gpu(1):
        second, number = torch.ones(3, device=device), current_gpu(device)
        assert (second + second).gpu == second.gpu == number == 1
        assert (first + first).gpu == first.gpu == 0
    with pytest.raises(RuntimeError, match="same device"):
        first + second
    assert current_gpu(device) == 0
    assert current_gpu("cpu") is None


def test_shapes_changed_in_place(gpu):
    line = torch.arange(6, device=find_device("cuda"))
    assert len(line) == 6
    line.resize_(2, 3).t_().unsqueeze_(0)
    assert line.shape == (1, 3, 2)
    assert line.squeeze_().stride() == (1, 3)
    np.testing.assert_array_equal(line.cpu().numpy(), [[0, 3], [1, 4], [2, 5]])


@pytest.mark.parametrize("precision", ["tf32", "ieee"])
def test_full_precision_by_the_newer_setting(precision, rng):
    matmul = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision"):
        pytest.skip("torch has the older setting only")
    before = matmul.fp32_precision
    try:
        matmul.fp32_precision = (
            precision  # `get_float32_matmul_precision` fails from here on
        )
        with full_precision():
            assert matmul.fp32_precision == "ieee"
            assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
        assert matmul.fp32_precision == precision
        X, y = rng.normal(size=(50, 4)).astype(np.float32), rng.integers(0, 2, 50)
        expected = KNNShapleyValuer(5).fit(X, y).values_
        found = KNNShapleyValuer(5, engine="torch").fit(X, y).values_
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    finally:
        matmul.fp32_precision = before


def test_full_precision_of_convolutions():
    """Torch lowers it on a GPU by default."""
    kinds = [getattr(torch.backends.cudnn, name, None) for name in ("conv", "rnn")]
    if not all(hasattr(kind, "fp32_precision") for kind in kinds):
        pytest.skip("torch has the older setting only")
    before = [kind.fp32_precision for kind in kinds]
    try:
        for kind in kinds:
            kind.fp32_precision = "tf32"
        first, second = full_precision(), full_precision()
        with first:  # ends before the second, as in another thread
            second.__enter__()
        assert [kind.fp32_precision for kind in kinds] == ["ieee", "ieee"]
        second.__exit__(None, None, None)
        assert [kind.fp32_precision for kind in kinds] == ["tf32", "tf32"]
        assert torch.backends.cudnn.allow_tf32  # the older setting can still be read
    finally:
        for kind, precision in zip(kinds, before):
            kind.fp32_precision = precision


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_any_order_is_put_back(mode):
    try:
        torch.set_deterministic_debug_mode(mode)
        with in_any_order():
            assert torch.get_deterministic_debug_mode() == 0
        assert torch.get_deterministic_debug_mode() == mode
    finally:
        torch.set_deterministic_debug_mode(0)


@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_full_precision_by_the_older_setting(precision):
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision(precision)
        with full_precision():
            if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
                assert torch.backends.cuda.matmul.fp32_precision == "ieee"
            else:
                assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == precision
    finally:
        torch.set_float32_matmul_precision(before)


def test_full_precision_of_an_older_torch(monkeypatch):
    """Without the newer setting."""

    class Older:
        pass

    monkeypatch.setattr(torch.backends.cuda, "matmul", Older())
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        with full_precision():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def float64_everywhere():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def lower_precision():
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision("highest")


@contextmanager
def deterministic():
    torch.set_deterministic_debug_mode("error")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode("default")


SURROUNDINGS = [
    lower_precision,
    deterministic,
    lambda: torch.autocast("cpu", torch.bfloat16),  # mixed precision
    lambda: torch.device("meta"),  # another device
    float64_everywhere,
    torch.no_grad,
    torch.inference_mode,
]
MODULE = torch.nn.Linear(8, 2)
FITS = {
    "knn": KNNShapleyValuer(3, engine="torch", device="cpu"),
    "tknn": TKNNShapleyValuer("auto", engine="torch", device="cpu"),
    "embedding": KNNShapleyValuer(3, embedding=MODULE),
    "gradients": GradientSemivalueValuer(
        MODULE, n_permutations=3, device="cpu", random_state=0
    ),
    "games": LeaveOneOutValuer(LogisticRegression(), batch="torch", device="cpu"),
    "simclr": SimCLR(n_epochs=1, device="cpu", random_state=0),
    "vae": GaussianVAE(2, n_epochs=1, device="cpu", random_state=0),
}


@pytest.mark.parametrize("name", FITS)
def test_nothing_depends_on_what_torch_is_set_to(name, rng):
    X, y = rng.normal(size=(60, 8)).astype(np.float32), rng.integers(0, 2, 60)

    def found():
        estimator = clone(FITS[name])
        if isinstance(estimator, (SimCLR, GaussianVAE)):
            return estimator.fit(X).transform(X)
        return estimator.fit(X, y, X_val=X[:20] + 0.1, y_val=y[:20]).values_

    expected = found()
    with ExitStack() as stack:  # whatever is not put right shows among all the others
        for surrounding in SURROUNDINGS:
            stack.enter_context(surrounding())
        np.testing.assert_array_equal(found(), expected)
    assert torch.get_default_dtype() == torch.float32
