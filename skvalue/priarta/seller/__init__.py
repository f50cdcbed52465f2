"""Summaries and releases of a seller."""

from ._summary_file import most_bytes
from .mechanism import (
    COUNT_WEIGHT,
    Noise,
    amplified,
    calibrated_scale,
    moment_statistic,
    noise_of,
    row_sensitivity,
    statistic_sensitivity,
)
from .plan import ReleasePlan
from .reading import read_summary
from .release import RELEASE_CONSTRAINTS, SellerRelease, check_release
from .summary import Summary
