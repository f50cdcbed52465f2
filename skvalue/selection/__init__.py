"""Drop rows, or lower their weights, by their values."""

from ._caps import capped_rows, label_caps
from ._classifier import ValueFilteredClassifier
from ._regressor import ValueFilteredRegressor
from ._row_filter import ValueFilter

__all__ = [
    "ValueFilter",
    "ValueFilteredClassifier",
    "ValueFilteredRegressor",
    "capped_rows",
    "label_caps",
]
