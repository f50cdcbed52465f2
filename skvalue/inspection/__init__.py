"""Judging values: numbers here, matplotlib displays in files of their own."""

from ._curves import value_addition_curve, value_removal_curve
from ._displays import ValueDistributionDisplay, ValueRemovalDisplay
from ._gradient_displays import ClosenessDisplay, DetectionDisplay, UncertaintyDisplay
from ._gradients import (
    detection_curve,
    detection_limit,
    mean_adjusted_variance,
    release_closeness,
    uncertainty_curve,
)
from ._scores import noisy_label_auc

__all__ = [
    "ClosenessDisplay",
    "DetectionDisplay",
    "UncertaintyDisplay",
    "ValueDistributionDisplay",
    "ValueRemovalDisplay",
    "detection_curve",
    "detection_limit",
    "mean_adjusted_variance",
    "noisy_label_auc",
    "release_closeness",
    "uncertainty_curve",
    "value_addition_curve",
    "value_removal_curve",
]
