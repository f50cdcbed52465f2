"""Summaries and releases of a seller."""

from .command_line import add_seller_command, add_seller_steps, read_rows
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
from .summary import Summary, most_bytes
