"""Parties that release noisy statistics, and a mediator that values them."""

from .._utils.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
