"""Warnings of skvalue, and the error of a parameter that is refused.

Errors are Python's own ValueError, TypeError and ImportError, or derived from them. A
class names one kind of warning, to be turned off or into an error:

>>> import warnings
>>> from sklearn.datasets import load_iris
>>> from skvalue import KNNShapleyValuer
>>> from skvalue.exceptions import SameRowsWarning
>>> X, y = load_iris(return_X_y=True)
>>> with warnings.catch_warnings(action="error"):
...     warnings.simplefilter("ignore", SameRowsWarning)
...     valuer = KNNShapleyValuer().fit(X, y, X_val=X, y_val=y)
"""

from ._utils.messages import Message

__all__ = [
    "ClippedRowsWarning",
    "ConstantColumnsWarning",
    "ErrorsTooSmallWarning",
    "FailedCoalitionsWarning",
    "FewValidationPointsWarning",
    "ImpreciseValuesWarning",
    "IncompleteFitWarning",
    "ManyClassesWarning",
    "NestedReleasesWarning",
    "NoiseExceedsSignalWarning",
    "NormalApproximationWarning",
    "ParameterError",
    "PriorOutweighsWarning",
    "QuadraticCostWarning",
    "RadiusWarning",
    "SameRowsWarning",
    "UnbatchedFitWarning",
    "UncleanPointsWarning",
    "UnseenLabelsWarning",
    "VoidGuaranteeWarning",
]


class ParameterError(ValueError):
    """A parameter is refused; its name is a field, for programs that have another one.

    Parameters
    ----------
    parameter : str
        Name of the parameter.
    problem : str
        The rule and what was passed, such as "must be above 0. Got -1.". The message
        is the parameter, the problem and the advice.
    advice : str, default=""
        A sentence on what can be passed, with a ``{}`` for each of the settings.
    settings : sequence of tuple of (str, object), default=()
        Parameters of the advice and their values; an ellipsis is any value.
    subject : str, default=None
        How the message begins, if not with the parameter.
    alias : str, default=None
        What the message calls the parameter, if not by its name alone.

    Attributes
    ----------
    parameter : str
        Name of the parameter.

    Examples
    --------
    >>> from skvalue import TKNNShapleyValuer
    >>> from skvalue.exceptions import ParameterError
    >>> try:
    ...     TKNNShapleyValuer(epsilon=-1.0).fit([[0.0], [1.0]], [0, 1])
    ... except ParameterError as error:
    ...     print(error.parameter)
    epsilon
    """

    def __init__(
        self, parameter, problem, advice="", settings=(), subject=None, alias=None
    ):
        super().__init__(Message(parameter, problem, advice, settings, subject, alias))
        self.parameter = str(parameter)

    def __reduce__(self):
        return type(self), self.args[0].__getnewargs__()


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


class ClippedRowsWarning(UserWarning):
    """Many validation points are clipped, and so are the rows of parties like them."""


class PriorOutweighsWarning(UserWarning):
    """A prior outweighs the releases of some parties, so that it sets their values."""


class VoidGuaranteeWarning(UserWarning):
    """The parameters are such that there is no privacy guarantee, or a void one."""


class NestedReleasesWarning(UserWarning):
    """Releases at several noise levels are made of the same non-private statistic."""


class NoiseExceedsSignalWarning(UserWarning):
    """The noise of private values exceeds what they say of order and size."""


class ErrorsTooSmallWarning(UserWarning):
    """Stated errors of private values hold less often than they should."""


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
