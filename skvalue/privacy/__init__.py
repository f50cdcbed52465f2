"""Differential privacy: accounting, calibrated noise, budgets, reports and audits.

A release is described by an immutable event, from which its cost is computed. A ledger
is charged before noise is drawn, and a report states the guarantee.
"""

from .._utils.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
