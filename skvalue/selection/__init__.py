"""Dropping or weighting rows by their values."""

from ._filter import ValueFilter
from ._filtered_classifier import ValueFilteredClassifier
from ._filtered_regressor import ValueFilteredRegressor

__all__ = ["ValueFilter", "ValueFilteredClassifier", "ValueFilteredRegressor"]
