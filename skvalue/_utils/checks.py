"""Checks of targets, weights, groups, splits and parameters that need no estimator."""

import math
from contextlib import contextmanager
from numbers import Integral, Real

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, LeaveOneOut, check_cv
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import type_of_target

from .sklearn import is_pandas_na, is_scalar_nan

DEFAULT_FOLDS = 5  # of the methods that do not leave out one row by default
RELATIONS = ("null", "add_remove", "replace")  # neighbouring relations


@contextmanager
def hidden_entries(name):
    """Context in which errors of conversions to numbers do not show an entry of the data."""
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
    """Raise TypeError if X is a dict of arrays: it has one entry per array, not per row."""
    if isinstance(X, dict) and not issparse(X):  # dok_array is a dict, too
        raise TypeError(
            f"{name} must have one entry per row, as an array or a frame has. Got a dict: pass its "
            "arrays as the columns of one array or frame, and split the columns in the estimator."
        )


def check_numbers(values, name, **options):
    """The values as a 1D float64 array; finite unless the options of `check_array` allow more."""
    with hidden_entries(name):
        values = check_array(values, ensure_2d=False, dtype=np.float64, input_name=name, **options)
    return column_or_1d(values)


def check_task(task, y, name="y"):
    """Return "classification" or "regression"; "auto" infers it from the type of the target."""
    kind = type_of_target(y, input_name=name)
    if kind.startswith("multilabel") or kind.endswith("multioutput") or kind == "unknown":
        got = f"objects that are not strings: convert them, for example with {name}.astype(int)"
        raise ValueError(
            f"Unknown label type: {name} must be one column of classes or numbers. "
            f"Got {got if kind == 'unknown' else repr(kind)}."
        )
    if task != "auto":
        if task == "classification" and kind == "continuous":
            raise ValueError(
                f"Unknown label type: {name} must hold classes when task='classification'. Got "
                "continuous values."
            )
        return task
    return "regression" if kind == "continuous" else "classification"


def task_of(task, estimator):
    """The task of a valuer that trains an estimator; "auto" without one.

    Raises ValueError for a classifier with task="regression".
    """
    if estimator is None or not (is_classifier(estimator) or is_regressor(estimator)):
        return task
    if task == "regression" and is_classifier(estimator):
        raise ValueError(
            f"estimator must be a regressor with task='regression'. Got {estimator!r}."
        )
    by_estimator = "regression" if is_regressor(estimator) else "classification"
    return by_estimator if task == "auto" else task


def may_be_regression(y):
    """Whether labels may be targets of a regression: many whole numbers, with gaps or few rows.

    >>> may_be_regression(np.arange(30)), may_be_regression(np.arange(100) % 25)
    (True, False)
    """
    y = np.asarray(y)
    if y.dtype.kind not in "iuf":
        return False
    if y.dtype.kind != "f" and len(y) and int(y.max()) - int(y.min()) < 20:
        return False  # at most 20 values, without counting them
    found = np.unique(y)
    few = len(y) < 4 * len(found)
    return len(found) > 20 and bool(few or found[-1] - found[0] > len(found) - 1)


def refuse_missing_labels(y, name="y"):
    """Refuse NaT, and None, NaN or NA in labels of dtype object, such as strings."""
    labels = np.asarray(y)
    if labels.dtype.kind not in "OMm" or labels.ndim != 1:
        return
    missing = np.isnat(labels) if labels.dtype != object else list(map(_is_missing, labels))
    if any(missing):
        place = int(np.argmax(missing))
        raise ValueError(
            f"{name} must hold no missing labels. Got {labels[place]!r} at place {place}."
        )


def _is_missing(label):
    if label is None or is_scalar_nan(label) or is_pandas_na(label):
        return True
    return str(label) == "NaT" and not isinstance(label, str)  # numpy's or pandas'


def check_numeric_target(y, name):
    """The target as a finite 1D float64 array."""
    y = one_column(y, name, warn=True)
    with hidden_entries(name):
        return check_array(y, ensure_2d=False, dtype=np.float64, input_name=name)


def check_target_scale(y, name):
    """The target as float64, small enough that sums of its fourth powers stay finite."""
    y = check_numeric_target(y, name)
    largest = np.abs(y).max()
    limit = (np.finfo(np.float64).max / (1024 * len(y))) ** 0.25
    if largest > limit:
        raise ValueError(
            f"{name} must be at most {limit:.0e} in absolute value, for squared errors and their "
            f"variances to be finite. Got {largest:g}: scale it."
        )
    return y


def encode_labels(y, y_val=None, cure="", new_classes=False):
    """Return the sorted classes of ``y``, and the codes of ``y`` and of ``y_val``.

    With ``new_classes``, labels of the same kind that only ``y_val`` has are classes as well.
    Raises ValueError if there is only one class, or ``y_val`` has any other label that is not in
    ``y``; ``cure`` is added to its message.
    """
    with hidden_entries("y"):
        classes, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    if new_classes and y_val is not None:
        every = np.union1d(classes, new_labels(y_val, classes, "y_val"))
        if len(every) > len(classes):
            classes, codes = every, np.searchsorted(every, classes)[codes]
    if len(classes) < 2:
        raise ValueError(
            f"y must have at least 2 classes. Got one class: {classes.tolist()[0]!r} "
            f"(n_samples={len(codes)})."
        )
    # Small integers keep the data of the compiled loops in the CPU cache.
    codes = codes.astype(np.min_scalar_type(len(classes) - 1))
    return classes, codes, None if y_val is None else label_codes(y_val, classes, "y_val", cure)


def new_labels(y, classes, name):
    """The labels of ``y`` that are not in ``classes``; none if they are no labels of that kind."""
    y = one_column(y, name, warn=True)
    refuse_missing_labels(y, name)
    kinds = {"n" if labels.dtype.kind in "biuf" else labels.dtype.kind for labels in (y, classes)}
    same_kind = len(kinds) == 1 or kinds == {"O", "U"}
    if y.dtype.kind == "f":
        same_kind &= bool(np.all(np.isfinite(y) & (y == np.floor(y))))
    elif y.dtype == object:
        same_kind &= all(isinstance(label, str) for label in y)
    return np.setdiff1d(y, classes) if same_kind else classes[:0]


def label_codes(y, classes, name, cure=""):
    """Codes of the labels ``y``; raises ValueError for a label that is not in ``classes``."""
    y = one_column(y, name, warn=True)
    refuse_missing_labels(y, name)
    try:
        codes = np.clip(np.searchsorted(classes, y), 0, len(classes) - 1)
        unseen = sorted(set(y[classes[codes] != y].tolist()))
    except TypeError:
        unseen = sorted({repr(label) for label in y} - {repr(label) for label in classes})
    if unseen:
        shown = ", ".join(map(repr, unseen[:5])) + (", ..." if len(unseen) > 5 else "")
        message = f"{name} must hold only labels that y has. Got unseen labels: {shown}."
        raise ValueError(message + cure * (classes.dtype.kind in "iuf"))
    return codes.astype(np.min_scalar_type(len(classes) - 1))


def check_validation_weights(weights, n_points):
    """Validation weights as float64 with sum 1; None gives equal weights."""
    if weights is None:
        return np.full(n_points, 1.0 / n_points)
    weights = raw_validation_weights(weights, n_points)
    if weights.max() == 0:
        raise ValueError("sample_weight_val must be non-negative with a positive sum. Got zeros.")
    weights = summable_weights(weights)
    return weights / weights.sum()


def summable_weights(weights):
    """The weights, divided by the largest if their sum may overflow."""
    largest = weights.max(initial=0.0)
    return weights / largest if largest > np.finfo(np.float64).max / len(weights) else weights


def raw_validation_weights(weights, n_points):
    """Validation weights as float64, not normalised; None gives ones."""
    if weights is None:
        return np.ones(n_points)
    weights = _check_weights(weights, "sample_weight_val")
    check_length(weights, "sample_weight_val", n_points, of="X_val")
    if weights.min() < 0:
        raise ValueError(
            "sample_weight_val must be non-negative with a positive sum. Got a minimum of "
            f"{weights.min()}."
        )
    return weights


def _check_weights(weights, name):
    weights = check_array(weights, ensure_2d=False, dtype=np.float64, input_name=name)
    return one_column(weights, name)


def check_length(values, name, n, of="X"):
    """Refuse values whose length is not ``n``."""
    if len(values) != n:
        raise ValueError(f"{name} must have one entry per row of {of} ({n}). Got {len(values)}.")


def check_sample_weight(weights, n_rows):
    """Sample weights of the rows as float64, or None."""
    if weights is None:
        return None
    weights = _check_weights(weights, "sample_weight")
    check_length(weights, "sample_weight", n_rows)
    if weights.min() < 0 or weights.max() == 0:
        raise ValueError(
            "sample_weight must not be negative, nor zero for all rows. Got weights from "
            f"{weights.min()} to {weights.max()}."
        )
    return weights


def check_names(names, what):
    """Return the sorted unique names and the code of every entry; refuses missing names."""
    names = one_column(names, what)
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise ValueError(f"{what} must not hold NaN or infinity.")
    try:
        missing = names.dtype == object and any(name is None or name != name for name in names)
        kinds, codes = np.unique(names, return_inverse=True)
    except TypeError:  # from pandas.NA, or from names that cannot be sorted
        missing = True
    if missing:
        raise ValueError(f"{what} must hold names of one kind, and no None, NaN or NA.")
    return kinds, codes


def check_groups(groups, n_rows):
    """Return the sorted groups and the code of every row; (None, None) without groups."""
    if groups is None:
        return None, None
    groups = one_column(groups, "groups")
    check_length(groups, "groups", n_rows)
    names, codes = check_names(groups, "groups")
    if len(names) < 2:
        raise ValueError(f"groups must name at least 2 groups. Got one: {names.tolist()[0]!r}.")
    return names, codes


def is_leave_one_out(cv):
    """Whether ``cv`` is "leave-one-out" or a LeaveOneOut splitter."""
    return (isinstance(cv, str) and cv == "leave-one-out") or isinstance(cv, LeaveOneOut)


def make_splits(cv, X, y, group_codes, classifier):
    """List the (players, held-out rows) splits of ``cv``.

    Raises ValueError unless each row is a player in equally many splits, and no row or group is on
    both sides of a split.
    """
    n = len(y)
    if is_leave_one_out(cv):
        cv = LeaveOneOut() if group_codes is None else LeaveOneGroupOut()
    elif group_codes is not None and isinstance(cv, Integral):
        few = cv == DEFAULT_FOLDS and 1 < len(np.unique(group_codes)) < cv
        cv = LeaveOneGroupOut() if few else GroupKFold(int(cv))
    cv = check_cv(cv, y, classifier=classifier)
    splits = [
        (np.sort(players), np.sort(held_out)) for players, held_out in cv.split(X, y, group_codes)
    ]
    plays = np.zeros(n, dtype=np.int64)
    for players, held_out in splits:
        if len(players) == 0 or len(held_out) == 0:
            raise ValueError(f"cv={cv!r} must give splits with at least one row on each side.")
        if np.intersect1d(players, held_out).size:
            raise ValueError(f"cv={cv!r} must not put a row on both sides of a split.")
        plays[players] += 1
        if group_codes is not None:
            both = np.intersect1d(group_codes[players], group_codes[held_out])
            if both.size:
                raise ValueError(
                    f"With groups, cv={cv!r} must keep every group on one side of a split: use "
                    "GroupKFold, LeaveOneGroupOut or an int."
                )
    if plays.min() != plays.max():
        raise ValueError(
            f"cv={cv!r} must let every row play equally often (KFold, StratifiedKFold, GroupKFold, "
            f"repeated K-fold, leave-one-out). Got rows that play {plays.min()} to {plays.max()} "
            "times."
        )
    return splits


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
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def check_epsilon(epsilon, name="epsilon"):
    """Return epsilon as a float, or refuse it."""
    if not _is_number(epsilon) or epsilon <= 0:
        raise ValueError(
            f"{name} must be a finite number above 0 (smaller is more private, 1 is a common "
            f"choice). Got {epsilon!r}."
        )
    return float(epsilon)


def check_delta(delta, name="delta"):
    """Return delta as a float, or refuse it."""
    if not _is_number(delta) or not 0 < delta < 1:
        raise ValueError(
            f"{name} must be strictly between 0 and 1, and well below one over the number of rows "
            f"(1e-5 is a common choice). Got {delta!r}."
        )
    return float(delta)


def check_positive(value, name):
    """Return a finite positive number as a float, or refuse it."""
    if not _is_number(value) or value <= 0:
        raise ValueError(f"{name} must be a finite number above 0. Got {value!r}.")
    return float(value)


def check_count(value, name):
    """Return a positive integer as an int, or refuse it."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1. Got {value!r}.")
    return int(value)


def check_relation(relation, name="relation"):
    """Return the neighbouring relation, or refuse it."""
    if relation not in RELATIONS:
        raise ValueError(f"{name} must be one of {', '.join(RELATIONS)}. Got {relation!r}.")
    return relation
