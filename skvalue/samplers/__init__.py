"""Samplers: functions that draw random coalitions from a numpy Generator.

Weights of the drawn coalitions make estimates unbiased for any semivalue, which is
given by the probabilities of sizes of `skvalue.semivalues.size_weights`.
"""

from .._utils.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
