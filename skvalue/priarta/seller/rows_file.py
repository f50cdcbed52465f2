"""Reads rows of numbers from a file."""

import codecs
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


def read_private_rows(path, n_columns=None):
    """Rows as by `read_rows`, of a private file: no row decides how others are read.

    A line of a .csv file with a cell that is no number, or with another number of cells
    than `n_columns`, is a row of NaN: an error would tell that there is such a row.
    Without `n_columns`, it is the most frequent number of cells.
    """
    if os.path.splitext(path)[1].lower() != ".csv":
        return read_rows(path)
    with open(path, "rb") as file:
        content = file.read().removeprefix(codecs.BOM_UTF8)
    # Other characters that end lines would make two rows of one.
    lines = [
        line.decode("utf-8", errors="replace").split(",")
        for line in content.split(b"\n")
        if line.strip()
    ]
    if n_columns is None:
        lengths = [len(line) for line in lines]
        n_columns = max(set(lengths), key=lengths.count, default=0)
    rows = np.full((len(lines), n_columns), np.nan)
    for row, line in zip(rows, lines):
        row[:] = _numbers(line, n_columns)
    return rows


def _numbers(cells, n_columns):
    """The numbers of the cells of a line; NaN if it is no line of numbers."""
    if len(cells) != n_columns:
        return np.nan
    try:
        return [float(cell) for cell in cells]
    except ValueError:
        return np.nan


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
