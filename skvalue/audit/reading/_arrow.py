"""Parquet and Arrow files, whose size is checked before they are read."""

import os
import re
from pathlib import Path

import numpy as np

from ..._utils.optional import import_optional
from ..._utils.untrusted import refuse
from ...exceptions import ParameterError

ARROW = (".parquet", ".arrow", ".feather")
MAX_ROWS = 10_000_000
_ENTRY = 8  # bytes of an entry, at least
_INDEX = re.compile(r"__index_level_\d+__")  # a column that pandas makes of its index


def read_arrow(path, target=None, max_rows=MAX_ROWS):
    """The frame of a Parquet or Arrow file, with rows numbered from 0.

    Whole numbers with gaps are floats, but those of the target are objects: floats are
    the targets of a regression.
    """
    table = arrow_table(path, max_rows)
    try:
        frame = table.to_pandas()
        if target in table.column_names:
            column = table.select([target])
            objects = column.to_pandas(integer_object_nulls=True)[target]
            if objects.dtype == object:
                frame[target] = objects
    except Exception as error:  # whatever the types of a file of a stranger lead to
        raise _no_table(error) from None
    return frame


def arrow_table(path, max_rows=MAX_ROWS):
    """The table of a Parquet or Arrow file, as its own types say.

    What pandas says of the columns is left out, and a named index is a column.
    """
    table = whole_table(path, max_rows)
    indices = [name for name in table.column_names if _INDEX.fullmatch(name)]
    return table.drop_columns(indices).replace_schema_metadata(None)


def whole_table(path, max_rows=MAX_ROWS):
    """The table of a Parquet or Arrow file, with all that it says of the columns."""
    pyarrow = import_optional("pyarrow", "a Parquet or Arrow file")
    try:
        if Path(path).suffix.lower() == ".parquet":
            table = _parquet_table(path, max_rows)
        else:
            table = _ipc_table(pyarrow, path, max_rows)
    except (pyarrow.ArrowException, OSError) as error:
        raise _no_table(error) from None
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise ValueError(
                f"the file must name every column once. Got {name!r} twice."
            )
    return table


def rows_of_table(table, rows):
    """Some rows of a table, of columns of any types; ascending row numbers."""
    rows = np.asarray(rows, dtype=np.int64)
    if not len(rows):
        return table.slice(0, 0)
    # `take` does not know all types, and slices of consecutive rows do.
    runs = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
    pyarrow = import_optional("pyarrow", "a Parquet or Arrow file")
    return pyarrow.concat_tables(table.slice(run[0], len(run)) for run in runs)


def _no_table(error):
    text = " ".join(str(error).split())
    return ValueError(
        f"the file must be a whole Parquet or Arrow file. Got {text or repr(error)}."
    )


def _parquet_table(path, max_rows):
    """The table of a Parquet file; its size is what its end declares."""
    from pyarrow import parquet

    file = parquet.ParquetFile(path)
    described = file.metadata
    n_bytes = sum(
        described.row_group(i).total_byte_size for i in range(described.num_row_groups)
    )
    refuse_many_rows(described.num_rows, max_rows)
    refuse_many_bytes(n_bytes + _ENTRY * described.num_rows * described.num_columns)
    return file.read()


def _ipc_table(pyarrow, path, max_rows):
    """The table of an Arrow file, or stream, whose batches are counted as they come."""
    from pyarrow import ipc

    with pyarrow.OSFile(os.fspath(path)) as file:
        try:
            reader = ipc.open_file(file)
            batches = map(reader.get_batch, range(reader.num_record_batches))
        except pyarrow.ArrowInvalid:
            # A stream has no list of its blocks at the end.
            file.seek(0)
            reader = ipc.open_stream(file)
            batches = reader
        n_rows = 0
        n_bytes = 0
        read = []
        for batch in batches:
            n_rows += batch.num_rows
            n_bytes += batch.nbytes
            refuse_many_rows(n_rows, max_rows)
            refuse_many_bytes(n_bytes)
            read.append(batch)
        return pyarrow.Table.from_batches(read, reader.schema)


def refuse_many_rows(n_rows, max_rows):
    """Refuse a table of more rows than are to be read."""
    if n_rows > max_rows:
        raise ParameterError(
            "max_rows",
            f"the file must have at most {max_rows} rows. Got {n_rows}.",
            "Pass {} to read it.",
            [("max_rows", n_rows)],
            subject="",
        )


def refuse_many_bytes(n_bytes):
    """Refuse a table that takes more than half of the memory of the machine."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        memory = 2**34
    if 2 * n_bytes > memory:
        rule = f"of at most {memory // 2} bytes, half of the memory, when it is read"
        refuse("the file", rule, f"{n_bytes} bytes")
