"""Clipping of rows to a Euclidean norm that holds in exact arithmetic."""

import numpy as np


def clipping_margin(n_features, dtype=np.float64):
    """Relative distance from the bound to the norm of rows that `clip_rows` has scaled.

    Parameters
    ----------
    n_features : int
        Number of entries of a row.
    dtype : dtype, default=float64
        Data type of the rows.

    Returns
    -------
    margin : float
        ``2 (d + 16) u + 4 v``, with u and v half the machine epsilon of float64 and of
        the dtype.

    Examples
    --------
    >>> from skvalue.privacy import clipping_margin
    >>> clipping_margin(100) < 1e-12
    True
    """
    return float((n_features + 16) * np.finfo(np.float64).eps + 2 * np.finfo(dtype).eps)


def clip_rows(X, max_norm):
    """Scale rows whose norm exceeds a bound down to the bound.

    **The bound holds for the returned numbers, in exact arithmetic**, so sensitivities
    need no margin for rounding errors of norms. Kernels that clip the gradients of
    private rows as they add them up clip to a bound that is smaller by the rounding of
    the norms and of the sum.

    In float64, of unit roundoff u, the norm of d numbers is computed with a relative
    error of at most (d/2 + 5) u, for any order of summation; scaling adds at most (d/2
    + 5) u, and v if the result is rounded to a dtype of unit roundoff v. With the
    margin ``m = 2 (d + 16) u + 4 v``, rows with a computed norm up to ``(1 - m/2)
    max_norm`` are unchanged, and others are scaled to ``(1 - m) max_norm``. So both
    norms are at most ``max_norm``, even after one more rounding (a division by
    ``max_norm``), and clipping a second time changes nothing.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Finite rows.
    max_norm : float or None
        Bound on the norm, at least sqrt d times the smallest normal number of the
        dtype; None does not clip.

    Returns
    -------
    clipped : ndarray of shape (n, d)
        Rows of norm at most `max_norm`, float32 if X is float32 and float64 otherwise.

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
    max_norm = float(max_norm)
    margin = clipping_margin(X.shape[1], dtype)

    # Rows are scaled by their largest entry, so that the squares do not overflow.
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(largest > 0, largest, 1.0)
    norms = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    with np.errstate(over="ignore"):
        is_within = norms * largest <= max_norm * (1 - margin / 2)
    factors = max_norm / np.where(norms > 0, norms, 1.0) * (1 - margin)
    return np.where(is_within, rows, scaled * factors).astype(dtype, copy=False)
