"""The only door to scikit-learn's private names: everything else imports them from here."""

from sklearn.base import _fit_context as fit_context
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._missing import is_pandas_na, is_scalar_nan
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    Options,
    RealNotInt,
    StrOptions,
    validate_parameter_constraints,
    validate_params,
)
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _get_feature_names as get_feature_names

# What `CallbackSupportMixin` holds on an estimator while it is fitted.
CALLBACK_ATTRIBUTES = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")


def callback_context(estimator, max_subtasks):
    """What callbacks see of a fit that begins, of at most this number of subtasks (None: any)."""
    return estimator._init_callback_context(max_subtasks=max_subtasks)


def check_parameters(estimator):
    """Check an estimator's parameters by its `_parameter_constraints`."""
    estimator._validate_params()


__all__ = [
    "CALLBACK_ATTRIBUTES",
    "BaseScorer",
    "HasMethods",
    "Interval",
    "Options",
    "RealNotInt",
    "StrOptions",
    "callback_context",
    "check_feature_names",
    "check_parameters",
    "fit_context",
    "get_feature_names",
    "is_pandas_na",
    "is_scalar_nan",
    "safe_indexing",
    "validate_parameter_constraints",
    "validate_params",
]
