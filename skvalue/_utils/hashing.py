"""A hash of data and parameters that is the same in every process."""

from types import CodeType, FunctionType
from uuid import uuid4

import numpy as np
from joblib.hashing import NumpyHasher
from scipy import sparse


def fingerprint(value):
    """Hash of data or parameters, as `joblib.hash`, but by content.

    Of a function count the code, the defaults, the closure and the attributes, but not
    what its globals refer to; classes, and functions without such code, count by name.
    What cannot be pickled equals nothing, not even itself.

    >>> fingerprint([np.arange(3), {"a": 1}]) == fingerprint([np.arange(3), {"a": 1}])
    True
    >>> fingerprint(lambda x: max(x)) == fingerprint(lambda x: min(x))
    False
    """
    try:
        return _Hasher(coerce_mmap=True).hash(value)
    except Exception:  # `pickle` raises any, also those of the objects themselves
        return uuid4().hex


class _Hasher(NumpyHasher):
    """The hasher of joblib, by content where it hashes names or addresses.

    The order of an array in memory does not count either.
    """

    def save(self, obj):
        if type(obj) in (np.ndarray, np.memmap):
            obj = np.asarray(obj, order="C")
        super().save(obj)

    def reducer_override(self, obj):
        """What stands for an object, as the result of `object.__reduce__`."""
        if isinstance(obj, FunctionType):
            name = obj.__module__, obj.__qualname__, obj.__code__
            cells = [_content(cell) for cell in obj.__closure__ or ()]
            settings = obj.__defaults__, obj.__kwdefaults__, cells, vars(obj)
            return str, name, settings
        if isinstance(obj, CodeType):
            content = obj.co_code, obj.co_consts, obj.co_names, obj.co_exceptiontable
            return str, content
        if isinstance(obj, frozenset):
            return frozenset, (set(obj),)
        if sparse.issparse(obj):
            rows = sparse.csr_array(obj)
            return str, (rows.shape, rows.data, rows.indices, rows.indptr)
        if hasattr(obj, "detach") and hasattr(obj, "cpu"):  # torch pickles addresses
            return str, (str(obj.dtype), np.asarray(obj.detach().cpu().double()))
        return NotImplemented


def _content(cell):
    """The object in a cell of a closure, or None."""
    try:
        return cell.cell_contents
    except ValueError:  # not yet set
        return None
