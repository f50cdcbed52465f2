"""Warnings of skvalue. Errors are Python's own ValueError, TypeError and ImportError.

A class names one kind of warning, to be turned off or into an error:

>>> import warnings
>>> from sklearn.datasets import load_iris
>>> from skvalue import KNNShapleyValuer
>>> from skvalue.exceptions import SameRowsWarning
>>> X, y = load_iris(return_X_y=True)
>>> with warnings.catch_warnings(action="error"):
...     warnings.simplefilter("ignore", SameRowsWarning)
...     valuer = KNNShapleyValuer().fit(X, y, X_val=X, y_val=y)
"""

__all__ = [
    "ConstantColumnsWarning",
    "FailedCoalitionsWarning",
    "FewValidationPointsWarning",
    "ImpreciseValuesWarning",
    "IncompleteFitWarning",
    "ManyClassesWarning",
    "NestedReleasesWarning",
    "NormalApproximationWarning",
    "PriorOutweighsWarning",
    "QuadraticCostWarning",
    "RadiusWarning",
    "SameRowsWarning",
    "UnbatchedFitWarning",
    "UncleanPointsWarning",
    "UnseenLabelsWarning",
    "VoidGuaranteeWarning",
]


class IncompleteFitWarning(UserWarning):
    """A fit was stopped early, so that values are based on less than was asked for."""


class ImpreciseValuesWarning(UserWarning):
    """Values have large errors, or a default number of coalitions was used."""


class QuadraticCostWarning(UserWarning):
    """Leave-one-out computes the distances of all pairs of many rows."""


class RadiusWarning(UserWarning):
    """Most balls of a threshold fit contain no row, or all rows."""


class SameRowsWarning(UserWarning):
    """The validation points are the rows to value: each row evaluates itself."""


class FewValidationPointsWarning(UserWarning):
    """An interval for new validation points is based on few validation points."""


class FailedCoalitionsWarning(UserWarning):
    """Many coalitions could not be trained or scored."""


class NormalApproximationWarning(UserWarning):
    """A party has few rows: the normal approximation of its statistic is rough."""


class PriorOutweighsWarning(UserWarning):
    """A prior outweighs the releases of some parties, so that it sets their values."""


class VoidGuaranteeWarning(UserWarning):
    """The parameters are such that there is no privacy guarantee, or a void one."""


class NestedReleasesWarning(UserWarning):
    """Releases at several noise levels are made of the same non-private statistic."""


class ConstantColumnsWarning(UserWarning):
    """Columns are (nearly) constant on public data, so that their scale is unknown."""


class ManyClassesWarning(UserWarning):
    """Whole numbers with many values are taken for classes; they may be targets."""


class UnbatchedFitWarning(UserWarning):
    """Models are trained one by one: a parameter or a step does not allow batches."""


class UncleanPointsWarning(UserWarning):
    """Rows with noisy labels evaluate a method that needs clean validation points."""


class UnseenLabelsWarning(UserWarning):
    """Validation points have labels that no row has, and so classes of their own."""
