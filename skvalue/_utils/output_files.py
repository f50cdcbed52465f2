"""Files that a command writes: which are refused, and tables in them."""

import datetime
import gzip
import json
import math
import os
from decimal import Decimal
from functools import partial

import numpy as np

from ..exceptions import ParameterError
from .csv_text import csv_text_of_frame
from .optional import import_optional

_ARROW_KINDS = (".parquet", ".arrow", ".feather")
KINDS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".xlsx", ".jsonl", *_ARROW_KINDS)
_LIBRARIES = {".xlsx": "openpyxl"} | dict.fromkeys(_ARROW_KINDS, "pyarrow")


def pandas():
    """The module pandas, or an ImportError that names the extra."""
    return import_optional("pandas", "the command line")


def ending_of(path):
    """What a path ends in, which says the format; two endings if it is compressed.

    >>> ending_of("a.b.CSV"), ending_of("a.b.csv.gz")
    ('.csv', '.csv.gz')
    """
    return split_ending(path)[1].lower()


def split_ending(path):
    """The path without its ending, and the ending, as of `ending_of`."""
    stem, ending = os.path.splitext(path)
    if ending.lower() == ".gz":
        stem, first = os.path.splitext(stem)
        ending = first + ending
    return stem, ending


def check_outputs(options, kinds, inputs):
    """Refuse, before any work, files that could not be written, or are used otherwise.

    ``kinds``: option -> what the name of its file may end in, or None for any name;
    ``inputs``: files that are read. A ledger is one of them.
    """
    read = [*inputs, getattr(options, "ledger", None)]
    used = {os.path.realpath(path) for path in read if path is not None}
    for option, endings in kinds.items():
        path = getattr(options, option)
        if path is None:
            continue
        name = f"--{option}"
        ending = ending_of(path)
        target = os.path.realpath(path)
        folder = os.path.dirname(target)
        if endings is not None and ending not in endings:
            raise ParameterError(
                name, f"must end in one of {', '.join(endings)}. Got {path}."
            )
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise ParameterError(
                name, f"must be in a folder that can be written. Got {path}."
            )
        if os.path.exists(path) and not os.path.isfile(path):
            raise ParameterError(
                name, f"must be a file. Got {path}, a folder, a pipe or a device."
            )
        if target in used:
            raise ParameterError(
                name, f"must be a file that is not used otherwise. Got {path}."
            )
        if ending in _LIBRARIES:
            import_optional(_LIBRARIES[ending], f"a {ending} file")
        used.add(target)


def write_frame(frame, path):
    """What a file of a frame holds, as of `write_files`, by the end of its path."""
    ending = ending_of(path)
    if ending in (".csv", ".csv.gz", ".tsv", ".tsv.gz"):
        separator = "\t" if ending.startswith(".tsv") else ","
        content = csv_text_of_frame(frame, separator).encode()
        if ending.endswith(".gz"):
            content = compressed(content)
        return content
    if ending == ".xlsx":
        return partial(write_excel, [frame.columns, *frame.itertuples(index=False)])
    if ending == ".jsonl":
        return partial(_write_json_lines, frame)
    if ending == ".parquet":
        return partial(frame.to_parquet, index=False)
    return frame.reset_index(drop=True).to_feather


def _write_json_lines(frame, file):
    """Write each row of a frame as one JSON object, its numbers with all digits."""
    names = list(map(str, frame.columns))
    for entries in frame.itertuples(index=False, name=None):
        record = dict(zip(names, map(_json_entry, entries)))
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        file.write(f"{line}\n".encode())


def _json_entry(entry):
    """An entry as JSON has it, None for a missing one."""
    if isinstance(entry, np.ndarray):
        return [_json_entry(item) for item in entry.tolist()]
    if isinstance(entry, np.generic):
        entry = entry.item()
    if entry is None or str(entry) in ("NaT", "<NA>"):
        return None
    if isinstance(entry, Decimal):
        entry = float(entry)
    if isinstance(entry, float) and not math.isfinite(entry):
        return None
    if hasattr(entry, "isoformat"):
        return entry.isoformat()
    if isinstance(entry, dict):
        return {str(name): _json_entry(item) for name, item in entry.items()}
    if isinstance(entry, list | tuple):
        return [_json_entry(item) for item in entry]
    if isinstance(entry, bool | int | float | str):
        return entry
    return str(entry)


def compressed(content):
    """Bytes as gzip packs them, without the time."""
    return gzip.compress(content, mtime=0)


def write_excel(rows, file):
    """Write rows of entries to the only sheet of an Excel file; no text is a formula.

    Missing entries are empty cells.
    """
    openpyxl = import_optional("openpyxl", "an Excel file")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in rows:
        sheet.append([_excel_cell(openpyxl, sheet, entry) for entry in row])
    book.save(file)


def _excel_cell(openpyxl, sheet, entry):
    """The cell of an entry."""
    if hasattr(entry, "to_pydatetime"):
        entry = entry.to_pydatetime()
    elif isinstance(entry, np.generic):
        entry = entry.item()
    if entry is None or entry != entry or str(entry) in ("NaT", "<NA>"):
        return None
    if isinstance(entry, datetime.datetime):
        entry = entry.replace(tzinfo=None)  # Excel has no time zones
    is_plain = isinstance(entry, (bool, int, float, datetime.date, datetime.time))
    if isinstance(entry, float) and math.isinf(entry):
        is_plain = False  # no number of a sheet
    cell = openpyxl.cell.WriteOnlyCell(sheet, entry if is_plain else "")
    if not is_plain:
        cell.value = openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("\ufffd", str(entry))
        cell.data_type = "s"
    return cell
