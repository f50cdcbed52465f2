"""Choice of the radius by the leave-one-out utility of validation points."""

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_X_y
from sklearn.utils.extmath import row_norms

from ..._utils.parallel import tiles
from ...base import hash_rows, rows_at
from ...neighbors import as_rows, read_rows
from ._game import threshold_utility
from ._targets import target_utility

_MAX_POINTS = 5000  # points that predict each other
_MAX_CANDIDATE_POINTS = 500  # of these, points whose distances are the candidates
_N_ERRORS = 2.0  # standard errors below the best utility that are allowed


def suggest_radius(X_val, y_val, metric="cosine", n_candidates=50):
    """Suggest a radius by how well the threshold classifier predicts the validation
    points.

    Candidates are quantiles of the distances between validation points, plus a rounding
    error. For each the utility of the others is computed at each validation point
    (leave-one-out). Returned is the largest radius whose mean utility is within two
    standard errors of the best mean: the radius of the best mean is often so small that
    most balls contain no or few rows. Only the validation points are used, so that it
    costs no privacy of the rows to value.

    Of more than 5,000 points a subset of this size is used, chosen by a hash of their
    coordinates and labels, whatever their order.

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
        raise ValueError(
            f"y_val must have at least 2 classes. Got one: {classes.tolist()[0]!r}."
        )
    return choose_radius(as_rows(X_val.astype(np.float64)), codes, metric, n_candidates)


def choose_radius(X, codes, metric, n_candidates=50, *, regression=False):
    """`suggest_radius` of checked points (an array or `Rows`), and the codes of their
    labels.

    For a regression, ``codes`` are the targets relative to the prediction of an empty
    ball. With the metric "precomputed", X are the distances between the points.
    """
    # In an order that depends on their content alone, so that rounding does, too.
    order = np.lexsort((codes, hash_rows(X)))[:_MAX_POINTS]
    X, codes = read_rows(rows_at(X, order)).astype(np.float64), codes[order]
    if metric == "precomputed":
        X = X[:, order]
    if metric == "euclidean" and not issparse(X):
        X = X - X.mean(axis=0)
    few = X[:_MAX_CANDIDATE_POINTS]
    distances = _distances(few, few, metric)[:, : few.shape[0]]
    distances = distances[~np.eye(few.shape[0], dtype=bool)]
    radii = np.unique(np.quantile(distances, np.linspace(0, 1, n_candidates + 2)[1:-1]))
    # Slightly larger, so that rounding excludes none of the points at the same
    # distance.
    radii += 1e-12 if metric == "cosine" else 1e-9 * radii
    utilities = _leave_one_out(X, codes, metric, radii, regression)
    means = utilities.mean(axis=1)
    best = means.argmax()
    error = utilities[best].std(ddof=1) / np.sqrt(len(codes))
    return float(radii[means >= means[best] - _N_ERRORS * error][-1])


def _distances(X, Y, metric):
    """Distances of the rows of two arrays; 0 where they differ by rounding alone."""
    if metric == "precomputed":
        return X.copy()
    distances = pairwise_distances(X, Y, metric=metric)
    if metric == "euclidean":
        squares = row_norms(X, squared=True)[:, None] + row_norms(Y, squared=True)
        distances[distances**2 < 1e-13 * squares] = 0
    return distances


def _leave_one_out(X, codes, metric, radii, regression=False):
    """Utility of all other points at each point, for each radius, (n_radii,
    n_points)."""
    n, n_levels = len(codes), len(radii) + 1
    n_classes = 0 if regression else len(np.unique(codes))
    utilities = np.empty((len(radii), n))
    size = max(1, int(get_config()["working_memory"] * 2**20 // (64 * n)))
    for part in tiles(n, min(size, 500)):
        distances, size = _distances(X[part], X, metric), part.stop - part.start
        distances[np.arange(size), np.arange(n)[part]] = (
            np.inf
        )  # no point is in its own ball
        levels = np.searchsorted(radii, distances) + n_levels * np.arange(size)[:, None]
        # Numbers of points within each radius, and of those with the label, or sums of
        # targets.
        known = (
            np.tile(codes, size) if regression else (codes[part, None] == codes).ravel()
        )
        rings = [
            np.bincount(levels.ravel(), some, size * n_levels) for some in (None, known)
        ]
        rings = np.reshape(rings, (2, size, n_levels))
        inside, known = np.cumsum(rings[..., :-1], axis=2)
        if regression:
            utilities[:, part] = target_utility(inside, known, codes[part, None]).T
        else:
            utilities[:, part] = threshold_utility(known, inside - known, n_classes).T
    return utilities
