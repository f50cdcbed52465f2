"""Metadata of a fit: per-row entries are indexed like the rows, a validation set is not."""

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from .._utils.sklearn import safe_indexing

# Passed on unchanged, even if they have the length of X.
_WHOLE = {"X_val", "y_val", "sample_weight_val"}


def as_rows(X, y):
    """X and y, indexable by rows; a column vector y is raveled, with a warning."""
    X, y = indexable(X, y)
    return X, column_or_1d(y, warn=True) if np.ndim(y) == 2 else y


def given(**params):
    """The parameters that are not None."""
    return {name: value for name, value in params.items() if value is not None}


def _is_per_row(value, n_rows):
    if value is None or isinstance(value, (str, bytes, dict)):
        return False
    if sp.issparse(value):
        return value.shape[0] == n_rows
    return np.ndim(value) > 0 and len(value) == n_rows


def take_rows(params, rows, n_rows):
    """Select the entries of some rows from metadata of length ``n_rows``, except a validation set.

    >>> take_rows({"sample_weight": [1, 2, 3], "X_val": [[4], [5], [6]]}, [0, 2], 3)
    {'sample_weight': [1, 3], 'X_val': [[4], [5], [6]]}
    """
    return {
        name: safe_indexing(value, rows)
        if name not in _WHOLE and _is_per_row(value, n_rows)
        else value
        for name, value in params.items()
    }


def requested(estimator, params):
    """Those of the filter's own metadata that the estimator's fit requests, too.

    Empty without scikit-learn's metadata routing.
    """
    if not get_config()["enable_metadata_routing"]:
        return {}
    mapping = MethodMapping().add(caller="fit", callee="fit")
    router = MetadataRouter(owner=None).add(estimator=estimator, method_mapping=mapping)
    wanted = {name: params[name] for name in router.consumes("fit", params)}
    return dict(router.route_params(caller="fit", params=wanted).estimator.fit)


def route(meta_estimator, method, params):
    """Metadata for the estimator's method and for the valuer's fit.

    Without scikit-learn's metadata routing, all of them go to the estimator.
    """
    if not get_config()["enable_metadata_routing"]:
        return dict(params), {}
    if not params:
        return {}, {}
    routed = process_routing(meta_estimator, method, **params)
    of_valuer = routed["valuer"]["fit"] if "valuer" in routed and method == "fit" else {}
    return dict(routed["estimator"][method]), dict(of_valuer)
