"""A table from a file, with what was assumed and what could be read in two ways."""

import re
import unicodedata
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..._utils.checks import format_values
from ..._utils.messages import Message
from ..._utils.optional import import_optional
from ..._utils.text import enumeration, plural
from ..._utils.untrusted import choice, integer, refuse, refuse_no_file
from ...exceptions import ParameterError
from ._arrow import ARROW, MAX_ROWS, read_arrow, refuse_many_rows
from ._conventions import Conventions
from ._encoding import decode
from ._entries import target_column, typed_entries
from ._fields import Fields, check_layout, split
from ._images import is_folder
from ._other_kinds import as_csv, decompressed, refuse_json
from ._types import read_column

_MOST_COLUMNS = 10_000
_TYPED_ENTRIES = (
    "is not applied: a Parquet or Arrow file says itself which entries are missing."
)
FIRST_ROW = 2  # number of the first row in a spreadsheet, whose header is row 1


@dataclass(frozen=True)
class Source:
    """The text of a file, and how a table of the same columns is to be read."""

    fields: Fields
    codec: str
    decimal: str | None  # mark, if all columns have one
    dates: str | None  # order of day, month and year, if all columns have one
    task: str
    text: set  # names of the columns of texts, the target aside
    columns: dict  # name -> TextColumn
    keys: dict  # name -> key of the reading of its column that was chosen
    has_header: bool


@dataclass(frozen=True, eq=False)
class Reading:
    """A table that was read from a file; `read_table` makes it.

    Parameters
    ----------
    frame : pandas.DataFrame
        Numbers, dates (datetime64) and texts. Its index are the row numbers of the
        file: row 0 is the line after the header, which a spreadsheet numbers 2, and
        empty lines count. Rows without a label are left out.
    said : list of str
        What was assumed: the encoding, separator, decimal mark, dates and words for
        missing.
    doubts : list of str
        What can be read in two ways, with the parameter of `read_table` that decides.
    unlabelled : ndarray of shape (n_unlabelled,), default=None
        Numbers of the rows without a label.
    source : object, default=None
        The text of the file, for `to_bytes`, and how a table of the same columns is to
        be read; None for Parquet and Arrow.

    Examples
    --------
    >>> import os
    >>> from tempfile import TemporaryDirectory
    >>> from skvalue.audit import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "people.csv")
    ...     with open(path, "w") as file:
    ...         print("age,label", "41,yes", "37,", "29,no", sep="\\n", file=file)
    ...     reading = read_table(path, target="label")
    >>> reading.frame.index.tolist(), reading.unlabelled.tolist()
    ([0, 2], [1])
    >>> reading.to_bytes([2])
    b'age,label\\n29,no\\n'
    """

    frame: Any
    said: list
    doubts: list
    unlabelled: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    source: Source | None = field(default=None, repr=False)

    def to_bytes(self, rows):
        """The bytes of the file with some of its rows alone, each as the file has it.

        Parameters
        ----------
        rows : array-like of int
            Row numbers of the file, in any order.

        Returns
        -------
        content : bytes or None
            The header and these rows, not compressed, those of an Excel file, or of a
            folder of pictures, as CSV; None for Parquet and Arrow.

        Raises
        ------
        ValueError
            If the file has no such row.
        """
        if self.source is None:
            return None
        fields = self.source.fields
        texts = dict(zip(fields.numbers.tolist(), fields.texts))
        line_end = re.search("\r\n|\r|\n", fields.before + fields.texts[0])
        pieces = [fields.before]
        for row in rows:
            if row not in texts:
                refuse("rows", f"rows of the file, from 0 to {max(texts)}", row)
            # The last line of the file may have no end, which another one needs.
            if pieces[-1] and not pieces[-1].endswith(("\n", "\r")):
                pieces.append(line_end[0])
            pieces.append(texts[row])
        return "".join(pieces).encode(self.source.codec)


def read_table(
    path,
    target=None,
    *,
    encoding=None,
    separator=None,
    decimal=None,
    dates=None,
    missing=None,
    text=None,
    header=None,
    skip_lines=0,
    task="auto",
    strict=False,
    like=None,
    latest_year=None,
    max_rows=MAX_ROWS,
):
    """Read a table from a text, Excel, Parquet or Arrow file; say what was assumed.

    An entry of a text file is a string first: a column gets a type only if all of its
    entries are numbers, or dates, in one format. What can be read in two ways is a
    doubt. Files in which the encoding, the separator or the header cannot be told are
    refused.

    Parameters
    ----------
    path : str or path
        File to read: Parquet or Arrow (.parquet, .arrow, .feather), the first sheet of
        an Excel file (.xlsx), JSON lines (.jsonl, .ndjson), or text, such as CSV, which
        may be compressed (.gz). Or a folder of pictures in one folder for each label:
        a table of the columns "path" and "label".
    target : str, default=None
        Column of the labels. They stay the text of the file, without spaces at their
        ends, unless they are numbers with decimals, or `task` is "regression". Rows
        without one are left out.
    encoding : str, default=None
        Codec of the text; None takes UTF-8, UTF-16 and Windows-1252 by their signs.
    separator : str, default=None
        What separates fields; None takes the one of comma, semicolon, tab and | that
        gives the same number of fields in every line.
    decimal : {".", ","}, default=None
        The decimal mark of numbers such as 1.234, which can be 1234 as well.
    dates : {"dmy", "mdy"}, default=None
        Order of day and month of dates such as 03/04/2026.
    missing : str or list of str, default=None
        Entries that mean missing, besides words such as NA and k.A. among numbers or
        dates: "999" in all columns, "999=age" in one. "=age": no other entry of that
        column is asked for. Parquet and Arrow files say themselves what is missing.
    text : str or list of str, default=None
        Columns that stay text.
    header : bool, default=None
        Whether the first line names the columns; None decides by what is in it. JSON
        lines and folders have names whatever it is.
    skip_lines : int, default=0
        Number of lines before the header, or of rows of an Excel sheet.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is for: numbers for a regression, else text. "auto" is a
        regression for numbers with decimals, and for whole ones of which more than
        1,000 differ, or more than 20 and at least half as many as there are rows.
    strict : bool, default=False
        Whether to refuse a file with doubts.
    like : Reading, default=None
        Reading of a table of the same columns, which decides in place of a doubt.
    latest_year : int, default=None
        Years of two digits are of the hundred years that end with this one. None is
        2068, or the present year if the dates of the column are then closer together;
        a doubt if neither is clear.
    max_rows : int, default=10_000_000
        The largest number of rows, which is checked before they are read.

    Returns
    -------
    reading : Reading
        The table, as `frame`, with what was assumed, `said`, and `doubts`.

    Raises
    ------
    ValueError
        If the file cannot be read, or not in one way; with `strict`, if there is a
        doubt.
    ImportError
        If pandas is not installed, or pyarrow for its files.

    Examples
    --------
    >>> import os
    >>> from tempfile import TemporaryDirectory
    >>> from skvalue.audit import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "preise.csv")
    ...     with open(path, "w") as file:
    ...         print("preis;am;sorte", file=file)
    ...         print("1,5;24.12.2026;01", file=file)
    ...         print("2,25;k.A.;1", file=file)
    ...     reading = read_table(path, target="sorte")
    >>> reading.frame["preis"].tolist(), reading.frame["sorte"].tolist()
    ([1.5, 2.25], ['01', '1'])
    >>> print(*reading.said, sep="\\n")
    fields separated by semicolons
    decimal comma in preis
    dates of day, month, year in am
    'k.A.' missing in am
    """
    if isinstance(missing, str):
        missing = [missing]
    missing = list(missing or ())
    check_layout(separator, skip_lines)
    _check_options(decimal, dates, task, latest_year, max_rows)
    if not is_folder(path):
        refuse_no_file(path, "the file")
    if Path(path).suffix.lower() in ARROW:
        frame = read_arrow(path, target, max_rows)
        _listed_names(text, frame.columns, "text")
        doubts = []
        if missing:
            doubts.append(Message("missing", _TYPED_ENTRIES))
        if strict:
            _refuse_doubts(doubts)
        return _leave_out_unlabelled(Reading(frame, [], doubts), target)

    # What a table of the same columns was read by decides in place of doubts.
    texts_before = set()
    if like is not None and like.source is not None:
        decimal = decimal or like.source.decimal
        dates = dates or like.source.dates
        texts_before = like.source.text
        if task == "auto":
            task = like.source.task

    file = _split_file(path, encoding, separator, skip_lines, header, max_rows)
    fields = file.fields
    names = fields.names
    if len(names) > _MOST_COLUMNS:
        refuse("the file", f"a table of at most {_MOST_COLUMNS} columns", len(names))
    if file.has_types and decimal is None:
        decimal = "."

    # All that each column can be read as.
    kept_as_text = {*_listed_names(text, names, "text"), *texts_before}
    if task == "classification":
        kept_as_text.add(target)
    codes = _codes_by_column(missing, names)
    columns = {
        name: read_column(cells, codes[name], name in kept_as_text, latest_year)
        for name, cells in zip(names, zip(*fields.rows))
    }

    # One reading of each, by what the columns have in common.
    conventions = Conventions(columns.values(), decimal, dates)
    _ask_about_letters(file.content, fields, conventions)
    if target in columns:
        columns[target] = target_column(target, columns[target], task, conventions)
    entries = {
        name: typed_entries(name, column, conventions, f"={name}" not in missing)
        for name, column in columns.items()
    }
    _ask_about_words(columns, missing, {target, *kept_as_text}, conventions)
    if task == "auto" and target in columns and columns[target].kind == "number":
        # Whole numbers that are amounts: integers would be taken for classes.
        entries[target] = np.asarray(entries[target], dtype=np.float64)
    if strict:
        _refuse_doubts(conventions.doubts)

    notes = list(file.notes)
    for note, noted_columns in conventions.notes.items():
        notes.append(f"{note} in {enumeration(noted_columns)}")
    source = _source_of(file, columns, conventions, target, task, header)
    frame = import_optional("pandas", "read_table").DataFrame(
        entries, index=fields.numbers
    )
    reading = Reading(frame, notes, conventions.doubts, source=source)
    return _leave_out_unlabelled(reading, target)


class _SplitFile(NamedTuple):
    """The text of a file, its fields, and notes on what was assumed.

    `has_types`: whether the entries of the file have types of their own.
    """

    content: str
    fields: Fields
    codec: str
    notes: list
    has_types: bool


def _split_file(path, encoding, separator, skip_lines, header, max_rows):
    """The fields of a file that is text, or whose table is written as text first."""
    converted = as_csv(path, max_rows, skip_lines)
    if converted is None:
        raw = decompressed(path)
        refuse_many_rows(raw.count(b"\n") - 1, max_rows)
        content, codec = decode(raw, encoding)
        refuse_json(content)
        fields, notes = split(content, separator, skip_lines, header)
        if codec != "utf-8":
            notes = [f"encoding {codec}", *notes]
        return _SplitFile(content, fields, codec, notes, has_types=False)

    content = converted.content
    if converted.has_names:
        header = True
    fields, notes = split(content, ",", header=header)
    if converted.texts is not None:
        fields = replace(fields, before="", texts=converted.texts, after="")
    return _SplitFile(content, fields, "utf-8", notes, has_types=True)


def _source_of(file, columns, conventions, target, task, header):
    """The source of a reading: what was chosen for its columns."""
    texts = {name for name, column in columns.items() if column.kind == "text"}
    if target in texts:
        task = "classification"
    elif target in columns:
        task = "regression"
    return Source(
        fields=file.fields,
        codec=file.codec,
        decimal=conventions.common_key("number"),
        dates=conventions.common_key("date"),
        task=task,
        text=texts - {target},
        columns=columns,
        keys=conventions.keys,
        has_header=header is not False,
    )


def _refuse_doubts(doubts):
    """Refuse a file of which there are doubts."""
    if doubts:
        raise ParameterError("strict", " ".join(doubts), subject="two readings:")


def _check_options(decimal, dates, task, latest_year, max_rows):
    """Refuse values that no file can be read by."""
    if decimal is not None:
        choice(decimal, "decimal", (".", ","))
    if dates is not None:
        choice(dates, "dates", ("dmy", "mdy"))
    choice(task, "task", ("auto", "classification", "regression"))
    integer(max_rows, "max_rows", 1, 10**18)
    if latest_year is not None:
        integer(latest_year, "latest_year", 99, 9999)


def split_target(reading, target, left_out=()):
    """Columns of the rows, numbered from 0, and the target, or None without one.

    left_out : collection of str, other columns that do not describe the rows
    """
    frame = reading.frame.reset_index(drop=True)
    columns = [
        name for name in frame.columns if name != target and name not in left_out
    ]
    labels = None if target is None else frame[target]
    return frame[columns], labels


def column_entries(reading, name):
    """The entries of a column as the file has them, of the rows with a label."""
    if reading.source is None:
        return [str(entry) for entry in reading.frame[name].tolist()]
    cells = reading.source.columns[name].cells
    entry_of = dict(zip(reading.source.fields.numbers.tolist(), cells))
    return [entry_of[number] for number in reading.frame.index.tolist()]


def _listed_names(names, among, parameter):
    """A list of names of columns; an error for others."""
    if isinstance(names, str):
        names = [names]
    names = list(names or ())
    for name in names:
        if name not in among:
            refuse(parameter, f"columns of the file: {enumeration(among)}", name)
    return names


def _codes_by_column(missing, names):
    """Column -> entries that mean missing, of options such as "999" or "999=age"."""
    codes = {name: set() for name in names}
    for option in missing:
        code, sign, name = str(option).rpartition("=")
        columns = names
        if sign:
            columns = _listed_names(name, names, "missing")
        else:
            code = str(option)
        for column in columns:
            codes[column].add(code)
    return codes


def _ask_about_words(columns, missing, decided, conventions):
    """Ask about words that are missing in some columns and entries of others.

    decided : set of names of columns that are not asked about
    """
    of_missing = {}
    for name, column in columns.items():
        if column.kind != "text":
            for word in set(column.missing) - {""}:
                of_missing.setdefault(word, []).append(name)
    of_entries = {}
    for name, column in columns.items():
        if column.kind != "text" or name in decided or f"={name}" in missing:
            continue
        for word in set(column.counts) & set(of_missing) - set(column.missing):
            of_entries.setdefault(word, []).append(name)
    for word in sorted(of_entries):
        texts = of_entries[word]
        are_entries = [("missing", f"={name}") for name in texts[:5]]
        conventions.ask(
            f"{word!r} is missing in {enumeration(of_missing[word])} and an entry of "
            f"{enumeration(texts)}.",
            "Pass {} if it is missing everywhere, else "
            f"{' and '.join(['{}'] * len(are_entries))}.",
            [("missing", word), *are_entries],
        )


def _ask_about_letters(text, fields, conventions):
    """Ask about letters that were lost, or read wrongly, before."""
    if "\ufffd" in text:
        n_lost = text.count("\ufffd")
        conventions.ask(
            f"{n_lost} letters were lost before (\ufffd).",
            "Pass {}.",
            [("encoding", ...)],
        )
    if re.search("Ã[¤¶¼Ÿ©¨\x9f]|â€", text):
        conventions.ask(
            "letters such as 'Ã¼' show a text that was once read in a wrong encoding.",
            "Mend it, or pass {} if the file is of another one.",
            [("encoding", ...)],
        )
    controls = {char for char in text if unicodedata.category(char) == "Cc"}
    controls -= set("\r\n\t")
    if controls:
        place = _first_place(controls, fields)
        conventions.doubts.append(
            f"the text holds {plural(len(controls), 'control character')} "
            f"({format_values(sorted(controls))}), first {place}. Mend them."
        )


def _first_place(controls, fields):
    """Where the first of some characters stands, in words."""
    pattern = re.compile(f"[{re.escape(''.join(sorted(controls)))}]")
    for number, row in zip(fields.numbers.tolist(), fields.rows):
        for name, entry in zip(fields.names, row):
            if pattern.search(entry):
                return f"in row {number + FIRST_ROW}, column {name!r}"
    return "above the rows"


def _leave_out_unlabelled(reading, target):
    """The reading without the rows that have no label."""
    if target is None:
        return reading
    frame = reading.frame
    if target not in frame.columns:
        rule = f"a column of the file: {enumeration(frame.columns)}"
        refuse("target", rule, target)
    is_missing = frame[target].isna().to_numpy()
    if is_missing.all():
        refuse("target", "a column with at least one entry", target)
    unlabelled = frame.index.to_numpy()[is_missing]
    frame = frame[~is_missing]
    if reading.source is None:
        # Whole numbers that are objects, see `read_arrow`, have no more gaps.
        frame = frame.assign(**{target: frame[target].infer_objects()})
    return replace(reading, frame=frame, unlabelled=unlabelled)
