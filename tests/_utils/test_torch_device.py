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
    send,
)
from skvalue.neighbors import get_engine
from skvalue.priarta import GaussianVAE, SimCLR

from ..conftest import simulate_a_gpu


@pytest.fixture
def cuda(monkeypatch):
    """Sets whether torch sees a GPU of CUDA."""
    monkeypatch.setattr(_torch_device, "GPU", "cuda")
    return lambda seen: monkeypatch.setattr(torch.cuda, "is_available", lambda: seen)


def test_auto_is_the_gpu_if_there_is_one(cuda):
    cuda(True)
    devices = [find_device(device) for device in ("auto", "cpu", "cuda")]
    assert devices == ["cuda", "cpu", "cuda"]
    cuda(False)
    assert [find_device(device) for device in ("auto", "cpu")] == ["cpu", "cpu"]


def test_a_gpu_that_is_not_there_is_refused(cuda):
    cuda(False)
    message = "device='cuda' needs a CUDA GPU that torch sees. Got non"
    with pytest.raises(ValueError, match=message):
        find_device("cuda")


def test_unknown_devices_are_refused():
    message = "device must be 'auto', 'cpu' or 'cuda'. Got 'tpu'"
    with pytest.raises(ValueError, match=message):
        find_device("tpu")


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


def test_generators_are_restored_after_a_seed(gpu):
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


def test_a_block_fits_the_memory(gpu):
    n_bytes = block_bytes(find_device("cuda"))
    assert 0 < n_bytes < _torch_device.free_memory()
    assert block_bytes("cpu", 4) == 2 * block_bytes("cpu")


def test_two_devices_do_not_mix(gpu):
    on_cpu = torch.ones(3)
    on_device = torch.ones(3, device=find_device("cuda"))
    assert on_device.device.type != "cpu"
    twice = (on_device + on_device).cpu().numpy()
    np.testing.assert_array_equal(twice, 2 * np.ones(3))

    def add_at_indices():
        on_device[:2] = on_cpu[:2] > 0
        on_device.index_add(0, on_cpu.long(), on_cpu)

    for mix in (
        lambda: on_cpu + on_device,
        lambda: on_device @ on_cpu,
        lambda: torch.cat([on_device, on_cpu]),
        lambda: torch.where(on_cpu > 0, on_device, 0.0),
        add_at_indices,
        lambda: on_cpu[on_device.long()],
        lambda: on_device.index_put((torch.arange(2),), on_cpu[:2]),
    ):
        message = "same device|indices should be either on cpu or"
        with pytest.raises(RuntimeError, match=message):
            mix()
    with pytest.raises((RuntimeError, TypeError), match="not supported|can't convert"):
        on_device.numpy()


def test_positions_may_be_on_the_cpu(gpu):
    on_device = torch.ones(3, device=find_device("cuda"))
    on_device[torch.tensor([0, 2])] = 5.0
    if on_device.is_cuda:
        assert on_device[torch.tensor([0, 1])].tolist() == [5.0, 1.0]


def test_there_are_two_simulated_gpus(monkeypatch):
    simulate_a_gpu(monkeypatch)
    device = find_device("cuda")
    first = torch.ones(3, device=device)
    with on_gpu(1):
        second = torch.ones(3, device=device)
        number = current_gpu(device)
        assert (second + second).gpu == second.gpu == number == 1
        assert (first + first).gpu == first.gpu == 0
    with pytest.raises(RuntimeError, match="same device"):
        first + second
    assert current_gpu(device) == 0
    assert current_gpu("cpu") is None


def test_shapes_are_changed_in_place(gpu):
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
        # `get_float32_matmul_precision` fails from here on.
        matmul.fp32_precision = precision
        with full_precision():
            assert matmul.fp32_precision == "ieee"
            assert torch.backends.mkldnn.matmul.fp32_precision == "ieee"
        assert matmul.fp32_precision == precision
        X = rng.normal(size=(50, 4)).astype(np.float32)
        y = rng.integers(0, 2, 50)
        expected = KNNShapleyValuer(5).fit(X, y).values_
        values = KNNShapleyValuer(5, engine="torch").fit(X, y).values_
        np.testing.assert_allclose(values, expected, rtol=1e-6)
    finally:
        matmul.fp32_precision = before


def test_full_precision_of_convolutions():
    """Torch lowers it on a GPU by default."""
    cudnn = torch.backends.cudnn
    backends = [getattr(cudnn, name, None) for name in ("conv", "rnn")]
    if not all(hasattr(backend, "fp32_precision") for backend in backends):
        pytest.skip("torch has the older setting only")

    def precisions():
        return [backend.fp32_precision for backend in backends]

    before = precisions()
    try:
        for backend in backends:
            backend.fp32_precision = "tf32"
        first = full_precision()
        second = full_precision()
        with first:  # ends before the second, as in another thread
            second.__enter__()
        assert precisions() == ["ieee", "ieee"]
        second.__exit__(None, None, None)
        assert precisions() == ["tf32", "tf32"]
        assert cudnn.allow_tf32  # the older setting can still be read
    finally:
        for backend, precision in zip(backends, before):
            backend.fp32_precision = precision


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_deterministic_algorithms_are_restored(mode):
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


SETTINGS = [
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
    X = rng.normal(size=(60, 8)).astype(np.float32)
    y = rng.integers(0, 2, 60)

    def computed():
        estimator = clone(FITS[name])
        if isinstance(estimator, (SimCLR, GaussianVAE)):
            return estimator.fit(X).transform(X)
        return estimator.fit(X, y, X_val=X[:20] + 0.1, y_val=y[:20]).values_

    expected = computed()
    # One setting that is not undone shows among all the others.
    with ExitStack() as stack:
        for setting in SETTINGS:
            stack.enter_context(setting())
        np.testing.assert_array_equal(computed(), expected)
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize("device", [pytest.param("cuda", marks=pytest.mark.gpu), "sim"])
def test_tensors_of_all_kinds_are_sent_at_once_for_each_dtype(device, monkeypatch):
    tensors = [
        torch.arange(6.0).reshape(2, 3),
        torch.tensor([True, False]),
        torch.zeros((0, 4)),
        torch.arange(5),
        torch.tensor(2.5),
    ]
    if device == "sim":
        simulated_gpu = simulate_a_gpu(monkeypatch)
        with (
            simulated_gpu.count_copies() as copies,
            simulated_gpu.count_waits() as waits,
        ):
            sent = send(tensors, find_device("cuda"))
        assert len(copies) == 3  # of floats, integers and booleans
        assert waits == []
    elif torch.cuda.is_available():
        sent = send(tensors, "cuda")
    else:
        pytest.skip("torch sees no GPU")
    for tensor, expected in zip(sent, tensors):
        assert tensor.device.type == find_device("cuda")
        assert tensor.dtype == expected.dtype
        assert torch.equal(tensor.cpu(), expected)
