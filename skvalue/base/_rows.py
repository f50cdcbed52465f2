"""Checks of X and X_val: in memory, sparse, in a file, embedded, or as an estimator takes them."""

import re

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array, check_consistent_length
from sklearn.utils.validation import check_non_negative, validate_data

from .._utils.checks import has_outputs, hidden_entries, refuse_dict
from .._utils.embedding import embed
from .._utils.fits import blank_of
from .._utils.parallel import row_map
from ..neighbors import Rows, as_rows, read_rows
from ._containers import contained, holds_strings, is_frame, is_numeric, kind_of, n_rows_of

_BLOCK = 2**22  # numbers in a block that is checked at a time
_LARGE = 2**20  # from this size on, several threads look for NaN


def check_rows(estimator, X, y="no_validation", *, like=None, name="X"):
    """Check rows, after the estimator's embedding if any; with y, returns (X, y) of a fit.

    Sparse rows, rows in a file and Dask arrays become `skvalue.neighbors.Rows` if the estimator
    supports them; with ``takes.any_rows``, X is left to the estimator that is trained. With
    ``like``, rows of fit, the result has their dtype, and is sparse iff they are.
    """
    embedded = getattr(estimator, "embedding", None) is not None
    if not (embedded and hasattr(X, "shape")):  # skorch's SliceDict, for a callable
        refuse_dict(X, name)
    if embedded and not estimator._takes.any_rows:
        X = embed(estimator.embedding_, X, name)
        if like is not None:  # the number of features of the fit may be that before the embedding
            estimator = blank_of(estimator)
            estimator.n_features_in_ = like.shape[1]
    with hidden_entries("y" if _is_fit(y) and np.asarray(y).dtype.kind == "c" else name):
        if estimator._takes.any_rows:
            return _check_any_rows(estimator, X, y, like)
        if estimator._takes.pairwise:
            return _check_distances(estimator, X, y, like, name)
        try:
            return _check_numbers(estimator, X, y, like, name)
        except (TypeError, ValueError) as error:
            _name_the_cure(estimator, X, name, error)
            raise


def _is_fit(y):
    return not (isinstance(y, str) and y == "no_validation")


def _check_numbers(estimator, X, y, like, name):
    """Rows of numbers, see `check_rows`."""
    takes, fit = estimator._takes, _is_fit(y)
    several = {"multi_output": True} if takes.outputs and has_outputs(y) else {}
    dtypes = takes.dtypes if like is None else (like.dtype,)
    rows = as_rows(X, dtypes) if takes.blocks else X
    if isinstance(rows, Rows) and not rows.is_sparse:
        rows = validate_data(estimator, rows, skip_check_array=True, reset=fit)
        _check_blocks(rows, name, minimum=2 if fit else 1)
        if fit:
            y = validate_data(estimator, "no_validation", y, **several)
            check_consistent_length(rows, y)
    else:
        large = isinstance(X, np.ndarray) and X.dtype in dtypes and X.size >= _LARGE
        rows = validate_data(
            estimator, X, y, dtype=list(dtypes), order="C", reset=fit,
            accept_sparse="csr" if isinstance(rows, Rows) else False,
            ensure_min_samples=2 if fit else 1, ensure_all_finite=not large,
            allow_nd=takes.allow_nd, **several,
        )  # fmt: skip
        rows, y = rows if fit else (rows, None)
        if large and not row_map(_has_finite_norm, rows).all():  # or only the norm overflows
            assert_all_finite(rows, estimator_name=type(estimator).__name__, input_name=name)
        rows = as_rows(rows, dtypes) if takes.blocks else rows
    if like is not None:
        if isinstance(like, Rows) and like.is_sparse:
            rows = as_rows(sparse.csr_array(read_rows(rows)), dtypes)
        elif isinstance(rows, Rows) and rows.is_sparse:
            rows = rows.read().toarray()
    return (rows, y) if fit else rows


def _check_distances(estimator, X, y, like, name):
    """Distances from the rows of fit, see `check_rows`; sparse ones become `Rows`."""
    fit, was = _is_fit(y), isinstance(like, Rows)
    several = {"multi_output": True} if estimator._takes.outputs and has_outputs(y) else {}
    if getattr(estimator, "embedding", None) is not None:
        raise ValueError(
            "embedding must be None with metric='precomputed': X holds distances. Got "
            f"{estimator.embedding!r}."
        )
    rows = validate_data(
        estimator, X, y, dtype=np.float64, order="C", reset=fit, accept_sparse="csr",
        ensure_min_samples=2 if fit else 1, **several,
    )  # fmt: skip
    rows, y = rows if fit else (rows, None)
    check_non_negative(rows, f"{name}, which holds distances")
    if fit and rows.shape[0] != rows.shape[1]:
        raise ValueError(
            "X must hold the distances between all rows, of shape (n_samples, n_samples), with "
            f"metric='precomputed'. Got shape {rows.shape}."
        )
    if sparse.issparse(rows):  # zeros that are stored are distances: `as_rows` would drop them
        rows = sparse.csr_array(rows)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        rows = Rows(rows, rows.dtype)
    if like is not None and name == "X" and isinstance(rows, Rows) != was:
        raise ValueError(f"X must be {'sparse' if was else 'dense'}, as in fit.")
    return (rows, y) if fit else rows


def _name_the_cure(estimator, X, name, error):
    """Raise an error that says how to make numbers of rows, if they hold NaN or no numbers."""
    what, step = str(error).splitlines()[0], "ColumnTransformer(...)"
    if "passed for y" in what:
        return
    if "X contains NaN" in what or "X_val contains NaN" in what:
        step = "make_pipeline(SimpleImputer(), StandardScaler())"
    elif not re.search("convert|cast|promote", what) or type(X).__module__.startswith("dask"):
        return
    else:
        rows = contained(X)
        if is_frame(rows):
            others = [str(c) for c in rows.columns if np.asarray(rows[c]).dtype.kind not in "biuf"]
            got = f"columns of other types: {', '.join(others[:5])}"
        else:
            step = "TfidfVectorizer()" if rows.ndim == 1 else step
            got = kind_of(rows)
        what = f"{name} must hold numbers. Got {got}."
    if getattr(estimator, "embedding", None) is not None:
        cure = "The embedding must return finite numbers"
    elif hasattr(estimator, "embedding"):
        cure = f"Pass embedding={step}, which maps each row to a vector of finite numbers"
    else:
        cure = f"Transform the rows first, for example by {step}"
    raise ValueError(f"{what} {cure}.") from None  # the first error may show an entry


def _check_any_rows(estimator, X, y, like):
    """Rows that are left to the estimator to be trained; arrays of numbers become floats."""
    takes, fit, rows = estimator._takes, _is_fit(y), contained(X)
    if sparse.issparse(rows):
        to_numbers = False
    elif is_frame(rows):
        to_numbers = (like is not None or not takes.names) and _converts(rows)
    else:
        to_numbers = not holds_strings(rows)
    if is_numeric(like) and sparse.issparse(rows):
        rows, to_numbers = rows.toarray(), True
    elif sparse.issparse(like):
        rows = type(like)(np.asarray(rows)) if to_numbers else rows
    to_numbers = to_numbers and (like is None or is_numeric(like))
    if to_numbers:
        return validate_data(
            estimator, rows, y, dtype=list(takes.dtypes if like is None else (like.dtype,)),
            order="C", reset=fit, ensure_min_samples=2 if fit else 1, ensure_all_finite=False,
            allow_nd=True,
        )  # fmt: skip
    if like is not None and kind_of(rows) != kind_of(like):
        raise ValueError(f"X is {kind_of(like)}. Got {kind_of(rows)}.")
    if fit:
        y = validate_data(estimator, "no_validation", y)
        check_consistent_length(rows, y)
    rows = validate_data(estimator, rows, skip_check_array=True, reset=fit)
    n, minimum = n_rows_of(rows), 2 if fit else 1
    if n < minimum:
        raise ValueError(f"X must have at least {minimum} rows. Got {n}.")
    return (rows, y) if fit else rows


def _converts(frame):
    """Whether all columns of a frame are numbers, NaN included."""
    try:
        check_array(frame, dtype=np.float64, ensure_all_finite=False)
    except (TypeError, ValueError):
        return False
    return True


def _has_finite_norm(rows):
    with np.errstate(over="ignore", invalid="ignore"):
        return np.isfinite(np.vecdot(rows, rows))


def _check_blocks(rows, name, minimum):
    """The checks of scikit-learn's `check_array`, block by block."""
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
    """Check that both are passed or neither, and their columns, NaN and equal lengths."""
    if X_val is None and y_val is None:
        return None, None
    if X_val is None or y_val is None:
        missing, given = ("X_val", "y_val") if X_val is None else ("y_val", "X_val")
        raise ValueError(f"X_val and y_val must be passed together. Got {given} and no {missing}.")
    y_val = np.asarray(y_val)
    shape = X_val.shape if hasattr(X_val, "shape") else np.shape(X_val)
    if shape[:1] == (0,) or y_val.shape[:1] == (0,):
        raise ValueError("X_val and y_val must hold at least one row. Got an empty validation set.")
    try:
        X_val = check_rows(estimator, X_val, like=X, name="X_val")
    except ValueError as error:
        what = str(error).replace("X has", "X_val has", 1)  # of scikit-learn, on features
        raise ValueError(f"X_val must be like X: {what}") from None
    n = n_rows_of(X_val)
    if n != y_val.shape[0]:
        raise ValueError(
            f"X_val and y_val must have the same length. Got {n} and {y_val.shape[0]}."
        )
    return X_val, y_val
