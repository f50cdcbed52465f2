"""Statistics and releases of a party."""

from ._party import MIN_NORMAL_ROWS
from ._statistics import (
    SUMS,
    gram_vector,
    linear_sensitivity,
    linear_size,
    logistic_sensitivity,
    logistic_vector,
    size_of_statistic,
    unpack_gram,
    unpack_grams,
)
from .named_release import (
    MAX_RELEASE_SIZE,
    NamedRelease,
    check_fingerprint,
    check_party,
)
from .noisy_statistic import NoisyStatistic
from .parties import GramRelease, LogisticRelease, MeanRelease
