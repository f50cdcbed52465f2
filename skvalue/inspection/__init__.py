"""Judging values: numbers here, matplotlib displays in files of their own."""

from ._curves import value_addition_curve, value_removal_curve
from ._displays import ValueDistributionDisplay, ValueRemovalDisplay
from ._scores import noisy_label_auc

__all__ = [
    "ValueDistributionDisplay",
    "ValueRemovalDisplay",
    "noisy_label_auc",
    "value_addition_curve",
    "value_removal_curve",
]
