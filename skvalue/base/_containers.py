"""Rows in any container that an estimator takes: arrays, frames, sparse rows, texts."""

import sys

import numpy as np
from scipy import sparse

from .._utils.sklearn import safe_indexing
from ..neighbors import Rows, concatenate_rows


def n_rows_of(X):
    """Number of rows, also of a sparse matrix."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def rows_at(X, rows):
    """Rows at some positions, in the same container.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows in any container: an array, a frame, a sparse matrix, a list of texts.
    rows : slice or ndarray of int
        The positions. A slice of an array is a view.

    Returns
    -------
    rows : array-like of shape (n_rows, n_features)
        The rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.base import rows_at
    >>> rows_at(["a text", "b", "c"], np.array([2, 0]))
    ['c', 'a text']
    """
    if isinstance(X, (np.ndarray, Rows)):
        return X[rows]
    return safe_indexing(X, rows)


def is_frame(X):
    """Whether X is a data frame."""
    return hasattr(X, "columns")


def is_numeric(X):
    """Whether X is an array of numbers."""
    return isinstance(X, np.ndarray) and X.dtype.kind in "biufc"


def is_plain(X):
    """Whether X is a 2D array of finite numbers."""
    return is_numeric(X) and X.ndim == 2 and bool(np.isfinite(X).all())


def as_indexable(X):
    """X in a container that an estimator takes, and that can be indexed by rows.

    Frames stay frames and sparse matrices become CSR. All else becomes an array: of
    numbers, or of objects, in one dimension for texts.

    >>> as_indexable([[1, 2], [3, 4]]).dtype.kind, as_indexable(["a text", "b"]).shape
    ('i', (2,))
    """
    if is_frame(X):
        return X
    if sparse.issparse(X):
        return X.tocsr()
    # An array of texts would have the width of the longest for each.
    is_list = isinstance(X, (list, tuple)) and len(X)
    if is_list and isinstance(X[0], (str, bytes, dict)):
        return np.asarray(X, dtype=object)
    try:
        array = np.asarray(X)
    except ValueError:  # from rows of unequal lengths
        return np.fromiter(X, dtype=object, count=len(X))
    if array.dtype.kind in "US":
        return np.asarray(X, dtype=object)
    return array


def holds_strings(X):
    """Whether an array has strings, or one object per row, such as a text."""
    if X.dtype.kind != "O" or X.ndim == 0:
        return X.dtype.kind not in "biufcO"
    return X.ndim == 1 or any(isinstance(entry, (str, bytes)) for entry in X.flat)


def container_in_words(X):
    """The container in words, for messages."""
    if is_frame(X):
        return f"a {type(X).__module__.split('.')[0]} frame"
    if sparse.issparse(X):
        return "a sparse matrix"
    if is_numeric(X):
        return "an array of numbers"
    if X.ndim == 1:
        return "one text or object per row"
    return "an array of objects"


def stack_rows(first, second):
    """The rows of two containers of the same kind, one below the other."""
    if sparse.issparse(first):
        return sparse.vstack([first, second], format="csr")
    if hasattr(first, "iloc"):
        return sys.modules["pandas"].concat([first, second], ignore_index=True)
    if is_frame(first):
        return first.vstack(second)
    return concatenate_rows(first, second)
