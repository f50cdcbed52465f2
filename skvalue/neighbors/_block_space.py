"""Rows that are read block by block, prepared for one metric."""

import numpy as np
from scipy import sparse

from ._distances import DistanceSpace
from ._rows import Rows, read_rows
from ._space import (
    DenseSpace,
    Space,
    check_norms,
    far_center,
    finite_distances,
    inverse_from,
    squared_norms,
)
from .kernels.kinds import COSINE, EUCLIDEAN, GENERIC

_SPARSE_METRICS = ["cityblock", "cosine", "euclidean", "l1", "l2", "manhattan"]


class BlockSpace(Space):
    """Rows that are read block by block."""

    def _measure(self):
        X = self.X
        n, d = X.shape
        if X.is_sparse and self.metric not in _SPARSE_METRICS:
            raise ValueError(
                f"metric must be one of {_SPARSE_METRICS} for sparse X. Got {self.metric!r}."
            )
        if (
            self.kind == EUCLIDEAN and not X.is_sparse
        ):  # centering makes a sparse X dense
            room = max(16, min(4096, int(self.budget // (X.dtype.itemsize * d))))
            some = X[np.arange(0, n, max(1, -(-n // room)))].read()
            self.center = far_center(some, squared_norms(some).mean(dtype=np.float64))
        if self.kind == GENERIC:
            return d
        for part, block in self.blocks(1):
            squares = squared_norms(self.centred(block))
            if self.kind == EUCLIDEAN:
                check_norms(squares, block)
                self.half[part] = squares / 2
            else:
                self.scale[part] = inverse_from(squares, block)
        if (
            self.kind == EUCLIDEAN and self.half.max() < np.finfo(X.dtype).tiny
        ):  # all are small
            for part, block in self.blocks(1):
                check_norms(
                    self.half[part], self.centred(block), small=self.half[part] >= 0
                )
        return (
            max(1, int(np.diff(X.source.indptr).max(initial=0))) if X.is_sparse else d
        )

    def blocks(self, n_points):
        """Read the rows in blocks whose product with ``n_points`` points fits in
        memory."""
        d = self.X.shape[1]
        if self.X.is_sparse:
            d = 4 * self.X.source.nnz // max(1, self.X.source.shape[0]) + 1
        room = int(self.budget // (self.X.dtype.itemsize * (d + 3 * n_points)))
        return self.X.blocks(min(max(room, 16), 2**16))

    def read(self, points, far=None):
        points = read_rows(points)
        if self.X.is_sparse:
            return sparse.csr_array(points)
        return points.toarray() if sparse.issparse(points) else np.asarray(points)

    def distances(self, points, rows=slice(None)):
        X, points = self.X[rows], self.read(points)
        out = np.empty((points.shape[0], len(X)))
        for part, block in X.blocks(max(1, int(self.budget // (8 * X.shape[1])))):
            out[:, part] = finite_distances(points, block, self.metric)
        return out

    def products(self, queries, block, part):
        """``scale * <x, q>`` of a block of rows, (n_block, n_points); else minus the
        distances."""
        if self.kind == GENERIC:
            return -finite_distances(block, queries, self.metric)
        product = self.centred(block) @ queries.T
        if sparse.issparse(product):
            product = product.toarray()
        if self.kind == COSINE:
            product *= self.scale[part, None]
        return product


def make_space(X, metric, codes=None, n_classes=1):
    """Prepare rows for one metric.

    Parameters
    ----------
    X : ndarray or Rows of shape (n, d)
        The rows; for "precomputed", an array (n,) of their positions among the
        distances that each point consists of.
    metric : str or callable
        A name in `METRICS`, "precomputed", or a metric of
        `sklearn.metrics.pairwise_distances`.
    codes : ndarray of int of shape (n,), default=None
        Class of each row; one class by default.
    n_classes : int, default=1
        Number of classes.

    Returns
    -------
    space : Space
        The rows: in memory, or read block by block if X is `Rows`.

    Raises
    ------
    ValueError
        If squared norms overflow or underflow the precision of X, or the metric does
        not support sparse rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.neighbors import make_space
    >>> len(make_space(np.array([[0.0, 1.0], [3.0, 4.0]]), "euclidean"))
    2
    """
    if isinstance(metric, str) and metric == "precomputed":
        return DistanceSpace(X, metric, codes, n_classes)
    return (BlockSpace if isinstance(X, Rows) else DenseSpace)(
        X, metric, codes, n_classes
    )
