"""The values that cost no privacy: those of public points and of the row itself."""

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d

from ..._utils.checks import check_length, check_validation_weights, exact_integers
from ..._utils.targets import codes_or_other
from ...neighbors import balls, get_engine, make_space
from ._game import by_label


def public_baseline(
    X,
    y,
    X_val,
    y_val,
    radius=0.5,
    metric="cosine",
    *,
    sample_weight_val=None,
    n_jobs=None,
):
    """Compute values that use no private statistic.

    They are the baseline that private values must improve on.

    The value of a row is a mean over validation points: 1/2 for a point that has its
    label, -1/2 for any other point, and 0 if the row is not in the ball of the point.
    The private values of `TKNNShapleyValuer` tend to these as epsilon tends to 0. They
    release nothing: the value of a row does not depend on the other rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows.
    y : array-like of shape (n_samples,)
        Their labels.
    X_val : array-like of shape (n_validation, n_features)
        Public validation points.
    y_val : array-like of shape (n_validation,)
        Their labels.
    radius : float, default=0.5
        Radius of the balls.
    metric : str or callable, default="cosine"
        The metric, as in `TKNNShapleyValuer`.
    sample_weight_val : array-like of shape (n_validation,), default=None
        Weights of the validation points.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    values : ndarray of shape (n_samples,)
        The values.

    Raises
    ------
    ValueError
        If the arrays do not fit together.

    Examples
    --------
    >>> X, y = [[1.0], [1.2], [5.0]], [0, 1, 0]
    >>> public_baseline(X, y, [[1.1]], [0], radius=0.5, metric="euclidean").tolist()
    [0.5, -0.5, 0.0]
    """
    X = check_array(X, order="C", dtype=[np.float64, np.float32], input_name="X")
    X_val = check_array(X_val, order="C", dtype=X.dtype, input_name="X_val")
    if X_val.shape[1] != X.shape[1]:
        raise ValueError(
            f"X_val must have {X.shape[1]} columns, as X. Got {X_val.shape[1]}."
        )
    classes, codes_val = np.unique(
        column_or_1d(exact_integers(y_val)), return_inverse=True
    )
    codes = codes_or_other(y, classes)
    check_length(codes, "y", len(X))
    check_length(codes_val, "y_val", len(X_val), of="X_val")
    weights = check_validation_weights(sample_weight_val, len(X_val))
    space = make_space(X, metric, codes, len(classes) + 1)
    neighbours = balls(get_engine("auto"), space, X_val, radius, n_jobs=n_jobs)
    half = np.full(len(X_val), 0.5)
    signs = by_label(codes_val, half, -half, len(classes) + 1)
    return neighbours.sum(signs * weights)
