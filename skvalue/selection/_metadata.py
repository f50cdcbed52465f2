"""Metadata of a fit: per-row entries are indexed like the rows, a validation set is
not."""

import numpy as np
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from .._utils.sklearn import safe_indexing
from ..base import n_rows_of

# Passed on unchanged, even if they have the length of X.
_WHOLE = {"X_val", "y_val", "sample_weight_val"}


def given(**params):
    """The parameters that are not None."""
    return {name: value for name, value in params.items() if value is not None}


def take_rows(params, rows, n_rows):
    """Select the entries of some rows from metadata of length ``n_rows``, except a
    validation set.

    >>> take_rows({"sample_weight": [1, 2, 3], "X_val": [[4], [5], [6]]}, [0, 2], 3)
    {'sample_weight': [1, 3], 'X_val': [[4], [5], [6]]}
    """
    return {
        name: safe_indexing(value, rows)
        if name not in _WHOLE and np.ndim(value) and n_rows_of(value) == n_rows
        else value
        for name, value in params.items()
    }


def requested(estimator, params):
    """Those of the filter's own metadata that the estimator's fit requests, too."""
    mapping = MethodMapping().add(caller="fit", callee="fit")
    router = MetadataRouter(owner=None).add(estimator=estimator, method_mapping=mapping)
    wanted = {name: params[name] for name in router.consumes("fit", params)}
    return dict(router.route_params(caller="fit", params=wanted).estimator.fit)


def route(meta_estimator, method, params):
    """Metadata by scikit-learn's routing: for the estimator's method, and for the
    valuer's fit."""
    routed = process_routing(meta_estimator, method, **params) if params else {}
    parts = ("estimator", method), ("valuer", "fit")
    return [routed.get(name, {}).get(callee, {}) for name, callee in parts]
