"""Where torch computes, how much it may take there, and its seeds. Importing this imports torch.

Nothing else in the package asks torch for a GPU. All other code calls the device what
`find_device` calls it, and asks only whether it is the CPU.
"""

from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from threading import Lock, RLock

import torch
from sklearn import get_config

GPU = "cuda"  # what torch calls it
_PRECISION, _GENERATORS = Lock(), RLock()
_USERS = []  # of full precision, in all threads: what the first of them found


def find_device(device):
    """The device, "cpu" or "cuda", that a `device` parameter means here; "auto" prefers a GPU."""
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device must be 'auto', 'cpu' or 'cuda'. Got {device!r}.")
    if device == "cpu":  # to ask for a GPU starts CUDA, which then fails in a fork of this process
        return "cpu"
    seen = torch.get_device_module(GPU).is_available()
    if device == "cuda" and not seen:
        raise ValueError(
            "device='cuda' needs a CUDA GPU that torch sees. Got none: pass device='cpu'."
        )
    return GPU if seen else "cpu"


def current_gpu(device):
    """Number of the GPU that a device means in this thread; None for the CPU."""
    return None if device == "cpu" else torch.get_device_module(GPU).current_device()


def on_gpu(number):
    """Context in which GPUs mean this one: a new thread would take the first. None: no GPU."""
    return nullcontext() if number is None else torch.get_device_module(GPU).device(number)


def gains_from_bfloat16(device):
    """Whether a device multiplies bfloat16 itself: older GPUs emulate it, slower than float32."""
    return device != "cpu" and torch.get_device_module(GPU).is_bf16_supported(
        including_emulation=False
    )


def free_memory():
    """Bytes that torch can still take on the GPU: what is free, and what it keeps from earlier."""
    gpu = torch.get_device_module(GPU)
    return gpu.mem_get_info()[0] + gpu.memory_reserved() - gpu.memory_allocated()


def block_bytes(device, share=8):
    """Bytes for one block: a third of the GPU's free memory, or a part of the working memory.

    On the CPU, one part in `share` of scikit-learn's ``working_memory``.
    """
    if device == "cpu":
        return int(get_config()["working_memory"] * 2**20) // share
    return free_memory() // 3


@contextmanager
def seeded(seed, device="cpu"):
    """Torch's global generators started from a seed, and put back as they were afterwards.

    One thread at a time: another would draw from the same generators.
    """
    gpu = torch.get_device_module(GPU)
    devices = [] if device == "cpu" else [gpu.current_device()]
    with _GENERATORS, torch.random.fork_rng(devices=devices, device_type=GPU):
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` would start all GPUs
        if devices:
            gpu.manual_seed(seed)
        yield


@cache
def _float32_backends():
    """Those with a setting of their own for products and convolutions; none in torch < 2.9."""
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        return []
    cudnn, onednn = torch.backends.cudnn, torch.backends.mkldnn
    places = [(torch.backends.cuda, "matmul"), (onednn, "matmul")]
    places += [(backend, kind) for backend in (cudnn, onednn) for kind in ("conv", "rnn")]
    found = [getattr(backend, kind, None) for backend, kind in places]
    return [backend for backend in found if hasattr(backend, "fp32_precision")]


def _lower_nothing():
    """Set full precision; returns a function that undoes it."""
    backends = _float32_backends()
    if backends:  # the older setting cannot be read where a user has made the newer one
        before = [backend.fp32_precision for backend in backends]
        lowered = [pair for pair in zip(backends, before) if pair[1] != "ieee"]
        for backend, _ in lowered:
            backend.fp32_precision = "ieee"

        def undo():
            for backend, precision in lowered:
                backend.fp32_precision = precision

        return undo
    of_products, of_convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn
    allowed = of_convolutions.allow_tf32
    torch.set_float32_matmul_precision("highest")
    of_convolutions.allow_tf32 = False

    def undo():
        torch.set_float32_matmul_precision(of_products)
        of_convolutions.allow_tf32 = allowed

    return undo


@contextmanager
def full_precision():
    """Products and convolutions of float32 in float32; put back once no thread is in here.

    Torch itself allows TF32 in convolutions on a GPU, which keeps three digits.
    """
    with _PRECISION:
        _USERS.append(None if _USERS else _lower_nothing())
    try:
        yield
    finally:
        with _PRECISION:
            if len(_USERS) == 1:
                _USERS[0]()
            _USERS.pop()


@contextmanager
def in_any_order():
    """Deterministic algorithms off, put back afterwards: for sums that do not need them.

    On CUDA there is none for some of those, and for others it takes the square of the memory.
    """
    before = torch.get_deterministic_debug_mode()
    if before:
        torch.set_deterministic_debug_mode(0)
    try:
        yield
    finally:
        if before:
            torch.set_deterministic_debug_mode(before)


@contextmanager
def undisturbed():
    """Torch as it comes, whatever the caller has set: values must not depend on it.

    No mixed precision, float32 in full, gradients where they are asked for, tensors on the CPU and
    in float32 where nothing else is said. Put back after the block.
    """
    with ExitStack() as stack:
        stack.enter_context(full_precision())
        for kind in ("cpu", GPU):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            stack.enter_context(torch.enable_grad())
        if torch.empty(0).device.type != "cpu":  # torch 2.6 tells of no context otherwise
            stack.enter_context(torch.device("cpu"))
        dtype = torch.get_default_dtype()
        if dtype != torch.float32:
            torch.set_default_dtype(torch.float32)
            stack.callback(torch.set_default_dtype, dtype)
        yield
