"""What is needed to resume an estimation, in a file that is whole at any time."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import perf_counter
from zipfile import BadZipFile

import numpy as np

VERSION = 2

_SECONDS = 1.0  # between two writes


class Checkpoint:
    """A file that a computation writes about every second, if there is a path."""

    def __init__(self, path):
        self.path, self._written = path, perf_counter()

    @property
    def is_due(self):
        """Whether it is time to write."""
        return self.path is not None and perf_counter() - self._written > _SECONDS

    def write(self, arrays):
        """Write the arrays; OSError names the file."""
        if self.path is None:
            return
        try:
            write_arrays(self.path, arrays)
        except OSError as error:
            raise OSError(f"checkpoint={str(self.path)!r} could not be written: {error}") from error
        self._written = perf_counter()


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
