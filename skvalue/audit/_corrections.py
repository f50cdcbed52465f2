"""Corrections of single fields of a CSV file: all other bytes stay."""

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._utils.csv_text import csv_text
from .._utils.untrusted import refuse, refuse_no_file
from ..exceptions import ParameterError
from ._spreadsheets import WORDS, guarded, read_lines, row_of, unguarded
from .reading import FIRST_ROW, check_layout, decode, split

_COLUMNS = ("row", "column", "old", "new", "why", "accept")
_REMOVE = "remove"


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
    """Apply corrections to the bytes of a CSV file.

    All other bytes stay as they are: quotes, line ends, the encoding and its mark,
    decimal commas, and line breaks in fields.

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
    check_layout(separator, skip_lines)
    text, codec = decode(raw, encoding)
    if text.encode(codec) != raw:
        refuse("encoding", "one that gives the bytes of the file back", encoding)
    fields, _ = split(text, separator, skip_lines, header)
    row_numbers = (fields.numbers + FIRST_ROW).tolist()
    rows = dict(zip(row_numbers, fields.rows))

    # Row -> its corrections, by the number of the column, or None for the whole row.
    edits = defaultdict(dict)
    accepted = [correction for correction in corrections if correction.accept]
    for correction in sorted(accepted, key=lambda correction: correction.row):
        place = _place(correction, fields.names, rows, codec)
        row_edits = edits[correction.row]
        removes_edited_row = place is None and len(row_edits) > 0
        if place in row_edits or None in row_edits or removes_edited_row:
            raise ParameterError(
                "corrections", f"must change a field once. Got {correction} as well."
            )
        row_edits[place] = correction

    texts = []
    for row, record in zip(row_numbers, fields.texts):
        if row in edits:
            record = _edited(record, edits[row], fields.separator)
        texts.append(record)
    changes = []
    for row_edits in edits.values():
        changes += row_edits.values()
    return "".join([fields.before, *texts, fields.after]).encode(codec), changes


def _place(correction, names, rows, codec):
    """Number of the column that a correction changes, or None for the whole row.

    Refuses a correction of which the table has no field, or another entry in it.
    """
    if correction.row not in rows:
        refuse(
            "row",
            f"a row from {min(rows)} to {max(rows)}, the header being 1, that is not "
            "empty",
            correction.row,
        )
    if correction.column not in names:
        refuse("column", f"one of {', '.join(names[:20])}", correction.column)
    place = names.index(correction.column)
    entry = rows[correction.row][place]
    if entry.strip() != correction.old.strip():
        raise ValueError(
            "old must be what the table holds, or it has changed since. Got row "
            f"{correction.row}, column {correction.column!r}: expected "
            f"{correction.old!r}, found {entry!r}."
        )
    if correction.new is None:
        return None
    try:
        correction.new.encode(codec)
    except UnicodeEncodeError:
        rule = f"of characters that the encoding {codec} has"
        refuse("new", rule, str(correction))
    return place


def _edited(record, edits, separator):
    """The text of a record with its corrections, by the number of the column."""
    start = len(record) - len(record.lstrip("\r\n"))  # of the fields, after empty lines
    if None in edits:
        return record[:start]
    mark = re.escape(separator)
    field = re.compile(rf'"(?:[^"]|"")*"|[^{mark}\r\n]*')

    # Field by field, each with the separator behind it, up to the last one to change.
    pieces = [record[:start]]
    for place in range(max(edits) + 1):
        match = field.match(record, start)
        entry = match[0]
        if place in edits:
            new = edits[place].new
            needs_quotes = re.search(rf'[{mark}"\r\n]', new)
            if entry.startswith('"') or needs_quotes:
                new = '"' + new.replace('"', '""') + '"'
            entry = new
        pieces += [entry, record[match.end() : match.end() + 1]]
        start = match.end() + 1
    return "".join([*pieces, record[start:]])


def corrections_to_csv(corrections):
    """Write corrections as text that `read_corrections` reads.

    Entries that a spreadsheet would take for a formula have an apostrophe before them.

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
    rows = [_COLUMNS]
    for correction in corrections:
        accept = str(correction.accept).lower()
        if correction.new is None and correction.accept:
            accept = _REMOVE
        texts = (
            correction.column,
            correction.old,
            correction.new or "",
            correction.why,
        )
        rows.append((correction.row, *map(guarded, texts), accept))
    return csv_text(rows)


def read_corrections(path):
    """Read corrections from a CSV file.

    Parameters
    ----------
    path : str or path
        The file, as the page of an audit or a spreadsheet writes it: separated by
        commas, semicolons or tabs, with the columns row, column, old, new, why and
        accept. ``why`` may be absent. ``row`` counts as a spreadsheet does; a column
        ``index`` in its place counts from 0, the first row below the header, as Python
        does.

    Returns
    -------
    corrections : list of Correction
        All of them, those that are not accepted included; none if there is a header
        alone, as an audit that has nothing to correct writes it.

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
    ...         print("row,column,old,new,accept", file=file)
    ...         print("3,species,setossa,setosa,true", file=file)
    ...     [first] = read_corrections(path)
    >>> first.row, first.column, first.old, first.new, first.accept
    (3, 'species', 'setossa', 'setosa', True)
    """
    refuse_no_file(path, "corrections")
    content = Path(path).read_bytes()
    columns = [name for name in _COLUMNS if name != "why"]
    # An audit that has nothing to correct writes a header alone.
    lines = content.decode("utf-8-sig", errors="replace").splitlines()
    if len(lines) == 1 and set(columns) <= set(re.split("[,;\t]", lines[0])):
        return []
    return [_correction(line) for line in read_lines(content, "corrections", columns)]


def _row(line):
    """The row as a spreadsheet counts; an index is that of Python, from 0."""
    if "index" in line:
        return row_of(line["index"], "index") + FIRST_ROW
    return row_of(line["row"])


def _correction(line):
    """The correction of a line of a file."""
    word = line["accept"].strip().lower()
    removes_row = word == _REMOVE
    if word and not removes_row and word not in WORDS:
        refuse("accept", "true, false or remove", word)
    return Correction(
        row=_row(line),
        column=unguarded(line["column"]),
        old=unguarded(line["old"]),
        new=None if removes_row else unguarded(line["new"]),
        why=unguarded(line.get("why", "")),
        accept=removes_row or WORDS.get(word, False),
    )


def corrections_of(report, named=False):
    """Correct the labels that are wrong by a verdict to the suggestions of a report.

    Parameters
    ----------
    report : AuditReport
        The report of a table with classes, with verdicts.
    named : bool, default=False
        Whether to correct the rows that the verdicts name without one on themselves as
        well: at most the fraction ``fdr`` of all named rows has a right label.

    Returns
    -------
    corrections : list of Correction
        One for each of these rows; ``why`` says which it is. It is not accepted if the
        suggestion is the label.

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
    >>> [first] = corrections_of(report.review([0], [True]))
    >>> first.row, first.column, first.old, first.new  # line 2 of a CSV file
    (2, 'species', '2', '0')
    """
    target = report.about["target"]
    if not report.verdicts or target is None:
        refuse("report", "one with verdicts and the name of the target", report)
    if report.about["task"] == "regression":
        rule = "one of classes, since a prediction is no entry of a table"
        refuse("report", rule, report)
    reasons = {
        row: "wrong by a verdict"
        for row, is_error in report.verdicts.items()
        if is_error
    }
    if named:
        bound = f"at most {100 * report.about['fdr']:g} % of named rows are right"
        for row in np.flatnonzero(report.statement.label_error).tolist():
            reasons.setdefault(row, f"named, without a verdict: {bound}")

    corrections = []
    for row, why in sorted(reasons.items()):
        label = str(report.labels[row])
        suggestion = str(report.suggestions[row])
        correction = Correction(
            row=int(report.numbers[row]),
            column=target,
            old=label,
            new=suggestion,
            why=why,
            accept=suggestion != label,
        )
        corrections.append(correction)
    return corrections
