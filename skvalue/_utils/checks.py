"""Checks of columns, weights, groups and parameters."""

import math
from contextlib import contextmanager
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, check_random_state, column_or_1d, get_tags

from ..exceptions import ParameterError
from .containers import as_numpy

RELATIONS = ("null", "add_remove", "replace")  # neighbouring relations
MAX_EPSILON = 1e12  # above it, rounding decides what noise has an epsilon


@contextmanager
def redact_errors(name):
    """Context in which errors of conversions to numbers show no entry of the data."""
    try:
        yield
    except ValueError as error:
        first_line = str(error).partition("\n")[0]
        # What scikit-learn says below shows rows.
        if first_line.startswith("Expected 2D array, got"):
            raise ParameterError(
                name,
                f"must have two dimensions. {first_line.rstrip(':')}. Reshape your "
                f"data using {name}.reshape(-1, 1) if it has a single feature, or "
                f"{name}.reshape(1, -1) if it contains a single sample.",
            ) from None
        if first_line == "Complex data not supported":
            raise ValueError(f"{first_line}: {name} must hold real numbers.") from None
        if "could not convert string" in first_line:
            raise ParameterError(name, "must hold numbers. Got strings.") from None
        raise


def refuse_large(X, most, name, reason):
    """Refuse numbers that are too large, dense or sparse; the error names the column.

    ``reason`` continues "X must hold numbers of at most ... in absolute value".
    """
    sizes = abs(X)
    if sizes.size == 0:
        return
    # A float: the limit may be above the largest number of float32.
    largest = float(sizes.max())
    if largest > most:
        by_column = sizes.max(axis=0)
        if issparse(by_column):
            by_column = by_column.toarray()
        column = int(np.argmax(np.ravel(by_column)))
        raise ParameterError(
            name,
            f"must hold numbers of at most {most:g} in absolute value{reason}: "
            f"scale its columns. Got {largest:g} in column {column}.",
        )


def exact_integers(values):
    """Whole numbers of nullable and Arrow columns, and of lists, as integers.

    scikit-learn makes floats of them, in which numbers above 2**53 become equal. Whole
    numbers with missing entries become objects; all other values stay as they are.

    >>> exact_integers([2**64 - 1, -1])
    array([18446744073709551615, -1], dtype=object)
    """
    values = as_numpy(values)
    if isinstance(values, (list, tuple)):
        return _integers_of_list(values)
    if hasattr(values, "iloc") and np.ndim(values) == 2 and values.shape[1] == 1:
        column = exact_integers(values.iloc[:, 0])
        if hasattr(column, "iloc"):  # it is as it was
            return values
        return column[:, None]

    dtype = getattr(values, "dtype", None)
    # Categories may be of such a type, too.
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    is_nullable = getattr(dtype, "kind", "") in ("i", "u")
    if is_nullable and not isinstance(dtype, np.dtype):
        objects = np.asarray(values, dtype=object)
        if np.asarray(values.isna()).any():
            return objects
        return _smallest_integers(objects)
    if isinstance(values, np.ndarray) and values.dtype == np.uint64:
        return _smallest_integers(values)
    return values


def _integers_of_list(values):
    """An array of objects for a list of whole numbers that no type of numpy holds."""
    if not all(isinstance(value, Integral) for value in values):
        return values
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        return array
    return np.asarray(values, dtype=object)


def _smallest_integers(integers):
    """Whole numbers as int64 if they fit, to be compared with others of this type."""
    if len(integers) and max(integers) > np.iinfo(np.int64).max:
        return integers.astype(np.uint64)
    return integers.astype(np.int64)


def one_column(values, name, warn=False):
    """The values as a 1D array; raises ValueError if they have more than one column."""
    values = exact_integers(values)
    shape = np.shape(values)
    if len(shape) > 1 and shape[1:] != (1,):
        raise ParameterError(
            name, f"must be one column. Got an array of shape {shape}."
        )
    with redact_errors(name):
        return column_or_1d(values, warn=warn)


def refuse_dict(X, name="X"):
    """Raise TypeError if X is a dict of arrays, which has one entry per array."""
    if isinstance(X, dict) and not issparse(X):  # dok_array is a dict, too
        raise TypeError(
            f"{name} must have one entry per row, as an array or a frame has. Got a "
            "dict: pass its arrays as the columns of one array or frame, and split the "
            "columns in the estimator."
        )


def refuse_pairwise(estimator):
    """Refuse an estimator of distances, or of kernels, between the rows.

    Rows are selected alone: the columns of such an X would be those of all rows, and
    mean other rows than those that the estimator is fitted on.
    """
    if get_tags(estimator).input_tags.pairwise:
        raise ParameterError(
            "estimator",
            "must take rows, and not the distances or kernels between them, since it "
            f"is fitted on some of the rows. Got {estimator!r}: pass one that computes "
            "them from the columns of X.",
        )


def check_numbers(values, name, **options):
    """The values as a 1D float64 array.

    They are finite, unless the options, those of `check_array`, allow more.
    """
    with redact_errors(name):
        values = check_array(
            as_numpy(values),
            ensure_2d=False,
            dtype=np.float64,
            input_name=name,
            **options,
        )
    return one_column(values, name)


def check_weights(weights, name, n_rows, of="X"):
    """Weights of rows as float64: at least 0, and not all of them 0."""
    weights = check_numbers(weights, name)
    check_length(weights, name, n_rows, of)
    if weights.min() < 0 or weights.max() == 0:
        raise ParameterError(
            name,
            f"must be non-negative and not all zero. Got weights from "
            f"{weights.min()} to {weights.max()}.",
        )
    return weights


def check_validation_weights(weights, n_points):
    """Validation weights as float64 with sum 1; None gives equal weights."""
    if weights is None:
        return np.full(n_points, 1.0 / n_points)
    weights = check_weights(weights, "sample_weight_val", n_points, of="X_val")
    # Their sum may overflow.
    largest = weights.max()
    if largest > np.finfo(np.float64).max / n_points:
        weights = weights / largest
    return weights / weights.sum()


def check_length(values, name, n, of="X"):
    """Refuse values whose length is not ``n``, the number of rows of another input.

    ``of``: its name; "rows" are row numbers, of which each has an entry.
    """
    if len(values) != n:
        owner = "for each of the rows" if of == "rows" else f"per row of {of}"
        raise ParameterError(
            name, f"must have one entry {owner} ({n}). Got {len(values)}."
        )


def check_names(names, what):
    """The sorted unique names and the code of every entry; refuses missing names."""
    names = one_column(names, what)
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise ParameterError(what, "must not hold NaN or infinity.")
    try:
        has_missing = names.dtype.kind in "OmM" and any(map(_is_missing_name, names))
        unique, codes = np.unique(names, return_inverse=True)
    except TypeError:  # from pandas.NA, or from names that cannot be sorted
        has_missing = True
    if has_missing:
        raise ParameterError(
            what, "must hold names of one kind, and no None, NaN or NA."
        )
    return unique, codes


def _is_missing_name(name):
    return name is None or name != name  # NaN and NaT


def check_groups(groups, n_rows, fewest=2):
    """The sorted groups and the code of every row; (None, None) without groups.

    Fewer groups than ``fewest`` are refused.
    """
    if groups is None:
        return None, None
    groups = one_column(groups, "groups")
    check_length(groups, "groups", n_rows)
    names, codes = check_names(groups, "groups")
    if len(names) < fewest:
        got = f"one: {names.item()!r}" if len(names) else "none"
        raise ParameterError("groups", f"must name at least 2 groups. Got {got}.")
    return names, codes


def seed_of(random_state):
    """The integer seed of all random streams of a fit; a fresh one for None.

    It is below 2**32, the limit of scikit-learn's estimators.
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def as_ranges(numbers):
    """Ascending whole numbers as a text.

    >>> as_ranges([1, 2, 3, 7])
    '1 to 3, 7'
    """
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(_range_text(run) for run in runs)


def _range_text(run):
    """Text of consecutive numbers."""
    if len(run) == 1:
        return str(run[0])
    return f"{run[0]} to {run[-1]}"


def format_values(values, limit=5):
    """Text of the first few values of a list or an array of objects.

    They may be scalars of numpy, which are shown as Python's.

    >>> format_values([np.str_("no"), "yes"])
    "'no', 'yes'"
    """
    texts = []
    for value in values[:limit]:
        if isinstance(value, np.generic):
            value = value.item()
        texts.append(repr(value))
    if len(values) > limit:
        texts.append("...")
    return ", ".join(texts)


def _is_finite_number(value):
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def check_epsilon(epsilon, name="epsilon"):
    """Return epsilon as a float, or refuse it."""
    hint = " (smaller is more private, 1 is a common choice)"
    epsilon = check_positive(epsilon, name, hint)
    if epsilon > MAX_EPSILON:
        raise ParameterError(
            name,
            f"must be at most {MAX_EPSILON:g}: one that is above 20 protects nothing. "
            f"Got {epsilon!r}.",
        )
    return epsilon


def check_delta(delta, name="delta"):
    """Return delta as a float, or refuse it."""
    if not _is_finite_number(delta) or not 0 < delta < 1:
        raise ParameterError(
            name,
            f"must be strictly between 0 and 1, and well below one over the "
            f"number of rows (1e-5 is a common choice). Got {delta!r}.",
        )
    return float(delta)


def check_positive(value, name, hint=""):
    """Return a finite positive number as a float, or refuse it."""
    if not _is_finite_number(value) or value <= 0:
        raise ParameterError(
            name, f"must be a finite number above 0{hint}. Got {value!r}."
        )
    return float(value)


def check_count(value, name):
    """Return a positive integer as an int, or refuse it."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ParameterError(name, f"must be an integer of at least 1. Got {value!r}.")
    return int(value)


def check_relation(relation, name="relation"):
    """Return the neighbouring relation, or refuse it."""
    if relation not in RELATIONS:
        raise ParameterError(
            name, f"must be one of {', '.join(RELATIONS)}. Got {relation!r}."
        )
    return relation
