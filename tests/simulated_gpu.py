"""A second torch device, as strict as a GPU, on which the tests of GPUs run.

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
# What waits for the device: its numbers decide what the CPU does.
_WAITING = {
    _ATEN._local_scalar_dense.default,
    _ATEN.nonzero.default,
    _ATEN.masked_select.default,
    _ATEN.equal.default,
    _ATEN.is_nonzero.default,
}
_CURRENT = local()

# Operations at which the CPU waits for the device, while `count_waits` counts them, and
# copies to the device or from it, for `count_copies`.
_WAITS = []
_COPIES = []
# Counts of operations.
_MEMORY = []


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
            # Nothing is stored; large enough for operations that change the size.
            storage_size=2**50,
        )
        tensor.inner = inner
        tensor.gpu = gpu  # torch itself knows of one
        return tensor

    def __repr__(self, **_):
        return f"OnDevice({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return _run(operation, args, kwargs or {})


def _run(operation, args, kwargs):
    """An operation of which a tensor, or the result, is on the device."""
    for count in _MEMORY:
        count.run_one()
    leaves = tree_leaves((args, kwargs))
    wrappers = {id(leaf.inner): leaf for leaf in leaves if isinstance(leaf, OnDevice)}
    if _WAITS or _COPIES:
        _note_wait(operation, args, kwargs, leaves)
    _refuse_two_devices(operation, args, leaves)
    if wrappers and torch.get_deterministic_debug_mode() == 2:
        _refuse_without_an_order(operation, args)

    gpus = [wrapper.gpu for wrapper in wrappers.values()]
    gpu = gpus[0] if gpus else _current()
    on_device = bool(wrappers)
    device = kwargs.get("device")
    if device is not None:
        on_device = torch.device(device).type == NAME
        kwargs = {**kwargs, "device": torch.device("cpu")}

    def unwrap(leaf):
        return leaf.inner if isinstance(leaf, OnDevice) else leaf

    def wrap(leaf):
        if not on_device or not isinstance(leaf, torch.Tensor):
            return leaf
        # An operation in place gives back the tensor that it was called with.
        if id(leaf) in wrappers:
            return wrappers[id(leaf)]
        return OnDevice(leaf, gpu)

    args, kwargs = tree_map(unwrap, (args, kwargs))
    result = operation(*args, **kwargs)
    for wrapper in wrappers.values():
        inner = wrapper.inner
        if wrapper.shape != inner.shape or wrapper.stride() != inner.stride():
            _reshape(wrapper)
    return tree_map(wrap, result)


def pinned(tensor):
    """A copy in memory that is pinned, from which the device copies by itself."""
    copied = tensor.clone()
    copied.is_pinned_here = True
    return copied


@contextmanager
def count_waits():
    """Context that yields a list, to which each wait for the device is added.

    The CPU waits when it copies to the device or from it, unless by a copy from pinned
    memory that is not to block, and when it reads a number.
    """
    waits = []
    _WAITS.append(waits)
    try:
        yield waits
    finally:
        _WAITS.remove(waits)


@contextmanager
def count_copies():
    """Context that yields a list, to which copies to and from the device are added."""
    copies = []
    _COPIES.append(copies)
    try:
        yield copies
    finally:
        _COPIES.remove(copies)


class MemoryCount:
    """Counts operations, of which some find no memory: see `short_of_memory`."""

    def __init__(self, is_short):
        self._is_short = is_short
        self.n_operations = 0

    def run_one(self):
        number = self.n_operations
        self.n_operations += 1
        if self._is_short(number):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")


@contextmanager
def short_of_memory(is_short):
    """Context in which operations find no memory, by their number; yields the count."""
    count = MemoryCount(is_short)
    _MEMORY.append(count)
    try:
        yield count
    finally:
        _MEMORY.remove(count)


def _note_wait(operation, args, kwargs, leaves):
    """Add an operation to the lists of `count_waits` if the CPU waits for it.

    And to those of `count_copies` if it copies from one side to the other.
    """
    on_device = {
        type(leaf) is OnDevice for leaf in leaves if isinstance(leaf, torch.Tensor)
    }
    if kwargs.get("device") is not None:
        on_device.add(torch.device(kwargs["device"]).type == NAME)
    crosses = operation in _CROSSING and len(on_device) > 1
    if crosses or operation == _ATEN._local_scalar_dense.default:
        for copies in _COPIES:
            copies.append(str(operation))
    if operation == _ATEN.copy_.default and getattr(args[1], "is_pinned_here", False):
        crosses = not (len(args) > 2 and args[2])
    if operation in _INDEXING:
        # Places of the CPU are copied; those of a mask are counted first.
        places = [leaf for leaf in tree_leaves(args[1]) if leaf is not None]
        crosses = any(type(place) is not OnDevice for place in places) or any(
            place.dtype == torch.bool for place in places
        )
    if crosses or operation in _WAITING:
        for waits in _WAITS:
            waits.append(str(operation))


def _refuse_two_devices(operation, args, leaves):
    """Refuse an operation on tensors of the CPU and of a GPU, or of two GPUs."""
    if operation in _CROSSING:
        return
    indices = tree_leaves(args[1]) if operation in _INDEXING else []
    gpus = {leaf.gpu for leaf in leaves if isinstance(leaf, OnDevice)}
    # A single number goes anywhere.
    on_cpu = [
        leaf
        for leaf in leaves
        if type(leaf) is not OnDevice and isinstance(leaf, torch.Tensor) and leaf.ndim
    ]
    on_cpu = [leaf for leaf in on_cpu if not any(leaf is index for index in indices)]
    if len(gpus) > 1 or (gpus and on_cpu):
        raise RuntimeError(
            f"Expected all tensors to be on the same device: {operation}."
        )


def _refuse_without_an_order(operation, args):
    """Refuse sums that CUDA has in no fixed order.

    Of cumsum it has one, at the square of the memory.
    """
    is_bincount = operation == _ATEN.bincount.default
    is_weighted = is_bincount and len(args) > 1 and args[1] is not None
    if is_weighted or (operation in _SCANS and args[0].is_floating_point()):
        raise RuntimeError(f"{operation} does not have a deterministic implementation.")


def _reshape(tensor):
    """Give a wrapper the shape that an operation in place gave to its tensor."""
    inner = tensor.inner
    before = torch._C._meta_in_tls_dispatch_include()
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
        before = _current()
        _CURRENT.gpu = gpu
        try:
            yield
        finally:
            _CURRENT.gpu = before

    def is_bf16_supported(self, including_emulation=True):
        return True

    def get_device_capability(self):
        return 9, 0

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
    """A product in mixed precision: float32 is cast to the lower precision."""

    def lower(leaf):
        is_single = isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32
        return leaf.to(torch.get_autocast_dtype(NAME)) if is_single else leaf

    def run(*args, **kwargs):
        with torch.autocast(NAME, enabled=False):
            return operation(*tree_map(lower, args), **tree_map(lower, kwargs))

    return run


_LIBRARIES = []  # torch drops a library without references


def install():
    """Make the device known to torch, once a process."""
    if not _LIBRARIES:
        _setup_privateuseone_for_python_backend(NAME, _Module())
        fallbacks = torch.library.Library("_", "IMPL")
        fallbacks.fallback(
            lambda operation, *args, **kwargs: _run(operation, args, kwargs),
            "PrivateUse1",
        )
        fallbacks.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
        products = torch.library.Library("aten", "IMPL")
        for name in ("linear", "conv2d", "matmul", "mm", "addmm", "bmm"):
            product = getattr(_ATEN, name).default
            lowered = _in_half_precision(product)
            products.impl(product, lowered, "AutocastPrivateUse1")
        _LIBRARIES.extend([fallbacks, products])
