"""A validated problem after a change of its rows or validation points."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from .._utils.checks import (
    check_length,
    check_outputs,
    check_task,
    label_codes,
    new_labels,
    raw_validation_weights,
    refuse_missing_labels,
    summable_weights,
)
from ..neighbors import Rows, concatenate_rows
from ._containers import is_frame, n_rows_of, rows_at, stack_rows
from ._problem import Points, Split, build_problem
from ._rows import check_rows, check_validation_set


def with_rows(estimator, problem, X, y, groups):
    """The problem with rows appended."""
    _refuse_distances(estimator, "add_rows")
    X = check_rows(estimator, X, like=problem.X)
    y = np.asarray(y)
    refuse_missing_labels(y)
    check_length(y, "y", n_rows_of(X))
    if (groups is None) != (problem.groups is None):
        raise ValueError("groups must be passed to both fit and add_rows, or to neither.")
    if groups is not None:
        groups = _joined(_groups(problem, slice(None)), np.asarray(groups), "groups")
    y = _joined(problem.labels(problem.y), y, "y")
    return _rebuilt(estimator, problem, _stacked(problem.X, X), y, groups)


def without_rows(estimator, problem, rows):
    """The problem without some rows, which are given by position or by a mask."""
    _refuse_distances(estimator, "remove_rows")
    n, rows = len(problem.y), np.asarray(rows)
    if rows.size and rows.dtype.kind not in "iub":
        raise ValueError(f"rows must be positions or a mask. Got entries of {rows.dtype}.")
    if rows.dtype == bool:
        check_length(rows, "rows", n, of="fit")
    if rows.dtype != bool and rows.size and not (-n <= rows.min() and rows.max() < n):
        raise ValueError(f"rows must be between 0 and {n - 1}. Got {rows.min()} to {rows.max()}.")
    keep = np.ones(n, dtype=bool)
    keep[rows if rows.size else []] = False
    if keep.sum() < 2:
        raise ValueError(f"rows must leave at least 2 rows. Got {keep.sum()} of {n}.")
    labels = problem.labels(problem.y)[keep]
    kept = rows_at(problem.X, keep)
    return _rebuilt(estimator, problem, kept, labels, _groups(problem, keep))


def with_points(estimator, problem, X_val, y_val, sample_weight_val):
    """The problem with validation points appended, and the problem of the new points alone.

    The latter is None if new points change how the old ones count: for regression, where the empty
    coalition predicts the mean of all targets, with class weights, with a new class, and if the
    utility is no mean.
    """
    old = problem.splits[0].points
    X_val, y_val = check_validation_set(estimator, X_val, y_val, problem.X)
    if estimator._takes.pairwise and isinstance(X_val, Rows) != isinstance(old.X, Rows):
        raise ValueError("X_val must be sparse if that of fit is, and dense if it is not.")
    both = np.concatenate([
        raw_validation_weights(given, len(points))
        for points, given in [(old, problem.sample_weight_val), (y_val, sample_weight_val)]
    ])  # fmt: skip
    several = problem.y.ndim > 1
    refit = not problem.n_classes or several or not estimator._takes.means
    refit = refit or estimator.class_weight is not None
    if refit or len(new_labels(y_val, problem.classes, "y_val")):
        targets = _joined(problem.labels_val(), np.asarray(y_val), "y_val")
        rows = problem.X, problem.labels(problem.y), _groups(problem, slice(None))
        X_val = _stacked(old.X, X_val)
        return _rebuilt(estimator, problem, *rows, (X_val, targets, both)), None
    codes = label_codes(y_val, problem.classes, "y_val")
    new_weights = both[len(old) :]
    index = np.arange(len(old), len(both))
    scaled, scaled_new = summable_weights(both), summable_weights(new_weights)
    new = Points(X_val, codes, scaled_new / (scaled_new.sum() or 1.0), index)
    joined = Points(
        _stacked(old.X, X_val), np.concatenate([old.y, codes]), scaled / scaled.sum(),
        np.arange(len(both)),
    )  # fmt: skip
    whole, part = (
        replace(problem, splits=(Split(slice(None), points),), sample_weight_val=weights)
        for points, weights in [(joined, both), (new, new_weights)]
    )
    return whole, part


def merged(whole, old, new):
    """Result of the problem ``whole`` from the results of its old and its new validation points.

    A callback may have stopped the latter early: only the points that were evaluated are kept.
    """
    split, points = whole.splits[0], whole.splits[0].points
    n_old, done = len(old.problem.splits[0].points), len(new.problem.splits[0].points)
    weights = summable_weights(whole.sample_weight_val)
    first, second = weights[:n_old].sum(), weights[n_old : n_old + done].sum()
    old_weight, new_weight = first / (first + second), second / (first + second)
    points = points.first(n_old + done)
    return replace(
        new,
        values=old_weight * old.values + new_weight * new.values,
        utility=float(old_weight * old.utility + new_weight * new.utility),
        problem=replace(
            whole, splits=(replace(split, points=points),),
            sample_weight_val=whole.sample_weight_val[: n_old + done],
        ),
        statistic=[old.statistic[0] + new.statistic[0]],
    )  # fmt: skip


def _refuse_distances(estimator, what):
    if estimator._takes.pairwise:
        raise ValueError(
            f"{what} needs features, and metric='precomputed' has distances only: fit again, with "
            "the distances of the rows that are left or new."
        )


def _joined(before, new, name):
    """Concatenate; an error for numbers and strings, or for other columns."""
    kinds = {before.dtype.kind, new.dtype.kind}
    if len(kinds) > 1 and "U" in kinds and "O" not in kinds:
        raise ValueError(
            f"{name} must have the same type as in fit ({before.dtype}). Got {new.dtype}."
        )
    if new.ndim > 1 and new.shape[1:] != before.shape[1:]:
        n_columns = before.shape[1] if before.ndim > 1 else 1
        what = f"{n_columns} columns" if n_columns > 1 else "one column"
        raise ValueError(f"{name} must have {what}, as in fit. Got shape {new.shape}.")
    return np.concatenate([before, new])


def _stacked(first, second):
    """The rows of two sets of the same kind, of any kind."""
    lists = sparse.issparse(first) or is_frame(first)
    return stack_rows(first, second) if lists else concatenate_rows(first, second)


def _groups(problem, rows):
    return None if problem.groups is None else problem.group_names[problem.groups[rows]]


def _rebuilt(estimator, problem, X, y, groups, validation=None):
    """The problem of other rows; ``validation`` replaces the validation points, if given."""
    takes = estimator._takes
    check = check_task if y.ndim == 1 else check_outputs
    task = check(takes.task if len(takes.targets) > 1 else takes.targets[0], y)
    if (task == "classification") != (problem.n_classes > 0):
        raise ValueError(
            "y must hold classes, or regression targets, as in fit: with the change it is "
            f"a {task}. Set task= to say which it is."
        )
    if validation is None:
        validation = None, None, problem.sample_weight_val
        if problem.has_validation_set:
            points = problem.splits[0].points
            validation = points.X, problem.labels_val(), problem.sample_weight_val
    X_val, y_val, weights = validation
    rebuilt = build_problem(
        estimator, X, y, X_val, y_val, problem.columns, groups=groups, sample_weight_val=weights
    )
    return replace(rebuilt, former=estimator._fitted.attributes)
