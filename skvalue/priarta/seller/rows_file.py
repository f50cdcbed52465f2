"""Reads rows of numbers from a file."""

import os

import numpy as np

_CONTENTS = {
    ".npz": "whole .npz file of one array of numbers",
    ".npy": "whole .npy file of one array of numbers",
    ".csv": ".csv file of numbers without a header",
}


def read_rows(path):
    """Rows from an .npz file of one array, an .npy or a .csv file.

    No code in the file is executed.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension not in _CONTENTS:
        raise ValueError(f"rows must be an .npz, .npy or .csv file. Got {path}.")
    try:
        rows = _load(path, extension)
    except OSError:
        raise
    except Exception as error:  # a damaged file can raise anything
        raise ValueError(
            f"rows must be a {_CONTENTS[extension]}. Got {path}: {error}"
        ) from None
    if rows.ndim == 0 or rows.dtype.kind not in "buif":
        raise ValueError(
            f"rows must be an array of real numbers. Got {path}, which holds "
            f"{rows.dtype}."
        )
    return rows


def _load(path, extension):
    """The one array of a file."""
    if extension == ".csv":
        return np.loadtxt(path, delimiter=",", ndmin=2)
    content = np.load(path)
    if isinstance(content, np.ndarray) != (extension == ".npy"):
        raise ValueError("a file of another kind")
    if extension == ".npy":
        return content
    with content as arrays:
        if len(arrays.files) != 1:
            raise ValueError(f"the arrays {sorted(arrays.files)}")
        return arrays[arrays.files[0]]
