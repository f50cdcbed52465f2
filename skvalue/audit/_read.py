"""A table from a file, with what was assumed about it, and what could be read in two
ways."""

import os
import re
import unicodedata
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._utils.checks import format_values
from .._utils.optional import import_optional
from .._utils.untrusted import refuse, refuse_no_file
from ._read_columns import MISSING, Cells, Conventions, find_codes, read_column
from ._read_text import decode, split

_ARROW = (".parquet", ".arrow", ".feather")
_MOST_COLUMNS = 10_000
_LONGEST_LABEL = 1000  # characters


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
    source : Bunch, default=None
        The text of the file, for `to_bytes`, and how a table of the same columns is to
        be read; None if it is no text.

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
    source: Bunch | None = field(default=None, repr=False)

    def to_bytes(self, rows):
        """The bytes of the file with some of its rows alone, each as the file has it.

        Parameters
        ----------
        rows : array-like of int
            Row numbers of the file, which are in the index of `frame`.

        Returns
        -------
        content : bytes or None
            The header and these rows; None if the file is no text.
        """
        if self.source is None:
            return None
        fields = self.source.fields
        texts = dict(zip(fields.numbers.tolist(), fields.texts))
        return "".join([fields.before, *(texts[row] for row in rows)]).encode(
            self.source.codec
        )


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
):
    """Read a table from a CSV, TSV, Parquet or Arrow file, and say what was assumed.

    An entry of a text file is a string first: a column gets a type only if all of its
    entries are numbers, or dates, in one format. What can be read in two ways is a
    doubt. Files in which the encoding, the separator or the header cannot be told are
    refused.

    Parameters
    ----------
    path : str or path
        File to read; one that does not end in .parquet, .arrow or .feather is text.
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
        column is asked for.
    text : str or list of str, default=None
        Columns that stay text.
    header : bool, default=None
        Whether the first line names the columns; None decides by what is in it.
    skip_lines : int, default=0
        Number of lines before the header.
    task : {"auto", "classification", "regression"}, default="auto"
        What the target is for: numbers for a regression, else text.
    strict : bool, default=False
        Whether to refuse a file with doubts.
    like : Reading, default=None
        Reading of a table of the same columns, which decides in place of a doubt.

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
    ...         print("preis;am;sorte", "1,5;24.12.2026;01", "2,25;k.A.;1", sep="\\n", file=file)
    ...     reading = read_table(path, target="sorte")
    >>> reading.frame["preis"].tolist(), reading.frame["sorte"].tolist()
    ([1.5, 2.25], ['01', '1'])
    >>> print(*reading.said, sep="\\n")
    fields separated by ;
    decimal comma in preis
    dates of day, month, year in am
    'k.A.' missing in am
    """
    refuse_no_file(path, "the file")
    like = None if like is None else like.source
    if like is not None:
        decimal, dates = decimal or like.decimal, dates or like.dates
        task = like.task if task == "auto" else task
    if Path(path).suffix.lower() in _ARROW:
        return _labelled(Reading(_read_arrow(path), [], []), target)
    content, codec = decode(Path(path).read_bytes(), encoding)
    fields, said = split(content, separator, skip_lines, header)
    names, missing = (
        fields.names,
        [missing] if isinstance(missing, str) else list(missing or ()),
    )
    if len(names) > _MOST_COLUMNS:
        refuse("the file", f"a table of at most {_MOST_COLUMNS} columns", len(names))
    kept = {*_listed_names(text, names, "text"), *(() if like is None else like.text)}
    if task == "classification":
        kept.add(target)
    codes = _codes_by_column(missing, names)
    columns = {
        name: read_column(cells, codes[name], name in kept)
        for name, cells in zip(names, zip(*fields.rows))
    }
    known = Conventions(columns.values(), decimal, dates)
    known.doubts += _broken_letters(content)
    if target in columns:
        columns[target] = _target_column(target, columns[target], task, known)
    frame = {
        name: _entries(name, column, known, f"={name}" not in missing)
        for name, column in columns.items()
    }
    if strict and known.doubts:
        raise ValueError(" ".join(known.doubts))
    said = [f"encoding {codec}"] * (codec != "utf-8") + said
    said += [f"{what} in {_listed(where)}" for what, where in known.said.items()]
    texts = {name for name in names if columns[name].kind == "text"}
    if target in columns:
        task = "classification" if target in texts else "regression"
    keys = known.common_key("number"), known.common_key("date")
    source = Bunch(
        fields=fields, codec=codec, decimal=keys[0], dates=keys[1], task=task
    )
    source.text = texts - {target}
    frame = import_optional("pandas", "read_table").DataFrame(
        frame, index=fields.numbers
    )
    return _labelled(Reading(frame, said, known.doubts, source=source), target)


def _listed(names):
    shown = ", ".join(names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _listed_names(names, among, parameter):
    """A list of names of columns; an error for others."""
    names = [names] if isinstance(names, str) else list(names or ())
    for name in names:
        if name not in among:
            refuse(parameter, f"columns of the file: {_listed(among)}", name)
    return names


def _codes_by_column(missing, names):
    """Column -> entries that mean missing."""
    codes = {name: set() for name in names}
    for entry in missing:
        code, sign, name = str(entry).rpartition("=")
        for column in _listed_names(name, names, "missing") if sign else names:
            codes[column].add(code if sign else name)
    return codes


def _target_column(target, column, task, known):
    """The column of the target: numbers for a regression, else text; adds doubts and
    sentences."""
    counts = column.counts
    if task == "regression":
        if column.kind != "number":
            refuse(
                "task",
                f"'classification', since {target!r} holds other than numbers",
                task,
            )
        return column
    values = next(iter(column.readings.values()), ())
    whole = column.kind == "number" and bool(np.all(np.floor(values) == values))
    if task == "auto" and column.kind == "number" and not whole:
        return column
    longest = max(counts, key=len)
    if len(longest) > _LONGEST_LABEL:
        rule = f"a column of labels of at most {_LONGEST_LABEL} characters"
        refuse("target", rule, f"{longest[:40]}... of {len(longest)}")
    n, n_rows = len(values), len(column.cells)
    if (
        task == "auto"
        and whole
        and n > 20
        and (n_rows < 4 * n or np.ptp(values) > n - 1)
    ):
        known.doubts.append(
            f"{target!r} has {n} different whole numbers, read as classes. Pass task='regression' "
            "if they are amounts, else task='classification'."
        )
    kept = [c for c in counts if c and c.lower() in MISSING]
    said = f"{format_values(kept)} no missing label but a class" if kept else ""
    missing = tuple(set(column.missing) - set(kept)) or ("",)
    return Cells(column.cells, counts, missing=missing, said=said)


def _entries(name, column, known, asked):
    """The entries of a column as its type; adds doubts and sentences."""
    cells, counts, lost = column.cells, column.counts, {*column.missing, *column.odd}
    if column.said:
        known.said[column.said].append(name)
    if column.kind == "text":
        if column.looks_typed:
            known.doubts.append(
                f"{name!r} stays text, though it looks like numbers or dates, such as "
                f"{format_values(list(counts)[:3])}. Pass text={name!r} to accept that."
            )
        return np.array([None if c in lost else c for c in cells], dtype=object)
    present = [c for c in counts if c not in lost]
    values = known.choose(name, column, present[0]) if present else np.zeros(0)
    if column.odd:
        n = sum(counts[c] for c in column.odd)
        known.doubts.append(
            f"{name!r}: {format_values(column.odd)} ({n} rows) read as missing, since all others are "
            f"{column.kind}s. Pass missing='{column.odd[0]}={name}' to accept that, or "
            f"text={name!r}."
        )
    words = [c for c in column.missing if c]
    if words:
        known.said[f"{format_values(words)} missing"].append(name)
    places = {c: i for i, c in enumerate(present)}
    codes = np.array([places.get(c, -1) for c in cells])
    if column.kind == "date":
        return np.append(values, np.datetime64("NaT"))[codes]
    if asked:
        times = np.array([counts[c] for c in present], dtype=np.intp)
        for code, n in find_codes(values, times):
            known.doubts.append(
                f"{name!r}: {code} stands in {n} rows, apart from all others: does it mean "
                f"missing? Pass missing='{code}={name}' if so, else missing='={name}'."
            )
    whole = len(values) and codes.min() >= 0 and np.all(np.floor(values) == values)
    if whole and np.abs(values).max() < 2**53:
        return values.astype(np.int64)[codes]
    return np.append(values, np.nan)[codes]


def _broken_letters(text):
    """Doubts about letters that were lost before."""
    if "\ufffd" in text:
        yield f"{text.count(chr(0xFFFD))} letters were lost before (\ufffd). Pass encoding=."
    if re.search("Ã[¤¶¼Ÿ©¨\x9f]|â€", text):
        yield "letters such as 'Ã¼' show a text that was once read in a wrong encoding."
    n = sum(unicodedata.category(c) == "Cc" and c not in "\r\n\t" for c in set(text))
    if n:
        yield f"the text holds {n} kinds of control characters."


def _labelled(reading, target):
    """The reading without the rows that have no label."""
    frame = reading.frame
    if target is None:
        return reading
    if target not in frame.columns:
        refuse(
            "target",
            f"a column of the file: {_listed(list(map(str, frame.columns)))}",
            target,
        )
    lost = frame[target].isna().to_numpy()
    if lost.all():
        refuse("target", "a column with at least one entry", target)
    return replace(reading, frame=frame[~lost], unlabelled=frame.index.to_numpy()[lost])


def _read_arrow(path):
    pyarrow = import_optional("pyarrow", "a Parquet or Arrow file")
    from pyarrow import ipc, parquet

    try:
        if Path(path).suffix.lower() == ".parquet":
            return parquet.read_table(path).to_pandas()
        with pyarrow.OSFile(os.fspath(path)) as file:
            try:
                return ipc.open_file(file).read_pandas()
            except pyarrow.ArrowInvalid:  # a stream, which has no list of its blocks
                file.seek(0)
                return ipc.open_stream(file).read_pandas()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(
            f"the file must be a whole Parquet or Arrow file. Got {error}."
        ) from None
