"""The valuer of a filter: an unfitted copy, checks of the request, and its fit."""

import pickle
from numbers import Integral

from sklearn.base import clone
from sklearn.utils.validation import check_memory

from .._utils.checks import check_groups
from .._utils.warned import warn
from ..valuers import KNNShapleyValuer

_WARNED = {}  # families of filters that have warned in this process


def fresh_valuer(valuer, task="auto"):
    """An unfitted copy of the valuer; None is `KNNShapleyValuer`.

    If the ``task`` of the valuer is "auto" it is set to ``task``, so that integer
    targets of a regressor are not treated as classes.
    """
    valuer = KNNShapleyValuer() if valuer is None else clone(valuer)
    if task != "auto" and valuer.get_params(deep=False).get("task") == "auto":
        valuer.set_params(task=task)
    return valuer


def check_request(row_filter, valuer, X_val, groups, n_rows):
    """Refuse invalid combinations before any computation."""
    name, drop = type(valuer).__name__, row_filter.drop
    if row_filter.stratify and groups is not None:
        raise ValueError(
            "stratify=True drops rows by class, but groups are dropped as a whole: pass one or the "
            "other. Got both."
        )
    if isinstance(drop, Integral):
        names, _ = check_groups(groups, n_rows)
        n, what = (n_rows, "n_samples") if names is None else (len(names), "n_groups")
        if drop >= n:
            raise ValueError(f"drop must be less than {what}={n}. Got {drop}.")
    if drop == "significant":
        if not hasattr(valuer, "harmful"):
            raise ValueError(
                f"drop='significant' needs a valuer that has the method harmful. Got {name}."
            )
        if X_val is None:
            raise ValueError(
                "drop='significant' needs X_val and y_val: it tests whether a value would be below "
                "zero on new validation points. Got no X_val."
            )
    epsilon = getattr(valuer, "epsilon", None)
    if epsilon is None:
        return
    reasons = {
        "auto": "every inner fold would be a separate release",
        "significant": "the test needs the rows, which a private fit does not keep",
    }
    rule, why = f"drop must not be {drop!r}", reasons.get(drop)
    if row_filter.memory is not None and why is None:
        rule, why = "memory must be None", "its values must not be stored"
    if why is not None:
        raise ValueError(
            f"{rule} with a private valuer: {why}. Got {name} with epsilon={epsilon}."
        )


def warn_not_private(valuer, family):
    """Warn that a model of rows chosen by private values is not private, once a family.

    ``family`` names clones of one filter, as in a search; None is a filter without
    clones.
    """
    mine = object()
    if (
        family is None or _WARNED.setdefault(family, mine) is mine
    ):  # atomic: clones may be threads
        warn(
            f"The rows are chosen by private values ({type(valuer).__name__} with "
            f"epsilon={valuer.epsilon}), but a model trained on them is not private: it uses the "
            "rows themselves."
        )


def _fit(valuer, X, y, params):
    return valuer.fit(X, y, **params)


def fit_valuer(valuer, X, y, params, memory=None):
    """Fit the valuer, or load from memory one that was fitted on the same data."""
    memory = check_memory(memory)
    if getattr(memory, "location", "") is not None:
        try:
            pickle.dumps(valuer)
        except (
            Exception
        ) as error:  # objects raise anything; joblib's message would show the rows
            raise ValueError(
                "memory must be None with a valuer that cannot be pickled, for example because of "
                f"a lambda as scoring: define the function in a module. Got {error}."
            ) from None
    fitted = memory.cache(_fit)(valuer, X, y, params)
    if not hasattr(fitted, "values_"):
        raise ValueError(
            f"valuer must have values_ after fit, as valuers have. Got {type(valuer).__name__}."
        )
    return fitted
