"""Targets: the task, missing labels, and classes and codes of labels."""

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import type_of_target

from .checks import hidden_entries, one_column, shown
from .sklearn import is_pandas_na, is_scalar_nan


def check_task(task, y, name="y"):
    """Return "classification" or "regression"; "auto" infers it from the type of the
    target."""
    kind = type_of_target(y, input_name=name)
    if (
        kind.startswith("multilabel")
        or kind.endswith("multioutput")
        or kind == "unknown"
    ):
        got = f"objects that are not strings: convert them, for example with {name}.astype(int)"
        raise ValueError(
            f"Unknown label type: {name} must be one column of classes or numbers. "
            f"Got {got if kind == 'unknown' else repr(kind)}."
        )
    if task == "classification" and kind == "continuous":
        raise ValueError(
            f"Unknown label type: {name} must hold classes when task='classification'. Got "
            "continuous values."
        )
    if task != "auto":
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


def refuse_missing_labels(y, name="y"):
    """Refuse NaT, and None, NaN or NA in labels of dtype object, such as strings."""
    labels = np.asarray(y)
    if labels.dtype.kind not in "OMm" or labels.ndim != 1:
        return
    missing = (
        np.isnat(labels) if labels.dtype != object else list(map(_is_missing, labels))
    )
    if any(missing):
        place = int(np.argmax(missing))
        raise ValueError(
            f"{name} must hold no missing labels. Got {labels[place]!r} at place {place}."
        )


def _is_missing(label):
    if label is None or is_scalar_nan(label) or is_pandas_na(label):
        return True
    return str(label) == "NaT" and not isinstance(label, str)  # numpy's or pandas'


def check_target(y, name, squares=True):
    """The target of a regression as a finite 1D float64 array.

    With ``squares`` it must be small enough that sums of its fourth powers stay finite.
    """
    y = one_column(y, name, warn=True)
    with hidden_entries(name):
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name=name)
    limit = (np.finfo(np.float64).max / (1024 * len(y))) ** 0.25
    if squares and np.abs(y).max() > limit:
        raise ValueError(
            f"{name} must be at most {limit:.0e} in absolute value, for squared errors and their "
            f"variances to be finite. Got {np.abs(y).max():g}: scale it."
        )
    return y


def encode_labels(y, y_val=None, cure="", new_classes=False):
    """Return the sorted classes of ``y``, and the codes of ``y`` and of ``y_val``.

    With ``new_classes``, labels of the same kind that only ``y_val`` has are classes as
    well. Raises ValueError if there is only one class, or ``y_val`` has any other label
    that is not in ``y``; ``cure`` is added to its message.
    """
    with hidden_entries("y"):
        classes, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    codes_val, unseen = None, ()
    if y_val is not None:
        y_val = one_column(y_val, "y_val", warn=True)
        codes_val, unseen = _look_up(y_val, classes)
        if new_classes and len(unseen) and _are_alike(y_val, classes):
            every = np.union1d(classes, unseen)
            codes, codes_val = (
                np.searchsorted(every, classes)[codes],
                np.searchsorted(every, y_val),
            )
            classes, unseen = every, ()
    if len(classes) < 2:
        raise ValueError(
            f"y must have at least 2 classes. Got one class: {shown(classes)} "
            f"(n_samples={len(codes)})."
        )
    if len(unseen):
        raise _of_unseen(unseen, "y_val", cure * (classes.dtype.kind in "iuf"))
    # Small integers keep the data of the compiled loops in the CPU cache.
    small = np.min_scalar_type(len(classes) - 1)
    return (
        classes,
        codes.astype(small),
        None if y_val is None else codes_val.astype(small),
    )


def label_codes(y, classes, name, cure=""):
    """Codes of the labels ``y``; raises ValueError for a label that is not in
    ``classes``."""
    codes, unseen = _look_up(one_column(y, name, warn=True), classes)
    if len(unseen):
        raise _of_unseen(unseen, name, cure)
    return codes.astype(np.min_scalar_type(len(classes) - 1))


def _look_up(y, classes):
    """Codes of labels, and the labels that are not in ``classes``, whose codes mean
    nothing."""
    try:
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        return codes, sorted(set(y[classes[codes] != y].tolist()))
    except TypeError:  # numbers and strings
        return np.zeros(len(y), dtype=np.intp), sorted(set(y.tolist()), key=repr)


def _are_alike(y, classes):
    """Whether labels are of the kind of the classes, so that new ones may be classes,
    too."""
    kinds = {
        "n" if labels.dtype.kind in "biuf" else labels.dtype.kind
        for labels in (y, classes)
    }
    if y.dtype.kind == "f" and not np.all(np.isfinite(y) & (y == np.floor(y))):
        return False
    if y.dtype == object and not all(isinstance(label, str) for label in y):
        return False
    return len(kinds) == 1 or kinds == {"O", "U"}


def _of_unseen(unseen, name, cure=""):
    return ValueError(
        f"{name} must hold only labels that y has. Got unseen labels: {shown(unseen)}.{cure}"
    )
