"""Threshold-KNN-Shapley: exact or private Shapley values of the threshold-KNN classifier."""

from ._denoising import (
    count_posterior,
    posterior_draws,
    size_draws,
    smoothing_basis,
    value_sizes,
)
from ._game import neighbour_values
from ._private import capped_balls, overlap_bound, public_baseline
from ._radius import suggest_radius
from ._targets import target_values
from ._valuer import TKNNShapleyValuer

__all__ = [
    "TKNNShapleyValuer",
    "neighbour_values",
    "public_baseline",
    "suggest_radius",
    "target_values",
]
