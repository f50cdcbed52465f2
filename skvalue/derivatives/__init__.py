"""Derivatives of trained models by the weights of their rows.

A trained linear model minimises ``sum_i w_i l_i(theta) + R(theta)``. The derivative of its
coefficients by the weight of row i is ``-H^-1 grad l_i``, with the Hessian H of the objective (Koh
and Liang 2017, Section 2.1); the derivative of a utility U is minus its gradient times that.
Any other model is a function of the steps of its training: `unrolled` goes back through them.
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
