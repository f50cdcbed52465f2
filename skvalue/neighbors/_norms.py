"""Norms of rows, and the center that is subtracted from them."""

import numpy as np
from scipy import sparse


def squared_norms(X):
    """Squared norms of dense or sparse rows; `check_norms` refuses those too large."""
    with np.errstate(over="ignore", under="ignore"):
        if sparse.issparse(X):
            return np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(X.dtype)
        return np.vecdot(X, X)


def far_center(sample, mean_norm):
    """Mean of a sample of the rows, (d,), or None if it is near the origin.

    ``mean_norm``: the mean squared norm, with which that of the mean is compared.
    """
    center = sample.mean(axis=0, dtype=np.float64).astype(sample.dtype)
    return center if squared_norms(center) > 0.25 * mean_norm else None


def check_norms(squares, rows, name="X", small=None):
    """Refuse squared norms that overflow or underflow the dtype of the rows.

    A key is at most a few squared norms, and keys are subtracted: norms up to a
    sixteenth of the largest number leave room for that. ``small``: mask of rows whose
    squares have lost digits.
    """
    limit = np.finfo(rows.dtype).max / 16
    if not squares.max(initial=0) <= limit:  # also for NaN
        got = f"too large ones, from column {_largest_column(rows, squares)}"
    elif small is not None and small.any() and _has_nonzero(rows[small]):
        got = "too small ones"
    else:
        got = None
    if got is not None:
        raise ValueError(
            f"{name} must have squared norms that fit its precision ({rows.dtype}), "
            "neither too large for it nor too small: scale its columns, or pass "
            f"float64. Got {got}."
        )


def check_narrow_norms(largest_half, dtype, engine):
    """Refuse squared norms that do not fit the dtype in which an engine computes.

    ``largest_half`` has half the largest squared norm of the rows, and of the points,
    by name. Products of rows and points that are both small would lose digits.
    """
    limits = np.finfo(dtype)
    limit = float(limits.max) / 32
    too_large = [name for name, half in largest_half.items() if not half <= limit]
    largest = max(largest_half.values())
    if too_large:
        name = too_large[0]
        got = "too large ones"
    elif 0 < largest < float(limits.tiny / limits.eps):
        name = next(iter(largest_half))
        got = "too small ones"
    else:
        return
    raise ValueError(
        f"{name} must have squared norms that fit {np.dtype(dtype)} for "
        f"engine={engine!r}, which computes in it: scale the columns, or pass "
        f"engine='native'. Got {got}."
    )


def _has_nonzero(rows):
    if sparse.issparse(rows):
        return rows.count_nonzero() > 0
    return np.any(rows)


def _largest_column(rows, squares):
    """The column that makes the norm of a row too large."""
    row = rows[[int(np.argmax(squares))]]
    if sparse.issparse(row):
        row = row.toarray()
    return int(np.argmax(np.abs(row[0])))


def inverse_norms(squares, rows, name="X"):
    """Inverse norm of each row; 0 for a row of zeros, whose cosine with any is 0."""
    check_norms(squares, rows, name, squares < np.finfo(rows.dtype).tiny)
    norms = np.sqrt(squares)
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
