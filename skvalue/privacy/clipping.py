"""Rows cut to a Euclidean norm, so that the bound holds in exact arithmetic."""

import numpy as np


def clipping_margin(n_features, dtype=np.float64):
    """Relative distance from the bound at which `clip_rows` leaves the rows that it shrinks.

    Parameters
    ----------
    n_features : int
        Number of entries of a row.
    dtype : dtype, default=float64
        Of the rows.

    Returns
    -------
    margin : float
        ``2 (d + 16) u + 4 v``, u half the machine epsilon of float64 and v that of the dtype.
    """
    return float((n_features + 16) * np.finfo(np.float64).eps + 2 * np.finfo(dtype).eps)


def clip_rows(X, max_norm):
    """Rows scaled down to a norm, where theirs is larger.

    This is the one convention of the library: **the bound holds for the numbers that are returned,
    in exact arithmetic**, and so sensitivities need no margin for the rounding of norms.

    In float64, of unit roundoff u, the norm of d numbers is computed with a relative error of at
    most (d/2 + 5) u, in whatever order they are summed; scaling adds at most (d/2 + 5) u, and v
    where the result is rounded to a dtype of unit roundoff v. With the margin
    ``m = 2 (d + 16) u + 4 v`` rows are left alone up to a computed norm of ``(1 - m/2) max_norm``
    and scaled to ``(1 - m) max_norm`` beyond. So both are at most ``max_norm``, even after one
    more rounding (a division by ``max_norm``), and what is clipped twice does not change again.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Finite rows.
    max_norm : float or None
        The norm, at least sqrt d times the smallest normal number of the dtype; None leaves rows as
        they are.

    Returns
    -------
    clipped : ndarray of shape (n, d)
        Rows of norm at most `max_norm`; of float32 if X is, else of float64.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.privacy import clip_rows
    >>> clip_rows(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0).round(6).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    X = np.asarray(X)
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    if max_norm is None:
        return X.astype(dtype, copy=False)
    rows = X.astype(np.float64, copy=False)
    margin = clipping_margin(X.shape[1], dtype)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(largest > 0, largest, 1.0)  # or squares could overflow
    norms = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    with np.errstate(over="ignore"):
        inside = norms * largest <= max_norm * (1 - margin / 2)
    factor = max_norm / np.where(norms > 0, norms, 1.0) * (1 - margin)
    return np.where(inside, rows, scaled * factor).astype(dtype, copy=False)
