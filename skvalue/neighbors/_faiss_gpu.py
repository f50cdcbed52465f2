"""The FAISS engine on a GPU: exact ranks and balls. Imports faiss and torch.

Rows are copied to the card once, in float32. A few ranks are a search of FAISS
(`faiss.knn_gpu`); all ranks and balls are its products of tiles
(`faiss.pairwise_distance_gpu`), which stay on the card as tensors of torch and are
sorted or compared there.
"""

import os
import subprocess
import sys
from importlib import metadata

import faiss
import numpy as np
import torch
from sklearn import get_config

from .._utils.torch_device import compute_capability, find_device
from ._device import DeviceEngine
from .kernels.kinds import COSINE

# Largest number of neighbours that a search on a GPU returns.
LARGEST_K = 2048

# Packages that install the module faiss -> the cards that their wheels have code for:
# the smallest compute capability, and the largest one (None: later cards too, for which
# the driver compiles). `faiss-gpu-cu12` ends the process on a later card.
WHEELS = {
    "faiss-cpu": None,
    "faiss-gpu": ((7, 0), None),
    "faiss-gpu-cu11": ((7, 0), (8, 9)),
    "faiss-gpu-cu12": ((7, 0), (8, 9)),
}
_INSTALL = "pip uninstall faiss-cpu faiss-gpu-cu12; pip install 'skvalue[gpu]'"

# A search that shows whether a build of unknown origin runs on the card.
_TRIAL = """
import faiss, numpy
x = numpy.eye(4, dtype="float32")
faiss.knn_gpu(faiss.StandardGpuResources(), x, x, 1)
"""

# GPU -> what FAISS allocates there, once a process.
_RESOURCES = {}
_PROCESS = []


def installed_wheels():
    """Names of the installed packages that have the module faiss."""
    names = []
    for name in WHEELS:
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        names.append(name)
    return names


def check_wheels():
    """Refuse two packages of the module faiss, of which one overwrites the other.

    Raises
    ------
    ImportError
        If there are two.
    """
    names = installed_wheels()
    if len(names) > 1:
        raise ImportError(
            f"Only one package may have the module faiss. Got {' and '.join(names)}: "
            f"pip uninstall {' '.join(names)}; then install one of them."
        )


def check_card():
    """Refuse a card that FAISS cannot use, before FAISS ends the process on it.

    Raises
    ------
    ValueError
        If FAISS is a build for CPUs, sees no card, has no code for the card, or would
        compute in TF32.
    """
    check_wheels()
    if not hasattr(faiss, "StandardGpuResources"):
        raise ValueError(
            "device='cuda' needs a build of FAISS for GPUs. Got one for CPUs: "
            f"{_INSTALL}."
        )
    if faiss.get_num_gpus() == 0:
        raise ValueError(
            "device='cuda' needs a GPU that FAISS sees. Got none: pass device='cpu'."
        )
    if os.environ.get("NVIDIA_TF32_OVERRIDE") == "1":
        raise ValueError(
            "NVIDIA_TF32_OVERRIDE must not be 1 for engine='faiss': products in TF32 "
            "have three digits. Got '1'."
        )
    names = installed_wheels()
    if names:
        _check_capability(names[0])
    elif not _PROCESS:
        _try_in_a_process()


def _check_capability(wheel):
    """Hold the compute capability of the card against those of a wheel."""
    cards = WHEELS[wheel]
    capability = compute_capability()
    if cards is None or capability is None:
        return
    lowest, highest = cards
    if capability < lowest or (highest is not None and capability > highest):
        found = ".".join(map(str, capability))
        allowed = f"from {'.'.join(map(str, lowest))}"
        if highest is not None:
            allowed += f" to {'.'.join(map(str, highest))}"
        raise ValueError(
            f"The package {wheel} has code for cards of compute capability {allowed}, "
            f"and would end the process on this one. Got {found}: {_INSTALL}."
        )


def _try_in_a_process():
    """A search in another process, which may end without an exception."""
    result = subprocess.run(
        [sys.executable, "-c", _TRIAL], capture_output=True, text=True
    )
    if result.returncode:
        last_line = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise ValueError(
            "The installed build of FAISS does not run on this card. Got "
            f"{last_line!r}: {_INSTALL}."
        )


def resources(gpu, n_bytes):
    """What FAISS allocates on a card: made once a process, with temporary memory.

    Raises
    ------
    RuntimeError
        In a process that was forked after the first use: CUDA does not survive a fork.
    """
    if not _PROCESS:
        _PROCESS.append(os.getpid())
    if _PROCESS[0] != os.getpid():
        raise RuntimeError(
            "A forked process cannot use the GPU of its parent: start processes by "
            "'spawn', or pass device='cpu'."
        )
    if gpu not in _RESOURCES:
        of_gpu = faiss.StandardGpuResources()
        of_gpu.setTempMemory(n_bytes)
        _RESOURCES[gpu] = of_gpu
    return _RESOURCES[gpu]


def forget_resources():
    """Free what FAISS has allocated; the next search allocates it again."""
    _RESOURCES.clear()
    _PROCESS.clear()


def working_bytes():
    """Bytes of scikit-learn's `working_memory`."""
    return int(get_config()["working_memory"] * 2**20)


def make_gpu_engine():
    """Return the engine, if FAISS and torch can use the card."""
    find_device("cuda")
    check_card()
    return FaissGpuEngine("cuda")


class FaissGpuEngine(DeviceEngine):
    """Products and searches by FAISS on a GPU, in float32 whatever the dtype of X."""

    name = "faiss"

    def __init__(self, device):
        super().__init__(find_device(device))
        # Threads would not see the setting.
        self._n_bytes = working_bytes()

    def _product_dtype(self, space):
        return np.dtype(np.float32)

    def _fill_keys(self, keys, half, queries, block):
        torch.sub(half, self._products(queries, block), out=keys)

    def _scores(self, half, block, queries):
        return self._products(block, queries) - half[:, None]

    def _products(self, left, right):
        """Inner products of all pairs of rows of two tensors."""
        return faiss.pairwise_distance_gpu(
            resources(self._gpu, self._n_bytes),
            left.contiguous(),
            right.contiguous(),
            metric=faiss.METRIC_INNER_PRODUCT,
        )

    def _nearest(self, space, queries, k):
        rows = self._rows_on_device(space)
        if rows is None or k > min(LARGEST_K, len(space)):
            return None
        metric = faiss.METRIC_L2
        if space.kind == COSINE:
            metric = faiss.METRIC_INNER_PRODUCT
        scores, order = faiss.knn_gpu(
            resources(self._gpu, self._n_bytes),
            queries.contiguous(),
            rows,
            k,
            metric=metric,
        )
        # Half a squared distance is a key but for the size of the point.
        keys = -scores if space.kind == COSINE else scores / 2
        return keys, order
