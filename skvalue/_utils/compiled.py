"""Compilation by numba, and an exponential function that numba can vectorise."""

import logging
from functools import partial

import numpy as np
from numba import njit
from numba.core import event

_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.42860682030941723212e-6
_TAYLOR = tuple(float(c) for c in 1.0 / np.cumprod(np.r_[1.0, np.arange(1, 14)]))


class _FirstCompilation(event.Listener):
    """Logs a message when a function of this library is compiled for the first time."""

    told = False

    def on_start(self, event):
        """Log the message; numba calls this only if no machine code is in its cache."""
        function = event.data["dispatcher"].py_func
        if not self.told and function.__module__.startswith(__name__.partition(".")[0]):
            self.told = True
            # Without a handler Python shows warnings only.
            logging.getLogger("skvalue").warning(
                "skvalue compiles its loops for this machine, which may take a minute; "
                "later fits and processes load them from the cache of numba."
            )

    def on_end(self, event):
        """Nothing."""


first_compilation = _FirstCompilation()
event.register("numba:compile", first_compilation)


def compiled(function=None, **options):
    """Compile a function of arrays with numba, without the GIL, and cache it on disk.

    The cache is next to the file, in the user's cache folder or in NUMBA_CACHE_DIR; if
    none of them is writable, every process compiles again. Options are those of
    `numba.njit`.
    """
    if function is None:
        return partial(compiled, **options)
    try:
        return njit(nogil=True, cache=True, **options)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return njit(nogil=True, **options)(function)


@compiled(fastmath={"contract", "reassoc"})
def exp_parts(x):
    """``exp(x)`` for x in [-700, 700], as a factor near 1 and the bits of a power of
    two.

    One loop writes both, a second one multiplies them (the bits viewed as float64): a
    loop that calls `exp` of libm is not vectorised.
    """
    k = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    e = 0.0
    for i in range(len(_TAYLOR) - 1, -1, -1):
        e = e * r + _TAYLOR[i]
    return e, (np.int64(k) + 1023) << 52
