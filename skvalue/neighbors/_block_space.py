"""Rows that are read block by block, prepared for one metric."""

import numpy as np
from scipy import sparse

from ._distances import finite_distances
from ._norms import check_norms, far_center, inverse_norms, squared_norms
from ._rows import read_rows
from ._space import Space
from .kernels.kinds import COSINE, EUCLIDEAN, GENERIC

_SPARSE_METRICS = ["cityblock", "cosine", "euclidean", "l1", "l2", "manhattan"]


class BlockSpace(Space):
    """Rows that are read block by block."""

    def _measure(self):
        X = self.X
        d = X.shape[1]
        if X.is_sparse and self.metric not in _SPARSE_METRICS:
            raise ValueError(
                f"metric must be one of {_SPARSE_METRICS} for sparse X, since no other "
                f"takes sparse rows. Got {self.metric!r}."
            )
        if self.kind == GENERIC:
            return d

        # Centering makes a sparse X dense.
        if self.kind == EUCLIDEAN and not X.is_sparse:
            sample = self._sample()
            mean_norm = squared_norms(sample).mean(dtype=np.float64)
            self.center = far_center(sample, mean_norm)
        for rows, block in self.blocks(1):
            squares = squared_norms(self.centred(block))
            if self.kind == EUCLIDEAN:
                check_norms(squares, block)
                self.half[rows] = squares / 2
            else:
                self.scale[rows] = inverse_norms(squares, block)
        if self.kind == EUCLIDEAN and self.half.max() < np.finfo(X.dtype).tiny:
            self._check_small_norms()
        if X.is_sparse:
            return max(1, int(np.diff(X.source.indptr).max(initial=0)))
        return d

    def _cut(self, rows):
        """Nothing is kept of the rows but what all spaces have."""

    def _sample(self):
        """Evenly spaced rows that fit in memory."""
        n, d = self.X.shape
        room = int(self.budget // (self.X.dtype.itemsize * d))
        size = max(16, min(4096, room))
        return self.X[np.arange(0, n, max(1, -(-n // size)))].read()

    def _check_small_norms(self):
        """Refuse rows that are not zero if the norms of all rows have lost digits."""
        for rows, block in self.blocks(1):
            half = self.half[rows]
            check_norms(half, self.centred(block), small=half >= 0)

    def blocks(self, n_points):
        """Read the rows in blocks whose product with the points fits in memory."""
        n_numbers = self.X.shape[1]
        if self.X.is_sparse:
            source = self.X.source
            n_numbers = 4 * source.nnz // max(1, source.shape[0]) + 1
        n_bytes = self.X.dtype.itemsize * (n_numbers + 3 * n_points)
        room = int(self.budget // n_bytes)
        return self.X.blocks(min(max(room, 16), 2**16))

    def read(self, points, far=None):
        points = read_rows(points)
        if self.X.is_sparse:
            return sparse.csr_array(points)
        return points.toarray() if sparse.issparse(points) else np.asarray(points)

    def distances(self, points, rows=slice(None)):
        X = self.X[rows]
        points = self.read(points)
        distances = np.empty((points.shape[0], len(X)))
        room = int(self.budget // (8 * X.shape[1]))
        for columns, block in X.blocks(max(1, room)):
            distances[:, columns] = finite_distances(points, block, self.metric)
        return distances

    def products(self, queries, block, rows):
        """``scale * <x, q>`` of a block of rows; else minus the distances.

        ``rows`` are the positions of the block. Of shape (n_block, n_points).
        """
        if self.kind == GENERIC:
            return -finite_distances(block, queries, self.metric)
        products = self.centred(block) @ queries.T
        if sparse.issparse(products):
            products = products.toarray()
        if self.kind == COSINE:
            products *= self.scale[rows, None]
        return products
