"""KNN-Shapley: exact Shapley values of the K-nearest-neighbour model."""

from ..._utils.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
