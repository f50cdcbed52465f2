"""Rows of a fit and their metadata: entries per row are cut together."""

from dataclasses import dataclass
from numbers import Number
from typing import Any

from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from .._utils.checks import check_length
from .._utils.embedding import embed
from .._utils.sklearn import safe_indexing
from .._utils.warned import warn

# Metadata of rows by their names in scikit-learn, in the detector of wrong labels, and
# in XGBoost, LightGBM and CatBoost. All others are passed whole: sets of validation
# points, callbacks and lists of columns may happen to be as long as X.
_OF_ROWS = frozenset(
    {"sample_weight", "groups", "pred_probs", "base_margin", "init_score", "baseline"}
)

# Metadata of validation points, which a filter takes by name.
_OF_VALIDATION_POINTS = frozenset({"X_val", "y_val", "sample_weight_val"})


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Training rows with the metadata of the fits of the valuer and the estimator.

    `row_metadata` are names of metadata of rows, besides those that are known.
    """

    X: Any
    y: Any
    valuer_params: dict
    estimator_params: dict
    row_metadata: tuple = ()

    def take(self, rows):
        """Data of some rows, given by their indices."""
        return TrainingData(
            X=safe_indexing(self.X, rows),
            y=safe_indexing(self.y, rows),
            valuer_params=self._take_params(self.valuer_params, rows),
            estimator_params=self._take_params(self.estimator_params, rows),
            row_metadata=self.row_metadata,
        )

    def take_estimator_params(self, rows):
        """Metadata of the estimator for some rows."""
        return self._take_params(self.estimator_params, rows)

    def _take_params(self, params, rows):
        return take_rows(params, rows, self.row_metadata)

    def check(self):
        """Refuse metadata of rows of another length, and warn of ambiguous ones."""
        n_rows = len(self.y)
        ambiguous_names = set()
        for params in (self.estimator_params, self.valuer_params):
            for name, value in params.items():
                if is_of_rows(name, self.row_metadata):
                    if not _is_number(value):
                        check_length(value, name, n_rows)
                elif not _is_of_points(name) and _is_column(value, n_rows):
                    ambiguous_names.add(name)
        for name in sorted(ambiguous_names):
            warn(
                f"{name} has {n_rows} entries, as many as X has rows, but is passed "
                "whole: if it has one entry per row, pass "
                f"row_metadata=[{name!r}] to the filter."
            )


def is_of_rows(name, row_metadata=()):
    """Whether metadata have one entry per row, by the name of the fit's parameter.

    A Pipeline's parameters have the name of a step before that of its parameter.

    >>> is_of_rows("sample_weight"), is_of_rows("svc__sample_weight")
    (True, True)
    >>> is_of_rows("eval_set"), is_of_rows("price"), is_of_rows("price", ["price"])
    (False, False, True)
    """
    name_in_step = name.rpartition("__")[2]
    return (
        name_in_step in _OF_ROWS or name in row_metadata or name_in_step in row_metadata
    )


def _is_of_points(name):
    """Whether metadata are of validation points, by their name, as ``eval_y``."""
    name_in_step = name.rpartition("__")[2]
    return name_in_step in _OF_VALIDATION_POINTS or name_in_step.startswith("eval_")


def take_rows(params, rows, row_metadata=()):
    """The metadata for some rows: entries of those that have one per row.

    >>> take_rows({"sample_weight": [1, 2, 3], "X_val": [[4], [5], [6]]}, [0, 2])
    {'sample_weight': [1, 3], 'X_val': [[4], [5], [6]]}
    """
    taken = {}
    for name, value in params.items():
        if is_of_rows(name, row_metadata) and not _is_number(value):
            value = safe_indexing(value, rows)
        taken[name] = value
    return taken


def _is_number(value):
    """Whether it is one number for all rows, as a `sample_weight` may be."""
    return isinstance(value, Number) or getattr(value, "shape", None) == ()


def _is_column(value, n_rows):
    """Whether it has n_rows entries in one dimension, numbers or strings if a list."""
    if isinstance(value, (list, tuple)):
        has_entries = all(isinstance(entry, (Number, str)) for entry in value)
        return has_entries and len(value) == n_rows
    if hasattr(value, "shape"):
        return value.shape == (n_rows,)
    # An array of pyarrow has no shape.
    return hasattr(value, "to_numpy") and len(value) == n_rows


def given(**params):
    """The parameters that are not None."""
    return {name: value for name, value in params.items() if value is not None}


def with_embedded_points(params, embedding):
    """The metadata with vectors of the validation points, if there are any."""
    if params.get("X_val") is None:
        return params
    return {**params, "X_val": embed(embedding, params["X_val"], "X_val")}


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
