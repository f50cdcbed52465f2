"""Corrections of single fields of a CSV file: all other bytes stay."""

import csv
import io
import re
from dataclasses import dataclass

from .._utils.untrusted import refuse, refuse_no_file
from ._exchange import unguarded

COLUMNS = ("row", "column", "old", "new", "why", "accept")
_TRUE, _FALSE, _REMOVE = ("true", "1", "yes"), ("false", "0", "no", ""), "remove"
_SEPARATORS = ",;\t|"


@dataclass(frozen=True)
class Correction:
    """A new entry for one field of a table, or the end of a row.

    Parameters
    ----------
    row : int
        Row as a spreadsheet counts: the header is row 1, the first row of entries is row 2.
    column : str
        Name of the column.
    old : str
        What the field holds, spaces around it aside.
    new : str or None
        What it shall hold; None removes the whole row.
    why : str, default=""
        The reason.
    accept : bool, default=True
        Whether it is to be applied.

    Examples
    --------
    >>> from skvalue.review import Correction
    >>> print(Correction(2, "label", "ja", "nein"))
    row 2, label: 'ja' -> 'nein'
    """

    row: int
    column: str
    old: str
    new: str | None
    why: str = ""
    accept: bool = True

    def __str__(self):
        done = "row removed" if self.new is None else repr(self.new)
        return f"row {self.row}, {self.column}: {self.old!r} -> {done}"


def fix_table(raw, corrections, *, encoding=None, separator=None):
    """Apply corrections to the bytes of a CSV file; what is not corrected keeps its bytes.

    Quotes, line ends, the encoding and its mark, decimal commas and line breaks in fields stay.

    Parameters
    ----------
    raw : bytes
        The content of the file.
    corrections : iterable of Correction
        Those with ``accept=False`` are left out.
    encoding : str, default=None
        Name of the encoding; None is the one that its mark names, UTF-8 if the bytes are UTF-8, and
        else Windows-1252.
    separator : str, default=None
        Character between fields; None is that of ``,``, ``;``, tab and ``|`` with which the header
        has most fields.

    Returns
    -------
    raw : bytes
        The content of the new file.
    changes : list of Correction
        What was applied, by row.

    Raises
    ------
    ValueError
        If a field does not hold the old entry of its correction: the table has changed since; if
        there is no such row or column; if a field is corrected twice; if the encoding has no such
        character; or if the bytes are no table of this encoding.

    Examples
    --------
    >>> from skvalue.review import Correction, fix_table
    >>> raw = b'name;sold\\r\\n"Ann; Co";yes\\r\\nBo;  1,50\\r\\n'
    >>> fix_table(raw, [Correction(2, "sold", "yes", "no")])[0]
    b'name;sold\\r\\n"Ann; Co";no\\r\\nBo;  1,50\\r\\n'
    """
    text, encoding = _decoded(raw, encoding)
    start, separator = _lead(text, separator)
    records = list(_records(text, start, separator))
    changes = [change for change in corrections if change.accept]
    edits = [(*_edit(text, records, separator, change), change) for change in changes]
    edits.sort(key=lambda edit: edit[:2])
    parts, last = [], (0, 0)
    for first, end, new, change in edits:
        if first < last[1] or (first, end) == last:
            raise ValueError(f"corrections must change a field once. Got {change} a second time.")
        parts.append(text[last[1] : first].encode(encoding))
        try:
            parts.append(new.encode(encoding))
        except UnicodeEncodeError:
            refuse("new", f"of characters that the encoding {encoding} has", str(change))
        last = first, end
    parts.append(text[last[1] :].encode(encoding))
    return b"".join(parts), [change for *_, change in edits]


def _decoded(raw, encoding):
    """The text, with its mark of the encoding, and the codec that gives the same bytes back."""
    names = ("utf-8", "cp1252", "latin-1") if encoding is None else (encoding,)
    if encoding is None and b"\0" in raw[:1000]:
        names = ("utf-16-be",) if raw[:2] == b"\xfe\xff" or raw[:1] == b"\0" else ("utf-16-le",)
    for name in names:
        try:
            text = raw.decode(name)
            if text.encode(name) == raw:
                return text, name
        except (UnicodeError, LookupError):
            continue
    raise ValueError(f"encoding must be that of the table. Got {encoding}, which is not.")


def _lead(text, separator):
    """Where the header starts, after a mark and a line that names the separator; the separator."""
    lead = re.match("\ufeff?(?:sep=(.)\r?\n)?", text, re.IGNORECASE)
    if separator is None and lead[1] is None:
        header = next(io.StringIO(text[lead.end() :]), "")
        separator = max(_SEPARATORS, key=lambda each: len(_spans(header, each)))
    return lead.end(), separator or lead[1]


def _records(text, start, separator):
    """Fields of every record, of empty lines too, and where it starts and ends in the text."""
    read = start

    def lines():
        nonlocal read
        for line in io.StringIO(text[start:], newline=""):
            read += len(line)
            yield line

    try:
        for fields in csv.reader(lines(), delimiter=separator, strict=True):
            yield fields, start, read
            start = read
    except csv.Error as error:
        raise ValueError(
            f"the table must be of fields. Got {error} after {start} letters."
        ) from None


def _spans(record, separator):
    """Where the fields of a record start and end, quotes included."""
    field = re.compile(rf'"(?:[^"]|"")*"|[^{re.escape(separator)}\r\n]*')
    spans, at = [], 0
    while True:
        spans.append(field.match(record, at).span())
        at = spans[-1][1] + 1
        if record[at - 1 : at] != separator:
            return spans


def _edit(text, records, separator, change):
    """Start and end of what a correction replaces, and what stands there then."""
    names = [name.strip() for name in records[0][0]] if records else []
    if not 2 <= change.row <= len(records):
        refuse("row", f"a row from 2 to {len(records)}, the header being row 1", change.row)
    if names.count(change.column) != 1:
        refuse("column", f"one column of {', '.join(names[:20])}", change.column)
    fields, start, end = records[change.row - 1]
    place = names.index(change.column)
    found = fields[place].strip() if len(fields) == len(names) else "a line of other fields"
    if found != change.old.strip():
        raise ValueError(
            f"old must be what the table holds, or it has changed since. Got row {change.row}, "
            f"column {change.column!r}: expected {change.old!r}, found {found!r}."
        )
    if change.new is None:
        return start, end, ""
    first, last = (start + at for at in _spans(text[start:end], separator)[place])
    new, special = change.new, (separator, '"', "\n", "\r")
    quoted = text[first : first + 1] == '"' or any(each in new for each in special)
    if quoted or (new == "" and len(names) == 1):
        new = '"' + new.replace('"', '""') + '"'
    return first, last, new


def read_corrections(path):
    """Read corrections from a CSV file with the columns row, column, old, new, why and accept.

    Parameters
    ----------
    path : str or path
        The file, as the page of an audit or a spreadsheet writes it: separated by commas,
        semicolons or tabs. ``why`` may be absent.

    Returns
    -------
    corrections : list of Correction
        All of them, those that are not accepted included.

    Raises
    ------
    ValueError
        If a column is absent, a row is no number, or accept is not true, false or nothing, or
        "remove", for the whole row.
    """
    refuse_no_file(path, "corrections")
    with open(path, "rb") as file:
        text = _decoded(file.read(), None)[0]
    start, separator = _lead(text, None)
    header, *lines = (fields for fields, *_ in _records(text, start, separator) if fields)
    missing = [name for name in COLUMNS if name not in header and name != "why"]
    if missing:
        refuse("corrections", f"a CSV file with the columns {', '.join(COLUMNS)}", header)
    return [_correction(dict(zip(header, fields))) for fields in lines]


def _correction(entries):
    """The correction of a line of a file."""
    row, word = entries.get("row", "").strip(), entries.get("accept", "").strip().lower()
    if not row.isdecimal():
        refuse("row", "a row number", row)
    if word not in (*_TRUE, *_FALSE, _REMOVE):
        refuse("accept", "true, false or remove", word)
    column, old, new = (unguarded(entries.get(name, "")) for name in ("column", "old", "new"))
    new = None if word == _REMOVE else new
    return Correction(int(row), column, old, new, entries.get("why", ""), word not in _FALSE)


def corrections_of(report):
    """Corrections of the rows of a report whose label is wrong by a verdict: the suggestions.

    Parameters
    ----------
    report : AuditReport
        The report of a table with classes, with verdicts.

    Returns
    -------
    corrections : list of Correction
        One for each of these rows.

    Raises
    ------
    ValueError
        If there are no verdicts, the report names no target, or it is one of a regression, whose
        predictions are no entries.
    """
    if not report.verdicts or report.about["target"] is None:
        refuse("report", "one with verdicts and the name of the target", report)
    if report.about["task"] == "regression":
        refuse("report", "one of classes, since a prediction is no entry of a table", report)
    return [
        Correction(
            row + 2, str(report.about["target"]), str(report.labels[row]),
            str(report.suggestions[row]), "the label is wrong by a verdict",
        )
        for row, is_error in sorted(report.verdicts.items())
        if is_error
    ]  # fmt: skip
