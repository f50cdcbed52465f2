"""Parties that release one noisy statistic each, and a mediator that values and rewards
them."""

from .._utils.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
