"""Derivatives of trained models by the weights of their rows.

A trained linear model minimises ``sum_i w_i l_i(theta) + R(theta)``. The derivative of its
coefficients by the weight of row i is ``-H^-1 grad l_i``, with the Hessian H of the objective (Koh
and Liang 2017, Section 2.1); the derivative of a utility U is minus its gradient times that.
Any other model is a function of the steps of its training, through which derivatives go back.
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
from ._linear_losses import LinearLosses
from ._models import LinearModel, linear_model, supports
from ._optimizers import OPTIMIZERS, SCHEDULES, Optimizer
from ._unrolled import draw_batches, train, unrolled_derivatives
from ._utilities import AccuracyGap, evaluate

__all__ = [
    "OPTIMIZERS",
    "SCHEDULES",
    "AccuracyGap",
    "Hessian",
    "LinearLosses",
    "LinearModel",
    "Optimizer",
    "TorchLosses",
    "at_optimum",
    "block_size",
    "changes_without",
    "coefficients_without",
    "corrected_steps",
    "draw_batches",
    "evaluate",
    "linear_model",
    "newton_steps",
    "optimum_without",
    "row_products",
    "supports",
    "train",
    "unrolled_derivatives",
]


def __getattr__(name):
    if name == "TorchLosses":  # its module imports torch
        from ._torch import TorchLosses

        return TorchLosses
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
