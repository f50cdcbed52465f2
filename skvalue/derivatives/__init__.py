"""Derivatives of trained models by the weights of their rows.

A trained linear model minimises ``sum_i w_i l_i(theta) + R(theta)``. The derivative of its
coefficients by the weight of row i is ``-H^-1 grad l_i``, with the Hessian H of the objective (Koh
and Liang 2017, Section 2.1); the derivative of a utility U is minus its gradient times that.
Any other model is a function of the steps of its training: `unrolled` goes back through them, runs
say what each row adds to the utility in its steps, and walks what players add that send clipped
gradients.
"""

from importlib import import_module

from ._changes import (
    block_size,
    changes_without,
    coefficients_without,
    corrected_steps,
    newton_steps,
    optimum_without,
    polish_optimum,
    row_products,
)
from ._errors import (
    AveragedReleases,
    HalvedMoments,
    denoised_means,
    pooled_variances,
    simulated_variances,
)
from ._hessian import Hessian
from ._joining import class_probabilities, joining_values, recorded_positions
from ._linear_rows import LinearRowModel
from ._models import LinearModel, linear_model, supports
from ._noise import (
    SCHEDULES,
    GradientNoise,
    gradient_event,
    gradient_report,
    is_named,
    newest_weights,
    step_noise_std,
)
from ._players import GradientModel, LinearGradientModel, gradients_at
from ._public import RATES, column_scales, public_directions, public_learning_rate, target_scale
from ._row_models import RowModel, Utility
from ._runs import Run, descend, point_values, public_run_rate, shuffled_batches, value_rows
from ._utilities import AccuracyGap, evaluate
from ._walk import Walk, needed_positions, walk_permutations, walk_steps, without_tails

__all__ = [
    "AccuracyGap",
    "Hessian",
    "LinearModel",
    "block_size",
    "changes_without",
    "coefficients_without",
    "corrected_steps",
    "evaluate",
    "linear_model",
    "newton_steps",
    "optimum_without",
    "polish_optimum",
    "row_products",
    "supports",
]


_WITH_TORCH = {  # their modules import torch
    "TorchGradientModel": "._torch_players",
    "TorchRowModel": "._torch_rows",
    "warn_of_dropout": "._torch_modules",
}


def __getattr__(name):
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WITH_TORCH[name], __name__), name)
