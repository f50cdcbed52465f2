"""Data valuation as scikit-learn estimators: values of rows, data sets and parties."""

from ._utils.lazy import attach_stub

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
