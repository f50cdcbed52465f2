"""Summaries and releases of a seller."""

from .command_line import add_seller_command, add_seller_steps
from .mechanism import (
    COUNT_WEIGHT,
    Noise,
    moment_statistic,
    noise_of,
    release_event,
    statistic_sensitivity,
    symmetric,
)
from .release import RELEASE_CONSTRAINTS, SellerRelease
from .rows_file import read_rows
from .summary import Summary, max_file_size
