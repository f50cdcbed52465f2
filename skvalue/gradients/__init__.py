"""Clipped gradients of players, and what a model gains along them."""

from ._models import GradientModel, LinearGradientModel, gradients_at
from ._noise import (
    SCHEDULES,
    GradientNoise,
    gradient_event,
    gradient_report,
    optimal_fraction,
    own_fractions,
    step_noise_std,
)
from ._public import RATES, column_scales, public_directions, public_learning_rate, target_scale
from ._walk import walk_permutations, walk_steps

__all__ = [
    "RATES",
    "SCHEDULES",
    "GradientModel",
    "GradientNoise",
    "LinearGradientModel",
    "TorchGradientModel",
    "column_scales",
    "gradient_event",
    "gradient_report",
    "gradients_at",
    "optimal_fraction",
    "own_fractions",
    "public_directions",
    "public_learning_rate",
    "step_noise_std",
    "target_scale",
    "walk_permutations",
    "walk_steps",
]


def __getattr__(name):
    if name == "TorchGradientModel":  # it imports torch
        from ._torch import TorchGradientModel

        return TorchGradientModel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
