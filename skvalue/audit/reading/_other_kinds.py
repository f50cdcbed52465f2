"""Files that are no plain text: their table as the text of a CSV file."""

import datetime
import gzip
import json
import re
import zipfile
import zlib
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from ..._utils.csv_text import csv_text
from ..._utils.optional import import_optional
from ..._utils.output_files import ending_of
from ..._utils.untrusted import refuse
from ...exceptions import ParameterError
from ._arrow import refuse_many_bytes, refuse_many_rows
from ._images import image_files, is_folder

_BLOCK = 2**24  # bytes that are decompressed at a time
EXCEL = ".xlsx"
JSON_LINES = (".jsonl", ".ndjson")

# An object with a name, or a list of objects, lists or texts, and no header of a table.
_JSON = re.compile(r"""\ufeff?\s*(\{\s*"|\[\s*[\[{"])""")


# Halves of letters, which JSON may escape one by one, and no encoding has.
_SURROGATES = re.compile("[\ud800-\udfff]")


class Converted(NamedTuple):
    """A file that is no CSV file as one.

    `texts` are the bytes of each row of the file, if it has such; `has_names` says that
    the first line names the columns, whatever is in it.
    """

    content: str
    texts: list | None = None
    has_names: bool = True


def decompressed(path):
    """The bytes of a file, decompressed if its name ends in .gz."""
    if Path(path).suffix.lower() != ".gz":
        return Path(path).read_bytes()
    blocks = []
    n_bytes = 0
    try:
        with gzip.open(path) as file:
            while block := file.read(_BLOCK):
                n_bytes += len(block)
                refuse_many_bytes(n_bytes)
                blocks.append(block)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"the file must be a whole gzip file. Got {error}.") from None
    return b"".join(blocks)


def as_csv(path, max_rows, skip_lines=0):
    """The text of a CSV file with the table of an Excel file, or of JSON lines.

    Of a folder of pictures it has the columns path and label. None for another kind.

    skip_lines : int, rows of a sheet above its header
    """
    ending = ending_of(path)
    if ending == EXCEL:
        rows = excel_rows(path, max_rows)[skip_lines:]
        return Converted(_csv_text(rows), has_names=False)
    if ending not in JSON_LINES and not is_folder(path):
        return None

    if skip_lines:
        raise ParameterError(
            "skip_lines",
            "must be 0 for JSON lines and for folders, which have no lines above a "
            f"header. Got {skip_lines}.",
        )
    if is_folder(path):
        return Converted(_csv_text([("path", "label"), *image_files(path, max_rows)]))
    lines, records = json_records(path, max_rows)
    texts = [line.decode() + "\n" for line in lines]
    content = _SURROGATES.sub("\ufffd", _csv_text(_json_rows(records)))
    return Converted(content, texts)


def refuse_json(content):
    """Refuse the text of a file that is JSON, which would be read as a table of text.

    >>> refuse_json('name,"[1]"')
    >>> refuse_json('[{"name": 1}]')
    Traceback (most recent call last):
        ...
    ValueError: the file must be text, such as CSV, or JSON lines in a file whose name \
ends in .jsonl or .ndjson. Got JSON under another name: write one object a line.
    """
    if _JSON.match(content):
        raise ValueError(
            "the file must be text, such as CSV, or JSON lines in a file whose name "
            f"ends in {' or '.join(JSON_LINES)}. Got JSON under another name: write "
            "one object a line."
        )


def _csv_text(rows):
    return csv_text([text_of(cell) for cell in row] for row in rows)


def excel_rows(path, max_rows):
    """The rows of the first sheet of an Excel file, all of one length.

    Empty rows and columns at their ends, of which the sheet may know the colour, are
    left out.
    """
    openpyxl = import_optional("openpyxl", "an Excel file")
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_many_bytes(sum(file.file_size for file in archive.infolist()))
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        with closing(book):
            rows = []
            for row in book.worksheets[0].iter_rows(values_only=True):
                refuse_many_rows(len(rows), max_rows)
                rows.append(row)
    except (zipfile.BadZipFile, KeyError, IndexError, OSError) as error:
        raise ValueError(f"the file must be a whole Excel file. Got {error}.") from None

    widths = [_width(row) for row in rows]
    while widths and widths[-1] == 0:
        widths.pop()
    width = max(widths, default=0)
    return [_of_width(row, width) for row in rows[: len(widths)]]


def _width(row):
    """The number of cells up to the last one that is not empty."""
    width = len(row)
    while width and row[width - 1] is None:
        width -= 1
    return width


def _of_width(row, width):
    """The cells of a row up to a width; a file may leave out those at its end."""
    cells = row[:width]
    return (*cells, *[None] * (width - len(cells)))


def json_records(path, max_rows):
    """The lines of a file with one JSON object a line, as bytes, and as dicts."""
    lines = []
    records = []
    for line in Path(path).read_bytes().splitlines():
        if not line.strip():
            continue
        number = len(records) + 1
        refuse_many_rows(number, max_rows)
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            refuse("the file", f"of one JSON object a line, as record {number}", line)
        lines.append(line)
        records.append(record)
    return lines, records


def names_of(records):
    """The names in some records, in their order."""
    return list(dict.fromkeys(chain.from_iterable(records)))


def _json_rows(records):
    """The rows of records; the header is the first."""
    names = names_of(records)
    for name in names:
        for record in records:
            if isinstance(record.get(name), list | dict):
                refuse(f"the column {name!r}", "of single entries", record[name])
    return [names, *([record.get(name) for name in names] for record in records)]


def text_of(cell):
    """The text of an entry: 1.0 as 1, midnight as a day, and missing as nothing."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return str(cell.date())
    return str(cell)
