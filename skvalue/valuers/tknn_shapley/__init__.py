"""Threshold-KNN-Shapley: exact or private values of the threshold-neighbour classifier."""

from ._valuer import TKNNShapleyValuer, neighbour_values, public_baseline, suggest_radius

__all__ = ["TKNNShapleyValuer", "neighbour_values", "public_baseline", "suggest_radius"]
