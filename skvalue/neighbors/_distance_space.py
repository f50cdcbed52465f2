"""Rows of which only distances are known."""

import numpy as np
from scipy import sparse

from ._rows import Rows, read_rows
from ._space import Space


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
        self.work = self.X
        self.far_tolerance = 0.0
        return 1

    def _cut(self, rows):
        self.columns = self.columns[rows]
        self.work = self.X

    def read(self, points, far=None):
        points = read_rows(points)
        if not sparse.issparse(points):
            return points
        if far is None:
            far = 2 * points.data.max(initial=0.0) + 1
        dense = np.full(points.shape, far)
        lines = np.repeat(np.arange(points.shape[0]), np.diff(points.indptr))
        # Zeros that are stored are distances.
        dense[lines, points.indices] = points.data
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
