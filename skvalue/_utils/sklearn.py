"""Private names of scikit-learn, which all other modules import from here."""

import copy
from contextlib import contextmanager
from functools import wraps
from inspect import signature

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import _fit_context
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._array_api import _convert_to_numpy
from sklearn.utils._missing import is_pandas_na, is_scalar_nan
from sklearn.utils._param_validation import (
    HasMethods,
    InvalidParameterError,
    Options,
    RealNotInt,
    validate_parameter_constraints,
)
from sklearn.utils._param_validation import Interval as _Interval
from sklearn.utils._param_validation import StrOptions as _StrOptions
from sklearn.utils._param_validation import validate_params as _validate_params
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _estimator_has as estimator_has
from sklearn.utils.validation import _get_feature_names as get_feature_names
from sklearn.utils.validation import _num_samples as num_samples

from ..exceptions import ParameterError


class Interval(_Interval):
    """Constraint of a parameter: a number in an interval, and no boolean.

    As scikit-learn's own; it takes numpy's floats of any precision too.

    Parameters
    ----------
    type : {numbers.Integral, numbers.Real, RealNotInt}
        The kind of number.
    left : float or int or None
        The left bound; None is minus infinity.
    right : float or int or None
        The right bound; None is infinity.
    closed : {"left", "right", "both", "neither"}
        The bounds that are part of the interval.

    Examples
    --------
    >>> from numbers import Real
    >>> import numpy as np
    >>> from skvalue.base import Interval
    >>> Interval(Real, 0, 1, closed="left").is_satisfied_by(np.float32(0))
    True
    """

    def is_satisfied_by(self, val):
        """Whether a value is a number in the interval.

        Parameters
        ----------
        val : object
            The value of the parameter.

        Returns
        -------
        is_satisfied : bool
            Whether it is in the interval.
        """
        number = float(val) if isinstance(val, np.floating) else val
        return not isinstance(val, bool) and super().is_satisfied_by(number)


class StrOptions(_StrOptions):
    """Constraint of a parameter: one of some strings, as scikit-learn's own.

    Parameters
    ----------
    options : set of str
        The strings.
    deprecated : set of str, default=None
        Those of them that messages call deprecated.

    Examples
    --------
    >>> from skvalue.base import StrOptions
    >>> print(StrOptions({"auto"}))
    a str among {'auto'}
    """


class _InvalidParameter(ParameterError, InvalidParameterError):
    """A parameter that does not satisfy its constraint, by scikit-learn's message."""


@contextmanager
def _named_parameter(names):
    """Context in which the error of a constraint has the parameter as a field."""
    try:
        yield
    except InvalidParameterError as error:
        if isinstance(error, ParameterError):
            raise
        text = str(error)
        if isinstance(error.__cause__, ParameterError):
            # Of an estimator that the function was passed, or calls.
            names = [error.__cause__.parameter]
        for name in names:
            start = f"The {name!r} parameter of "
            if text.startswith(start):
                caller, _, problem = text.removeprefix(start).partition(" ")
                alias = f"{start}{caller}"
                raise _InvalidParameter(name, problem, alias=alias) from None
        raise


def validate_params(constraints, *, prefer_skip_nested_validation):
    """scikit-learn's decorator that checks the parameters of a function.

    Its error has the parameter as a field.
    """
    check = _validate_params(
        constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
    )

    def decorate(function):
        checked = check(function)

        @wraps(checked)
        def with_named_parameter(*args, **kwargs):
            with _named_parameter(constraints):
                return checked(*args, **kwargs)

        return with_named_parameter

    return decorate


# Context in which NaN and infinity are looked for: with `assume_finite` they would
# become values.
always_checked = config_context(assume_finite=False)

# Context of transformers whose output is used here alone: with `transform_output` it
# would be a frame. The user's own estimators keep that setting.
in_arrays = config_context(transform_output="default")


def fit_context(*, prefer_skip_nested_validation):
    """scikit-learn's decorator of a fit, which then always looks for NaN."""
    decorator = _fit_context(
        prefer_skip_nested_validation=prefer_skip_nested_validation
    )

    def decorate(fit):
        checked = decorator(always_checked(fit))
        arguments = signature(fit)

        @wraps(fit)
        def fit_with_arguments(estimator, *args, **kwargs):
            # Python's own message names the class that defines the method.
            try:
                arguments.bind(estimator, *args, **kwargs)
            except TypeError as error:
                name = f"{type(estimator).__name__}.{fit.__name__}()"
                raise TypeError(f"{name} {error}") from None
            with _named_parameter(estimator._parameter_constraints):
                return checked(estimator, *args, **kwargs)

        return fit_with_arguments

    return decorate


def array_of_namespace(values):
    """The numpy array of an array of another namespace of the array API."""
    return _convert_to_numpy(values, values.__array_namespace__())


def callback_context(estimator, max_subtasks):
    """Callback context of a fit with at most that many subtasks; None is any number."""
    return estimator._init_callback_context(max_subtasks=max_subtasks)


def has_callbacks(estimator):
    """Whether callbacks watch the fit of an estimator."""
    return hasattr(estimator, "_skl_callbacks")


def check_parameters(estimator):
    """Check an estimator's parameters by its `_parameter_constraints`."""
    with _named_parameter(estimator._parameter_constraints):
        estimator._validate_params()


def validated(condition=True):
    """Context in which estimators and functions of scikit-learn check their parameters.

    The fit of a valuer turns these checks off for what it calls, which is not the
    user's own. Without the condition nothing changes.
    """
    skips = get_config()["skip_parameter_validation"]
    return config_context(skip_parameter_validation=skips and not condition)


def metric_name(scorer):
    """Name of the metric of a scorer, or None."""
    return getattr(scorer._score_func, "__name__", None)


def with_labels(scorer, labels):
    """A copy of a scorer that passes `labels` to its metric, unless it already does."""
    if "labels" in scorer._kwargs:
        return scorer
    scorer = copy.copy(scorer)
    scorer._kwargs = {**scorer._kwargs, "labels": labels}
    return scorer


def takes_sample_weight(scorer):
    """Whether the metric of a scorer takes sample weights."""
    return scorer._accept_sample_weight()


def response_methods(scorer):
    """Names of estimator methods; a scorer calls the first that there is."""
    methods = scorer._response_method
    if isinstance(methods, str):
        return [methods]
    return methods
