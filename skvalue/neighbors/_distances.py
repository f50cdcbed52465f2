"""Metrics, and distances that are not computed by a matrix product."""

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS, pairwise_distances

# Metrics by name. Products give "euclidean" and "cosine"; the others are computed by
# scikit-learn. SciPy's "mahalanobis" and "seuclidean" are left out: they estimate
# scales from each block of rows.
METRICS = set(PAIRWISE_DISTANCE_FUNCTIONS) - {
    "precomputed",
    "nan_euclidean",
    "haversine",
}
METRICS |= {
    "braycurtis",
    "canberra",
    "chebyshev",
    "correlation",
    "hamming",
    "sqeuclidean",
}

# Cosine distances that are less are those of parallel rows.
_ZERO = 1e-12


def finite_distances(points, X, metric):
    """`pairwise_distances` of scikit-learn; an error if any is NaN or infinity."""
    if sparse.issparse(X) and sparse.issparse(points):
        # Rounding to float32 would break ties.
        points = points.astype(np.float64, copy=False)
        X = X.astype(np.float64, copy=False)
    distances = pairwise_distances(points, X, metric=metric)
    if not np.isfinite(distances).all():
        raise ValueError(
            "metric must give finite distances, by which rows are ordered. Got NaN or "
            f"infinity from metric={metric!r}."
        )
    return distances


def exact_distances(space, points):
    """Compute distances in float64, each from its two rows alone.

    Parameters
    ----------
    space : Space
        The rows, in memory.
    points : ndarray of shape (n_points, d)
        The points; for the metric "precomputed", their distances from the rows.

    Returns
    -------
    distances : ndarray of shape (n_points, n)
        The distances; 1 for the cosine distance from a row of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.neighbors import exact_distances, make_space
    >>> space = make_space(np.array([[3.0, 4.0]]), "euclidean")
    >>> exact_distances(space, np.zeros((1, 2)))
    array([[5.]])
    """
    if space.metric not in ("cosine", "euclidean"):
        return np.asarray(space.distances(space.read(points)), dtype=np.float64)
    points = points.astype(np.float64)
    distances = cdist(points, space.X.astype(np.float64), space.metric)
    if space.metric == "cosine":
        distances = np.nan_to_num(distances, nan=1.0)
        distances[distances < _ZERO] = 0.0
    return distances
