"""Classes and codes of the labels of a fit, or its targets."""

import numpy as np
from sklearn.utils import check_array

from .._utils.checks import (
    exact_integers,
    format_values,
    one_column,
    redact_errors,
)
from .._utils.messages import Message
from .._utils.private_entries import private_entries
from .._utils.targets import (
    check_labels,
    check_target,
    check_task,
    codes_or_other,
    encode_labels,
    label_codes,
    refuse_other_kind,
)
from .._utils.warned import warn
from ..exceptions import ManyClassesWarning, ParameterError, UnseenLabelsWarning

_CURE = " If it holds targets of a regression, pass task='regression', or a regressor."
_MAX_CLASSES = 20  # that are taken for classes without a warning


def encode(capabilities, y, y_val, is_private):
    """Classes, and codes of y and y_val; None and the targets for a regression.

    In a private fit the validation points, which are public, say what the task and the
    classes are.
    """
    has_regression = capabilities.regression
    task = "auto"
    if has_regression:
        task = capabilities.task
    name = "y"
    labels = y
    if is_private:
        name = "y_val"
        labels = y_val
    task = check_task(task, labels, name)
    if task == "regression" and not has_regression:
        raise ValueError(
            f"Unknown label type: {name} must hold classes. Got continuous values."
        )
    if task == "regression":
        if y_val is not None:
            y_val = check_target(y_val, "y_val", capabilities.squares)
        if is_private:
            return None, private_target(y), y_val
        return None, check_target(y, "y", capabilities.squares), y_val

    if capabilities.task == "auto":
        warn_of_numbers(labels, name, has_regression)
    if is_private:
        return _encode_by_public_labels(y, y_val)
    cure = ""
    if has_regression:
        cure = _CURE
    classes, codes, codes_val = encode_labels(y, y_val, cure, capabilities.neighbors)
    if capabilities.neighbors and y_val is not None:
        is_seen = np.bincount(codes, minlength=len(classes)) > 0
        if not is_seen.all():
            _check_new_labels(classes, is_seen, codes_val)
    return classes, codes, codes_val


def _encode_by_public_labels(y, y_val):
    """Classes of the validation points, and codes of y and y_val; of a private fit."""
    y_val = one_column(y_val, "y_val", warn=True)
    classes, codes_val = np.unique(y_val, return_inverse=True)
    if len(classes) < 2:
        raise ParameterError(
            "y_val",
            "must have at least 2 classes: a private fit takes the list of "
            "classes from it, since the labels of the rows are private. Got one class: "
            f"{format_values(classes)}.",
        )
    y = one_column(y, "y")
    refuse_other_kind(y, classes, "y", "y_val")
    return classes, codes_or_other(y, classes), codes_val


def private_target(y):
    """Targets of private rows (n_samples,); NaN for those that are not finite.

    An error would reveal them; their gradients count as zero.
    """
    with redact_errors("y"):
        y = private_entries(y, "y")
        y = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False)
    return np.where(np.isfinite(y), y, np.nan)


def _check_new_labels(classes, is_seen, codes_val):
    """Refuse validation labels that no row has if all are such; else warn of them."""
    new = classes[~is_seen].tolist()
    old = classes[is_seen].tolist()
    if not is_seen[codes_val].any():
        raise ParameterError(
            "y_val",
            "must hold only labels that y has. Got unseen labels: "
            f"{format_values(new)}. Labels of y: {format_values(old)}.",
        )
    # A typing error is more probable than a class without rows.
    similar = {_plain_text(label): label for label in old}
    close = [similar[text] for text in map(_plain_text, new) if text in similar]
    hint = ""
    if close:
        hint = f" Up to case and spaces y has {format_values(close)}."
    problem = (
        "has labels that no row has, each a class of its own: "
        f"{format_values(new)}.{hint}"
    )
    warn(Message("y_val", problem), UnseenLabelsWarning)


def _plain_text(label):
    """The text of a label up to case and spaces."""
    return str(label).strip().casefold()


def warn_of_numbers(y, name="y", has_regression=True):
    """Warn of classes that may be targets of a regression: many whole numbers.

    Either they have gaps, or there are few rows of each.
    """
    y = np.asarray(y)
    if y.dtype.kind not in "iuf":
        return
    numbers = np.unique(y)
    n_numbers = len(numbers)
    if n_numbers <= _MAX_CLASSES:
        return
    have_few_rows = len(y) < 4 * n_numbers
    # Floats: the difference of small integers may overflow.
    have_gaps = float(numbers[-1]) - float(numbers[0]) > n_numbers - 1
    if not (have_few_rows or have_gaps):
        return
    problem = f"has {n_numbers} different whole numbers, which are taken for classes."
    tasks = [("task", "regression"), ("task", "classification")]
    message = Message(
        name, problem, "Pass {} for a regression, {} to keep the classes.", tasks
    )
    if not has_regression:
        advice = "For a regression use a valuer with {}, such as KNNShapleyValuer."
        message = Message(name, problem, advice, tasks[:1])
    warn(message, ManyClassesWarning)


def encode_later(problem, y, is_private):
    """Codes of the labels of later rows, or their targets."""
    if problem.classes is None:
        return check_target(y, "y")
    if is_private:
        return codes_or_other(exact_integers(y), problem.classes)
    y = check_labels(y)
    return label_codes(np.asarray(y), problem.classes, "y")
