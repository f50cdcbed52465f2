"""How many balls around the validation points can contain one row."""

import numpy as np
from sklearn.metrics import pairwise_distances

from ..._utils.parallel import one_blas_thread, tiles
from ...neighbors import balls, get_engine, make_space

# Not "l2": far from the origin, scikit-learn's rounding violates the triangle
# inequality.
TRUE_METRICS = {"cityblock", "cosine", "euclidean", "l1", "manhattan"}

# For smoothing; with more validation points it is approximate.
_MAX_LANDMARKS = 800


def counted_balls(points, radius, metric, max_contributions):
    """Largest number of balls in which a row is counted, and its cap, or None.

    Without a cap, a row is counted in all balls that contain it.
    """
    # Idle BLAS threads would spin, and take cores from the tiles.
    with one_blas_thread():
        bound = overlap_bound(points, radius, metric)
        if max_contributions == "auto":
            # The most balls that contain one of their centres.
            space = make_space(points, metric)
            counts = balls(get_engine("auto"), space, points, radius).counts
            max_contributions = max(1, int(counts.max()))
    if max_contributions is None or max_contributions >= bound:
        return bound, None
    return max_contributions, max_contributions


def overlap_bound(X_val, radius, metric):
    """Bound of the number of balls that can contain one row, whatever the row.

    By the triangle inequality, which angles satisfy too, it is the largest number of
    centres within twice the radius of one of them. For a callable metric it is the
    number of points.

    >>> overlap_bound(np.array([[0.0], [1.0], [5.0]]), radius=0.5, metric="euclidean")
    2
    """
    n = len(X_val)
    # A row of zeros has cosine distance 1 from all rows, also from zeros: it is in all
    # balls or in none.
    if metric not in TRUE_METRICS or (metric == "cosine" and radius >= 1):
        return n

    # Bounds of the rounding of squared distances and of angles.
    relative = (8 + X_val.shape[1]) * np.finfo(np.float64).eps
    squared = np.zeros(n)
    angle = 0.0
    reach = float(radius)
    if metric == "euclidean":
        centred = _centred(X_val)
        squared = relative * np.vecdot(centred, centred)
    elif metric == "cosine":
        # Balls are closed, and contain distances that round to the radius.
        closed = 1e-12 + 2 * relative
        angle = np.sqrt(2 * closed)
        reach = np.arccos(max(1 - radius - closed, -1))

    within = 2 * reach * (1 + 1e-6) + angle
    bound = 1
    for centers in tiles(n, max(1, 2**22 // n)):
        distances, _ = _distances(X_val, centers, radius, metric)
        is_near = distances**2 <= within**2 + squared[centers, None] + squared
        bound = max(bound, int(is_near.sum(axis=1).max()))
    return bound


def public_geometry(X_val, radius, metric, max_landmarks=_MAX_LANDMARKS):
    """Distances for which ``exp(-d)`` is a covariance; angles for "cosine".

    Returns them, of shape (n_validation, n_landmarks), the positions of the landmarks
    among the validation points, and the radius in the same unit.
    """
    n = len(X_val)
    landmarks = np.linspace(0, n - 1, min(n, max_landmarks)).astype(np.int64)
    landmarks = np.unique(landmarks)
    distances, reach = _distances(X_val, landmarks, radius, metric)
    return distances.T, landmarks, reach


def _distances(X_val, rows, radius, metric):
    """Distances of some points from all, and the radius; for "cosine" as angles."""
    X_val = _centred(X_val) if metric == "euclidean" else X_val.astype(np.float64)
    distances = pairwise_distances(X_val[rows], X_val, metric=metric)
    if metric != "cosine":
        return distances, float(radius)
    angles = np.arccos(np.clip(1 - distances, -1, 1))
    return angles, float(np.arccos(np.clip(1 - radius, -1, 1)))


def _centred(X_val):
    """Validation points minus their mean, for products with less rounding."""
    return X_val - X_val.mean(axis=0, dtype=np.float64)
