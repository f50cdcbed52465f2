"""Numbers of the columns of any table, and sentences that say what was done."""

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import check_array

from .._utils.checks import redact_errors
from .._utils.table_columns import columns_of
from .._utils.text import plural
from ..base import is_plain

_LEVELS = 20  # columns of a category; all other levels have one in common
_TEXT = 0.5  # a column of strings with more levels than this fraction of the rows is left out


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
        what = (
            "one text or object per row" if np.ndim(X) < 2 else f"shape {np.shape(X)}"
        )
        raise ValueError(
            f"X must be a table of two dimensions without an embedding. Got {what}: pass "
            "embedding=, which maps each row to a vector."
        )
    numeric, categories, notes = [], [], []
    for column in columns_of(X):
        name, n, missing = column.name, len(column.entries), int(column.missing.sum())
        levels = len(np.unique(column.entries)) if column.kind == "category" else 0
        if missing == n:
            notes.append(f"{name}: left out, it has no entry")
        elif levels > max(_LEVELS, _TEXT * n):
            notes.append(
                f"{name}: left out, {levels} different strings in {n} rows (embedding= can use it)"
            )
        elif levels:
            categories.append(column.entries)
            rest = "one column each"
            if levels > _LEVELS:
                rest = f"one column each for {_LEVELS - 1}, one for the others"
            lost = f" ({missing} rows are missing, which is a level)" if missing else ""
            notes.append(f"{name}: a category of {levels} levels{lost}, {rest}")
        else:
            numeric.append(column.entries)
            if column.kind == "date":
                notes.append(f"{name}: dates became seconds")
            if missing:
                values = plural(missing, "missing value")
                notes.append(
                    f"{name}: {values} replaced by the median, and marked in a column"
                )
    blocks = []
    if numeric:
        table = np.column_stack(numeric)
        with redact_errors("X"):
            check_array(table, ensure_all_finite="allow-nan", input_name="X")
        blocks.append(
            SimpleImputer(strategy="median", add_indicator=True).fit_transform(table)
        )
    if categories:
        encoder = OneHotEncoder(max_categories=_LEVELS, sparse_output=False)
        blocks.append(encoder.fit_transform(np.column_stack(categories)))
    if not blocks:
        raise ValueError("X must have a column of numbers or categories. Got none.")
    return np.hstack(blocks), notes
