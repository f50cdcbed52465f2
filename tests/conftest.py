"""Fixtures shared by all tests."""

import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from skvalue.neighbors import APPROXIMATE, ENGINES, get_engine

from .cpu_time import CPUTime

GPU_DRIVER = shutil.which("nvidia-smi")
REPOSITORY = Path(__file__).resolve().parents[1]
# Modules that read doc/, examples/ or the files of skvalue/.
READS_THE_REPOSITORY = re.compile(
    "test_(contributing|coverage_of_errors|doc|examples|(layered_)?figures|house|"
    "layers|lint|network_market|no_card|pages|papers|private_names|workflows)$"
)


def pytest_addoption(parser):
    parser.addoption(
        "--simulated-gpu",
        action="store_true",
        help="device='auto' is a simulated GPU, see tests/simulated_gpu.py",
    )
    parser.addoption(
        "--cpu-durations",
        type=int,
        default=0,
        metavar="N",
        help="print the N tests of most CPU time",
    )


def pytest_configure(config):
    """Give workers of pytest-xdist a thread each: more than cores would wait."""
    if getattr(config.option, "numprocesses", None):
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")  # the workers inherit it
    config.pluginmanager.register(CPUTime(config), "cpu_time")
    check_compiled_modules()


def check_compiled_modules():
    """End the session at once if a compiled module is older than its source."""
    for source in sorted((REPOSITORY / "skvalue").rglob("*.pyx")):
        built = [*source.parent.glob(f"{source.stem}.*.so")]
        if built and source.stat().st_mtime > max(b.stat().st_mtime for b in built):
            raise pytest.UsageError(
                "compiled modules must be newer than their source: run "
                "`pip install -e .`. "
                f"Got a newer {source.relative_to(REPOSITORY)}."
            )


def stands_in_the_repository():
    """Whether there is more than what the sdist has."""
    return (REPOSITORY / "doc").is_dir()


def pytest_report_header():
    if stands_in_the_repository():
        return []
    return "left out: tests of what the repository alone has (doc, examples, workflows)"


def pytest_ignore_collect(collection_path):
    """Leave out what reads the repository where the tests stand without it.

    Modules are not imported, be it for their tests or for their doctests.
    """
    reads = READS_THE_REPOSITORY.match(collection_path.stem)
    reads = reads or collection_path.parent.name == "reproductions"
    if reads and not stands_in_the_repository():
        return True
    return None


def pytest_collection_finish(session):
    """Torch must know of the simulated GPU before it first takes a gradient."""
    modules = {getattr(item, "module", None) for item in session.items}
    is_used = (
        session.config.getoption("--simulated-gpu")
        or any("gpu" in getattr(item, "fixturenames", ()) for item in session.items)
        or any(hasattr(module, "simulate_a_gpu") for module in modules)
    )
    if find_spec("torch") and is_used:
        try:
            from . import simulated_gpu
        except ImportError:  # older versions of torch lack names: tests are skipped
            return
        simulated_gpu.install()


@pytest.fixture
def rng():
    return np.random.default_rng(20231)


EXACT_ENGINES = sorted(set(ENGINES) - APPROXIMATE)


@pytest.fixture(params=EXACT_ENGINES)
def engine(request):
    """Every exact engine that is installed."""
    try:
        get_engine(request.param)
    except ImportError as error:
        pytest.skip(str(error))
    return request.param


@pytest.fixture
def engines():
    """All exact engines that are installed, for comparisons with slow results."""
    return [
        engine for engine in EXACT_ENGINES if engine == "native" or find_spec(engine)
    ]


def simulate_a_gpu(monkeypatch):
    """Let torch see one GPU, a simulated device; returns the module of that device."""
    from skvalue._utils import torch_device

    reason = "this torch takes no device written in Python"
    simulated_gpu = pytest.importorskip(
        "tests.simulated_gpu", reason=reason, exc_type=ImportError
    )
    monkeypatch.setattr(torch_device, "GPU", simulated_gpu.NAME)
    monkeypatch.setattr(torch_device, "pinned", simulated_gpu.pinned)
    return simulated_gpu


@pytest.fixture(params=[pytest.param("cuda", marks=pytest.mark.gpu), "simulated"])
def gpu(request, monkeypatch):
    """Torch sees a GPU: a real one, where there is one, and one that is simulated."""
    torch = pytest.importorskip("torch")
    if request.param == "simulated":
        simulate_a_gpu(monkeypatch)
    elif not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")


@pytest.fixture
def no_gpu(monkeypatch):
    """Neither torch nor faiss sees a GPU, whatever there is."""
    torch = pytest.importorskip("torch")
    from skvalue._utils import torch_device

    monkeypatch.setattr(torch_device, "GPU", "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    if find_spec("faiss"):
        import faiss

        monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0, raising=False)


@pytest.fixture(autouse=True)
def gpu_everywhere_or_nowhere(request, monkeypatch):
    """Let device="auto" be the simulated GPU with --simulated-gpu, else the CPU.

    On a machine with a GPU only tests marked gpu use it: the others ask for equal bits.
    """
    may_use_gpu = request.node.get_closest_marker("gpu")
    if request.config.getoption("--simulated-gpu"):
        simulate_a_gpu(monkeypatch)
    elif GPU_DRIVER and find_spec("torch") and not may_use_gpu:
        request.getfixturevalue("no_gpu")
        # For processes that a test starts.
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
