"""Columns that number the rows, hold infinity, are constant, or mostly missing."""

import numpy as np

from ..._utils.table_columns import identifies
from ..._utils.text import plural
from ._finding import Finding

# Fraction of the rows with the commonest entry, in tables of at least 200 rows.
_NEARLY_ALL = 0.995
_FEWEST_ROWS = 200
_MOSTLY = 0.5  # fraction of missing entries


def find_ids(columns):
    """Columns that have another value in every row, as numbers and keys of rows do."""
    for column in columns:
        if identifies(column):
            sentence = f"{column.name!r} has another value in every row: not used."
            yield Finding("id", "warning", sentence, columns=(column.name,))


def find_infinite(columns):
    """Columns of numbers with infinite ones."""
    for column in columns:
        if column.kind != "number":
            continue
        rows = np.flatnonzero(np.isinf(column.entries))
        if len(rows):
            sentence = (
                f"{column.name!r} holds infinity in {plural(len(rows), 'row')}, read "
                "as missing."
            )
            yield Finding(
                "infinite entries",
                "warning",
                sentence,
                rows=tuple(rows.tolist()),
                columns=(column.name,),
            )


def find_empty(columns):
    """Columns with one entry, nearly one entry, or mostly none."""
    for column in columns:
        n_rows = len(column.entries)
        _, counts = np.unique(column.entries, return_counts=True)
        n_others = n_rows - counts.max()
        if len(counts) == 1:
            sentence = f"{column.name!r} has the same entry in all rows."
            yield Finding("constant", "note", sentence, columns=(column.name,))
        elif counts.max() >= _NEARLY_ALL * n_rows and n_rows >= _FEWEST_ROWS:
            where = f"in {n_others} of {n_rows} rows only"
            sentence = f"{column.name!r} has another entry {where}."
            yield Finding("nearly constant", "note", sentence, columns=(column.name,))
        fraction = column.missing.mean()
        if fraction > _MOSTLY:
            yield Finding(
                "mostly missing",
                "note",
                f"{column.name!r} is missing in {fraction:.0%} of the rows.",
                columns=(column.name,),
                evidence={"fraction": fraction},
            )
