"""The only door to scikit-learn's private names: everything else imports them from here."""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    Options,
    StrOptions,
    validate_params,
)

__all__ = ["HasMethods", "Interval", "Options", "StrOptions", "fit_context", "validate_params"]
