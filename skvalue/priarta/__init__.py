"""Values of sellers' data sets for a buyer, from private summaries (PriArTa)."""

from .._utils.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
