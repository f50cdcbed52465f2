"""Warnings of skvalue. Errors are Python's own ValueError, TypeError and ImportError."""

__all__ = [
    "FailedCoalitionsWarning",
    "FewValidationPointsWarning",
    "ImpreciseValuesWarning",
    "IncompleteFitWarning",
    "QuadraticCostWarning",
]


class IncompleteFitWarning(UserWarning):
    """A fit was stopped early: the values stand on only part of the validation points."""


class ImpreciseValuesWarning(UserWarning):
    """Values were estimated with a default number of coalitions: this is how precise they are."""


class QuadraticCostWarning(UserWarning):
    """Leave-one-out judging compares every row with every other, and there are many rows."""


class FewValidationPointsWarning(UserWarning):
    """A statement about fresh validation points stands on few of them."""


class FailedCoalitionsWarning(UserWarning):
    """Many coalitions could not be trained, or hold one class."""
