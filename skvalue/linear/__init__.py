"""Linear models: losses, Hessians, Newton steps, changes by single rows, compiled fits.

Compiled loops (``*_kernels``) are imported by the solvers that call them.
"""

from .columns import column_centers, column_scales
from .hessian import Hessian
from .losses import GAMMA, LOGISTIC, POISSON, SOFTMAX, SQUARED, Loss, probabilities
from .newton import (
    block_size,
    changes_without,
    corrected_steps,
    newton_steps,
    optimum_without,
    polish_optimum,
    row_products,
)
from .objective import LinearModel, linear_model, supports
from .row_effects import (
    Optimum,
    UtilityDerivatives,
    WeightedRows,
    gram,
    group_changes,
    group_steps,
    row_steps,
    third_derivatives,
    utility_changes,
)
from .status import FAILED, ONE_CLASS, SOLVED, UNSOLVED
