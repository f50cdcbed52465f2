"""Private tables, read by the conventions of a public one, row by row.

Nothing is inferred from a private row, so that none changes how another is read: a line
is a row, a cell that does not follow the conventions is missing, and a line that has
another number of fields holds missing cells alone. Refusals are about the public table
and the header, and name columns of the public table alone.
"""

import csv
import datetime
import math
import re
from typing import NamedTuple

import numpy as np

from ..._utils.csv_columns import numbered_rows
from ..._utils.optional import import_optional
from ..._utils.output_files import ending_of
from ..._utils.untrusted import refuse_no_file
from ._arrow import ARROW, arrow_table
from ._fields import wide_fields
from ._other_kinds import EXCEL, JSON_LINES, decompressed
from ._types import DateForm, dates_by, numbers_by

_LARGEST = 1e150  # size of a number whose square a float still holds
_ISO = DateForm("%Y-%m-%d")
# Kinds of files whose rows cannot be read one by one.
_OTHER_KINDS = (EXCEL, *JSON_LINES)


class Convention(NamedTuple):
    """How the cells of a column are read."""

    kind: str  # "number", "date" or "text"
    decimal: str = "."
    affix: tuple = ("", "")
    form: DateForm = _ISO
    missing: frozenset = frozenset({""})


class _Format(NamedTuple):
    """How the lines of a text file are read."""

    codec: str
    separator: str
    has_header: bool
    line_end: bytes


def read_as_public(
    path, public, *, separator=None, encoding=None, skip_lines=0, texts=()
):
    """The frame of a private file, whose columns are those of a public reading.

    Columns of `texts` are read, too, as texts if the public reading lacks them.

    Its index are the row numbers of the file. Raises ValueError if the header lacks a
    column of the public table.
    """
    refuse_no_file(path, "the table")
    conventions = {name: Convention("text") for name in texts}
    conventions |= _conventions_of(public)
    ending = ending_of(path)
    if ending.removesuffix(".gz") in _OTHER_KINDS:
        raise ValueError(
            "a private table must be a text file, such as .csv or .csv.gz, a Parquet "
            f"or an Arrow file. Got one that ends in {ending}: write it as a .csv file "
            "in the form of --validation."
        )
    if ending in ARROW:
        columns = _typed_columns(path)
        numbers = None
    else:
        form = _format_of(public.source, separator, encoding)
        lines = _lines(path, form.line_end, skip_lines)
        columns, numbers = _text_columns(lines, form, list(conventions))

    for name in conventions:
        if name not in columns:
            raise ValueError(
                "the table must have the columns of --validation. Got none named "
                f"{name!r}."
            )
    entries = {
        name: _entries(columns[name], convention)
        for name, convention in conventions.items()
    }
    pandas = import_optional("pandas", "read_table")
    return pandas.DataFrame(entries, index=numbers)


# Conventions --------------------------------------------------------------------------


def _conventions_of(public):
    """Column -> its convention, by a public reading."""
    source = public.source
    if source is None or not source.columns:
        return {
            str(name): Convention(_kind_of(public.frame[name]))
            for name in public.frame.columns
        }
    conventions = {}
    for name, column in source.columns.items():
        # The reading that was chosen: a decimal mark, or an order of dates.
        key = source.keys.get(name)
        conventions[name] = Convention(
            kind=column.kind,
            decimal=key or source.decimal or ".",
            affix=column.affix,
            form=column.forms.get(key, _ISO),
            missing=frozenset({"", *column.missing}),
        )
    return conventions


def _kind_of(column):
    """The kind of a column of a file with types."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf":
        return "number"
    present = column.dropna()
    are_dates = len(present) and all(
        isinstance(entry, datetime.date) for entry in present
    )
    return "date" if kind == "M" or are_dates else "text"


def _format_of(source, separator, encoding):
    """The format of a private text file: that of a public one, or of options."""
    codec = "utf-8"
    has_header = True
    line_end = b"\n"
    if source is not None:
        codec = source.codec
        has_header = source.has_header
        separator = separator or source.fields.separator
        first_row = source.fields.texts[0]
        if first_row.endswith("\r") and "\n" not in first_row:
            line_end = b"\r"
    codec = encoding or codec
    if not "\n,".encode(codec).endswith(b"\n,"):
        raise ValueError(
            f"a private table must be in an encoding such as UTF-8, in which a line "
            f"ends with one byte: --validation has {codec}. Write both in UTF-8."
        )
    return _Format(codec, separator or ",", has_header, line_end)


# Cells --------------------------------------------------------------------------------


def _lines(path, line_end, skip_lines):
    """The lines of a text file as bytes, without those above the header."""
    raw = decompressed(path).removeprefix(b"\xef\xbb\xbf")
    lines = raw.split(line_end)[skip_lines:]
    # Excel names the separator in a line above the header.
    if lines and re.fullmatch(rb"(?i)sep=.\s*", lines[0]):
        return lines[1:]
    return lines


def _text_columns(lines, form, names):
    """Column -> cells of lines; and the row numbers.

    names : list of str, of the columns of a file without a header
    """
    if form.has_header:
        header = _cells(lines[0], form) if lines else None
        names = [
            name.strip() or f"column {i + 1}" for i, name in enumerate(header or ())
        ]
        lines = lines[1:]
    rows = []
    numbers = []
    with wide_fields():
        for number, line in numbered_rows(lines, len(names)):
            cells = _cells(line, form)
            if cells is None or len(cells) != len(names):
                cells = [""] * len(names)
            rows.append(cells)
            numbers.append(number)
    columns = {}
    for i, name in enumerate(names):
        columns[name] = [row[i] for row in rows]
    return columns, np.array(numbers, dtype=np.intp)


def _cells(line, form):
    """The cells of a line; None if it is none of a table. A lost letter is missing."""
    text = line.decode(form.codec, errors="replace").rstrip("\r\n")
    try:
        [cells] = csv.reader([text], delimiter=form.separator, strict=True)
    except (csv.Error, ValueError):
        return None
    return ["" if "\ufffd" in cell else cell for cell in cells]


def _typed_columns(path):
    """Column -> cells of a file with types, as Python objects.

    It is not refused for its number of rows, which may be private.
    """
    table = arrow_table(path, max_rows=math.inf)
    return {name: _objects(table[name]) for name in table.column_names}


def _objects(column):
    """The entries of an Arrow column; None for one that Python has no object for."""
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        return [_object(entry) for entry in column]


def _object(entry):
    try:
        return entry.as_py()
    except (ValueError, OverflowError):
        return None


def _entries(cells, convention):
    """The cells of a column as numbers, dates or texts, each read by itself."""
    if convention.kind == "date":
        return _dates(cells, convention)
    if convention.kind == "number":
        return _numbers(cells, convention)
    texts = [_text(cell).strip() for cell in cells]
    entries = [None if text in convention.missing else text for text in texts]
    return np.array(entries, dtype=object)


def _dates(cells, convention):
    """Cells as dates; NaT for one that is none such."""
    dates = dates_by([_text(cell) for cell in cells], convention.form)
    # A file with types has dates as such.
    for i in np.flatnonzero(np.isnat(dates)):
        if isinstance(cells[i], datetime.date):
            [dates[i]] = dates_by([_text(cells[i])], _ISO)
    return dates


def _numbers(cells, convention):
    """Cells as numbers; NaN for one that is none such, missing or too large."""
    texts = [_text(cell).strip() for cell in cells]
    numbers = numbers_by(texts, convention.decimal, convention.affix)
    for i, cell in enumerate(cells):
        if isinstance(cell, int | float):
            numbers[i] = cell
        if texts[i] in convention.missing:
            numbers[i] = np.nan
    numbers[~(np.abs(numbers) < _LARGEST)] = np.nan
    return numbers


def _text(cell):
    """The text of a cell, "" if it is missing; 1.0 and 1 have one text."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.datetime):
        return str(cell.replace(tzinfo=None))
    return str(cell)
