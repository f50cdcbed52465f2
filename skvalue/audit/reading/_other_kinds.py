"""Files that are no plain text: their table as the text of a CSV file."""

import csv
import datetime
import gzip
import io
import json
import zipfile
import zlib
from pathlib import Path

from ..._utils.optional import import_optional
from ..._utils.untrusted import refuse
from ._arrow import refuse_many_bytes, refuse_many_rows

_BLOCK = 2**24  # bytes that are decompressed at a time
_JSON_LINES = (".jsonl", ".ndjson")


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


def as_csv(path, max_rows):
    """The text of a CSV file with the table of an Excel file or of JSON lines.

    None for another kind of file.
    """
    ending = Path(path).suffix.lower()
    if ending == ".xlsx":
        rows = _excel_rows(path, max_rows)
    elif ending in _JSON_LINES:
        rows = _json_rows(path, max_rows)
    else:
        return None
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        writer.writerow([_text(cell) for cell in row])
    return out.getvalue()


def _excel_rows(path, max_rows):
    """The rows of the first sheet of an Excel file, the header being the first."""
    openpyxl = import_optional("openpyxl", "an Excel file")
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_many_bytes(sum(file.file_size for file in archive.infolist()))
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        rows = []
        for row in book.worksheets[0].iter_rows(values_only=True):
            refuse_many_rows(len(rows), max_rows)
            rows.append(row)
        book.close()
    except (zipfile.BadZipFile, KeyError, IndexError, OSError) as error:
        raise ValueError(f"the file must be a whole Excel file. Got {error}.") from None
    return rows


def _json_rows(path, max_rows):
    """The rows of a file with one JSON object a line; the header is the first."""
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
        records.append(record)
    names = list(dict.fromkeys(name for record in records for name in record))
    for name in names:
        for record in records:
            if isinstance(record.get(name), list | dict):
                refuse(f"the column {name!r}", "of single entries", record[name])
    return [names, *([record.get(name) for name in names] for record in records)]


def _text(cell):
    """The text of an entry: 1.0 as 1, midnight as a day, and missing as nothing."""
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return str(cell.date())
    return str(cell)
