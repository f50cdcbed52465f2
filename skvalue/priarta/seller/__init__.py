"""Summaries and releases of a seller."""

from .command_line import add_seller_command, add_seller_steps
from .mechanism import (
    COUNT_WEIGHT,
    MAX_ROWS,
    N_RADIUS_COUNTS,
    Moments,
    Noise,
    exact_moments,
    half_surplus,
    isotropic_statistic,
    moment_statistic,
    n_radius_counts,
    noise_of,
    own_radii,
    own_radius,
    radius_log_probabilities,
    release_event,
    release_sensitivity,
    statistic_sensitivity,
    surplus_sensitivity,
    surplus_weight,
    symmetric,
    typical_radius,
)
from .release import RELEASE_CONSTRAINTS, SellerRelease
from .rows_file import read_names, read_rows
from .summary import Summary, max_file_size
