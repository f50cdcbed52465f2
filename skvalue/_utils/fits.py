"""What a fit sets on an estimator: all at once, when it has it."""

from .sklearn import get_feature_names

__all__ = ["blank_of", "columns_of", "columns_on", "swap_in"]


def swap_in(estimator, **attributes):
    """Set what a fit has learnt, all at once, in place of all that a former one had."""
    for name in [name for name in vars(estimator) if name.endswith("_") or name in attributes]:
        delattr(estimator, name)
    vars(estimator).update(attributes)


def columns_of(X):
    """The attribute `feature_names_in_` of a fit to X, where X names its columns."""
    names = get_feature_names(X)
    return {} if names is None else {"feature_names_in_": names}


def blank_of(estimator):
    """An estimator of the same parameters on which `validate_data` may write; see `columns_on`."""
    blank = object.__new__(type(estimator))  # to look at the signature of `__init__` takes longer
    parameters = (item for item in vars(estimator).items() if item[0].strip("_") == item[0])
    vars(blank).update(parameters)
    return blank


def columns_on(estimator):
    """What `validate_data` has written on an estimator."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: vars(estimator)[name] for name in names if name in vars(estimator)}
