"""Corrections of Parquet and Arrow files: other entries, and the types, stay."""

from functools import partial
from pathlib import Path

from ..._utils.optional import import_optional
from ..._utils.untrusted import refuse
from ..reading import rows_of_table, whole_table
from ._edits import accepted_edits


def fix_arrow(path, corrections):
    """The table of a file with its corrections, and what was changed, by row."""
    table = whole_table(path)

    def text_of(row, column):
        entry = table[column][row].as_py()
        return "" if entry is None else str(entry)

    edits, changes = accepted_edits(
        corrections, table.column_names, len(table), text_of
    )
    removed = set()
    for row, correction in edits:
        if correction.new is None:
            removed.add(row)
        else:
            table = _with_entry(table, row, correction)
    if removed:
        kept = [row for row in range(len(table)) if row not in removed]
        table = rows_of_table(table, kept)
    return table.unify_dictionaries(), changes


def write_arrow(table, path):
    """The function that writes a table to a file, as the end of the path says."""
    if Path(path).suffix.lower() == ".parquet":
        parquet = import_optional("pyarrow.parquet", "a Parquet file")
        return partial(parquet.write_table, table)
    feather = import_optional("pyarrow.feather", "an Arrow file")
    return partial(feather.write_feather, table)


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
    except pyarrow.ArrowException:
        rule = f"an entry of the type {column.type} of its column"
        refuse("new", rule, str(correction))
    chunks = [*column[:row].chunks, new, *column[row + 1 :].chunks]
    return table.set_column(
        place, table.schema.field(place), pyarrow.chunked_array(chunks, column.type)
    )
