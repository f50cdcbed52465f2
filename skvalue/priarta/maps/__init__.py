"""Maps of rows, fitted by the buyer."""

from ..._utils.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
