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

# Points that predict each other.
_MAX_POINTS = 5000

# Of these, points whose distances are the candidates.
_MAX_CANDIDATE_POINTS = 500

# Standard errors below the best utility that are allowed.
_N_ERRORS = 2.0


def suggest_radius(X_val, y_val, metric="cosine", n_candidates=50):
    """Suggest a radius by how well it predicts the validation points.

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
    """`suggest_radius` of checked points, an array or `Rows`, and their labels' codes.

    For a regression, ``codes`` are the targets relative to the prediction of an empty
    ball. With the metric "precomputed", X are the distances between the points.
    """
    # In an order that depends on their content alone, so that rounding does, too.
    order = np.lexsort((codes, hash_rows(X)))[:_MAX_POINTS]
    X = read_rows(rows_at(X, order)).astype(np.float64)
    codes = codes[order]
    if metric == "precomputed":
        X = X[:, order]
    if metric == "euclidean" and not issparse(X):
        X = X - X.mean(axis=0)

    # Candidates, slightly larger than distances, so that rounding excludes none of the
    # points at the same distance.
    sample = X[:_MAX_CANDIDATE_POINTS]
    n_points = sample.shape[0]
    distances = _distances(sample, sample, metric)[:, :n_points]
    distances = distances[~np.eye(n_points, dtype=bool)]
    levels = np.linspace(0, 1, n_candidates + 2)[1:-1]
    radii = np.unique(np.quantile(distances, levels))
    radii += 1e-12 if metric == "cosine" else 1e-9 * radii

    utilities = _leave_one_out(X, codes, metric, radii, regression)
    # The largest radius whose mean is within some standard errors of the best one.
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


def _leave_one_out(X, codes, metric, radii, regression):
    """Utility of all other points at each point, for each radius.

    Of shape (n_radii, n_points).
    """
    n = len(codes)
    n_levels = len(radii) + 1
    n_classes = 0 if regression else len(np.unique(codes))
    utilities = np.empty((len(radii), n))
    room = max(1, int(get_config()["working_memory"] * 2**20 // (64 * n)))
    for tile in tiles(n, min(room, 500)):
        size = tile.stop - tile.start
        lines = np.arange(size)
        distances = _distances(X[tile], X, metric)
        # No point is in its own ball.
        distances[lines, np.arange(n)[tile]] = np.inf
        levels = np.searchsorted(radii, distances) + n_levels * lines[:, None]

        targets = codes[tile, None]
        counts = _sums_within(levels, None, n_levels)
        if regression:
            sums = _sums_within(levels, np.tile(codes, size), n_levels)
            utilities[:, tile] = target_utility(counts, sums, targets).T
        else:
            same = _sums_within(levels, (targets == codes).ravel(), n_levels)
            utilities[:, tile] = threshold_utility(same, counts - same, n_classes).T
    return utilities


def _sums_within(levels, weights, n_levels):
    """Sums of weights up to each level but the last, (n_lines, n_levels - 1).

    ``levels`` (n_lines, n) has the levels of line i from ``i * n_levels`` on.
    """
    size = len(levels)
    sums = np.bincount(levels.ravel(), weights, size * n_levels)
    return np.cumsum(sums.reshape(size, n_levels)[:, :-1], axis=1)
