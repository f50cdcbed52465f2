"""Rows prepared for one metric: what turns inner products into an order by distance."""

from abc import ABC, abstractmethod
from copy import copy

import numpy as np
from scipy import sparse
from sklearn import get_config

from ._buffers import Buffers
from ._norms import check_norms, inverse_norms, squared_norms
from .kernels.kinds import COSINE, EUCLIDEAN, GENERIC

# A sparse tile of points of lower density stays sparse in products.
_THIN = 0.05

# For error messages.
POINTS = "What is compared with X (X_val, or rows to value)"


class Space(ABC):
    """Rows under one metric, and their classes.

    For "euclidean" and "cosine" the key of row i and point q, which increases with
    their distance, is ``half[i] - scale[i] * <x_i, q>``; other metrics are computed by
    `sklearn.metrics.pairwise_distances`, block by block. `make_space` returns one of
    three subclasses: for rows in memory, for rows that are read in blocks, or for rows
    of which only distances are known.

    Parameters
    ----------
    X : ndarray or Rows of shape (n, d), float32 or float64
        The rows. A reference is kept; distances are computed in the dtype of X.
    metric : str or callable
        A name in `METRICS`, or a metric of `sklearn.metrics.pairwise_distances`.
    codes : ndarray of int of shape (n,), default=None
        Class of each row; one class by default.
    n_classes : int, default=1
        Number of classes.

    Raises
    ------
    ValueError
        If squared norms overflow or underflow the dtype of X.
    """

    def __init__(self, X, metric, codes=None, n_classes=1):
        if codes is None:
            codes = np.zeros(len(X), dtype=np.uint8)
        self.X = X
        self.metric = metric
        self.codes = codes
        self.n_classes = n_classes
        self.kind = {"euclidean": EUCLIDEAN, "cosine": COSINE}.get(metric, GENERIC)
        self.buffers = Buffers()
        self.half = np.zeros(len(X), dtype=X.dtype)
        self.scale = np.ones(len(X), dtype=X.dtype)
        # For "euclidean": subtracted before products are computed.
        self.center = None
        # Largest size of one array of one task, in bytes; threads would not see the
        # setting.
        self.budget = get_config()["working_memory"] * 2**20 / 32
        n_terms = self._measure()
        self.smallest_half = float(self.half.min())
        self.largest_half = float(self.half.max())
        self.mean_half = float(self.half.mean(dtype=np.float64))

        # Pairs with keys closer than this are compared again from the rows. For balls
        # it bounds the rounding error of any row (errors of constant rows add up), so
        # that whether a row is in a ball does not depend on the other rows. For ranks
        # it is the usual size of the error, which grows as sqrt(d), and less in
        # float32, where near-ties are many.
        eps = float(np.finfo(X.dtype).eps)
        self.ball_tolerance = eps * (8.0 + n_terms)
        self.rank_tolerance = eps * (8.0 + np.sqrt(n_terms))
        if X.dtype == np.float32:
            self.rank_tolerance = 6.0 * eps

    @abstractmethod
    def _measure(self):
        """Set `half`, `scale` and `center`.

        Returns the number of terms of an inner product.
        """

    def part(self, rows):
        """Some of the rows as a space, with what was prepared for all of them.

        Parameters
        ----------
        rows : slice
            The rows.

        Returns
        -------
        part : Space
            The space. Its buffers are its own.
        """
        part = copy(self)
        part.X = self.X[rows]
        part.codes = self.codes[rows]
        part.half = self.half[rows]
        part.scale = self.scale[rows]
        part.buffers = Buffers()
        part._cut(rows)
        return part

    @abstractmethod
    def _cut(self, rows):
        """Leave what belongs to some rows of what a subclass adds; see `part`."""

    @abstractmethod
    def read(self, points, far=None):
        """Read points into memory, dense or sparse as the rows are.

        Parameters
        ----------
        points : ndarray or Rows of shape (n_points, d)
            The points.
        far : float, default=None
            For the metric "precomputed": distance of rows whose distance is not stored.

        Returns
        -------
        points : ndarray or csr_array of shape (n_points, d)
            The points.
        """

    @abstractmethod
    def distances(self, points, rows=slice(None)):
        """Compute distances for a metric that is not computed by a matrix product.

        Parameters
        ----------
        points : ndarray or Rows of shape (n_points, d)
            The points.
        rows : slice or ndarray of int, default=slice(None)
            Indices of rows; all of them by default.

        Returns
        -------
        distances : ndarray of shape (n_points, n_rows)
            The distances.
        """

    def centred(self, rows):
        """Subtract the center, if there is one.

        Parameters
        ----------
        rows : ndarray or csr_array of shape (n_rows, d)
            Rows or points.

        Returns
        -------
        rows : ndarray or csr_array of shape (n_rows, d)
            The rows minus the center.
        """
        return rows if self.center is None else rows - self.center

    def queries(self, points):
        """Prepare points for the product.

        Parameters
        ----------
        points : ndarray or Rows of shape (n_points, d)
            The points, in the dtype of the rows.

        Returns
        -------
        work : ndarray or csr_array of shape (n_points, d)
            The factor of the product; sparse if the rows are, and the points thin or
            too many.
        half : ndarray of shape (n_points,)
            Half their squared norms; zeros for other metrics than "euclidean".
        """
        points = self.read(points)
        half = np.zeros(points.shape[0])
        if self.kind == GENERIC:
            return points, half
        work = self.centred(points)
        squares = squared_norms(work)
        if self.kind == EUCLIDEAN:
            check_norms(squares, work, POINTS)
            half = squares.astype(np.float64) / 2
        else:
            scale = inverse_norms(squares, points, POINTS)[:, None]
            if sparse.issparse(points):
                work = points.multiply(scale).tocsr()
            else:
                work = points * scale

        if sparse.issparse(work):
            size = work.shape[0] * work.shape[1]
            is_thin = work.nnz <= _THIN * size
            if not is_thin and size * work.dtype.itemsize <= self.budget:
                work = work.toarray()
        return work, half

    def __len__(self):
        return len(self.X)

    def __sizeof__(self):
        # Clusters send large objects to each worker once, not with each task.
        sizes = {
            id(array): array.nbytes
            for array in vars(self).values()
            if hasattr(array, "nbytes")
        }
        return object.__sizeof__(self) + sum(sizes.values())
