"""Threshold-KNN-Shapley: exact or private Shapley values of the threshold-KNN classifier."""

from ._baseline import public_baseline as public_baseline
from ._capped import capped_balls
from ._denoising import (
    CountModel,
    positive_draws,
    posterior_draws,
    size_draws,
    smoothing_basis,
    value_sizes,
)
from ._game import neighbour_values as neighbour_values
from ._overlap import overlap_bound
from ._radius import suggest_radius as suggest_radius
from ._targets import target_values as target_values
from ._valuer import TKNNShapleyValuer as TKNNShapleyValuer
