"""A second torch device that is no GPU but is as strict: the GPU tests run on it everywhere.

Tensors "on" it wrap tensors of the CPU, which do the work. As on a GPU, an operation on tensors of
both devices is an error, and so is a tensor that goes to NumPy without `.cpu()`. What it cannot
show is what depends on CUDA itself: memory, speed, and rounding.
"""

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


class OnDevice(torch.Tensor):
    """A tensor on the simulated device, around one on the CPU."""

    @staticmethod
    def __new__(cls, inner):
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME, 0),
            storage_size=2**50,  # nothing is stored; large enough for what changes its size
        )
        tensor.inner = inner
        return tensor

    def __repr__(self, **_):
        return f"OnDevice({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return _run(operation, args, kwargs or {})


def _run(operation, args, kwargs):
    """An operation of which a tensor, or the result, is on the device."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    here = {id(tensor.inner): tensor for tensor in tensors if isinstance(tensor, OnDevice)}
    indices = tree_leaves(args[1]) if operation in _INDEXING else []
    away = [
        tensor
        for tensor in tensors
        if not isinstance(tensor, OnDevice)
        and tensor.ndim  # a single number goes anywhere
        and not any(tensor is index for index in indices)
    ]
    if here and away and operation not in _CROSSING:
        raise RuntimeError(f"Expected all tensors to be on the same device: {operation}.")
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
        return here[id(leaf)] if id(leaf) in here else OnDevice(leaf)

    result = operation(*args, **kwargs)
    for tensor in here.values():
        if tensor.shape != tensor.inner.shape or tensor.stride() != tensor.inner.stride():
            _reshape(tensor)
    return tree_map(put, result)


def _reshape(tensor):
    """After an operation that changed the shape in place, change that of the wrapper too."""
    inner, before = tensor.inner, torch._C._meta_in_tls_dispatch_include()
    with no_dispatch():
        torch._C._set_meta_in_tls_dispatch_include(True)
        try:
            tensor.as_strided_(inner.shape, inner.stride(), inner.storage_offset())
        finally:
            torch._C._set_meta_in_tls_dispatch_include(before)


class _Module(_DummyBackendModule):
    """What `torch.cuda` is to CUDA."""

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
    """What mixed precision does to a product: all that is float32 comes as the lower precision."""

    def lower(leaf):
        is_single = isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32
        return leaf.to(torch.get_autocast_dtype(NAME)) if is_single else leaf

    def run(*args, **kwargs):
        with torch.autocast(NAME, enabled=False):
            return operation(*tree_map(lower, args), **tree_map(lower, kwargs))

    return run


_LIBRARY = []  # torch forgets what nobody holds


def install():
    """Make the device known to torch, once a process."""
    if not _LIBRARY:
        _setup_privateuseone_for_python_backend(NAME, _Module())
        _LIBRARY.append(torch.library.Library("_", "IMPL"))
        _LIBRARY[0].fallback(lambda op, *args, **kwargs: _run(op, args, kwargs), "PrivateUse1")
        _LIBRARY[0].fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
        _LIBRARY.append(torch.library.Library("aten", "IMPL"))
        for name in ("linear", "conv2d", "matmul", "mm", "addmm", "bmm"):
            packet = getattr(_ATEN, name).default
            _LIBRARY[1].impl(packet, _in_half_precision(packet), "AutocastPrivateUse1")
