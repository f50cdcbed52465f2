"""Valuers: one file a method, pure functions of arrays on top, a thin estimator below."""

from .knn_shapley import KNNShapleyValuer
from .tknn_shapley import TKNNShapleyValuer, suggest_radius

__all__ = ["KNNShapleyValuer", "TKNNShapleyValuer", "suggest_radius"]
