"""What a seller computes and sends."""

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

__all__ = [
    "COUNT_WEIGHT",
    "RELEASE_CONSTRAINTS",
    "Noise",
    "ReleasePlan",
    "SellerRelease",
    "Summary",
    "amplified",
    "calibrated_scale",
    "check_release",
    "moment_statistic",
    "most_bytes",
    "noise_of",
    "read_summary",
    "row_sensitivity",
    "statistic_sensitivity",
]
