"""Where torch computes, how much it may take there, and its seeds. Importing this imports torch.

Nothing else in the package asks torch for a GPU. All other code calls the device what
`find_device` calls it, and asks only whether it is the CPU.
"""

from contextlib import ExitStack, contextmanager

import torch
from sklearn import get_config

GPU = "cuda"  # what torch calls it


def find_device(device):
    """Return the torch device that a `device` parameter means here.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda"}
        "auto" is "cuda" where torch sees a GPU.

    Returns
    -------
    device : {"cpu", "cuda"}
        The device.

    Raises
    ------
    ValueError
        If the device is unknown, or is "cuda" and torch sees no GPU.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device must be 'auto', 'cpu' or 'cuda'. Got {device!r}.")
    seen = torch.get_device_module(GPU).is_available()
    if device == "cuda" and not seen:
        raise ValueError(
            "device='cuda' needs a CUDA GPU that torch sees. Got none: pass device='cpu'."
        )
    return GPU if seen and device != "cpu" else "cpu"


def free_memory():
    """Bytes that torch can still take on the GPU: nobody's, and those it keeps from earlier uses.

    Returns
    -------
    n_bytes : int
        The bytes.
    """
    gpu = torch.get_device_module(GPU)
    return gpu.mem_get_info()[0] + gpu.memory_reserved() - gpu.memory_allocated()


def block_bytes(device, share=8):
    """Bytes for one block: a third of the GPU's free memory, or a share of the working memory.

    Parameters
    ----------
    device : str
        What `find_device` returned.
    share : int, default=8
        On the CPU, a block takes one part in so many of scikit-learn's ``working_memory``.

    Returns
    -------
    n_bytes : int
        The bytes.
    """
    if device == "cpu":
        return get_config()["working_memory"] * 2**20 // share
    return free_memory() // 3


@contextmanager
def seeded(seed, device="cpu"):
    """Torch's global generators started from a seed, and put back as they were afterwards.

    Parameters
    ----------
    seed : int
        The seed.
    device : str, default="cpu"
        The device whose generator is started, besides that of the CPU.
    """
    gpu = torch.get_device_module(GPU)
    devices = [] if device == "cpu" else [gpu.current_device()]
    with torch.random.fork_rng(devices=devices, device_type=GPU):
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` would start all GPUs
        if devices:
            gpu.manual_seed(seed)
        yield


@contextmanager
def full_precision():
    """Products of float32 in float32, whatever the user allows elsewhere; put back afterwards."""
    backends = torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None)
    if not all(hasattr(backend, "fp32_precision") for backend in backends):  # torch < 2.9
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)
        return
    # The older setting cannot be read where a user has made the newer one.
    before = [backend.fp32_precision for backend in backends]
    try:
        for backend in backends:
            backend.fp32_precision = "ieee"
        yield
    finally:
        for backend, precision in zip(backends, before):
            backend.fp32_precision = precision


@contextmanager
def undisturbed():
    """Torch as it comes, whatever the caller has set: values must not depend on it.

    No mixed precision, gradients where they are asked for, tensors on the CPU and in float32 where
    nothing else is said. Only what is set otherwise is changed, for the time of the block.
    """
    with ExitStack() as stack:
        for kind in ("cpu", GPU):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            stack.enter_context(torch.enable_grad())
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        dtype = torch.get_default_dtype()
        if dtype != torch.float32:
            torch.set_default_dtype(torch.float32)
            stack.callback(torch.set_default_dtype, dtype)
        yield
