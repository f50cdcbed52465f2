"""Threshold-KNN-Shapley: exact or private values of the threshold-KNN classifier."""

from ._baseline import public_baseline as public_baseline
from ._capped import capped_balls
from ._count_model import CountModel
from ._game import neighbour_values as neighbour_values
from ._overlap import overlap_bound
from ._radius import suggest_radius as suggest_radius
from ._smoothing import positive_draws, posterior_draws, smoothing_basis
from ._targets import target_values as target_values
from ._value_draws import size_draws, value_sizes
from ._valuer import TKNNShapleyValuer as TKNNShapleyValuer
