"""Probabilities of labels that a user passes: their columns, and their sums."""

import numpy as np
from sklearn.utils import check_array

from ..exceptions import ParameterError

_TOLERANCE = 1e-3  # of the sums of rows


def check_probabilities(pred_probs, n_rows, classes):
    """Probabilities (n_rows, n_classes) of the parameter `pred_probs`.

    Columns are in the order of the classes, or have their names in a frame.
    """
    places = _places_by_name(pred_probs, classes)
    probabilities = check_array(pred_probs, dtype=np.float64, input_name="pred_probs")
    if places is not None:
        probabilities = probabilities[:, places]
    if probabilities.shape != (n_rows, len(classes)):
        raise ParameterError(
            "pred_probs",
            f"must have a row for each of {n_rows} labels and a column for "
            f"each of {len(classes)} classes, in the order of {_shorten(classes)}. Got "
            f"shape {probabilities.shape}.",
        )
    sums_to_one = np.abs(probabilities.sum(axis=1) - 1) <= _TOLERANCE
    if probabilities.min() < 0 or not sums_to_one.all():
        raise ParameterError(
            "pred_probs", "must be probabilities: rows at least 0, of sum 1."
        )
    return probabilities


def _places_by_name(pred_probs, classes):
    """The column of each class in a frame whose columns have names, or None.

    Names are compared as text. Default names, by which pandas and polars number the
    columns, do not count.
    """
    names = getattr(pred_probs, "column_names", None)  # of a table of pyarrow
    if names is None:
        names = getattr(pred_probs, "columns", None)
    if names is None:
        return None
    names = list(names)
    numbers = list(range(len(names)))
    if names in (numbers, [f"column_{number}" for number in numbers]):
        return None
    names = list(map(_label_text, names))
    labels = list(map(_label_text, classes.tolist()))
    if sorted(names) != sorted(labels):
        raise ParameterError(
            "pred_probs",
            "must have a column for each label, of its name, since columns "
            f"of a frame are matched by name: {_shorten(labels)}. Got columns "
            f"{_shorten(names)}; pass an array whose columns are in this order of "
            "labels if the names mean something else.",
        )
    place_of_name = {name: place for place, name in enumerate(names)}
    return [place_of_name[label] for label in labels]


def _label_text(label):
    """A label, or the name of a column, as text: 1 and 1.0 are "1"."""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return str(label)


def _shorten(labels, limit=10):
    """The first labels, and how many more there are."""
    text = ", ".join(map(str, labels[:limit]))
    n_more = len(labels) - limit
    return f"{text} and {n_more} more" if n_more > 0 else text
