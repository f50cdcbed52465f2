"""Numbers of the columns of any table, and notes that say what was done."""

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import check_array

from .._utils.table_columns import columns_of, refuse_infinite
from .._utils.text import plural
from ..base import is_plain
from ..exceptions import ParameterError

# All further levels of a category have one column in common.
_MAX_LEVELS = 20

# A column of strings with more levels than this fraction of the rows is left out.
_MAX_DISTINCT_FRACTION = 0.5


def table_to_numbers(X):
    """Numbers of the columns of a table, for models that take no other columns.

    Numbers and booleans are kept, dates become seconds; missing numbers are replaced by
    the median of the column, and a column of zeros and ones says where. A category has
    a column for each of its levels, of at most 20, the other ones having one in common;
    missing is a level. A column of strings that differ in more than half of the rows,
    such as names, is left out, and so is one without any entry.

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
    >>> from skvalue.labels import table_to_numbers
    >>> X = np.array([[1.0, "a"], [None, "b"], [3.0, "a"]], dtype=object)
    >>> vectors, notes = table_to_numbers(X)
    >>> vectors.tolist()
    [[1.0, 0.0, 1.0, 0.0], [2.0, 1.0, 0.0, 1.0], [3.0, 0.0, 1.0, 0.0]]
    >>> print(*notes, sep="\\n")
    x0: 1 missing value replaced by the median, and marked in a column
    x1: a category of 2 levels, one column each
    """
    if sparse.issparse(X):
        return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32]), []
    if is_plain(X) and X.dtype.kind != "c":
        return np.asarray(X, dtype=np.float64), []
    if not hasattr(X, "columns") and np.ndim(X) != 2:
        got = f"shape {np.shape(X)}"
        if np.ndim(X) < 2:
            got = "one text or object per row"
        raise ParameterError(
            "X",
            "must be a table of two dimensions without an embedding. Got "
            f"{got}: pass embedding=, which maps each row to a vector.",
        )

    numbers = []
    categories = []
    notes = []
    for column in columns_of(X):
        if column.missing.all():
            notes.append(f"{column.name}: left out, it has no entry")
        elif column.kind == "category":
            is_used, note = _describe_category(column)
            notes.append(note)
            if is_used:
                categories.append(column.entries)
        else:
            refuse_infinite(column.entries, column.name)
            notes += _describe_numbers(column)
            numbers.append(column.entries)

    blocks = []
    if numbers:
        table = np.column_stack(numbers)
        imputer = SimpleImputer(strategy="median", add_indicator=True)
        blocks.append(imputer.fit_transform(table))
    if categories:
        encoder = OneHotEncoder(max_categories=_MAX_LEVELS, sparse_output=False)
        blocks.append(encoder.fit_transform(np.column_stack(categories)))
    if not blocks:
        raise ParameterError(
            "X", "must have a column of numbers or categories. Got none."
        )
    return np.hstack(blocks), notes


def _describe_category(column):
    """Whether a column of strings is used, and the note on it."""
    n_rows = len(column.entries)
    n_levels = len(np.unique(column.entries))
    if n_levels > max(_MAX_LEVELS, _MAX_DISTINCT_FRACTION * n_rows):
        return False, (
            f"{column.name}: left out, {n_levels} different strings in {n_rows} rows "
            "(embedding= can use it)"
        )
    note = f"{column.name}: a category of {n_levels} levels"
    n_missing = int(column.missing.sum())
    if n_missing:
        note += f" ({n_missing} rows are missing, which is a level)"
    if n_levels > _MAX_LEVELS:
        note += f", one column each for {_MAX_LEVELS - 1}, one for the others"
    else:
        note += ", one column each"
    return True, note


def _describe_numbers(column):
    """Notes on a column of numbers or dates."""
    notes = []
    if column.kind == "date":
        notes.append(f"{column.name}: dates became seconds")
    n_missing = int(column.missing.sum())
    if n_missing:
        notes.append(
            f"{column.name}: {plural(n_missing, 'missing value')} replaced by the "
            "median, and marked in a column"
        )
    return notes
