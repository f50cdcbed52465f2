"""The parameters that a valuer was fitted with, which may be set anew later."""

from reprlib import repr as short_repr

import numpy as np

# They say how values are computed, or for how long, and not what they are. Seeds and
# ledgers of private fits are not to be kept, either.
_FREE = frozenset(
    {
        "batch",
        "checkpoint",
        "cv",
        "device",
        "engine",
        "ledger",
        "max_evaluations",
        "max_queries",
        "max_time",
        "n_jobs",
        "noise_random_state",
        "random_state",
        "reader",
        "warm_start",
    }
)
_PLAIN = (bool, int, float, str, np.bool_, np.number, type(None))


def parameters_of(valuer):
    """The parameters on which values depend, as entries that can be compared.

    Numbers, strings and tuples of them are kept as they are; of a function its name, of
    any other object its class. The parameters of an estimator are entries of their own.

    >>> from skvalue import KNNShapleyValuer
    >>> parameters_of(KNNShapleyValuer(3))["n_neighbors"]
    3
    """
    return {
        name: _comparable(value)
        for name, value in valuer.get_params(deep=True).items()
        if name.split("__")[-1] not in _FREE
    }


def changes_since(valuer, parameters):
    """What was set after the fit, such as "n_neighbors was 3 and is 7", or ""."""
    current = parameters_of(valuer)
    changes = []
    for name, value in parameters.items():
        if name in current and not _equal(current[name], value):
            changes.append(
                f"{name} was {short_repr(value)} and is {short_repr(current[name])}"
            )
    return ", ".join(changes)


def _comparable(value):
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(_comparable(entry) for entry in value)
    if callable(value) and hasattr(value, "__qualname__"):
        return value.__qualname__
    return type(value).__name__


def _equal(entry, other):
    """Whether two entries are equal; NaN equals itself."""
    if entry == other:
        return True
    both_floats = isinstance(entry, float) and isinstance(other, float)
    return both_floats and np.isnan(entry) and np.isnan(other)
