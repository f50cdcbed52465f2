"""Fitted attributes of an estimator, which are set together at the end of a fit."""

from inspect import Parameter, signature

from .sklearn import get_feature_names

__all__ = ["blank_of", "by_name", "columns_of", "columns_on", "swap_in"]


def by_name(fit):
    """Hide the parameter ``*late`` of a `fit` from its signature."""
    shown = signature(fit)
    kept = [p for p in shown.parameters.values() if p.kind != Parameter.VAR_POSITIONAL]
    fit.__signature__ = shown.replace(parameters=kept)
    return fit


def swap_in(estimator, **attributes):
    """Set the fitted attributes of an estimator, and delete those of an earlier fit."""
    for name in [name for name in vars(estimator) if name.endswith("_") or name in attributes]:
        delattr(estimator, name)
    vars(estimator).update(attributes)


def columns_of(X):
    """The attribute `feature_names_in_` of a fit to X, if X has column names."""
    names = get_feature_names(X)
    return {} if names is None else {"feature_names_in_": names}


def blank_of(estimator):
    """A copy of an estimator without fitted attributes, for `validate_data`; see `columns_on`."""
    blank = object.__new__(type(estimator))  # faster than `clone`, which inspects `__init__`
    parameters = (item for item in vars(estimator).items() if item[0].strip("_") == item[0])
    vars(blank).update(parameters)
    return blank


def columns_on(estimator):
    """The attributes that `validate_data` has set on an estimator."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: vars(estimator)[name] for name in names if name in vars(estimator)}
