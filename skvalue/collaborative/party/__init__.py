"""Statistics and releases of a party."""

from ._party import FEW_ROWS
from ._statistics import (
    gram_vector,
    linear_sensitivity,
    linear_size,
    logistic_sensitivity,
    logistic_vector,
    unpacked,
)
from .noisy_statistic import NoisyStatistic
from .parties import GramRelease, LogisticRelease, MeanRelease
