"""Numbers of the columns of any table, and sentences that say what was done."""

import datetime
import numbers

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import check_array

from .._utils.checks import hidden_entries
from .._utils.sklearn import is_pandas_na, is_scalar_nan

_LEVELS = 20  # columns of a category; all other levels have one in common
_TEXT = 0.5  # a column of strings with more levels than this fraction of the rows is left out


def table_to_numbers(X):
    """Numbers of the columns of a table, for models that take no other columns.

    Numbers and booleans are kept, dates become seconds; missing numbers are replaced by the median
    of the column, and a column of zeros and ones says where. A category has a column for each of
    its levels, of at most 20, the other ones having one in common; missing is a level. A column of
    strings that differ in more than half of the rows, such as names, is left out, and so is one
    without any entry.

    Parameters
    ----------
    X : data frame, array or sparse matrix of shape (n_samples, n_features)
        The table, of any types of columns.

    Returns
    -------
    vectors : ndarray or CSR matrix of shape (n_samples, n_columns)
        Finite numbers.
    notes : list of str
        A sentence for each column that was changed.

    Raises
    ------
    ValueError
        If X holds infinity, has not two dimensions, or no column is left.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.review import table_to_numbers
    >>> X = np.array([[1.0, "a"], [None, "b"], [3.0, "a"]], dtype=object)
    >>> vectors, notes = table_to_numbers(X)
    >>> vectors.tolist()
    [[1.0, 0.0, 1.0, 0.0], [2.0, 1.0, 0.0, 1.0], [3.0, 0.0, 1.0, 0.0]]
    >>> print(*notes, sep="\\n")
    column 0: 1 missing value replaced by the median, and marked in a column
    column 1: a category of 2 levels, one column each
    """
    if sparse.issparse(X):
        return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32]), []
    framed = hasattr(X, "columns")
    if not framed and np.ndim(X) != 2:
        what = "one text or object per row" if np.ndim(X) < 2 else f"shape {np.shape(X)}"
        raise ValueError(
            f"X must be a table of two dimensions without an embedding. Got {what}: pass "
            "embedding=, which maps each row to a vector."
        )
    if not framed and np.asarray(X).dtype.kind in "biuf" and np.isfinite(X).all():
        return np.asarray(X, dtype=np.float64), []
    names = X.columns if framed else range(X.shape[1])
    numeric, categories, notes = [], [], []
    for name in names:
        column = X[name] if framed else X[:, name]
        said = str(name) if framed else f"column {name}"
        kind, entries = entries_of(column)
        _add(said, kind, entries, numeric, categories, notes)
    blocks = []
    if numeric:
        table = np.column_stack(numeric)
        with hidden_entries("X"):
            check_array(table, ensure_all_finite="allow-nan", input_name="X")
        blocks.append(SimpleImputer(strategy="median", add_indicator=True).fit_transform(table))
    if categories:
        encoder = OneHotEncoder(max_categories=_LEVELS, sparse_output=False)
        blocks.append(encoder.fit_transform(np.column_stack(categories)))
    if not blocks:
        raise ValueError("X must have a column of numbers or categories. Got none.")
    return np.hstack(blocks), notes


def _add(name, kind, entries, numeric, categories, notes):
    """Sort one column into numbers or categories, and say what is done to it."""
    missing = int(np.isnan(entries).sum() if kind != "category" else (entries == MISSING).sum())
    n = len(entries)
    if missing == n:
        notes.append(f"{name}: left out, it has no entry")
    elif kind == "category":
        levels = len(np.unique(entries))
        if levels > max(_LEVELS, _TEXT * n):
            notes.append(
                f"{name}: left out, {levels} different strings in {n} rows (embedding= can use it)"
            )
            return
        categories.append(entries)
        rest = "one column each"
        if levels > _LEVELS:
            rest = f"one column each for {_LEVELS - 1}, one for the others"
        lost = f" ({missing} rows are missing, which is a level)" if missing else ""
        notes.append(f"{name}: a category of {levels} levels{lost}, {rest}")
    else:
        numeric.append(entries)
        if kind == "date":
            notes.append(f"{name}: dates became seconds")
        if missing:
            values = f"{missing} missing value{'' if missing == 1 else 's'}"
            notes.append(f"{name}: {values} replaced by the median, and marked in a column")


MISSING = "(missing)"


def entries_of(column):
    """Kind of a column, and its entries: floats, or strings for a category."""
    declared = str(getattr(column, "dtype", "")).startswith(("category", "Categorical", "Enum"))
    array = np.asarray(column)
    if array.dtype.kind in "biuf" and not declared:
        return "number", array.astype(np.float64)
    if array.dtype.kind in "Mm":
        return "date", _seconds(array)
    entries = array.astype(object).tolist()
    missing = np.array([entry is None or _is_nan(entry) for entry in entries], dtype=bool)
    known = [entry for entry, lost in zip(entries, missing) if not lost]
    if not declared and all(isinstance(entry, numbers.Real) for entry in known):
        found = np.full(len(entries), np.nan)
        found[~missing] = known
        return "number", found
    if not declared and all(isinstance(entry, datetime.date) for entry in known):
        dates = [np.datetime64("NaT") if lost else e for e, lost in zip(entries, missing)]
        return "date", _seconds(np.array(dates, dtype="datetime64[us]"))
    return "category", np.array(
        [MISSING if lost else str(entry) for entry, lost in zip(entries, missing)], dtype=object
    )


def _is_nan(entry):
    return is_scalar_nan(entry) or is_pandas_na(entry) or str(entry) == "NaT"


def _seconds(array):
    unit = "datetime64[us]" if array.dtype.kind == "M" else "timedelta64[us]"
    whole = array.astype(unit)
    return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / 1e6)
