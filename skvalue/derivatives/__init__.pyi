"""Derivatives of trained models by the weights of their rows."""

from ..linear import Hessian as Hessian
from ..linear import LinearModel as LinearModel
from ..linear import block_size as block_size
from ..linear import changes_without as changes_without
from ..linear import corrected_steps as corrected_steps
from ..linear import linear_model as linear_model
from ..linear import newton_steps as newton_steps
from ..linear import optimum_without as optimum_without
from ..linear import polish_optimum as polish_optimum
from ..linear import row_products as row_products
from ..linear import supports as supports
from ._errors import (
    AveragedReleases,
    HalvedMoments,
    denoised_means,
    noise_squares,
    pooled_variances,
    simulated_squares,
)
from ._joining import class_probabilities, joining_values, recorded_positions
from ._linear_rows import LinearRowModel
from ._noise import (
    SCHEDULES,
    GradientNoise,
    gradient_event,
    gradient_report,
    is_named,
    newest_weights,
    optimal_weights,
    step_noise_std,
)
from ._players import GradientModel, LinearGradientModel, gradients_at
from ._public import (
    RATES,
    column_scales,
    public_directions,
    public_learning_rate,
    smallest_rate,
    target_scale,
    utilities_of_rates,
)
from ._row_models import RowModel, Utility
from ._runs import (
    Run,
    descend,
    point_values,
    public_run_rate,
    shuffled_batches,
    value_rows,
)
from ._torch_modules import warn_of_dropout
from ._torch_players import TorchGradientModel
from ._torch_rows import TorchRowModel
from ._utilities import AccuracyGap as AccuracyGap
from ._utilities import evaluate as evaluate
from ._walk import Walk, needed_positions, walk_permutations, without_tails
