"""Layered Shapley: values from many small coalitions and few large ones."""

from ._valuer import CoreSet, LayeredShapleyValuer, published_scale, suggest_bound

__all__ = ["CoreSet", "LayeredShapleyValuer", "published_scale", "suggest_bound"]
