"""Fits that end before their end."""

from contextlib import contextmanager

from .sklearn import CALLBACK_ATTRIBUTES


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
