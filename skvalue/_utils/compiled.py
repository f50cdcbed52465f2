"""Loops that numba compiles."""

from functools import partial

from numba import njit

__all__ = ["compiled"]


def compiled(function=None, **options):
    """Compile a function of arrays, and keep the machine code on disk for later processes.

    Numba keeps it beside the file, in the user's cache folder or in NUMBA_CACHE_DIR. Where none of
    them can be written, as in some containers, every process compiles anew.

    Parameters
    ----------
    function : function, default=None
        The function; None returns a decorator with these options.
    **options
        Options of `numba.njit`, such as `fastmath`. The GIL is released in any case.

    Returns
    -------
    compiled : function
        The compiled function.
    """
    if function is None:
        return partial(compiled, **options)
    try:
        return njit(nogil=True, cache=True, **options)(function)
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return njit(nogil=True, **options)(function)
