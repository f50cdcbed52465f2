"""Statistics and releases of a party."""

from ._party import FEW_ROWS
from ._statistics import (
    gram_size,
    gram_vector,
    gram_weights,
    linear_sensitivity,
    logistic_sensitivity,
    logistic_size,
    logistic_vector,
    moment_sensitivity,
    moment_size,
    moment_vector,
    moment_weight,
    split_logistic,
    to_fourth,
    to_gram,
)
from .parties import GramRelease, LogisticRelease, MeanRelease
from .release import Release
