"""Targets: the task, missing labels, and classes and codes of labels."""

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_array
from sklearn.utils.multiclass import type_of_target

from ..exceptions import ParameterError
from .checks import exact_integers, format_values, one_column, redact_errors
from .parallel import tiles
from .sklearn import is_pandas_na, is_scalar_nan

# Labels whose codes are searched at a time.
_LABELS_AT_ONCE = 2**16


def check_task(task, y, name="y"):
    """The task, "classification" or "regression"; "auto" infers it from the target."""
    # Targets above 2^63 are compared with integers, of which numpy would warn.
    with np.errstate(invalid="ignore"):
        kind = type_of_target(y, input_name=name)
    rule = f"Unknown label type: {name} must be one column of classes or numbers."
    if kind == "unknown":
        raise ValueError(
            f"{rule} Got objects that are not strings: convert them, for example with "
            f"{name}.astype(int)."
        )
    if kind.startswith("multilabel") or kind.endswith("multioutput"):
        raise ValueError(f"{rule} Got {kind!r}.")
    if task == "classification" and kind == "continuous":
        raise ValueError(
            f"Unknown label type: {name} must hold classes when task='classification'. "
            "Got continuous values."
        )
    if task != "auto":
        return task
    if kind == "continuous":
        return "regression"
    return "classification"


def task_of(task, estimator):
    """The task of a valuer that trains an estimator; "auto" without one.

    Raises ValueError for a classifier with task="regression".
    """
    if estimator is None or not (is_classifier(estimator) or is_regressor(estimator)):
        return task
    if task == "regression" and is_classifier(estimator):
        raise ParameterError(
            "estimator",
            f"must be a regressor with task='regression'. Got {estimator!r}.",
        )
    if task != "auto":
        return task
    if is_regressor(estimator):
        return "regression"
    return "classification"


def check_labels(y, name="y"):
    """The labels, whole numbers as integers; refuses missing and mixed ones."""
    if y is None:
        return y
    y = exact_integers(y)
    refuse_missing_labels(y, name)
    labels = np.asarray(y)
    if labels.dtype == object and labels.ndim == 1:
        _refuse_mixed_labels(labels, name)
    return y


def _refuse_mixed_labels(labels, name):
    """Refuse labels of several types that have no order, such as "a" and 1."""
    types = {type(label).__name__ for label in labels}
    if len(types) < 2:
        return
    try:
        np.unique(labels)
    except TypeError:
        raise ValueError(
            f"Unknown label type: {name} must hold labels of one type, which can be "
            f"sorted. Got {' and '.join(sorted(types))}: convert them, for example "
            f"with {name}.astype(str)."
        ) from None


def refuse_missing_labels(y, name="y"):
    """Refuse NaT, and None, NaN or NA in labels of dtype object, such as strings."""
    labels = np.asarray(y)
    if labels.dtype.kind not in "OMm" or labels.ndim != 1:
        return
    if labels.dtype == object:
        is_missing = [_is_missing(label) for label in labels]
    else:
        is_missing = np.isnat(labels)
    if any(is_missing):
        place = int(np.argmax(is_missing))
        raise ParameterError(
            name,
            f"must hold no missing labels. Got {labels[place]!r} at place {place}.",
        )


def _is_missing(label):
    """Whether a label is None, NaN, NA or NaT."""
    if label is None or is_scalar_nan(label) or is_pandas_na(label):
        return True
    return str(label) == "NaT" and not isinstance(label, str)  # numpy's or pandas'


def check_target(y, name, squares=True):
    """The target of a regression as a finite 1D float64 array.

    With ``squares`` it must be small enough that sums of its fourth powers stay finite.
    """
    y = one_column(y, name, warn=True)
    with redact_errors(name):
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name=name)
    limit = (np.finfo(np.float64).max / (1024 * len(y))) ** 0.25
    if squares and np.abs(y).max() > limit:
        raise ParameterError(
            name,
            f"must be at most {limit:.0e} in absolute value, for squared errors "
            f"and their variances to be finite. Got {np.abs(y).max():g}: scale it.",
        )
    return y


def encode_labels(y, y_val=None, cure="", new_classes=False):
    """The sorted classes of ``y``, and the codes of ``y`` and of ``y_val``.

    With ``new_classes``, labels of the same kind that only ``y_val`` has are classes as
    well. Raises ValueError if there is only one class, or ``y_val`` has any other label
    that is not in ``y``; ``cure`` is added to its message.
    """
    classes, codes = np.unique(one_column(y, "y", warn=True), return_inverse=True)
    codes_val = None
    unseen = ()
    if y_val is not None:
        y_val = one_column(y_val, "y_val", warn=True)
        codes_val, unseen = _look_up(y_val, classes)
        if new_classes and len(unseen) and _are_alike(y_val, classes):
            all_classes = np.union1d(classes, unseen)
            codes = np.searchsorted(all_classes, classes)[codes]
            codes_val = np.searchsorted(all_classes, y_val)
            classes = all_classes
            unseen = ()

    if len(classes) < 2:
        raise ParameterError(
            "y",
            f"must have at least 2 classes. Got one class: {format_values(classes)} "
            f"(n_samples={len(codes)}).",
        )
    if len(unseen):
        if classes.dtype.kind not in "iuf":
            cure = ""  # which is for numbers
        raise _unseen_labels_error(unseen, "y_val", cure)
    # Small integers keep the data of the compiled loops in the CPU cache.
    dtype = np.min_scalar_type(len(classes) - 1)
    if codes_val is not None:
        codes_val = codes_val.astype(dtype)
    return classes, codes.astype(dtype), codes_val


def label_codes(y, classes, name, cure=""):
    """Codes of the labels ``y``; refuses a label that is not in ``classes``."""
    codes, unseen = _look_up(one_column(y, name, warn=True), classes)
    if len(unseen):
        raise _unseen_labels_error(unseen, name, cure)
    return codes.astype(np.min_scalar_type(len(classes) - 1))


def codes_or_other(y, classes):
    """Codes of labels; a label that is no class has the code ``len(classes)``.

    A label that is no label, such as a list or a missing entry, is no class.

    >>> codes_or_other(np.array(["b", "z", "a"]), np.array(["a", "b"])).tolist()
    [1, 2, 0]
    """
    y = one_column(y, "y")
    dtype = np.min_scalar_type(len(classes))
    # Arrays of objects, and numbers among strings, cannot be searched.
    if label_kind(y) == label_kind(classes) != "O":
        codes = np.empty(len(y), dtype)
        # Of all labels at once, 64-bit codes would not stay in the cache.
        for rows in tiles(len(y), _LABELS_AT_ONCE):
            labels = y[rows]
            places = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
            is_class = classes[places] == labels
            codes[rows] = np.where(is_class, places, len(classes))
        return codes
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([_code_or_other(label, code_of) for label in y.tolist()])
    return codes.astype(dtype)


def _code_or_other(label, code_of):
    """The code of a label, or the number of classes; a list has no hash."""
    try:
        return code_of.get(label, len(code_of))
    except TypeError:
        return len(code_of)


def _look_up(y, classes):
    """Codes of labels, and the labels that are not in ``classes``.

    The codes of the latter mean nothing.
    """
    try:
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        return codes, sorted(set(y[classes[codes] != y].tolist()))
    except TypeError:  # numbers and strings
        return np.zeros(len(y), dtype=np.intp), sorted(set(y.tolist()), key=repr)


def _are_alike(y, classes):
    """Whether labels are of the kind of the classes: new ones may be classes, too."""
    if y.dtype.kind == "f" and not np.all(np.isfinite(y) & (y == np.floor(y))):
        return False
    if y.dtype == object and not all(isinstance(label, str) for label in y):
        return False
    kinds = {label_kind(y), label_kind(classes)}
    return len(kinds) == 1 or kinds == {"O", "U"}


def label_kind(labels):
    """The kind of an array's dtype, with one letter for all numbers."""
    kind = labels.dtype.kind
    if kind in "biuf":
        return "n"
    return kind


def refuse_other_kind(y, classes, name, of):
    """Refuse private labels that are strings where classes are numbers, or reversed.

    None of them would be a class. What an array or a column holds is public; objects
    may be of either kind.
    """
    kinds = {
        "n": "numbers",
        "U": "strings",
        "S": "bytes",
        "M": "dates",
        "m": "durations",
        "c": "complex numbers",
    }
    kind = label_kind(y)
    expected = label_kind(classes)
    if kind != expected and kind in kinds and expected in kinds:
        raise ParameterError(
            name,
            f"must hold labels of the type of {of}, {kinds[expected]}. Got "
            f"{kinds[kind]}.",
        )


def _unseen_labels_error(unseen, name, cure=""):
    # Labels of later rows are also called y.
    known = "the y of fit" if name == "y" else "y"
    return ValueError(
        f"{name} must hold only labels that {known} has. Got unseen labels: "
        f"{format_values(unseen)}.{cure}"
    )
