"""KNN-Shapley: exact Shapley values of the K-nearest-neighbour model."""

from ._games import class_game, max_rank_bound, target_game, vote_game
from ._valuer import KNNShapleyValuer

__all__ = ["KNNShapleyValuer", "class_game", "max_rank_bound", "target_game", "vote_game"]
