"""Reads named columns of a CSV file, each line by itself.

No line decides how another one is read, so that one row of a private file moves its own
contribution alone: a quote that is never closed ends with its line.
"""

import codecs
import csv
import math
from typing import NamedTuple

import numpy as np

from ..exceptions import ParameterError
from .checks import format_values
from .untrusted import refuse_no_file

MAX_COLUMNS = 10_000
_MAX_LINE = 10_000_000  # bytes of a header


class CsvColumns(NamedTuple):
    """Cells of the named columns of a file.

    `cells` has a list of texts for each line, or None for a line of another number of
    cells than the header; `lines` has their numbers in the file, from 1 for the header.
    """

    path: str
    names: tuple
    cells: list
    lines: list


def read_header(path, separator=","):
    """The names of the columns of a CSV file, from its first line."""
    refuse_no_file(path, str(path))
    with open(path, "rb") as file:
        line = file.readline(_MAX_LINE).removeprefix(codecs.BOM_UTF8)
    names = [name.strip() for name in cells_of(line, separator)]
    if len(names) > MAX_COLUMNS:
        raise ParameterError(
            str(path), f"must have at most {MAX_COLUMNS} columns. Got {len(names)}."
        )
    return names


def read_columns(path, names, separator=","):
    """The cells of the columns of these names, in this order, as `CsvColumns`.

    Other columns are not looked at. A file that lacks a name, or has it twice, is
    refused by this name: no other cell of the first line, which may be a row, is told.
    """
    header = read_header(path, separator)
    missing = [name for name in names if name not in header]
    if missing:
        raise ParameterError(
            str(path),
            f"must have a header with the {len(names)} columns "
            f"{format_values(names)}. Got none named {format_values(missing)}.",
        )
    repeated = [name for name in names if header.count(name) > 1]
    if repeated:
        raise ParameterError(
            str(path),
            f"must name each column once. Got {format_values(repeated)} twice.",
        )
    places = [header.index(name) for name in names]

    with open(path, "rb") as file:
        content = file.read()
    cells = []
    numbers = []
    lines = content.split(b"\n")[1:]
    for number, line in numbered_rows(lines, len(header)):
        entries = cells_of(line, separator)
        if len(entries) == len(header):
            cells.append([entries[place] for place in places])
        else:
            cells.append(None)
        numbers.append(number + 2)
    return CsvColumns(str(path), tuple(names), cells, numbers)


def numbered_rows(lines, n_columns):
    """Yield the place and the bytes of each line that is a row.

    Lines are what a file is split into at b"\\n": other characters that end lines would
    make two rows of one. A line without a separator is no row of several columns, if it
    has only spaces. In a file of one column it is a row without an entry, unless it is
    what follows the last end of a line; if it were left out, the number of rows would
    tell of it. Tabs are separators, and no spaces.
    """
    last = len(lines) - 1
    for place, line in enumerate(lines):
        is_blank = not line.strip(b" \r")
        is_row = n_columns == 1 and place < last
        if not is_blank or is_row:
            yield place, line


def cells_of(line, separator=","):
    """The cells of one line of a file, given its bytes.

    >>> cells_of(b'1,"2,5"\\r\\n'), cells_of(b'1;"2;3', ";")
    (['1', '2,5'], ['1', '2;3'])
    """
    text = line.decode("utf-8", errors="replace").rstrip("\r\n")
    if '"' not in text:
        return text.split(separator)
    try:
        return next(csv.reader([text], delimiter=separator))
    except (csv.Error, StopIteration):
        return [text]


def parse_number(cell, decimal="."):
    """The number of a cell; NaN if it holds none, or one that is not finite."""
    text = cell.strip()
    if decimal == ",":
        if "." in text:
            return math.nan
        text = text.replace(",", ".")
    if "_" in text:  # which Python takes
        return math.nan
    try:
        number = float(text)
    except ValueError:
        return math.nan
    if math.isinf(number):
        return math.nan
    return number


def private_numbers(columns, n_numbers, decimal="."):
    """The first columns as numbers (n_rows, n_numbers), of a private file.

    A row with a cell that is no number is a row of NaN, and so is a line of another
    number of cells: an error would tell that there is such a row.
    """
    return numbers_of_cells(columns.cells, n_numbers, decimal)


def numbers_of_cells(rows_of_cells, n_numbers, decimal="."):
    """As `private_numbers`, of lists of cells, or None for a line that is no row."""
    numbers = np.full((len(rows_of_cells), n_numbers), np.nan)
    for row, cells in zip(numbers, rows_of_cells):
        if cells is not None:
            row[:] = [parse_number(cell, decimal) for cell in cells[:n_numbers]]
    numbers[np.isnan(numbers).any(axis=1)] = np.nan
    return numbers


def public_numbers(columns, n_numbers, decimal="."):
    """The first columns as numbers (n_rows, n_numbers), of a file that is not private.

    A cell that is no finite number is refused, by its line and column.
    """
    refuse_broken_lines(columns)
    numbers = private_numbers(columns, n_numbers, decimal)
    broken = np.flatnonzero(np.isnan(numbers).any(axis=1))
    if len(broken):
        row = int(broken[0])
        cells = columns.cells[row][:n_numbers]
        are_numbers = [math.isfinite(parse_number(cell, decimal)) for cell in cells]
        place = are_numbers.index(False)
        raise ParameterError(
            columns.path,
            f"must hold finite numbers with the decimal mark {decimal!r} in column "
            f"{columns.names[place]!r}. Got {cells[place].strip()[:40]!r} in line "
            f"{columns.lines[row]}.",
        )
    return numbers


def refuse_broken_lines(columns):
    """Refuse a file without rows, or with lines of another number of cells."""
    if not columns.cells:
        raise ParameterError(columns.path, "must have rows. Got a header alone.")
    for number, cells in zip(columns.lines, columns.cells):
        if cells is None:
            raise ParameterError(
                columns.path,
                "must have as many cells in each line as in its header. Got another "
                f"number in line {number}.",
            )
