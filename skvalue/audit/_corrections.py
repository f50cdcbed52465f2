"""Corrections of single fields of a CSV file: all other bytes stay."""

import csv
import io
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from .._utils.untrusted import refuse, refuse_no_file
from ._exchange import WORDS, guarded, read_lines, row_of, unguarded
from ._read_text import decode, split

COLUMNS = ("row", "column", "old", "new", "why", "accept")
_REMOVE = "remove"
_FIRST = 2  # number of the first row below the header


@dataclass(frozen=True)
class Correction:
    """A new entry for one field of a table, or the end of a row.

    Parameters
    ----------
    row : int
        Row as a spreadsheet counts, and as `read_table`: the header is row 1, the line
        after it is row 2, and empty lines count. Lines before the header do not; a file
        without a header starts at row 2.
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
    >>> from skvalue.audit import Correction
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


def fix_table(
    raw, corrections, *, encoding=None, separator=None, header=None, skip_lines=0
):
    """Apply corrections to the bytes of a CSV file; what is not corrected keeps its
    bytes.

    Quotes, line ends, the encoding and its mark, decimal commas and line breaks in
    fields stay.

    Parameters
    ----------
    raw : bytes
        The content of the file.
    corrections : iterable of Correction
        Those with ``accept=False`` are left out.
    encoding, separator : str, default=None
        As of `read_table`: None is what the bytes tell.
    header : bool, default=None
        As of `read_table`.
    skip_lines : int, default=0
        As of `read_table`.

    Returns
    -------
    raw : bytes
        The content of the new file.
    changes : list of Correction
        What was applied, by row.

    Raises
    ------
    ValueError
        If a field does not hold the old entry of its correction: the table has changed
        since; if there is no such row or column; if a field is corrected twice; if the
        encoding has no such character; or if the bytes are no table.

    Examples
    --------
    >>> from skvalue.audit import Correction, fix_table
    >>> raw = b'name;sold\\r\\n"Ann; Co";yes\\r\\nBo;  1,50\\r\\n'
    >>> fix_table(raw, [Correction(2, "sold", "yes", "no")])[0]
    b'name;sold\\r\\n"Ann; Co";no\\r\\nBo;  1,50\\r\\n'
    """
    text, codec = decode(raw, encoding)
    if text.encode(codec) != raw:
        refuse("encoding", "one that gives the bytes of the file back", encoding)
    fields, _ = split(text, separator, skip_lines, header)
    rows = dict(zip((fields.numbers + _FIRST).tolist(), fields.rows))
    edits = defaultdict(dict)
    for change in sorted((c for c in corrections if c.accept), key=lambda c: c.row):
        place, of_row = _place(change, fields.names, rows, codec), edits[change.row]
        if place in of_row or None in of_row or (of_row and place is None):
            raise ValueError(
                f"corrections must change a field once. Got {change} as well."
            )
        of_row[place] = change
    records = [
        _edited(record, edits[row], fields.separator) if row in edits else record
        for row, record in zip(rows, fields.texts)
    ]
    changes = [change for of_row in edits.values() for change in of_row.values()]
    return "".join([fields.before, *records, fields.after]).encode(codec), changes


def _place(change, names, rows, codec):
    """Number of the column that a correction changes, None for the whole row, or an
    error."""
    if change.row not in rows:
        rule = f"a row from {min(rows)} to {max(rows)}, the header being 1, that is not empty"
        refuse("row", rule, change.row)
    if change.column not in names:
        refuse("column", f"one of {', '.join(names[:20])}", change.column)
    place = names.index(change.column)
    found = rows[change.row][place]
    if found.strip() != change.old.strip():
        raise ValueError(
            f"old must be what the table holds, or it has changed since. Got row {change.row}, "
            f"column {change.column!r}: expected {change.old!r}, found {found!r}."
        )
    if change.new is None:
        return None
    try:
        change.new.encode(codec)
    except UnicodeEncodeError:
        refuse("new", f"of characters that the encoding {codec} has", str(change))
    return place


def _edited(record, edits, separator):
    """The text of a record with its corrections, by the number of the column."""
    at = len(record) - len(record.lstrip("\r\n"))  # empty lines before it
    if None in edits:
        return record[:at]
    field, parts = (
        re.compile(rf'"(?:[^"]|"")*"|[^{re.escape(separator)}\r\n]*'),
        [record[:at]],
    )
    for place in range(max(edits) + 1):
        found = field.match(record, at)
        new = edits[place].new if place in edits else None
        if new is None:
            new = found[0]
        elif found[0].startswith('"') or re.search(
            rf'[{re.escape(separator)}"\r\n]', new
        ):
            new = '"' + new.replace('"', '""') + '"'
        parts += [new, record[found.end() : found.end() + 1]]
        at = found.end() + 1
    return "".join([*parts, record[at:]])


def corrections_to_csv(corrections):
    """Write corrections as text that `read_corrections` reads, and no spreadsheet as a
    formula.

    Parameters
    ----------
    corrections : iterable of Correction
        What `fix_table` changed, or is to change.

    Returns
    -------
    text : str
        A CSV file with the columns row, column, old, new, why and accept.

    Examples
    --------
    >>> from skvalue.audit import Correction, corrections_to_csv
    >>> print(corrections_to_csv([Correction(2, "label", "ja", "nein")]))
    row,column,old,new,why,accept
    2,label,ja,nein,,true
    <BLANKLINE>
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for c in corrections:
        accept = _REMOVE if c.new is None and c.accept else str(c.accept).lower()
        texts = map(guarded, (c.column, c.old, c.new or "", c.why))
        writer.writerow([c.row, *texts, accept])
    return out.getvalue()


def read_corrections(path):
    """Read corrections from a CSV file with the columns row, column, old, new, why and
    accept.

    Parameters
    ----------
    path : str or path
        The file, as the page of an audit or a spreadsheet writes it: separated by
        commas, semicolons or tabs. ``why`` may be absent.

    Returns
    -------
    corrections : list of Correction
        All of them, those that are not accepted included.

    Raises
    ------
    ValueError
        If a column is absent, a row is no number, or accept is not true, false or
        nothing, or "remove", for the whole row.

    Examples
    --------
    >>> import os, tempfile
    >>> from skvalue.audit import read_corrections
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "corrections.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("row,column,old,new,accept\\n3,species,setossa,setosa,true\\n")
    ...     (found,) = read_corrections(path)
    >>> found.row, found.column, found.old, found.new, found.accept
    (3, 'species', 'setossa', 'setosa', True)
    """
    refuse_no_file(path, "corrections")
    needed, content = (
        [name for name in COLUMNS if name != "why"],
        Path(path).read_bytes(),
    )
    if len(content.splitlines()) == 1:  # as an audit writes it that has none
        raise ValueError(
            "corrections must have a row below the header. Got none: there is nothing to correct."
        )
    return [_correction(line) for line in read_lines(content, "corrections", needed)]


def _correction(line):
    """The correction of a line of a file."""
    word = line["accept"].strip().lower()
    if word not in (*WORDS, "", _REMOVE):
        refuse("accept", "true, false or remove", word)
    texts = ("column", "old", "new", "why")
    column, old, new, why = (unguarded(line.get(name, "")) for name in texts)
    new = None if word == _REMOVE else new
    accept = word == _REMOVE or WORDS.get(word, False)
    return Correction(row_of(line["row"]), column, old, new, why, accept)


def corrections_of(report):
    """Corrections of the labels of a report that are wrong by a verdict: to the
    suggestions.

    Parameters
    ----------
    report : AuditReport
        The report of a table with classes, with verdicts.

    Returns
    -------
    corrections : list of Correction
        One for each of these rows. It is not accepted if the suggestion is the label.

    Raises
    ------
    ValueError
        If there are no verdicts, the report names no target, or it is one of a
        regression, whose predictions are no entries.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skvalue import LabelErrorDetector
    >>> from skvalue.audit import audit_table, corrections_of
    >>> X, y = load_iris(return_X_y=True)
    >>> y[0] = 2
    >>> detector = LabelErrorDetector(GaussianNB(), random_state=0)
    >>> report = audit_table(X, y, detector=detector, target="species", checks=None)
    >>> (found,) = corrections_of(report.review([0], [True]))
    >>> found.row, found.column, found.old, found.new  # line 2 of a CSV file
    (2, 'species', '2', '0')
    """
    target = report.about["target"]
    if not report.verdicts or target is None:
        refuse("report", "one with verdicts and the name of the target", report)
    if report.about["task"] == "regression":
        refuse(
            "report",
            "one of classes, since a prediction is no entry of a table",
            report,
        )
    found, why = [], "wrong by a verdict"
    for row in sorted(row for row, is_error in report.verdicts.items() if is_error):
        number, label = int(report.numbers[row]), str(report.labels[row])
        suggestion = str(report.suggestions[row])
        found.append(
            Correction(number, target, label, suggestion, why, suggestion != label)
        )
    return found
