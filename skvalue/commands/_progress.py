"""A progress bar where a person looks."""

import sys
from importlib.util import find_spec


def watched(estimator):
    """The estimator, with a progress bar if it takes one, rich is there, and a terminal is."""
    if hasattr(estimator, "set_callbacks") and find_spec("rich") and sys.stdout.isatty():
        from sklearn.callback import ProgressBar

        estimator.set_callbacks(ProgressBar())
    return estimator
