"""Checks of columns, weights, groups and parameters, which need no estimator."""

import math
from contextlib import contextmanager
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, check_random_state, column_or_1d

RELATIONS = ("null", "add_remove", "replace")  # neighbouring relations


@contextmanager
def hidden_entries(name):
    """Context in which errors of conversions to numbers do not show an entry of the
    data."""
    try:
        yield
    except ValueError as error:
        first_line = str(error).partition("\n")[0]
        if first_line == "Complex data not supported":
            raise ValueError(f"{first_line}: {name} must hold real numbers.") from None
        if "could not convert string" in first_line:
            raise ValueError(f"{name} must hold numbers. Got strings.") from None
        raise


def one_column(values, name, warn=False):
    """The values as a 1D array; raises ValueError if they have more than one column."""
    shape = np.shape(values)
    if len(shape) > 1 and shape[1:] != (1,):
        raise ValueError(f"{name} must be one column. Got an array of shape {shape}.")
    with hidden_entries(name):
        return column_or_1d(values, warn=warn)


def refuse_dict(X, name="X"):
    """Raise TypeError if X is a dict of arrays: it has one entry per array, not per
    row."""
    if isinstance(X, dict) and not issparse(X):  # dok_array is a dict, too
        raise TypeError(
            f"{name} must have one entry per row, as an array or a frame has. Got a dict: pass its "
            "arrays as the columns of one array or frame, and split the columns in the estimator."
        )


def check_numbers(values, name, **options):
    """The values as a 1D float64 array; finite unless the options of `check_array`
    allow more."""
    with hidden_entries(name):
        values = check_array(
            values, ensure_2d=False, dtype=np.float64, input_name=name, **options
        )
    return one_column(values, name)


def check_weights(weights, name, n_rows, of="X"):
    """Weights of rows as float64: at least 0, and not all of them 0."""
    weights = check_numbers(weights, name)
    check_length(weights, name, n_rows, of)
    if weights.min() < 0 or weights.max() == 0:
        raise ValueError(
            f"{name} must be non-negative and not all zero. Got weights from {weights.min()} to "
            f"{weights.max()}."
        )
    return weights


def check_validation_weights(weights, n_points):
    """Validation weights as float64 with sum 1; None gives equal weights."""
    if weights is None:
        return np.full(n_points, 1.0 / n_points)
    weights = check_weights(weights, "sample_weight_val", n_points, of="X_val")
    largest = weights.max()
    if largest > np.finfo(np.float64).max / n_points:  # their sum may overflow
        weights = weights / largest
    return weights / weights.sum()


def check_length(values, name, n, of="X"):
    """Refuse values whose length is not ``n``."""
    if len(values) != n:
        raise ValueError(
            f"{name} must have one entry per row of {of} ({n}). Got {len(values)}."
        )


def check_names(names, what):
    """Return the sorted unique names and the code of every entry; refuses missing
    names."""
    names = one_column(names, what)
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise ValueError(f"{what} must not hold NaN or infinity.")
    try:
        missing = names.dtype == object and any(
            name is None or name != name for name in names
        )
        kinds, codes = np.unique(names, return_inverse=True)
    except TypeError:  # from pandas.NA, or from names that cannot be sorted
        missing = True
    if missing:
        raise ValueError(f"{what} must hold names of one kind, and no None, NaN or NA.")
    return kinds, codes


def check_groups(groups, n_rows):
    """Return the sorted groups and the code of every row; (None, None) without
    groups."""
    if groups is None:
        return None, None
    groups = one_column(groups, "groups")
    check_length(groups, "groups", n_rows)
    names, codes = check_names(groups, "groups")
    if len(names) < 2:
        raise ValueError(
            f"groups must name at least 2 groups. Got one: {names.tolist()[0]!r}."
        )
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
    return ", ".join(
        f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs
    )


def shown(labels, most=5):
    """Text of the first few labels, which may be scalars of numpy, as an array of
    objects has them.

    >>> shown([np.str_("no"), "yes"])
    "'no', 'yes'"
    """
    labels = [
        label.item() if isinstance(label, np.generic) else label for label in labels
    ]
    return ", ".join(map(repr, labels[:most])) + ", ..." * (len(labels) > most)


def _is_number(value):
    return (
        isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    )


def check_epsilon(epsilon, name="epsilon"):
    """Return epsilon as a float, or refuse it."""
    return check_positive(
        epsilon, name, " (smaller is more private, 1 is a common choice)"
    )


def check_delta(delta, name="delta"):
    """Return delta as a float, or refuse it."""
    if not _is_number(delta) or not 0 < delta < 1:
        raise ValueError(
            f"{name} must be strictly between 0 and 1, and well below one over the number of rows "
            f"(1e-5 is a common choice). Got {delta!r}."
        )
    return float(delta)


def check_positive(value, name, hint=""):
    """Return a finite positive number as a float, or refuse it."""
    if not _is_number(value) or value <= 0:
        raise ValueError(
            f"{name} must be a finite number above 0{hint}. Got {value!r}."
        )
    return float(value)


def check_count(value, name):
    """Return a positive integer as an int, or refuse it."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1. Got {value!r}.")
    return int(value)


def check_relation(relation, name="relation"):
    """Return the neighbouring relation, or refuse it."""
    if relation not in RELATIONS:
        raise ValueError(
            f"{name} must be one of {', '.join(RELATIONS)}. Got {relation!r}."
        )
    return relation
