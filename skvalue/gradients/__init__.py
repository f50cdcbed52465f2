"""Clipped gradients of players, and utilities of the models trained along them."""

from ._errors import (
    AveragedReleases,
    HalvedMoments,
    denoised_means,
    pooled_variances,
    simulated_variances,
)
from ._joining import class_probabilities, joining_values, recorded_positions
from ._models import GradientModel, LinearGradientModel, gradients_at
from ._noise import (
    SCHEDULES,
    GradientNoise,
    gradient_event,
    gradient_report,
    is_named,
    newest_weights,
    step_noise_std,
)
from ._public import RATES, column_scales, public_directions, public_learning_rate, target_scale
from ._runs import (
    LinearRunModel,
    Run,
    RunModel,
    descend,
    point_values,
    public_run_rate,
    shuffled_batches,
    value_rows,
)
from ._walk import Walk, needed_positions, walk_permutations, walk_steps, without_tails


def __getattr__(name):
    if name == "TorchGradientModel":  # its module imports torch
        from ._torch import TorchGradientModel

        return TorchGradientModel
    if name == "TorchRunModel":
        from ._torch_runs import TorchRunModel

        return TorchRunModel
    if name == "warn_of_dropout":
        from .._utils.torch_modules import warn_of_dropout

        return warn_of_dropout
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
