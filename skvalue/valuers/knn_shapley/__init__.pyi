"""KNN-Shapley: exact Shapley values of the K-nearest-neighbour model."""

from ._tables import class_game as class_game
from ._tables import target_game as target_game
from ._tables import vote_game as vote_game
from ._truncation import max_rank_bound as max_rank_bound
from ._truncation import smallest_max_rank as smallest_max_rank
from ._valuer import KNNShapleyValuer as KNNShapleyValuer
