"""KNN-Shapley: exact values of the K-nearest-neighbour model."""

from ._valuer import KNNShapleyValuer, class_game, max_rank_bound, target_game

__all__ = ["KNNShapleyValuer", "class_game", "max_rank_bound", "target_game"]
