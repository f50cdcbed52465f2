"""From the arguments of `fit` to a validated problem."""

from dataclasses import replace

import numpy as np
from scipy.sparse import issparse

from .._utils.checks import (
    check_groups,
    check_validation_weights,
    check_weights,
    exact_integers,
)
from .._utils.containers import known_rows
from .._utils.embedding import fit_embedding, learns_from_rows
from .._utils.fits import columns_of, unfitted_copy
from .._utils.messages import Message
from .._utils.targets import check_labels
from .._utils.warned import warn
from ..exceptions import ParameterError, SameRowsWarning
from ..neighbors import Rows
from ._privacy import PrivacyParameters, check_privacy, warn_of_guarantee
from ._problem import Points, Problem, Split
from ._rows import blank_unusable_rows, check_rows, check_validation_set
from ._splits import split_rows, with_class_weights
from ._targets import encode


def make_problem(
    valuer,
    X,
    y,
    X_val=None,
    y_val=None,
    *,
    groups=None,
    sample_weight=None,
    sample_weight_val=None,
):
    """Validate the input of `fit`; the valuer stays as it is.

    Parameters
    ----------
    valuer : BaseInSampleValuer
        The valuer, whose parameters say how labels are read and rows are split.
    X : array-like of shape (n_samples, n_features)
        The rows.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    X_val : array-like of shape (n_validation, n_features), default=None
        Validation points.
    y_val : array-like of shape (n_validation,), default=None
        Labels or targets of the validation points.
    groups : array-like of shape (n_samples,), default=None
        Group of each row.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    sample_weight_val : array-like of shape (n_validation,), default=None
        Weights of the validation points.

    Returns
    -------
    problem : Problem
        The problem, which `_value` takes.

    Raises
    ------
    ValueError
        If the input is refused, see `BaseInSampleValuer.fit`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.base import make_problem
    >>> problem = make_problem(KNNShapleyValuer(cv=5), *load_iris(return_X_y=True))
    >>> len(problem.splits), problem.n_classes
    (5, 3)
    """
    capabilities = valuer._capabilities
    X = known_rows(X)
    X_val = known_rows(X_val, "X_val")
    # `validate_data` sets attributes. A copy gets them: a fit that fails must not
    # change a valuer that is fitted.
    blank = unfitted_copy(valuer)
    y = exact_integers(y)
    if not valuer._is_private:  # an error would tell of missing and mixed labels
        y = check_labels(y)
    y_val = check_labels(y_val, "y_val")
    column_names = {}
    if getattr(blank, "embedding", None) is not None:
        _check_embedding(valuer)
        blank.embedding_ = fit_embedding(blank.embedding, X, y)
        column_names = columns_of(X)

    given = X
    given_val = X_val
    X, y = check_rows(blank, capabilities, X, y, points=X_val)
    # The columns are those of the rows, not of their vectors.
    if column_names:
        n_features = len(column_names["feature_names_in_"])
        vars(blank).update(column_names, n_features_in_=n_features)
    if X_val is not None or y_val is not None:
        X_val, y_val = check_validation_set(blank, capabilities, X_val, y_val, X)
        are_same = given is given_val
        if not valuer._is_private:  # a warning would tell of private rows
            are_same = are_same or _same_rows(given, given_val, X, X_val)
        if are_same:
            _warn_of_same_rows()
    columns = {name: value for name, value in vars(blank).items() if name.endswith("_")}
    is_unusable = None
    if valuer._is_private and isinstance(X, (np.ndarray, Rows)):
        X, is_unusable = blank_unusable_rows(X, capabilities)
    return build_problem(
        valuer,
        X,
        y,
        X_val,
        y_val,
        capabilities=capabilities,
        columns=columns,
        groups=groups,
        sample_weight=sample_weight,
        sample_weight_val=sample_weight_val,
        is_unusable=is_unusable,
    )


def _check_embedding(valuer):
    """Refuse embeddings that learn from private rows."""
    if valuer._is_private and learns_from_rows(valuer.embedding):
        raise ValueError(
            "embedding must not learn from the private rows: with epsilon, pass a "
            "callable, a stateless transformer, or FrozenEstimator(transformer) "
            f"fitted on public data. Got {valuer.embedding!r}."
        )


def _same_rows(given, given_val, X, X_val):
    """Whether rows and validation points are equal, in the same order.

    They are compared as checked, and sparse ones as they were given.
    """
    if issparse(given):
        X = given
        X_val = given_val
    if isinstance(X, Rows) or type(X) is not type(X_val) or X.shape != X_val.shape:
        return False
    if hasattr(X, "equals"):  # a frame, which may have NA
        return X.equals(X_val)
    if issparse(X):
        return (X_val != X).nnz == 0
    return np.array_equal(X, X_val)


def _warn_of_same_rows():
    problem = (
        "holds the same rows as those to value: each row evaluates itself, and a wrong "
        "label agrees with itself. Pass other rows, or none."
    )
    warn(Message("X_val", problem), SameRowsWarning)


def build_problem(
    valuer,
    X,
    y,
    X_val,
    y_val,
    *,
    capabilities,
    columns,
    groups=None,
    sample_weight=None,
    sample_weight_val=None,
    former=None,
    is_unusable=None,
):
    """Encode the labels and make the splits, from checked rows and validation points.

    The keywords are fields of `Problem`, with groups and weights as they were passed;
    ``is_unusable`` (n_samples,) is the mask of `blank_unusable_rows`.
    """
    privacy = PrivacyParameters.of(valuer)
    if privacy.is_private:
        check_privacy(privacy, X_val)
    n = len(y)
    has_private_number = privacy.is_private and (
        getattr(valuer, "relation", None) == "add_remove"
    )
    # An error would tell of the number of rows.
    fewest_groups = 0 if has_private_number else 2
    group_names, group_codes = check_groups(groups, n, fewest_groups)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, "sample_weight", n)
    n_protected = n
    if groups is not None and capabilities.protects_groups:
        n_protected = len(group_names)
    if has_private_number:
        n_protected = None
    warn_of_guarantee(valuer, n_protected)
    if X_val is None and sample_weight_val is not None:
        raise ParameterError(
            "sample_weight_val", "needs X_val: it weights validation points."
        )
    if X_val is not None and not capabilities.points:
        problem = f"is not used: {type(valuer).__name__} has no validation points."
        warn(Message("X_val", problem))
        X_val = None
        y_val = None
    classes, y, y_val = encode(capabilities, y, y_val, privacy.is_private)
    if is_unusable is not None:
        no_label = np.nan if classes is None else len(classes)
        y = np.where(is_unusable, no_label, y)
    problem = Problem(
        X,
        y,
        classes,
        groups=group_codes,
        group_names=group_names,
        sample_weight=sample_weight,
        has_validation_set=X_val is not None,
        columns=columns,
        capabilities=capabilities,
        former=former or {},
    )
    if not capabilities.points:
        return problem

    if X_val is None:
        splits, joining_fraction = split_rows(valuer.cv, problem)
    else:
        joining_fraction = 1.0
        weights = check_validation_weights(sample_weight_val, len(y_val))
        if sample_weight_val is not None:
            sample_weight_val = np.asarray(sample_weight_val)
        prior = 0.0 if problem.n_classes else float(y_val @ weights)
        points = Points(X_val, y_val, weights, np.arange(len(y_val)), prior=prior)
        splits = (Split(slice(None), points),)
    class_weight = getattr(valuer, "class_weight", None)
    if class_weight is not None:
        splits = with_class_weights(class_weight, problem, splits)
    return replace(
        problem,
        splits=splits,
        joining_fraction=joining_fraction,
        sample_weight_val=sample_weight_val,
    )
