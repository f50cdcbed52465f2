"""KNN-Shapley: exact Shapley values of the K-nearest-neighbour model."""

from ._tables import class_game, max_rank_bound, smallest_max_rank, target_game, vote_game
from ._valuer import KNNShapleyValuer

__all__ = [
    "KNNShapleyValuer",
    "class_game",
    "max_rank_bound",
    "smallest_max_rank",
    "target_game",
    "vote_game",
]
