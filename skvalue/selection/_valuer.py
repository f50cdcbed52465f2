"""The valuer of a filter: an unfitted copy, checks of the request, and its fit."""

import pickle
from numbers import Integral

from sklearn.base import clone
from sklearn.utils.validation import check_memory

from .._utils.checks import check_groups
from .._utils.warned import warn
from ..exceptions import ParameterError
from ..valuers import KNNShapleyValuer

# Families of filters that have warned in this process, and a token of the clone that
# did.
_WARNED_FAMILIES = {}


def fresh_valuer(valuer, task="auto"):
    """An unfitted copy of the valuer; None is `KNNShapleyValuer`.

    If the `task` of the valuer is "auto" it is set to `task`, so that integer targets
    of a regressor are not treated as classes.
    """
    valuer = KNNShapleyValuer() if valuer is None else clone(valuer)
    if task != "auto" and valuer.get_params(deep=False).get("task") == "auto":
        valuer.set_params(task=task)
    return valuer


def check_request(row_filter, valuer, X_val, groups, n_rows):
    """Refuse invalid combinations before any computation."""
    if row_filter.stratify and groups is not None:
        raise ParameterError(
            "stratify",
            "must be False with groups, which are dropped as a whole: it caps the "
            "rows of a class. Got both.",
        )
    if isinstance(row_filter.drop, Integral):
        _check_count(row_filter.drop, groups, n_rows)
    if row_filter.drop == "significant":
        _check_significant(valuer, X_val)
    if getattr(valuer, "epsilon", None) is not None:
        _check_private(row_filter, valuer)


def _check_count(drop, groups, n_rows):
    group_names, _ = check_groups(groups, n_rows)
    if group_names is None and drop >= n_rows:
        raise ParameterError(
            "drop", f"must be less than the number of rows, {n_rows}. Got {drop}."
        )
    if group_names is not None and drop >= len(group_names):
        n_groups = len(group_names)
        raise ParameterError(
            "drop", f"must be less than the number of groups, {n_groups}. Got {drop}."
        )


def _check_significant(valuer, X_val):
    if not hasattr(valuer, "harmful"):
        raise ParameterError(
            "drop",
            "must not be 'significant' unless the valuer tests values, as those of "
            f"neighbours do (method harmful). Got {type(valuer).__name__}.",
        )
    if X_val is None:
        raise ParameterError(
            "drop",
            "must not be 'significant' without validation points: it tests whether a "
            "value would be below zero on new ones. Got none.",
            "Pass {}.",
            [("X_val", ...)],
        )


def _check_private(row_filter, valuer):
    got = f"Got {type(valuer).__name__} with epsilon={valuer.epsilon}."
    if row_filter.drop == "auto":
        raise ParameterError(
            "drop",
            "must not be 'auto' with a private valuer: every inner fold would be "
            f"a separate release. {got}",
        )
    if row_filter.drop == "significant":
        raise ParameterError(
            "drop",
            "must not be 'significant' with a private valuer: the test needs the "
            f"rows, which a private fit does not keep. {got}",
        )
    if row_filter.memory is not None:
        raise ParameterError(
            "memory",
            f"must be None with a private valuer: its values must not be stored. {got}",
        )


def warn_not_private(valuer, family):
    """Warn once a family that a model of rows chosen by private values is not private.

    `family` names clones of one filter, as in a search; None is a filter without
    clones.
    """
    if family is not None:
        # setdefault is atomic: of clones in several threads one has its token stored.
        token = object()
        if _WARNED_FAMILIES.setdefault(family, token) is not token:
            return
    warn(
        f"The rows are chosen by private values ({type(valuer).__name__} with "
        f"epsilon={valuer.epsilon}), but a model trained on them is not private: it "
        "uses the rows themselves."
    )


def fit_valuer(valuer, data, memory=None):
    """Fit the valuer, or load from memory one that was fitted on the same data."""
    memory = check_memory(memory)
    if getattr(memory, "location", "") is not None:
        _check_picklable(valuer)
    fitted = memory.cache(_fit)(valuer, data.X, data.y, data.valuer_params)
    if not hasattr(fitted, "values_"):
        raise ParameterError(
            "valuer",
            "must have values_ after fit, as valuers have. Got "
            f"{type(valuer).__name__}.",
        )
    return fitted


def _check_picklable(valuer):
    # joblib's own message would show the rows. An object may raise any error when it
    # is pickled.
    try:
        pickle.dumps(valuer)
    except Exception as error:
        raise ParameterError(
            "memory",
            "must be None with a valuer that cannot be pickled, for example "
            "because of a lambda as scoring: define the function in a module. Got "
            f"{error}.",
        ) from None


def _fit(valuer, X, y, params):
    return valuer.fit(X, y, **params)
