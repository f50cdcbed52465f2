"""Scores, curves and matplotlib displays that evaluate values."""

from ._compare import ComparisonDisplay as ComparisonDisplay
from ._compare import compare as compare
from ._curves import value_addition_curve as value_addition_curve
from ._curves import value_removal_curve as value_removal_curve
from ._datamodeling import LinearDatamodelingDisplay as LinearDatamodelingDisplay
from ._datamodeling import linear_datamodeling_score as linear_datamodeling_score
from ._detection import DetectionDisplay as DetectionDisplay
from ._detection import detection_curve as detection_curve
from ._displays import ValueDistributionDisplay as ValueDistributionDisplay
from ._displays import ValueRemovalDisplay as ValueRemovalDisplay
from ._manipulation_gain import ManipulationDisplay as ManipulationDisplay
from ._manipulation_gain import manipulation_gain as manipulation_gain
from ._scores import mean_adjusted_variance as mean_adjusted_variance
from ._scores import noisy_label_auc as noisy_label_auc
from ._scores import wrong_label_curve as wrong_label_curve
from ._twins import twin_parties as twin_parties
