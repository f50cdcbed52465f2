"""A second torch device that is no GPU but is as strict: the GPU tests run on it
everywhere.

Tensors "on" it wrap tensors of the CPU, which do the work. As on a GPU, an operation on
tensors of both devices is an error, and so is a tensor that goes to NumPy without
`.cpu()`. There are two such GPUs; each thread has a current one, at first the first, as
with CUDA. Where the user asks for deterministic algorithms, what has none on CUDA is
refused. What it cannot show is what depends on CUDA itself: memory, speed, and
rounding.
"""

from contextlib import contextmanager
from threading import local

import torch
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

NAME = "simulated"
FREE = 2**26  # bytes of its memory, so that blocks are many
_ATEN = torch.ops.aten
_CROSSING = {_ATEN.copy_.default, _ATEN._to_copy.default}
# Places, the second argument, may be named by tensors of the CPU.
_INDEXING = {_ATEN.index.Tensor, _ATEN.index_put_.default, _ATEN.index_put.default}
_SCANS = {_ATEN.cumsum.default, _ATEN.cumsum.out}
_CURRENT = local()


class OnDevice(torch.Tensor):
    """A tensor on the simulated device, around one on the CPU."""

    @staticmethod
    def __new__(cls, inner, gpu):
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME, 0),
            storage_size=2
            ** 50,  # nothing is stored; large enough for what changes its size
        )
        tensor.inner, tensor.gpu = inner, gpu  # torch itself knows of one
        return tensor

    def __repr__(self, **_):
        return f"OnDevice({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return _run(operation, args, kwargs or {})


def _run(operation, args, kwargs):
    """An operation of which a tensor, or the result, is on the device."""
    tensors = [
        leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
    ]
    here = {
        id(tensor.inner): tensor for tensor in tensors if isinstance(tensor, OnDevice)
    }
    indices = tree_leaves(args[1]) if operation in _INDEXING else []
    away = [
        tensor
        for tensor in tensors
        if not isinstance(tensor, OnDevice)
        and tensor.ndim  # a single number goes anywhere
        and not any(tensor is index for index in indices)
    ]
    gpus = {tensor.gpu for tensor in here.values()}
    if ((here and away) or len(gpus) > 1) and operation not in _CROSSING:
        raise RuntimeError(
            f"Expected all tensors to be on the same device: {operation}."
        )
    gpu = gpus.pop() if gpus else _current()
    if here and torch.get_deterministic_debug_mode() == 2:
        _refuse_what_has_no_order(operation, args, kwargs)
    on_device, device = bool(here), kwargs.get("device")
    if device is not None:
        on_device = torch.device(device).type == NAME
        kwargs = {**kwargs, "device": torch.device("cpu")}
    args, kwargs = tree_map(
        lambda leaf: leaf.inner if isinstance(leaf, OnDevice) else leaf, (args, kwargs)
    )

    def put(leaf):
        if not on_device or not isinstance(leaf, torch.Tensor):
            return leaf
        # An operation in place gives back the tensor that it was called with.
        return here[id(leaf)] if id(leaf) in here else OnDevice(leaf, gpu)

    result = operation(*args, **kwargs)
    for tensor in here.values():
        if (
            tensor.shape != tensor.inner.shape
            or tensor.stride() != tensor.inner.stride()
        ):
            _reshape(tensor)
    return tree_map(put, result)


def _refuse_what_has_no_order(operation, args, kwargs):
    """As CUDA does, or would if it did not take the square of the memory for it
    (cumsum)."""
    weighted = (
        operation == _ATEN.bincount.default and len(args) > 1 and args[1] is not None
    )
    if weighted or (operation in _SCANS and args[0].is_floating_point()):
        raise RuntimeError(f"{operation} does not have a deterministic implementation.")


def _reshape(tensor):
    """After an operation that changed the shape in place, change that of the wrapper
    too."""
    inner, before = tensor.inner, torch._C._meta_in_tls_dispatch_include()
    with no_dispatch():
        torch._C._set_meta_in_tls_dispatch_include(True)
        try:
            tensor.as_strided_(inner.shape, inner.stride(), inner.storage_offset())
        finally:
            torch._C._set_meta_in_tls_dispatch_include(before)


def _current():
    return getattr(_CURRENT, "gpu", 0)


class _Module(_DummyBackendModule):
    """What `torch.cuda` is to CUDA."""

    def device_count(self):
        return 2

    def current_device(self):
        return _current()

    @contextmanager
    def device(self, gpu):
        before, _CURRENT.gpu = _current(), gpu
        try:
            yield
        finally:
            _CURRENT.gpu = before

    def is_bf16_supported(self, including_emulation=True):
        return True

    def mem_get_info(self):
        return FREE, 2 * FREE

    def memory_reserved(self):
        return 2**20

    def memory_allocated(self):
        return 2**19

    def manual_seed(self, seed):
        """Numbers are drawn on the CPU."""

    def get_rng_state(self, device):
        return None

    def set_rng_state(self, state, device):
        pass

    def get_amp_supported_dtype(self):
        return [torch.bfloat16]


def _in_half_precision(operation):
    """What mixed precision does to a product: all that is float32 comes as the lower
    precision."""

    def lower(leaf):
        is_single = isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32
        return leaf.to(torch.get_autocast_dtype(NAME)) if is_single else leaf

    def run(*args, **kwargs):
        with torch.autocast(NAME, enabled=False):
            return operation(*tree_map(lower, args), **tree_map(lower, kwargs))

    return run


_LIBRARY = []  # torch drops a library without references


def install():
    """Make the device known to torch, once a process."""
    if not _LIBRARY:
        _setup_privateuseone_for_python_backend(NAME, _Module())
        _LIBRARY.append(torch.library.Library("_", "IMPL"))
        _LIBRARY[0].fallback(
            lambda op, *args, **kwargs: _run(op, args, kwargs), "PrivateUse1"
        )
        _LIBRARY[0].fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
        _LIBRARY.append(torch.library.Library("aten", "IMPL"))
        for name in ("linear", "conv2d", "matmul", "mm", "addmm", "bmm"):
            packet = getattr(_ATEN, name).default
            _LIBRARY[1].impl(packet, _in_half_precision(packet), "AutocastPrivateUse1")
