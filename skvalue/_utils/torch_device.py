"""Devices, memory, seeds and settings of torch. Importing this module imports torch.

All calls of torch's GPU interface are here. Other modules use the device name from
`find_device`, and only check whether it is "cpu".
"""

from contextlib import ExitStack, contextmanager, nullcontext
from threading import Lock, RLock

import torch
from sklearn import get_config

GPU = "cuda"  # the device type in torch

_precision_lock = Lock()
_generators_lock = RLock()
# One entry per active `full_precision`. The first entry is the function that undoes the
# setting, whichever thread leaves last; the others are None.
_precision_users = []


def find_device(device):
    """The device, "cpu" or "cuda", of a `device` parameter; "auto" prefers a GPU."""
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"device must be 'auto', 'cpu' or 'cuda'. Got {device!r}.")
    # Looking for a GPU starts CUDA, which then fails in forked processes.
    if device == "cpu":
        return "cpu"
    has_gpu = torch.get_device_module(GPU).is_available()
    if device == "cuda" and not has_gpu:
        raise ValueError(
            "device='cuda' needs a CUDA GPU that torch sees. Got none: pass "
            "device='cpu'."
        )
    return GPU if has_gpu else "cpu"


def current_gpu(device):
    """Index of the current GPU of this thread; None if the device is the CPU."""
    if device == "cpu":
        return None
    return torch.get_device_module(GPU).current_device()


def on_gpu(number):
    """Context that selects a GPU by index; None does nothing.

    New threads use the first GPU unless told otherwise.
    """
    if number is None:
        return nullcontext()
    return torch.get_device_module(GPU).device(number)


def gains_from_bfloat16(device):
    """Whether a device supports bfloat16: emulation is slower than float32."""
    if device == "cpu":
        return False
    gpu = torch.get_device_module(GPU)
    return gpu.is_bf16_supported(including_emulation=False)


def compute_capability():
    """Compute capability of the current GPU, such as (9, 0)."""
    return torch.get_device_module(GPU).get_device_capability()


def is_out_of_memory(error):
    """Whether an error says that the memory of the GPU is full."""
    is_torch = isinstance(error, torch.OutOfMemoryError)
    return is_torch or "out of memory" in str(error).lower()


def free_memory():
    """Bytes that torch can still allocate on the GPU, its own unused cache included."""
    gpu = torch.get_device_module(GPU)
    return gpu.mem_get_info()[0] + gpu.memory_reserved() - gpu.memory_allocated()


def block_bytes(device, divisor=8):
    """Bytes for one block of a computation.

    One third of the GPU's free memory; on the CPU, scikit-learn's ``working_memory`` /
    `divisor`.
    """
    if device == "cpu":
        return int(get_config()["working_memory"] * 2**20) // divisor
    return free_memory() // 3


def pinned(tensor):
    """A copy of a tensor of the CPU, from which a GPU copies while the CPU goes on."""
    return tensor.pin_memory()


def send(tensors, device):
    """Copies of tensors of the CPU on a GPU, for which the CPU does not wait; a list.

    All tensors of one dtype go there together.
    """
    sent = [None] * len(tensors)
    for dtype in {tensor.dtype for tensor in tensors}:
        places = [k for k, tensor in enumerate(tensors) if tensor.dtype == dtype]
        together = torch.cat([tensors[k].reshape(-1) for k in places])
        on_device = pinned(together).to(device, non_blocking=True)
        parts = on_device.split([tensors[k].numel() for k in places])
        for k, part in zip(places, parts):
            sent[k] = part.reshape(tensors[k].shape)
    return sent


@contextmanager
def seeded(seed, device="cpu"):
    """Context in which torch's global generators start from a seed.

    They are restored afterwards. Only one thread at a time may enter, since all threads
    use the same generators.
    """
    gpu = torch.get_device_module(GPU)
    devices = []
    if device != "cpu":
        devices = [gpu.current_device()]
    with _generators_lock, torch.random.fork_rng(devices=devices, device_type=GPU):
        # `torch.manual_seed` would start all GPUs.
        torch.default_generator.manual_seed(seed)
        if devices:
            gpu.manual_seed(seed)
        yield


def _float32_backends():
    """Backends with their own setting of float32 precision; none in torch < 2.9."""
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        return []
    cudnn = torch.backends.cudnn
    onednn = torch.backends.mkldnn
    backends = [
        getattr(torch.backends.cuda, "matmul", None),
        getattr(onednn, "matmul", None),
        getattr(cudnn, "conv", None),
        getattr(cudnn, "rnn", None),
        getattr(onednn, "conv", None),
        getattr(onednn, "rnn", None),
    ]
    return [backend for backend in backends if hasattr(backend, "fp32_precision")]


def _set_full_precision():
    """Set full float32 precision, and return a function that undoes it."""
    undo = ExitStack()
    backends = _float32_backends()
    # All are read first: one may change with another.
    settings = [backend.fp32_precision for backend in backends]
    for backend, setting in zip(backends, settings):
        if setting != "ieee":
            undo.callback(setattr, backend, "fp32_precision", setting)
            backend.fp32_precision = "ieee"
    # The old setting cannot be read after a user has used the new one.
    if not backends:
        cudnn = torch.backends.cudnn
        undo.callback(
            torch.set_float32_matmul_precision, torch.get_float32_matmul_precision()
        )
        undo.callback(setattr, cudnn, "allow_tf32", cudnn.allow_tf32)
        torch.set_float32_matmul_precision("highest")
        cudnn.allow_tf32 = False
    return undo.close


@contextmanager
def full_precision():
    """Context in which float32 products and convolutions are computed in float32.

    By default torch allows TF32, of three digits, in convolutions on a GPU. The
    settings are restored when the last thread leaves.
    """
    with _precision_lock:
        undo = None
        if not _precision_users:
            undo = _set_full_precision()
        _precision_users.append(undo)
    try:
        yield
    finally:
        with _precision_lock:
            if len(_precision_users) == 1:
                undo = _precision_users[0]
                undo()
            _precision_users.pop()


@contextmanager
def in_any_order():
    """Context without torch's deterministic algorithms, for sums that do not need them.

    On CUDA some of these sums have none, and for others they need the square of the
    memory.
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
def default_settings():
    """Context with torch's default settings.

    Values must not depend on those of the caller. There is no mixed precision; float32
    is computed in full, gradients are enabled, and new tensors are float32 on the CPU.
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
        # In torch 2.6 no other way shows a device context.
        if torch.empty(0).device.type != "cpu":
            stack.enter_context(torch.device("cpu"))
        dtype = torch.get_default_dtype()
        if dtype != torch.float32:
            torch.set_default_dtype(torch.float32)
            stack.callback(torch.set_default_dtype, dtype)
        yield
