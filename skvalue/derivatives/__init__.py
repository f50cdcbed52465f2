"""Derivatives of a trained linear model by the weights of its rows.

A trained model minimises ``sum_i w_i l_i(theta) + R(theta)``. The derivative of its coefficients by
the weight of row i is ``-H^-1 grad l_i``, with the Hessian H of the objective (Koh and Liang 2017,
Section 2.1); the derivative of a utility U is minus its gradient times that.
"""

from ._changes import (
    at_optimum,
    block_size,
    changes_without,
    coefficients_without,
    corrected_steps,
    newton_steps,
    optimum_without,
    row_products,
)
from ._hessian import Hessian
from ._models import LinearModel, linear_model, supports
from ._utilities import AccuracyGap, evaluate

__all__ = [
    "AccuracyGap",
    "Hessian",
    "LinearModel",
    "at_optimum",
    "block_size",
    "changes_without",
    "coefficients_without",
    "corrected_steps",
    "evaluate",
    "linear_model",
    "newton_steps",
    "optimum_without",
    "row_products",
    "supports",
]
