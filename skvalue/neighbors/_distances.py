"""Rows of which only distances are known, and distances in float64."""

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from ._rows import Rows, read_rows
from ._space import Space

_ZERO = 1e-12  # cosine distances that are less are those of parallel rows


class DistanceSpace(Space):
    """Rows that are columns of the distances from the points (metric "precomputed").

    ``X``: position of each row among the columns, as an array (n,). Points have one
    distance per column; those that a sparse point does not store are equal, and larger
    than any other.
    """

    def __init__(self, X, metric, codes=None, n_classes=1):
        self.columns = np.asarray(X)
        super().__init__(
            self.columns[:, None].astype(np.float64), metric, codes, n_classes
        )

    def _measure(self):
        self.work, self.far_tolerance = self.X, 0.0
        return 1

    def read(self, points, far=None):
        points = read_rows(points)
        if not sparse.issparse(points):
            return points
        far = 2 * points.data.max(initial=0.0) + 1 if far is None else far
        dense = np.full(points.shape, far)
        lines = np.repeat(np.arange(points.shape[0]), np.diff(points.indptr))
        dense[lines, points.indices] = (
            points.data
        )  # zeros that are stored are distances
        return dense

    def distances(self, points, rows=slice(None)):
        return points[:, self.columns[rows]]


def append_columns(points, columns):
    """Add distances to points, as new columns.

    Parameters
    ----------
    points : ndarray or Rows of shape (n_points, n)
        Distances.
    columns : ndarray or sparse array of shape (n_points, n_new)
        Further distances; sparse if those of the points are.

    Returns
    -------
    both : ndarray or Rows
        The columns of the first, then those of the second.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.neighbors import append_columns
    >>> append_columns(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    if not isinstance(points, Rows):
        return np.concatenate([points, columns], axis=1)
    return Rows(sparse.csr_array(sparse.hstack([points.read(), columns])), points.dtype)


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
    >>> exact_distances(make_space(np.array([[3.0, 4.0]]), "euclidean"), np.zeros((1, 2)))
    array([[5.]])
    """
    if space.metric not in ("cosine", "euclidean"):
        return np.asarray(space.distances(space.read(points)), dtype=np.float64)
    found = cdist(points.astype(np.float64), space.X.astype(np.float64), space.metric)
    if space.metric == "cosine":
        found = np.nan_to_num(found, nan=1.0)
        found[found < _ZERO] = 0.0
    return found
