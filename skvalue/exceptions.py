"""Warnings of skvalue. Errors are Python's own ValueError, TypeError and ImportError."""

__all__ = [
    "ConstantColumnsWarning",
    "FailedCoalitionsWarning",
    "FewValidationPointsWarning",
    "ImpreciseValuesWarning",
    "IncompleteFitWarning",
    "NestedReleasesWarning",
    "NormalApproximationWarning",
    "QuadraticCostWarning",
    "VoidGuaranteeWarning",
]


class IncompleteFitWarning(UserWarning):
    """A fit was stopped early: the values stand on only part of the validation points."""


class ImpreciseValuesWarning(UserWarning):
    """Values were estimated with a default number of coalitions: this is how precise they are."""


class QuadraticCostWarning(UserWarning):
    """Leave-one-out compares every row with every other, and there are many rows."""


class FewValidationPointsWarning(UserWarning):
    """A statement about fresh validation points stands on few of them."""


class FailedCoalitionsWarning(UserWarning):
    """Many coalitions could not be trained, or hold one class."""


class NormalApproximationWarning(UserWarning):
    """A party has few rows: the normal law that its statistic is taken to have is a rough one."""


class VoidGuaranteeWarning(UserWarning):
    """Something was chosen by looking at private rows: nothing is guaranteed about privacy."""


class NestedReleasesWarning(UserWarning):
    """Releases at several levels of noise share one clear statistic."""


class ConstantColumnsWarning(UserWarning):
    """Columns have (nearly) one value on public data, which says nothing about their scale."""
