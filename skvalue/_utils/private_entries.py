"""Private rows, targets and labels whose entries are read one by one.

An entry of a private row must not be refused, nor decide how other entries are read:
both would tell of the row. What an array or a column says of all of its entries is
public, which is its type. A list has no type, and is read as an array of objects.
"""

import numbers
from contextlib import nullcontext

import numpy as np
from scipy import sparse

from ..exceptions import ParameterError
from .containers import as_numpy

_NUMBERS = "biuf"  # kinds of types of numpy
_NO_NUMBERS = (np.ndarray, np.datetime64, np.timedelta64)  # which `float` may take


def private_entries(X, name="X"):
    """Private rows or targets as numbers; entries that are none are NaN.

    Only entries of lists and of type object are looked at, each by itself. They are
    read as numbers, and so is text that `float` reads: a date, a complex number or
    another object is NaN, and whole numbers that no float holds are infinite. An array
    or columns of a type that has other entries than numbers are refused, whatever these
    are.

    Parameters
    ----------
    X : array-like
        The rows or targets, in any container.
    name : str, default="X"
        Their name in messages.

    Returns
    -------
    X : array-like
        An array of float64 for a list and an array of objects. A frame stays one, in
        which columns of objects are of float64. All else is returned as it is.

    Raises
    ------
    ValueError
        If an array or a column is of a type that has no numbers.

    Examples
    --------
    >>> entries = np.array([1, "a text", "2.5", 1j, None, 10**400], dtype=object)
    >>> private_entries(entries)
    array([1. , nan, 2.5, nan, nan, inf])
    """
    X = as_numpy(X)
    if isinstance(X, (list, tuple)):
        X = objects_of(X)
    if isinstance(X, np.ndarray):
        return _array_of_numbers(X, name)
    if sparse.issparse(X):
        return _sparse_numbers(X)
    library = type(X).__module__.partition(".")[0]
    if library == "pandas" and hasattr(X, "dtypes"):
        return _pandas_numbers(X, name)
    has_types = hasattr(X, "columns") or hasattr(X, "dtype")
    if library == "polars" and has_types:
        return _polars_numbers(X, name)
    return X


def private_labels(y):
    """Private labels; those of a list are an array of objects.

    One label would decide the type of all others: text makes texts of numbers.

    >>> private_labels([0, 1, "a text"])
    array([0, 1, 'a text'], dtype=object)
    """
    y = as_numpy(y)
    if not isinstance(y, (list, tuple)):
        return y
    labels = objects_of(y)
    if labels.ndim == 1:  # more dimensions are those of all labels
        for place, label in enumerate(y):
            labels[place] = _label_of(label)
    return labels


def objects_of(values):
    """The entries of a list as an array of objects.

    It has the dimensions that all elements of the list have, and at least one.

    >>> objects_of([[1, "a"], [2, 0.5]])
    array([[1, 'a'],
           [2, 0.5]], dtype=object)
    """
    try:
        return np.array(values, dtype=object)
    except ValueError:  # from arrays of unequal shapes
        objects = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            objects[place] = value
        return objects


def quiet_arithmetic(is_private=True):
    """Context in which private numbers may overflow and underflow.

    With ``np.seterr(all="raise")`` an error, and without it a warning, would tell of a
    row. Numbers that are not finite are looked for afterwards.

    >>> with np.errstate(all="raise"), quiet_arithmetic():
    ...     float(np.float64(1e-200) ** 2)
    0.0
    """
    if is_private:
        return np.errstate(all="ignore")
    return nullcontext()


def is_of_numbers(dtype):
    """Whether all entries of a type of numpy, pandas or Arrow are real numbers."""
    return getattr(dtype, "kind", "") in _NUMBERS


# Entries ------------------------------------------------------------------------------


def _number_of(entry):
    """A private entry as a float; NaN if it is no real number."""
    if isinstance(entry, float):
        return entry
    if isinstance(entry, _NO_NUMBERS):
        return np.nan
    if isinstance(entry, numbers.Complex) and not isinstance(entry, numbers.Real):
        return np.nan
    try:
        return float(entry)
    except OverflowError:
        if entry > 0:
            return np.inf
        return -np.inf
    except Exception:  # of an object of any class
        return np.nan


def _numbers_of(entries):
    """Private entries, in an iterable, as an array of float64."""
    return np.array([_number_of(entry) for entry in entries], dtype=np.float64)


def _label_of(label):
    """A label in a container of its own, as one of a column, as the label alone."""
    if isinstance(label, (list, tuple, np.ndarray)) and np.shape(label) == (1,):
        return label[0]
    return label


# Containers ---------------------------------------------------------------------------


def _array_of_numbers(X, name):
    if X.dtype == object:
        return _numbers_of(X.ravel()).reshape(X.shape)
    if X.dtype.kind in _NUMBERS + "c":  # scikit-learn refuses complex numbers
        return X
    # The name of a type of texts tells the length of the longest.
    words = {"U": "strings", "S": "bytes", "M": "dates", "m": "durations"}
    entries = words.get(X.dtype.kind, "other entries")
    raise ParameterError(name, f"must hold numbers. Got an array of {entries}.")


def _sparse_numbers(X):
    if X.dtype != object:
        return X
    X = sparse.csr_array(X)
    return sparse.csr_array((_numbers_of(X.data), X.indices, X.indptr), shape=X.shape)


def _pandas_numbers(X, name):
    """A frame or a series of pandas, with numbers in place of objects."""
    if np.ndim(X) == 1:
        if is_of_numbers(X.dtype):
            return X
        if not _holds_objects(X.dtype):
            raise ParameterError(name, f"must hold numbers. Got dtype {X.dtype}.")
        return type(X)(_numbers_of(X), index=X.index, name=X.name)

    columns = list(enumerate(X.dtypes))
    others = [place for place, dtype in columns if not is_of_numbers(dtype)]
    _refuse_columns(
        [str(X.columns[place]) for place, dtype in columns if _is_other(dtype)], name
    )
    if others:
        X = X.copy()
    for place in others:
        X.isetitem(place, _numbers_of(X.iloc[:, place]))
    return X


def _is_other(dtype):
    """Whether a type of pandas has neither numbers nor objects."""
    return not (is_of_numbers(dtype) or _holds_objects(dtype))


def _holds_objects(dtype):
    """Whether entries of a type of pandas are objects, of which some may be numbers."""
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return not _is_other(categories.dtype)
    is_decimal = str(dtype).startswith("decimal") and hasattr(dtype, "pyarrow_dtype")
    return dtype == np.dtype(object) or is_decimal


def _polars_numbers(X, name):
    """A frame or a series of polars, with numbers in place of objects."""
    is_series = np.ndim(X) == 1
    frame = X.to_frame() if is_series else X
    objects = []
    others = []
    for column, dtype in frame.schema.items():
        type_name = str(dtype)
        if type_name == "Object":
            objects.append(column)
        elif not (dtype.is_numeric() or type_name in ("Boolean", "Null")):
            others.append(column)
    _refuse_columns(others, name)
    for column in objects:
        place = frame.get_column_index(column)
        entries = type(frame[column])(column, _numbers_of(frame[column]))
        frame = frame.clone().replace_column(place, entries)
    return frame.to_series() if is_series else frame


def _refuse_columns(columns, name):
    """Refuse columns whose types have no numbers."""
    if columns:
        raise ParameterError(
            name,
            f"must hold numbers. Got columns of other types: {', '.join(columns[:5])}.",
        )
