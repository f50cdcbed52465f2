"""From the text of a file to its fields: separator and header, or why they are unknown.

Refusals name the parameter of `read_table` that decides. The module `csv` splits the
lines, and not pandas: that pads short rows, names a second column "a.1", takes a first
column for names of rows, and reads letters behind a closing quote, all without a word;
its errors do not say where a quote was opened; and it does not tell which bytes are of
which row, which `to_bytes` and `fix_table` need.
"""

import csv
import io
import re
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ..._utils.untrusted import integer, refuse
from ...exceptions import ParameterError

_SEPARATORS = ",;\t|"
_NAMES = {
    ",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars",
    " ": "spaces",
}  # fmt: skip
_PLAIN = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
_NUMERIC = 0.8  # fraction of plain numbers, above which a column is one of numbers
_TITLES = 5  # lines at the start that may be a title
_TRIED = 100  # rows that are looked at for a reason
_LIMIT_LOCK = threading.RLock()  # while the limit of the fields of `csv` is another one


@dataclass(frozen=True)
class Fields:
    """The rows of a text, split into fields.

    Empty lines are no rows, but count in `numbers`, in which the row after the header
    is 0. The text is `before`, the `texts` of the rows, with the empty lines above
    them, and `after`.
    """

    names: list  # of the columns
    rows: list
    numbers: np.ndarray  # of the rows
    separator: str
    before: str
    texts: list
    after: str


class _Record(NamedTuple):
    """A line of a table, or several lines of which a quoted field holds the breaks."""

    entries: list
    end: int  # the line, from 1, with which it ends
    number: int  # among all records, empty lines included


def check_layout(separator, skip_lines):
    """Refuse a separator and a number of lines that no text has."""
    is_one_letter = isinstance(separator, str) and len(separator) == 1
    if separator is not None and (not is_one_letter or separator in '\r\n"'):
        refuse("separator", "one character, no quote or end of a line", separator)
    integer(skip_lines, "skip_lines", 0, 10**9)


def split(text, separator=None, skip_lines=0, header=None):
    """Fields of a text, and notes on what was assumed; options as of `read_table`."""
    lines = list(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    start = skip_lines

    # Excel names the separator in a line above the header.
    first_line = "".join(lines[start : start + 1])
    declared = re.fullmatch(r"sep=(.)\s*", first_line, re.IGNORECASE)
    if declared:
        separator = separator or declared[1]
        start += 1

    # The separator is the one with the most fields, of those that give every line the
    # same number of fields.
    parsed = {char: _parse(lines, start, char) for char in separator or _SEPARATORS}
    widths = {char: _common_width(records) for char, records in parsed.items()}
    best, *others = sorted(widths, key=lambda char: -widths[char])
    if not widths[best]:
        raise _ragged_error(lines, start, parsed)
    if others and widths[others[0]] == widths[best]:
        raise _undecided(
            f"both {best!r} and {others[0]!r} give {widths[best]} fields in every line."
        )
    notes = []
    if best != "," or any(widths[char] for char in others):
        name = _NAMES.get(best, repr(best))
        notes.append(f"fields separated by {name}")

    records = parsed[best]
    names, rows = _name_columns([record.entries for record in records], header)
    n_headers = len(records) - len(rows)
    ends = [start, *(record.end for record in records)]
    spans = pairwise(ends[n_headers:])
    numbers = [record.number for record in records]
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    fields = Fields(
        names=names,
        rows=rows,
        numbers=np.array(numbers[n_headers:]) - numbers[0] - n_headers,
        separator=best,
        before="".join([mark, *lines[: ends[n_headers]]]),
        texts=["".join(lines[first:end]) for first, end in spans],
        after="".join(lines[ends[-1] :]),
    )
    return fields, notes


@contextmanager
def wide_fields():
    """Context in which fields of any length are read: a long text is one.

    The limit is that of the process: a thread waits for another one in this context.
    """
    with _LIMIT_LOCK:
        former = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        try:
            yield
        finally:
            csv.field_size_limit(former)


def _parse(lines, start, separator):
    """Records by a separator; None if quotes do not match."""
    reader = csv.reader(lines[start:], delimiter=separator, strict=True)
    records = []
    try:
        with wide_fields():
            for number, entries in enumerate(reader):
                if entries:
                    records.append(_Record(entries, start + reader.line_num, number))
    except csv.Error:
        return None
    return records


def _common_width(records):
    """Number of fields of all records; 0 if it differs, is one, or of one record."""
    if not records or len(records) < 2:
        return 0
    widths = {len(record.entries) for record in records}
    width = widths.pop()
    return 0 if widths or width == 1 else width


def _undecided(problem, advice="Pass {}.", settings=(("separator", ...),)):
    """The error of a file of which a parameter, that of the settings, decides."""
    return ParameterError(settings[0][0], problem, advice, settings, subject="")


def _ragged_error(lines, start, parsed):
    """The error that no separator gives the same number of fields in every line."""
    first_line = "".join(lines[:1])
    for char, records in parsed.items():
        if records is None and char in first_line:
            return ValueError(_why_quotes(lines, start, char))
    parsed = {char: records for char, records in parsed.items() if records}
    if not parsed:
        return ValueError(
            "the file must have a header and rows. Got none, or quotes that do not "
            "match."
        )
    if all(len(records) < 2 for records in parsed.values()):
        return ValueError("the file must have at least one row. Got a header alone.")

    # The separator that gives most lines one number of fields, if it is above one.
    usual = {char: _usual_width(records) for char, records in parsed.items()}
    best = max(usual, key=lambda char: usual[char])
    n_lines, width = usual[best]
    if not n_lines:
        return _undecided("no separator (comma, semicolon, tab, |) gives two columns.")

    records = parsed[best]
    odd = [i for i, record in enumerate(records) if len(record.entries) != width]
    first_odd = records[odd[0]]
    n_fields = len(first_odd.entries)
    rule = (
        f"line {first_odd.end} must have {width} fields, as most lines have "
        f"(separated by {best!r}). Got {n_fields}"
    )
    if odd == [0] and 1 < n_fields == width - 1:
        rows = [record.entries for record in records[1:]]
        reason = _why_one_more(rows, best)
        if reason is not None:
            return ValueError(f"{rule}: {reason}")
    is_at_start = odd == list(range(len(odd)))
    if is_at_start and odd[-1] < _TITLES:
        skipped = [("skip_lines", records[odd[-1]].end)]
        return _undecided(f"{rule}: is it a title?", settings=skipped)
    return _undecided(f"{rule}.", "Mend it, or pass {}.")


def _why_quotes(lines, start, separator):
    """What is wrong with the quotes of a file, if fields have this separator."""
    behind = f"if fields are separated by {separator!r}."
    reader = csv.reader(lines[start:], delimiter=separator, strict=True)
    try:
        with wide_fields():
            list(reader)
    except csv.Error as error:
        line = start + reader.line_num
        if "expected after" not in str(error):
            return f"a quote is not closed, {behind}"
    if any('\\"' in text for text in lines):
        return (
            f'line {line} must have two quotes ("") for one within quotes. Got a '
            f'backslash before one (\\"), {behind}'
        )
    return (
        f"line {line} must have a separator right behind each field in quotes. Got a "
        f"space or other letters there, {behind}"
    )


def _why_one_more(rows, separator):
    """Why all rows have one field more than the header; None if it may be a title."""
    last_entries = [row[-1].strip() for row in rows]
    if not any(last_entries):
        return (
            f"each row ends with {separator!r}, and the header does not. Put one "
            "behind the header, too."
        )
    for row in rows[:_TRIED]:
        for entry in row:
            quote = entry.strip()[:1]
            if quote in ("'", '"') and not entry.strip().endswith(quote):
                return (
                    f"a field that holds {separator!r} must be in double quotes, right "
                    f"behind the separator. Got {entry!r}."
                )
    names = [row[0] for row in rows]
    if len(set(names)) == len(names):
        return (
            "do the rows begin with their names or numbers? Then name that column, "
            "too, at the start of the header."
        )
    return None


def _usual_width(records):
    """How many records have the commonest number of fields, 0 if it is 1; and it."""
    widths = Counter(len(record.entries) for record in records)
    width, n_records = widths.most_common(1)[0]
    return (n_records if width > 1 else 0), width


def _name_columns(records, header=None):
    """Names of the columns, and the rows below them; `header` as of `read_table`."""
    if header is False:
        return [f"column {i + 1}" for i in range(len(records[0]))], records
    names = [name.strip() for name in records[0]]
    rows = records[1:]

    # The first and the last column, of row numbers or after a closing separator, may
    # have no name.
    for i, name in enumerate(names):
        if name:
            continue
        if i not in (0, len(names) - 1):
            raise _undecided(
                f"column {i + 1} must have a name. Got none.",
                "Give it one, or pass {}.",
                [("header", False)],
            )
        names[i] = f"column {i + 1}"
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise _undecided(
            f"the header must name every column once. Got {name!r} twice.",
            "Rename one, or pass {}.",
            [("header", False)],
        )
    if header is None:
        _refuse_data(names, rows)
    return names, rows


def _refuse_data(names, rows):
    """Refuse names that are entries: numbers above numbers, or words of the column."""
    entries = []
    n_texts = 0
    for name, column in zip(names, zip(*rows)):
        counts = Counter(column)
        n_plain = sum(n for entry, n in counts.items() if _is_plain(entry))
        is_numeric = n_plain > _NUMERIC * len(rows)
        is_year = re.fullmatch(r"(19|20)\d\d", name)
        if is_numeric and _PLAIN.fullmatch(name) and not is_year:
            _refuse_header(f"{name!r} names a column of numbers")
        if not is_numeric:
            n_texts += 1
        if counts[name] >= max(2, 0.02 * len(rows)):
            entries.append(name)
    if len(entries) > n_texts / 2:
        _refuse_header(f"{entries[0]!r} is an entry of its column, too")


def _is_plain(entry):
    return _PLAIN.fullmatch(entry.strip()) is not None


def _refuse_header(reason):
    raise _undecided(
        f"the first line looks like data: {reason}.",
        "Pass {} or {}.",
        [("header", False), ("header", True)],
    )
