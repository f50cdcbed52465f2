"""Linear models: steps of single rows from one fit, and compiled fits.

Files of compiled loops (``*_kernels``) import numba: they are imported where they are
called.
"""

from .status import FAILED, ONE_CLASS, SOLVED, UNSOLVED
from .utility_changes import (
    LOGISTIC,
    SOFTMAX,
    SQUARED,
    curvatures,
    gram,
    group_changes,
    group_steps,
    probabilities,
    row_steps,
    slopes,
    third_derivatives,
    turns,
    utility_changes,
)
