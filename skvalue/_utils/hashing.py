"""A hash of data and parameters that is the same in every process."""

import hashlib
import re

import joblib
import numpy as np
from sklearn.frozen import FrozenEstimator


def fingerprint(*parts):
    """Hash of data and parameters, the same in every process.

    Hashed are the bytes of arrays, class and parameters of estimators, names of functions (the code
    of lambdas), and the pickle of other objects, or their `repr` without addresses.

    >>> fingerprint(np.arange(3), {"a": 1}) == fingerprint(np.arange(3), {"a": 1})
    True
    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(4))
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest, part):
    """Add a part to the hash."""
    if isinstance(part, np.ndarray) and part.dtype != object:
        digest.update(f"{part.dtype}{part.shape}".encode())
        digest.update(part.tobytes())
    elif hasattr(part, "get_params") and not isinstance(part, (type, FrozenEstimator)):
        _feed(digest, type(part).__qualname__)
        _feed(digest, part.get_params(deep=False))
    elif isinstance(part, dict):
        for key in sorted(part, key=repr):
            _feed(digest, key)
            _feed(digest, part[key])
    elif isinstance(part, (list, tuple)) or (isinstance(part, np.ndarray) and part.dtype == object):
        digest.update(f"{type(part).__name__}{len(part)}".encode())
        for item in part:
            _feed(digest, item)
    elif hasattr(part, "__qualname__"):
        digest.update(f"{part.__module__}.{part.__qualname__}".encode())
        if "<" in part.__qualname__ and hasattr(part, "__code__"):  # lambdas have no unique name
            _feed(digest, _code(part))
    elif part is None or isinstance(part, (str, bytes, int, float, complex)):
        digest.update(repr(part).encode())
    else:
        try:
            digest.update(joblib.hash(part).encode())
        except Exception:  # if it cannot be pickled
            digest.update(re.sub(r" at 0x[0-9a-f]+", "", repr(part)).encode())
    digest.update(b"|")


def _code(function):
    """Bytecode, constants, defaults and closure of a lambda."""
    code, cells = function.__code__, function.__closure__ or ()
    # Functions in the closure are hashed by name: one may be the lambda itself.
    held = [getattr(cell.cell_contents, "__qualname__", cell.cell_contents) for cell in cells]
    return [code.co_code.hex(), code.co_consts, function.__defaults__, held]
