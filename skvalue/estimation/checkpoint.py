"""Checkpoint files, from which an estimation resumes; written atomically."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import perf_counter
from zipfile import BadZipFile

import numpy as np

VERSION = 2

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
            np.savez(file, version=np.array(VERSION), **arrays)
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
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise ValueError(
            f"checkpoint must name a file written by a fit, or a new file. {str(path)!r} is "
            f"neither: {error}."
        ) from error
    if "version" not in arrays or arrays["version"] != VERSION:
        raise ValueError(
            f"checkpoint must name a file of version {VERSION}. {str(path)!r} has another version."
        )
    return arrays
