"""What is needed to go on with an estimation, in a file that is whole at any time."""

import hashlib
import os
import re
from pathlib import Path
from tempfile import NamedTemporaryFile
from zipfile import BadZipFile

import numpy as np

VERSION = 2


def write_arrays(path, arrays):
    """Write arrays to a file that is replaced at once, or not at all.

    Raises OSError where the disk is full or the folder cannot be written to; what was in the file
    before is then still there.
    """
    path = Path(path)
    with NamedTemporaryFile(dir=path.parent, prefix=path.name, suffix=".tmp", delete=False) as file:
        try:
            np.savez(file, version=np.array(VERSION), **arrays)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            os.unlink(file.name)
            raise
    os.replace(file.name, path)


def read_arrays(path):
    """The arrays of a file, or None if there is none.

    Raises ValueError if the file is no checkpoint, or its folder is not there.
    """
    path = Path(path)
    if not path.parent.is_dir():  # said now, not at the first write
        raise ValueError(f"checkpoint must be in a folder that is there. Got {str(path)!r}.")
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise ValueError(
            f"checkpoint must name a file that a fit has written, or none. {str(path)!r} is not "
            f"such a file: {error}."
        ) from error
    if "version" not in arrays or arrays["version"] != VERSION:
        raise ValueError(
            f"checkpoint must name a file of version {VERSION}. {str(path)!r} is another."
        )
    return arrays


def fingerprint(*parts):
    """Hash of data and parameters, the same in every process.

    Arrays go by their bytes, estimators by their classes and parameters, functions by their names
    (where they have none by their code), anything else by its `repr` without addresses.

    Examples
    --------
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
    if isinstance(part, np.ndarray) and part.dtype != object:
        digest.update(f"{part.dtype}{part.shape}".encode())
        digest.update(part.tobytes())
    elif hasattr(part, "get_params") and not isinstance(part, type):
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
        if "<" in part.__qualname__ and hasattr(part, "__code__"):  # a lambda's name is no name
            _feed(digest, _code(part))
    else:
        digest.update(re.sub(r" at 0x[0-9a-f]+", "", repr(part)).encode())
    digest.update(b"|")


def _code(function):
    """What a function without a name does, as far as can be told."""
    code, cells = function.__code__, function.__closure__ or ()
    # Functions that it uses go by their names: one may be itself.
    held = [getattr(cell.cell_contents, "__qualname__", cell.cell_contents) for cell in cells]
    return [code.co_code.hex(), code.co_consts, function.__defaults__, held]
