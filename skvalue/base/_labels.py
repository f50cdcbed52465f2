"""Labels of a private fit: the list of classes is public, the labels of the rows are not."""

import numpy as np
from sklearn.utils.validation import column_or_1d

from .._utils.checks import check_task, hidden_entries, label_codes


def public_classes(y_val):
    """The sorted classes of the validation labels, and their codes; an error if fewer than two."""
    with hidden_entries("y_val"):
        y_val = column_or_1d(y_val, warn=True)
    if check_task("auto", y_val, "y_val") != "classification":
        raise ValueError("Unknown label type: y_val must hold classes. Got continuous values.")
    classes, codes = np.unique(y_val, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "y_val must have at least 2 classes: a private fit takes the list of classes from it, "
            f"since the labels of the rows are private. Got one class: {classes.tolist()[0]!r}."
        )
    return classes, codes


def codes_or_other(y, classes):
    """Codes of labels; a label that is not in the classes has the code ``len(classes)``.

    >>> codes_or_other(np.array(["b", "z", "a"]), np.array(["a", "b"])).tolist()
    [1, 2, 0]
    """
    with hidden_entries("y"):
        y = column_or_1d(y)
    kinds = [("n" if part.dtype.kind in "biuf" else part.dtype.kind) for part in (y, classes)]
    if kinds[0] == kinds[1] != "O":
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        codes = np.where(classes[codes] == y, codes, len(classes))
    else:
        code_of = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.array([code_of.get(label, len(classes)) for label in y.tolist()])
    return codes.astype(np.min_scalar_type(len(classes)))


def codes_of_new_rows(y, classes, private):
    """Codes of the labels of new rows; an error for unknown labels, unless labels are private."""
    y = np.asarray(y)
    return codes_or_other(y, classes) if private else label_codes(y, classes, "y")
