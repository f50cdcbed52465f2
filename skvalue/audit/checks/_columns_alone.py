"""Columns that number the rows, are constant, or mostly missing."""

import numpy as np

from ..._utils.table_columns import identifies
from ._finding import Finding

_NEARLY, _FEWEST = 0.995, 200  # fraction of the commonest entry, of at least 200 rows
_MOSTLY = 0.5  # fraction of missing entries


def find_ids(columns):
    """Columns that have another value in every row, as numbers and keys of rows do."""
    for column in columns:
        if identifies(column):
            said = f"{column.name!r} has another value in every row: not used."
            yield Finding("id", "warning", said, columns=(column.name,))


def find_empty(columns):
    """Columns with one entry, nearly one entry, or mostly none."""
    for column in columns:
        name, n = column.name, len(column.entries)
        _, counts = np.unique(column.entries, return_counts=True)
        lost, where = column.missing.mean(), (name,)
        if len(counts) == 1:
            said = f"{name!r} has the same entry in all rows."
            yield Finding("constant", "note", said, (), where)
        elif counts.max() >= _NEARLY * n and n >= _FEWEST:
            said = f"{name!r} has another entry in {n - counts.max()} of {n} rows only."
            yield Finding("nearly constant", "note", said, (), where)
        if lost > _MOSTLY:
            said = f"{name!r} is missing in {lost:.0%} of the rows."
            yield Finding(
                "mostly missing", "note", said, (), where, evidence={"fraction": lost}
            )
