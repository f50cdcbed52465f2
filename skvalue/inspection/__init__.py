"""Scores, curves and matplotlib displays that evaluate values."""

from ._compare import compare, wrong_label_curve
from ._comparison_display import ComparisonDisplay
from ._curves import value_addition_curve, value_removal_curve
from ._datamodeling import linear_datamodeling_score
from ._datamodeling_display import LinearDatamodelingDisplay
from ._detection import detection_curve, detection_limit
from ._detection_display import DetectionDisplay
from ._displays import ValueDistributionDisplay, ValueRemovalDisplay
from ._manipulation_display import ManipulationDisplay
from ._manipulation_gain import manipulation_gain
from ._scores import mean_adjusted_variance, noisy_label_auc
from ._twins import twin_parties

__all__ = [
    "ComparisonDisplay",
    "DetectionDisplay",
    "LinearDatamodelingDisplay",
    "ManipulationDisplay",
    "ValueDistributionDisplay",
    "ValueRemovalDisplay",
    "compare",
    "detection_curve",
    "detection_limit",
    "linear_datamodeling_score",
    "manipulation_gain",
    "mean_adjusted_variance",
    "noisy_label_auc",
    "twin_parties",
    "value_addition_curve",
    "value_removal_curve",
    "wrong_label_curve",
]
