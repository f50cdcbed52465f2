"""The columns of any table: numbers, dates or categories, with missing entries."""

import datetime
import math
import numbers
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from ..exceptions import ParameterError
from .columns import are_counted, refuse_repeated_names
from .sklearn import is_pandas_na, is_scalar_nan
from .text import count_gaps

MISSING = "(missing)"  # entry of a category
SPACES = 2  # of a text on average
_MIN_ROWS = 30  # of which an identifier is told
_MIN_DISTINCT = 10  # numbers, from which a column is scaled by its quantiles


@dataclass(frozen=True, eq=False)
class Column:
    """The name, kind and entries of a column, as of `entries_of`."""

    name: str
    kind: str
    entries: np.ndarray

    @property
    def missing(self):
        """Whether each entry is missing."""
        if self.kind == "category":
            return self.entries == MISSING
        return np.isnan(self.entries)

    @property
    def n_distinct(self):
        """Number of different entries, missing ones aside."""
        return len(np.unique(self.entries[~self.missing]))

    @property
    def is_measure(self):
        """Whether it holds numbers, of which at least ten differ."""
        return self.kind != "category" and self.n_distinct >= _MIN_DISTINCT

    @property
    def n_spaces(self):
        """Number of gaps between words of an entry on average, missing ones aside.

        They are spaces, or estimated in scripts without any; 0 for numbers and dates.
        """
        if self.kind != "category":
            return 0.0
        counts = [count_gaps(entry) for entry in self.entries[~self.missing]]
        return np.mean(counts) if counts else 0.0

    def take(self, rows):
        """The column of some rows."""
        return Column(self.name, self.kind, self.entries[rows])


def named_columns(X):
    """Name and entries of each column of a frame or an array of two dimensions."""
    if hasattr(X, "column_names"):  # a table of pyarrow, whose columns are no names
        X = X.to_pandas()
    if hasattr(X, "columns"):
        refuse_repeated_names(X.columns)
        return [(str(name), X[name]) for name in X.columns]
    return [(f"x{j}", column) for j, column in enumerate(np.asarray(X).T)]


def columns_of(X):
    """The columns of a frame or a two-dimensional array."""
    return [Column(name, *entries_of(column)) for name, column in named_columns(X)]


def entries_of(column):
    """Kind of a column, and its entries: floats, or strings for a category."""
    dtype = str(getattr(column, "dtype", ""))
    is_declared_category = dtype.startswith(("category", "Categorical", "Enum"))
    array = entries_as_array(column)
    if array.dtype.kind in "biuf" and not is_declared_category:
        return "number", array.astype(np.float64)
    if array.dtype.kind in "Mm":
        return "date", _seconds(array)

    objects = array.astype(object)
    is_missing = np.array([_is_missing(entry) for entry in objects], dtype=bool)
    present = objects[~is_missing].tolist()
    if not is_declared_category:
        if all(isinstance(entry, numbers.Real) for entry in present):
            entries = np.full(len(objects), np.nan)
            entries[~is_missing] = [_float_of(entry) for entry in present]
            return "number", entries
        if all(isinstance(entry, datetime.date) for entry in present):
            dates = np.where(is_missing, None, objects).astype("datetime64[us]")
            return "date", _seconds(dates)
    entries = np.full(len(objects), MISSING, dtype=object)
    entries[~is_missing] = [str(entry) for entry in present]
    return "category", entries


def entries_as_array(column):
    """The entries of a column of a frame, or of an array, as an array.

    Dates of Arrow are microseconds: their missing ones would make floats of others.
    """
    if getattr(column.dtype, "kind", "O") == "M" and hasattr(column, "to_numpy"):
        with suppress(TypeError):  # of polars, whose dates need none
            missing = np.datetime64("NaT", "us")
            return column.to_numpy(dtype="datetime64[us]", na_value=missing)
    return np.asarray(column)


def _float_of(number):
    """A number as a float; infinity for a whole number beyond the largest float."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def refuse_infinite(entries, column_name):
    """Refuse infinite entries of a column of numbers of X."""
    if np.isinf(entries).any():
        raise ParameterError(
            "X",
            "must hold finite numbers, or missing ones. Got infinity in the column "
            f"{column_name!r}.",
        )


def refuse_infinite_columns(X):
    """Refuse rows with a column of numbers that has infinite entries, by its name."""
    for name, column in named_columns(X):
        entries = entries_as_array(column)
        if entries.dtype.kind == "f":
            refuse_infinite(entries, name)


def _is_missing(entry):
    if entry is None or is_scalar_nan(entry) or is_pandas_na(entry):
        return True
    return str(entry) == "NaT"


def _seconds(array):
    """Dates or durations as seconds, NaN where there is none."""
    unit = "datetime64[us]" if array.dtype.kind == "M" else "timedelta64[us]"
    microseconds = array.astype(unit)
    seconds = microseconds.astype(np.int64) / 1e6
    return np.where(np.isnat(microseconds), np.nan, seconds)


def identifies(column):
    """Whether a column numbers the rows.

    It may be a counter, a key of at least five digits, or a code.
    """
    entries = column.entries
    n = len(entries)
    if n < _MIN_ROWS or column.kind == "date" or len(np.unique(entries)) < n:
        return False
    if column.kind == "category":
        has_spaces = np.mean([" " in entry for entry in entries]) >= 0.05
        return not has_spaces and column.n_spaces < SPACES
    return are_counted(entries, n)
