"""Classes and codes of the labels of a fit, or targets; labels of a private fit are
private."""

import numpy as np
from sklearn.utils.validation import column_or_1d

from .._utils.checks import hidden_entries, shown
from .._utils.targets import (
    check_target,
    check_task,
    encode_labels,
    label_codes,
    refuse_missing_labels,
)
from .._utils.warned import warn
from ..exceptions import ManyClassesWarning, UnseenLabelsWarning

_CURE = " If it holds targets of a regression, pass task='regression', or a regressor."


def encode(capabilities, y, y_val, private):
    """Classes, and codes of y and y_val; None and the targets for a regression.

    In a private fit the validation points, which are public, say what the task and the
    classes are.
    """
    given, name = (y_val, "y_val") if private else (y, "y")
    has_regression = capabilities.regression
    task = check_task(capabilities.task if has_regression else "auto", given, name)
    if task == "regression" and not has_regression:
        raise ValueError(
            f"Unknown label type: {name} must hold classes. Got continuous values."
        )
    if task == "regression":
        if y_val is not None:
            y_val = check_target(y_val, "y_val", capabilities.squares)
        return None, check_target(y, "y", capabilities.squares), y_val
    if capabilities.task == "auto":
        warn_of_numbers(given, name, has_regression)
    if not private:
        encoded = encode_labels(
            y, y_val, _CURE * has_regression, capabilities.neighbors
        )
        if capabilities.neighbors and y_val is not None:
            classes, codes, codes_val = encoded
            seen = np.bincount(codes, minlength=len(classes)) > 0
            if not seen.all():
                _check_new(classes, seen, codes_val)
        return encoded
    with hidden_entries("y_val"):
        classes, codes_val = np.unique(
            column_or_1d(y_val, warn=True), return_inverse=True
        )
    if len(classes) < 2:
        raise ValueError(
            "y_val must have at least 2 classes: a private fit takes the list of classes from it, "
            f"since the labels of the rows are private. Got one class: {shown(classes)}."
        )
    return classes, codes_or_other(y, classes), codes_val


def _check_new(classes, seen, codes_val):
    """Refuse validation labels that no row has if all are such; else warn of them."""
    new, old = classes[~seen].tolist(), classes[seen].tolist()
    if not seen[codes_val].any():
        raise ValueError(
            f"y_val must hold only labels that y has. Got unseen labels: {shown(new)}. Labels of "
            f"y: {shown(old)}."
        )
    names = {str(label).strip().casefold(): label for label in old}
    close = [
        names[key] for label in new if (key := str(label).strip().casefold()) in names
    ]
    hint = f" Up to case and spaces y has {shown(close)}." if close else ""
    warn(
        f"y_val has labels that no row has, each a class of its own: {shown(new)}.{hint}",
        UnseenLabelsWarning,
    )


def warn_of_numbers(y, name="y", has_regression=True):
    """Warn of classes that may be targets of a regression: many whole numbers.

    Either they have gaps, or there are few rows of each.
    """
    y = np.asarray(y)
    if y.dtype.kind not in "iuf":
        return
    found = np.unique(y)
    few = len(y) < 4 * len(found)
    if len(found) > 20 and (few or found[-1] - found[0] > len(found) - 1):
        cure = "Pass task='regression' for a regression, task='classification' to keep the classes."
        if not has_regression:
            cure = "For a regression use a valuer with task='regression', such as KNNShapleyValuer."
        warn(
            f"{name} has {len(found)} different whole numbers, which are taken for classes. {cure}",
            ManyClassesWarning,
        )


def codes_or_other(y, classes):
    """Codes of labels; a label that is not in the classes has the code
    ``len(classes)``.

    >>> codes_or_other(np.array(["b", "z", "a"]), np.array(["a", "b"])).tolist()
    [1, 2, 0]
    """
    with hidden_entries("y"):
        y = column_or_1d(y)
    kinds = [
        ("n" if part.dtype.kind in "biuf" else part.dtype.kind) for part in (y, classes)
    ]
    if kinds[0] == kinds[1] != "O":
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        codes = np.where(classes[codes] == y, codes, len(classes))
    else:
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.array([code_of.get(label, len(classes)) for label in y.tolist()])
    return codes.astype(np.min_scalar_type(len(classes)))


def encode_later(problem, y, private):
    """Codes of the labels of later rows, or their targets."""
    if problem.classes is None:
        return check_target(y, "y")
    if private:
        return codes_or_other(np.asarray(y), problem.classes)
    refuse_missing_labels(y)
    return label_codes(np.asarray(y), problem.classes, "y")
