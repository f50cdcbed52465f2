"""Loops that numba compiles, and an exponential function that lets them vectorise."""

from functools import partial

import numpy as np
from numba import njit

_LN2_HIGH, _LN2_LOW = 0.693145751953125, 1.42860682030941723212e-6
_TAYLOR = tuple(float(c) for c in 1.0 / np.cumprod(np.r_[1.0, np.arange(1, 14)]))


def compiled(function=None, **options):
    """Compile a function of arrays, and keep the machine code on disk for later processes.

    Numba keeps it beside the file, in the user's cache folder or in NUMBA_CACHE_DIR; where none of
    them can be written, every process compiles anew. Options are numba's; the GIL is released.
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
    """``exp(x)``, for x from -700 to 700, as a number near 1 and the bits of a power of two.

    A loop writes both, another one multiplies (the bits seen as float64): libm's `exp` keeps a loop
    from being vectorised.
    """
    k = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    e = _TAYLOR[13]
    e = e * r + _TAYLOR[12]
    e = e * r + _TAYLOR[11]
    e = e * r + _TAYLOR[10]
    e = e * r + _TAYLOR[9]
    e = e * r + _TAYLOR[8]
    e = e * r + _TAYLOR[7]
    e = e * r + _TAYLOR[6]
    e = e * r + _TAYLOR[5]
    e = e * r + _TAYLOR[4]
    e = e * r + _TAYLOR[3]
    e = e * r + _TAYLOR[2]
    e = e * r + _TAYLOR[1]
    return e * r + _TAYLOR[0], (np.int64(k) + 1023) << 52
