"""Choice of the radius by the validation points."""

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_X_y
from sklearn.utils.extmath import row_norms

from ._game import threshold_utility


def suggest_radius(X_val, y_val, metric="cosine", n_candidates=50):
    """Suggest the radius with which the threshold classifier predicts the validation points best.

    Candidates are quantiles of the distances between validation points, plus a rounding error. The
    radius with the largest mean leave-one-out utility is returned, the smallest if there are ties.
    It is computed from validation points only, so it costs no privacy of the rows to value.

    Parameters
    ----------
    X_val : array-like of shape (n_validation, n_features)
        Validation points.
    y_val : array-like of shape (n_validation,)
        Their labels.
    metric : str or callable, default="cosine"
        The metric, as in `TKNNShapleyValuer`.
    n_candidates : int, default=50
        Number of candidates.

    Returns
    -------
    radius : float
        The radius.

    Raises
    ------
    ValueError
        If there are fewer than 3 validation points, or one class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> 0 < suggest_radius(X, y, metric="euclidean") < 2
    True
    """
    X_val, y_val = check_X_y(X_val, y_val, accept_sparse="csr", ensure_min_samples=3)
    classes, codes = np.unique(y_val, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y_val must have at least 2 classes. Got one: {classes.tolist()[0]!r}.")
    X_val = X_val.astype(np.float64)
    if metric == "euclidean" and not issparse(X_val):
        X_val = X_val - X_val.mean(axis=0)
    distances = pairwise_distances(X_val, metric=metric)
    if metric == "euclidean":  # rounding: the distance of equal points must be 0
        squares = row_norms(X_val, squared=True)
        distances[distances**2 < 1e-13 * (squares[:, None] + squares)] = 0
    np.fill_diagonal(distances, np.inf)
    finite = distances[np.isfinite(distances)]
    radii = np.unique(np.quantile(finite, np.linspace(0, 1, n_candidates + 2)[1:-1]))
    # Slightly larger, so that rounding excludes none of the points at the same distance.
    radii += 1e-12 if metric == "cosine" else 1e-9 * radii
    match = codes[:, None] == codes
    scores = []
    for radius in radii:
        inside = distances <= radius
        same = (inside & match).sum(axis=1)
        scores.append(threshold_utility(same, inside.sum(axis=1) - same, len(classes)).mean())
    return float(radii[int(np.argmax(scores))])
