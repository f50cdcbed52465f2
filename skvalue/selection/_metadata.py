"""Rows of a fit and their metadata: entries per row are cut together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from .._utils.sklearn import safe_indexing
from ..base import n_rows_of

# Metadata of validation points: passed on unchanged, even with the length of X.
_OF_VALIDATION_POINTS = {"X_val", "y_val", "sample_weight_val"}


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Training rows with the metadata of the fits of the valuer and the estimator."""

    X: Any
    y: Any
    valuer_params: dict
    estimator_params: dict

    def take(self, rows):
        """Data of some rows, given by their indices."""
        n_rows = len(self.y)
        return TrainingData(
            X=safe_indexing(self.X, rows),
            y=safe_indexing(self.y, rows),
            valuer_params=take_rows(self.valuer_params, rows, n_rows),
            estimator_params=take_rows(self.estimator_params, rows, n_rows),
        )


def take_rows(params, rows, n_rows):
    """Entries of the rows from all metadata that have one entry for each of n_rows.

    >>> take_rows({"sample_weight": [1, 2, 3], "X_val": [[4], [5], [6]]}, [0, 2], 3)
    {'sample_weight': [1, 3], 'X_val': [[4], [5], [6]]}
    """
    taken = {}
    for name, value in params.items():
        is_array = name not in _OF_VALIDATION_POINTS and np.ndim(value)
        if is_array and n_rows_of(value) == n_rows:
            value = safe_indexing(value, rows)
        taken[name] = value
    return taken


def given(**params):
    """The parameters that are not None."""
    return {name: value for name, value in params.items() if value is not None}


def requested(estimator, params):
    """Those of the filter's own metadata that the estimator's fit requests, too."""
    mapping = MethodMapping().add(caller="fit", callee="fit")
    router = MetadataRouter(owner=None).add(estimator=estimator, method_mapping=mapping)
    consumed = {name: params[name] for name in router.consumes("fit", params)}
    return dict(router.route_params(caller="fit", params=consumed).estimator.fit)


def route(meta_estimator, method, params):
    """Metadata of the estimator's method and of the valuer's fit, as requested."""
    if not params:
        return {}, {}
    routed = process_routing(meta_estimator, method, **params)
    estimator_params = routed.get("estimator", {}).get(method, {})
    valuer_params = routed.get("valuer", {}).get("fit", {})
    return estimator_params, valuer_params
