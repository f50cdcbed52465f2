"""Checkpoint files, from which an estimation resumes; written atomically."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import perf_counter

import numpy as np

from .._utils.hashing import fingerprint

VERSION = 4

_SECONDS = 1.0  # least time between two writes


class Checkpoint:
    """A file written about once per second; nothing is written if `path` is None."""

    def __init__(self, path):
        self.path, self._written = path, perf_counter()

    @property
    def is_due(self):
        """Whether the last write was more than a second ago."""
        return self.path is not None and perf_counter() - self._written > _SECONDS

    def write(self, arrays):
        """Write the arrays; an OSError names the file."""
        if self.path is None:
            return
        try:
            write_arrays(self.path, arrays)
        except OSError as error:
            raise OSError(f"checkpoint={str(self.path)!r} could not be written: {error}") from error
        self._written = perf_counter()


def write_arrays(path, arrays):
    """Write arrays to a file atomically: on an OSError the previous file is unchanged."""
    path = Path(path)
    with NamedTemporaryFile(dir=path.parent, prefix=path.name, suffix=".tmp", delete=False) as file:
        try:
            arrays = {**arrays, "version": np.array(VERSION)}
            np.savez(file, checksum=np.array(_checksum(arrays)), **arrays)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            os.unlink(file.name)
            raise
    os.replace(file.name, path)


def read_arrays(path):
    """The arrays of a file, or None if it does not exist.

    Raises ValueError if the file is no checkpoint or its folder does not exist.
    """
    path = Path(path)
    if not path.parent.is_dir():  # checked now instead of at the first write
        raise ValueError(f"checkpoint must be in an existing folder. Got {str(path)!r}.")
    if not path.exists():
        return None
    try:
        if not path.is_file():  # reading a pipe would wait for ever
            raise ValueError("it is not a file")
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        checksum = str(arrays.pop("checksum", "none"))
    except Exception as error:  # a damaged file can raise anything
        raise ValueError(
            f"checkpoint must name a file written by a fit, or a new file. {str(path)!r} is "
            f"neither: {error}."
        ) from error
    if not np.array_equal(arrays.get("version"), VERSION):
        raise ValueError(
            f"checkpoint must name a file of version {VERSION}. {str(path)!r} has another version."
        )
    if checksum != _checksum(arrays):
        raise ValueError(f"checkpoint must name an undamaged file. {str(path)!r} was changed.")
    return arrays


def _checksum(arrays):
    return fingerprint({name: np.asarray(array) for name, array in arrays.items()})
