"""The columns of any table: numbers, dates and categories, with their missing
entries."""

import datetime
import numbers
from dataclasses import dataclass

import numpy as np

from .columns import are_counted
from .sklearn import is_pandas_na, is_scalar_nan

MISSING = "(missing)"  # entry of a category
SPACES = 2  # of a text on average
_FEWEST = 30  # rows of which an identifier is told
_MEASURE = 10  # different numbers, from which a column is scaled by its quantiles


@dataclass(frozen=True, eq=False)
class Column:
    """The name, kind and entries of a column, as of `entries_of`."""

    name: str
    kind: str
    entries: np.ndarray

    @property
    def missing(self):
        """Whether each entry is missing."""
        return (
            self.entries == MISSING
            if self.kind == "category"
            else np.isnan(self.entries)
        )

    @property
    def n_distinct(self):
        """Number of different entries, missing ones aside."""
        return len(np.unique(self.entries[~self.missing]))

    @property
    def is_measure(self):
        """Whether it holds numbers, of which at least ten differ."""
        return self.kind != "category" and self.n_distinct >= _MEASURE

    @property
    def n_spaces(self):
        """Number of spaces of an entry on average, missing ones aside; 0 for numbers
        and dates."""
        known = self.entries[~self.missing] if self.kind == "category" else ()
        return np.mean([entry.count(" ") for entry in known]) if len(known) else 0.0

    def take(self, rows):
        """The column of some rows."""
        return Column(self.name, self.kind, self.entries[rows])


def named_columns(X):
    """Name and entries of each column of a frame or a two-dimensional array, as they
    are."""
    if hasattr(X, "columns"):
        return [(str(name), X[name]) for name in X.columns]
    return [(f"x{j}", column) for j, column in enumerate(np.asarray(X).T)]


def columns_of(X):
    """The columns of a frame or a two-dimensional array."""
    return [Column(name, *entries_of(column)) for name, column in named_columns(X)]


def entries_of(column):
    """Kind of a column, and its entries: floats, or strings for a category."""
    declared = str(getattr(column, "dtype", "")).startswith(
        ("category", "Categorical", "Enum")
    )
    array = np.asarray(column)
    if array.dtype.kind in "biuf" and not declared:
        return "number", array.astype(np.float64)
    if array.dtype.kind in "Mm":
        return "date", _seconds(array)
    entries = array.astype(object)
    missing = np.array([_is_missing(entry) for entry in entries], dtype=bool)
    known = entries[~missing].tolist()
    if not declared and all(isinstance(entry, numbers.Real) for entry in known):
        found = np.full(len(entries), np.nan)
        found[~missing] = known
        return "number", found
    if not declared and all(isinstance(entry, datetime.date) for entry in known):
        return "date", _seconds(
            np.where(missing, None, entries).astype("datetime64[us]")
        )
    found = np.full(len(entries), MISSING, dtype=object)
    found[~missing] = list(map(str, known))
    return "category", found


def _is_missing(entry):
    return (
        entry is None
        or is_scalar_nan(entry)
        or is_pandas_na(entry)
        or str(entry) == "NaT"
    )


def _seconds(array):
    whole = array.astype(
        "datetime64[us]" if array.dtype.kind == "M" else "timedelta64[us]"
    )
    return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / 1e6)


def identifies(column):
    """Whether a column numbers the rows: a counter, a key of at least five digits, or a
    code."""
    entries, n = column.entries, len(column.entries)
    if n < _FEWEST or column.kind == "date" or len(np.unique(entries)) < n:
        return False
    if column.kind == "category":
        return np.mean([" " in entry for entry in entries]) < 0.05
    return are_counted(entries, n)
