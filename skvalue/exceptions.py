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
    """A fit was stopped early: the values are based on a part of the validation points only."""


class ImpreciseValuesWarning(UserWarning):
    """Values are based on the default number of coalitions or models, with these errors."""


class QuadraticCostWarning(UserWarning):
    """Leave-one-out computes the distances of all pairs of rows, and there are many rows."""


class FewValidationPointsWarning(UserWarning):
    """An interval for new validation points is based on few validation points."""


class FailedCoalitionsWarning(UserWarning):
    """Many coalitions could not be trained, or have one class."""


class NormalApproximationWarning(UserWarning):
    """A party has few rows: the normal approximation of its statistic's distribution is rough."""


class VoidGuaranteeWarning(UserWarning):
    """A parameter was chosen from private rows, so that there is no privacy guarantee."""


class NestedReleasesWarning(UserWarning):
    """Releases at several noise levels are computed from the same non-private statistic."""


class ConstantColumnsWarning(UserWarning):
    """Columns are (nearly) constant on public data, so that their scale is unknown."""
