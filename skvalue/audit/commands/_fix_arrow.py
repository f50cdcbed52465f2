"""Corrections of Parquet and Arrow files: other entries, and the types, stay."""

from functools import partial
from pathlib import Path

from ..._utils.optional import import_optional
from ..._utils.untrusted import refuse
from ...exceptions import ParameterError
from ..reading import ARROW, whole_table

_FIRST = 2  # number of the first row: the names of the columns are row 1


def is_arrow(path):
    """Whether a file has types, by the end of its name."""
    return Path(path).suffix.lower() in ARROW


def fix_arrow(path, corrections):
    """The table of a file with its corrections, and what was changed, by row."""
    table = whole_table(path)
    changes = sorted(
        (correction for correction in corrections if correction.accept),
        key=lambda correction: correction.row,
    )
    removed = set()
    changed = set()
    for correction in changes:
        row = correction.row - _FIRST
        _check(table, row, correction)
        if row in removed or (row, correction.column) in changed:
            raise ParameterError(
                "corrections", f"must change a field once. Got {correction} as well."
            )
        if correction.new is None:
            removed.add(row)
        else:
            changed.add((row, correction.column))
            table = _with_entry(table, row, correction)
    if removed:
        kept = [row for row in range(len(table)) if row not in removed]
        table = table.take(kept)
    return table.unify_dictionaries(), changes


def write_arrow(table, path):
    """The function that writes a table to a file, as the end of the path says."""
    if Path(path).suffix.lower() == ".parquet":
        parquet = import_optional("pyarrow.parquet", "a Parquet file")
        return partial(parquet.write_table, table)
    feather = import_optional("pyarrow.feather", "an Arrow file")
    return partial(feather.write_feather, table)


def _check(table, row, correction):
    """Refuse a correction of which the table has no field, or another entry in it."""
    if not 0 <= row < len(table):
        rule = f"a row from {_FIRST} to {len(table) + 1}, the names being row 1"
        refuse("row", rule, correction.row)
    names = table.column_names
    if correction.column not in names:
        refuse("column", f"one of {', '.join(names[:20])}", correction.column)
    entry = table[correction.column][row].as_py()
    text = "" if entry is None else str(entry)
    if text.strip() != correction.old.strip():
        raise ValueError(
            "old must be what the table holds, or it has changed since. Got row "
            f"{correction.row}, column {correction.column!r}: expected "
            f"{correction.old!r}, found {text!r}."
        )


def _with_entry(table, row, correction):
    """The table with one other entry, of the type of its column."""
    pyarrow = import_optional("pyarrow", "a Parquet or Arrow file")
    place = table.column_names.index(correction.column)
    column = table.column(place)
    of_entries = column.type
    if pyarrow.types.is_dictionary(of_entries):
        of_entries = of_entries.value_type
    new = pyarrow.array([correction.new or None], pyarrow.string())
    try:
        new = new.cast(of_entries)
        if of_entries != column.type:
            new = new.dictionary_encode().cast(column.type)
    except (pyarrow.ArrowException, NotImplementedError):
        rule = f"an entry of the type {column.type} of its column"
        refuse("new", rule, str(correction))
    chunks = [*column[:row].chunks, new, *column[row + 1 :].chunks]
    return table.set_column(
        place, table.schema.field(place), pyarrow.chunked_array(chunks, column.type)
    )
