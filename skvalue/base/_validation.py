"""Checks of what a user passes to ``fit`` besides X: validation set, labels, groups, splits."""

import numpy as np
from scipy import sparse
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, LeaveOneOut, check_cv
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from .._utils.embedding import embed
from .._utils.parallel import row_map
from .._utils.sklearn import is_pandas_na, is_scalar_nan
from ..neighbors import Rows, as_rows, read_rows

_BLOCK = 2**22  # numbers of a block that is checked at a time
_LARGE = 2**20  # numbers from which on threads look for NaN


def one_column(values, name, warn=False):
    """The values as an array of one dimension; ValueError where they are more than a column."""
    shape = np.shape(values)
    if len(shape) > 1 and shape[1:] != (1,):
        raise ValueError(f"{name} must be one column. Got an array of shape {shape}.")
    return column_or_1d(values, warn=warn)


def check_task(task, y, name="y"):
    """Return "classification" or "regression"; "auto" decides by the type of the target."""
    kind = type_of_target(y, input_name=name)
    if kind.startswith("multilabel") or kind.endswith("multioutput") or kind == "unknown":
        got = f"objects that are no strings: convert them, as by {name}.astype(int)"
        raise ValueError(
            f"Unknown label type: {name} must be one column of classes or numbers. "
            f"Got {got if kind == 'unknown' else repr(kind)}."
        )
    if task != "auto":
        if task == "classification" and kind == "continuous":
            raise ValueError(
                f"Unknown label type: {name} must hold classes when task='classification'. Got "
                "continuous values."
            )
        return task
    return "regression" if kind == "continuous" else "classification"


def refuse_missing_labels(y):
    """Refuse labels that are None, NaN or NA among others that are objects, such as strings."""
    labels = np.asarray(y)
    if labels.dtype != object or labels.ndim != 1:
        return
    for place, label in enumerate(labels):
        if label is None or is_scalar_nan(label) or is_pandas_na(label):
            raise ValueError(f"y must hold no missing labels. Got {label!r} at place {place}.")


def check_numeric_target(y, name):
    """Return the target as finite float64."""
    y = one_column(y, name, warn=True)
    return check_array(y, ensure_2d=False, dtype=np.float64, input_name=name)


def check_target_scale(y, name):
    """Return the target as float64, of which sums of squared squares are finite, too."""
    y = check_numeric_target(y, name)
    largest = np.abs(y).max()
    limit = (np.finfo(np.float64).max / (1024 * len(y))) ** 0.25
    if largest > limit:
        raise ValueError(
            f"{name} must be at most {limit:.0e} in absolute value, for squared errors and their "
            f"variances to be finite. Got {largest:g}: scale it."
        )
    return y


def encode_labels(y, y_val=None):
    """Return the sorted classes of ``y`` and the codes of ``y`` and of ``y_val``.

    Raises ValueError where ``y`` has one class, or ``y_val`` has a label that ``y`` has not.
    """
    classes, codes = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"y must have at least 2 classes. Got one class: {classes.tolist()[0]!r} "
            f"(n_samples={len(codes)})."
        )
    # Small codes keep the compiled loops in the cache.
    codes = codes.astype(np.min_scalar_type(len(classes) - 1))
    return classes, codes, None if y_val is None else label_codes(y_val, classes, "y_val")


def label_codes(y, classes, name):
    """Codes of known labels.

    Raises ValueError where ``y`` has a label that is not one of ``classes``.
    """
    y = one_column(y, name, warn=True)
    try:
        codes = np.clip(np.searchsorted(classes, y), 0, len(classes) - 1)
        unseen = sorted(set(y[classes[codes] != y].tolist()))
    except TypeError:
        unseen = sorted({repr(label) for label in y} - {repr(label) for label in classes})
    if unseen:
        shown = ", ".join(map(repr, unseen[:5])) + (", ..." if len(unseen) > 5 else "")
        raise ValueError(f"{name} must hold only labels that y has. Got unseen labels: {shown}.")
    return codes.astype(np.min_scalar_type(len(classes) - 1))


def check_rows(estimator, X, y="no_validation", *, dtypes, like=None, name="X"):
    """Return checked rows, embedded if the estimator embeds; with y given, of a fit.

    Where the estimator takes rows that are not in memory, sparse ones, those in a file and Dask
    arrays come back as `skvalue.neighbors.Rows`, checked block by block.

    Parameters
    ----------
    estimator : BaseValuer
        Its `embedding_`, number and names of features count.
    X : array-like
        The rows.
    y : array-like, default="no_validation"
        Labels of a fit, which sets the number and the names of features.
    dtypes : list of dtype
        Precisions kept; any other becomes the first.
    like : ndarray or Rows, default=None
        Rows of fit: the result is sparse if, and only if, they are.
    name : str
        What messages call the rows.

    Returns
    -------
    X : ndarray or Rows
        The rows.
    y : ndarray
        The labels, if they were passed.
    """
    fit = not (isinstance(y, str) and y == "no_validation")
    if getattr(estimator, "embedding", None) is not None:
        X = embed(estimator.embedding_, X, name)
    rows = as_rows(X, dtypes) if estimator._takes_blocks else X
    if isinstance(rows, Rows) and not rows.is_sparse:
        rows = validate_data(estimator, rows, skip_check_array=True, reset=fit)
        _check_blocks(rows, name, minimum=2 if fit else 1)
        if fit:
            y = validate_data(estimator, "no_validation", y)
            check_consistent_length(rows, y)
    else:
        large = isinstance(X, np.ndarray) and X.dtype in dtypes and X.size >= _LARGE
        rows = validate_data(
            estimator, X, y, dtype=list(dtypes), order="C", reset=fit,
            accept_sparse="csr" if isinstance(rows, Rows) else False,
            ensure_min_samples=2 if fit else 1, ensure_all_finite=not large,
            allow_nd=getattr(estimator, "_allows_nd", False),
        )  # fmt: skip
        rows, y = rows if fit else (rows, None)
        if large and not row_map(_has_finite_norm, rows).all():  # or the norm alone overflows
            assert_all_finite(rows, estimator_name=type(estimator).__name__, input_name=name)
        rows = as_rows(rows, dtypes) if estimator._takes_blocks else rows
    if like is not None:
        if isinstance(like, Rows) and like.is_sparse:
            rows = as_rows(sparse.csr_array(read_rows(rows)), dtypes)
        elif isinstance(rows, Rows) and rows.is_sparse:
            rows = rows.read().toarray()
    return (rows, y) if fit else rows


def _has_finite_norm(rows):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.isfinite(np.vecdot(rows, rows))


def _check_blocks(rows, name, minimum):
    """What scikit-learn checks of an array, block by block."""
    n, d = rows.shape
    if n != n:
        raise ValueError(f"{name} must have known chunk sizes: call compute_chunk_sizes() first.")
    if len(rows.source.shape) != 2 or rows.source.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be a 2D array of real numbers. Got shape {rows.source.shape} and dtype "
            f"{rows.source.dtype}."
        )
    if n < minimum or d < 1:
        raise ValueError(
            f"Found array with {n} sample(s) and {d} feature(s) (shape={rows.shape}) while a "
            f"minimum of {minimum} and 1 is required."
        )
    if rows.source.dtype.kind != "f":
        return
    for _, block in rows.blocks(max(1, _BLOCK // d)):
        if not np.isfinite(block).all():
            what = "NaN" if np.isnan(block).any() else "infinity"
            raise ValueError(f"Input {name} contains {what}.")


def check_validation_set(estimator, X_val, y_val, X):
    """Check both or neither, the columns, NaN, and equal lengths.

    Raises ValueError that names ``X_val`` or ``y_val``.
    """
    if X_val is None and y_val is None:
        return None, None
    if X_val is None or y_val is None:
        missing, given = ("X_val", "y_val") if X_val is None else ("y_val", "X_val")
        raise ValueError(f"X_val and y_val must be passed together. Got {given} and no {missing}.")
    y_val = np.asarray(y_val)
    if np.shape(X_val)[:1] == (0,) or y_val.shape[:1] == (0,):
        raise ValueError("X_val and y_val must hold at least one row. Got an empty validation set.")
    try:
        X_val = check_rows(estimator, X_val, dtypes=[X.dtype], like=X, name="X_val")
    except ValueError as error:
        raise ValueError(f"X_val must be like X: {error}") from None
    if len(X_val) != y_val.shape[0]:
        raise ValueError(
            f"X_val and y_val must have the same length. Got {len(X_val)} and {y_val.shape[0]}."
        )
    return X_val, y_val


def check_judge_weights(weights, n_judges):
    """Validation weights as float64 that sum to one; equal ones where None was given."""
    if weights is None:
        return np.full(n_judges, 1.0 / n_judges)
    weights = raw_judge_weights(weights, n_judges)
    if weights.max() == 0:
        raise ValueError("sample_weight_val must be non-negative with a positive sum. Got zeros.")
    if weights.max() > np.finfo(np.float64).max / len(weights):  # the sum may overflow
        weights = weights / weights.max()
    return weights / weights.sum()


def raw_judge_weights(weights, n_judges):
    """Validation weights as they are, as float64; ones where None was given."""
    if weights is None:
        return np.ones(n_judges)
    weights = _check_weights(weights, "sample_weight_val")
    if len(weights) != n_judges:
        raise ValueError(
            f"sample_weight_val must have one entry a row of X_val ({n_judges}). Got "
            f"{len(weights)}."
        )
    if weights.min() < 0:
        raise ValueError(
            "sample_weight_val must be non-negative with a positive sum. Got a minimum of "
            f"{weights.min()}."
        )
    return weights


def _check_weights(weights, name):
    weights = check_array(weights, ensure_2d=False, dtype=np.float64, input_name=name)
    return one_column(weights, name)


def check_sample_weight(weights, n_rows):
    """Weights of the rows in fits as float64, or None."""
    if weights is None:
        return None
    weights = _check_weights(weights, "sample_weight")
    if len(weights) != n_rows:
        raise ValueError(
            f"sample_weight must have one entry a row of X ({n_rows}). Got {len(weights)}."
        )
    if weights.min() < 0 or weights.max() == 0:
        raise ValueError(
            "sample_weight must not be negative, nor zero for all rows. Got weights from "
            f"{weights.min()} to {weights.max()}."
        )
    return weights


def check_names(names, what):
    """Return the sorted names, and the code of every entry; none may be missing."""
    names = one_column(names, what)
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise ValueError(f"{what} must not hold NaN or infinity.")
    try:
        missing = names.dtype == object and any(name is None or name != name for name in names)
        kinds, codes = np.unique(names, return_inverse=True)
    except TypeError:  # of pandas.NA, or of names without an order
        missing = True
    if missing:
        raise ValueError(f"{what} must hold names of one kind, and no None, NaN or NA.")
    return kinds, codes


def check_groups(groups, n_rows):
    """Return the sorted groups and the code of every row, or None, None."""
    if groups is None:
        return None, None
    groups = one_column(groups, "groups")
    if len(groups) != n_rows:
        raise ValueError(f"groups must have one entry a row of X ({n_rows}). Got {len(groups)}.")
    names, codes = check_names(groups, "groups")
    if len(names) < 2:
        raise ValueError(f"groups must name at least 2 groups. Got one: {names.tolist()[0]!r}.")
    return names, codes


def is_leave_one_out(cv):
    """Whether ``cv`` asks for leave-one-out, by name or by splitter."""
    return (isinstance(cv, str) and cv == "leave-one-out") or isinstance(cv, LeaveOneOut)


def make_splits(cv, X, y, group_codes, classifier):
    """List the (players, judges) splits of ``cv``.

    Raises ValueError unless every row plays equally often, is judged by others only, and no group
    stands on both sides of a split.
    """
    n = len(y)
    if is_leave_one_out(cv):
        cv = LeaveOneOut() if group_codes is None else LeaveOneGroupOut()
    elif group_codes is not None and isinstance(cv, int):
        cv = GroupKFold(cv)
    cv = check_cv(cv, y, classifier=classifier)
    splits = [
        (np.sort(players), np.sort(judges)) for players, judges in cv.split(X, y, group_codes)
    ]
    plays = np.zeros(n, dtype=np.int64)
    for players, judges in splits:
        if len(players) == 0 or len(judges) == 0:
            raise ValueError(f"cv={cv!r} must give splits with at least one row on either side.")
        if np.intersect1d(players, judges).size:
            raise ValueError(f"cv={cv!r} must not put a row on both sides of a split.")
        plays[players] += 1
        if group_codes is not None:
            both = np.intersect1d(group_codes[players], group_codes[judges])
            if both.size:
                raise ValueError(
                    f"With groups, cv={cv!r} must keep every group on one side of a split: use "
                    "GroupKFold, LeaveOneGroupOut or an int."
                )
    if plays.min() != plays.max():
        raise ValueError(
            f"cv={cv!r} must let every row play equally often (KFold, StratifiedKFold, GroupKFold, "
            f"repeated K-fold, leave-one-out). Got rows that play {plays.min()} to {plays.max()} "
            "times."
        )
    return splits
