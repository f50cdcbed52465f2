"""Reads rows of numbers from a file."""

import codecs
import os

import numpy as np

from ..._utils.csv_columns import (
    cells_of,
    numbered_rows,
    numbers_of_cells,
    private_numbers,
    public_numbers,
    read_columns,
    read_header,
)
from ..._utils.untrusted import refuse_no_file
from ...exceptions import ParameterError

_CONTENTS = {
    ".npz": "whole .npz file of one array of numbers",
    ".npy": "whole .npy file of one array of numbers",
    ".csv": ".csv file of numbers without a header",
}


def read_names(path):
    """The names in the header of a .csv file of public rows.

    None if its first line holds numbers alone, and for a file of another kind.
    """
    if not _is_csv(path):
        return None
    header = read_header(path)
    if all(map(_is_number, header)):
        return None
    if "" in header:
        raise ParameterError(
            str(path),
            "must have a header without empty names, or numbers alone in its first "
            f"line. Got {header}.",
        )
    return header


def _is_number(text):
    """Whether a cell of a first line is a number, which may be NaN or infinite."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_rows(path, columns=None):
    """Rows from an .npz file of one array, an .npy or a .csv file, which are public.

    With `columns`, these columns of a .csv file with a header, in this order. No code
    in the file is executed. Rows with NaN or infinity are refused by their place.
    """
    extension = os.path.splitext(path)[1].lower()
    if extension not in _CONTENTS:
        raise ValueError(f"rows must be an .npz, .npy or .csv file. Got {path}.")
    if columns is not None:
        return public_numbers(read_columns(path, columns), len(columns))
    rows = _read_array(path, extension)
    if rows.dtype.kind == "f":
        is_finite = np.isfinite(rows.reshape(len(rows), -1)).all(axis=1)
        if not is_finite.all():
            raise ParameterError(
                str(path),
                "must hold finite numbers. Got NaN or infinity in row "
                f"{int(np.argmin(is_finite)) + 1}.",
            )
    return rows


def read_private_rows(path, n_columns=None, *, columns=None, order=None):
    """Rows as by `read_rows`, of a private file: no row decides how others are read.

    A line of a .csv file with a cell that is no number, or with another number of cells
    than expected, is a row of NaN: an error would tell that there is such a row.

    Parameters
    ----------
    path : str or path-like
        The file.
    n_columns : int, default=None
        Number of columns of a .csv file without a header. None is the most frequent
        number of cells.
    columns : sequence of str, default=None
        Names of the columns to return. A .csv file has them in its header.
    order : sequence of str, default=None
        Names of the columns of a file without a header, in the order of the file.
    """
    extension = os.path.splitext(path)[1].lower()
    if columns is not None and order is None:
        if not _is_csv(path):
            raise ParameterError(
                "--columns",
                "must name the columns of an array, since the buyer's model has names. "
                f"Got {path}, which has none.",
            )
        return private_numbers(read_columns(path, columns), len(columns))

    places = None
    if columns is not None:
        places = _places_of(columns, order)
        n_columns = len(order)
    if extension != ".csv":
        if extension not in _CONTENTS:
            raise ValueError(f"rows must be an .npz, .npy or .csv file. Got {path}.")
        rows = _read_array(path, extension)
        if places is None:
            return rows
        if rows.ndim != 2 or rows.shape[1] != n_columns:
            raise ParameterError(
                "--columns",
                f"must have a name for each column of {path}. Got {n_columns} names "
                f"and shape {rows.shape}.",
            )
        return rows[:, places]

    refuse_no_file(path, str(path))
    with open(path, "rb") as file:
        content = file.read().removeprefix(codecs.BOM_UTF8)
    lines = content.split(b"\n")
    if n_columns is None:
        lengths = [line.count(b",") + 1 for line in lines if line.strip()]
        n_columns = max(set(lengths), key=lengths.count, default=0)
    rows_of_cells = []
    for _, line in numbered_rows(lines, n_columns):
        cells = cells_of(line)
        if len(cells) != n_columns:
            cells = None
        rows_of_cells.append(cells)
    rows = numbers_of_cells(rows_of_cells, n_columns)
    if places is None:
        return rows
    return rows[:, places]


def _places_of(columns, order):
    """The place of each column in an order, which must have all of them once."""
    for name in columns:
        if list(order).count(name) != 1:
            raise ParameterError(
                "--columns",
                f"must have each column of the buyer's model once. Got {name!r} "
                f"{list(order).count(name)} times.",
            )
    return [list(order).index(name) for name in columns]


def _is_csv(path):
    return os.path.splitext(path)[1].lower() == ".csv"


def _read_array(path, extension):
    """The one array of a file, of real numbers."""
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
        # A byte order mark is no part of the first number, and no row is a comment.
        return np.loadtxt(
            path, delimiter=",", ndmin=2, encoding="utf-8-sig", comments=None
        )
    content = np.load(path)
    if isinstance(content, np.ndarray) != (extension == ".npy"):
        raise ValueError("a file of another kind")
    if extension == ".npy":
        return content
    with content as arrays:
        if len(arrays.files) != 1:
            raise ValueError(f"the arrays {sorted(arrays.files)}")
        return arrays[arrays.files[0]]
