"""From the arguments of `fit` to a validated problem."""

from dataclasses import replace

import numpy as np
from scipy.sparse import issparse

from .._utils.checks import check_groups, check_validation_weights, check_weights
from .._utils.embedding import fit_embedding, learns_from_rows
from .._utils.fits import blank_of, columns_of
from .._utils.targets import refuse_missing_labels
from .._utils.warned import warn
from ..exceptions import SameRowsWarning
from ..neighbors import Rows
from ._containers import n_rows_of
from ._problem import Points, Problem, Split
from ._release import check_privacy, warn_of_guarantee
from ._rows import check_rows, check_validation_set
from ._splits import split_rows, with_class_weights
from ._targets import encode


def make_problem(estimator, X, y, X_val=None, y_val=None, **metadata):
    """Validate the input of ``fit``; ``metadata`` are keywords of `build_problem`.

    `validate_data` sets attributes, so it gets a blank estimator: a fit that fails must
    not change an estimator that is fitted.
    """
    capabilities, blank = estimator._capabilities, blank_of(estimator)
    refuse_missing_labels(y)
    refuse_missing_labels(y_val, "y_val")
    names = {}
    if getattr(blank, "embedding", None) is not None:
        if estimator._is_private and learns_from_rows(blank.embedding):
            raise ValueError(
                "embedding must not learn from the private rows: with epsilon, pass a callable, a "
                "stateless transformer, or FrozenEstimator(transformer) fitted on public data. Got "
                f"{blank.embedding!r}."
            )
        blank.embedding_ = fit_embedding(blank.embedding, X, y)
        names = columns_of(X)
    given, given_val = X, X_val
    X, y = check_rows(blank, capabilities, X, y)
    if names:  # of the rows, not of their vectors
        vars(blank).update(names, n_features_in_=len(names["feature_names_in_"]))
    if X_val is not None or y_val is not None:
        X_val, y_val = check_validation_set(blank, capabilities, X_val, y_val, X)
        compared = (given, given_val) if issparse(given) else (X, X_val)
        if given is given_val or _same_rows(*compared):
            warn(
                "X_val holds the same rows as X: each row evaluates itself, and a wrong label "
                "agrees with itself. Pass other rows, or no X_val, so that `cv` holds out rows.",
                SameRowsWarning,
            )
    columns = {name: value for name, value in vars(blank).items() if name.endswith("_")}
    return build_problem(
        estimator, capabilities, X, y, X_val, y_val, columns, **metadata
    )


def _same_rows(X, X_val):
    """Whether two arrays, dense or sparse, hold equal rows in the same order."""
    if isinstance(X, Rows) or type(X) is not type(X_val) or X.shape != X_val.shape:
        return False
    if hasattr(X, "equals"):  # a frame, which may have NA
        return X.equals(X_val)
    return (X_val != X).nnz == 0 if issparse(X) else np.array_equal(X, X_val)


def build_problem(
    estimator, capabilities, X, y, X_val, y_val, columns, *, groups=None, sample_weight=None,
    sample_weight_val=None, former=None,
):  # fmt: skip
    """Encode the labels and make the splits, from checked rows and validation
    points."""
    private = estimator._is_private
    if private:
        check_privacy(estimator, X_val)
    n, group_names, group_codes = len(y), None, None
    if groups is not None:
        group_names, group_codes = check_groups(groups, n)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, "sample_weight", n)
    if private or estimator.ledger is not None:
        by_group = groups is not None and capabilities.protects_groups
        warn_of_guarantee(estimator, len(group_names) if by_group else n)
    if X_val is None and sample_weight_val is not None:
        raise ValueError("sample_weight_val needs X_val: it weights validation points.")
    if X_val is not None and not capabilities.points:
        raise ValueError(
            f"X_val must be None: {type(estimator).__name__} has no validation points. Got "
            f"{n_rows_of(X_val)} rows."
        )
    classes, y, y_val = encode(capabilities, y, y_val, private)
    problem = Problem(
        X, y, classes, groups=group_codes, group_names=group_names,
        sample_weight=sample_weight, has_validation_set=X_val is not None, columns=columns,
        capabilities=capabilities, former=former or {},
    )  # fmt: skip
    if not capabilities.points:
        return problem
    fraction = 1.0
    if X_val is None:
        splits, fraction = split_rows(estimator.cv, problem)
    else:
        weights = np.full(len(y_val), 1.0 / len(y_val))
        if sample_weight_val is not None:
            weights = check_validation_weights(sample_weight_val, len(y_val))
            sample_weight_val = np.asarray(sample_weight_val)
        prior = 0.0 if problem.n_classes else float(y_val @ weights)
        points = Points(X_val, y_val, weights, np.arange(len(y_val)), prior=prior)
        splits = (Split(slice(None), points),)
    if estimator.class_weight is not None:
        splits = with_class_weights(estimator.class_weight, problem, splits)
    return replace(
        problem,
        splits=splits,
        joining_fraction=fraction,
        sample_weight_val=sample_weight_val,
    )
