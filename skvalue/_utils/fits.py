"""Fits that end before their end."""

from contextlib import contextmanager

from .sklearn import CALLBACK_ATTRIBUTES, get_feature_names


@contextmanager
def former_fit_kept(estimator):
    """Bring the attributes of a former fit back, if this one ends before it has set its own.

    Parameters
    ----------
    estimator : estimator
        What is fitted in this context.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        of_callbacks = {k: v for k, v in vars(estimator).items() if k in CALLBACK_ATTRIBUTES}
        vars(estimator).clear()
        vars(estimator).update({**before, **of_callbacks})
        raise


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
    return type(estimator)(**estimator.get_params(deep=False))


def columns_on(estimator):
    """What `validate_data` has written on an estimator."""
    names = ("n_features_in_", "feature_names_in_")
    return {name: vars(estimator)[name] for name in names if name in vars(estimator)}
