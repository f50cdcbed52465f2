"""Rows in memory, prepared for one metric."""

from functools import cached_property

import numpy as np

from .._utils.parallel import row_map
from ._distances import finite_distances
from ._norms import check_norms, far_center, inverse_norms, squared_norms
from ._rows import read_rows
from ._space import Space
from .kernels.kinds import COSINE, EUCLIDEAN, GENERIC


class DenseSpace(Space):
    """Rows in memory."""

    def _measure(self):
        X = self.X
        # The factor of the product.
        self.work = X
        if self.kind == EUCLIDEAN:
            squares = row_map(squared_norms, X)
            # Far from the origin products suffer from cancellation: subtract the mean,
            # for which that of at most 2047 rows is near enough.
            sample = X[:: max(1, len(X) // 1024)]
            self.center = far_center(sample, squares.mean(dtype=np.float64))
            if self.center is not None:
                self.work = X - self.center
                squares = row_map(squared_norms, self.work)
            all_small = squares.max() < np.finfo(X.dtype).tiny
            check_norms(squares, self.work, small=np.full(len(X), all_small))
            self.half = squares / 2
        elif self.kind == COSINE:
            # 0 for zeros, as scikit-learn.
            self.scale = inverse_norms(row_map(squared_norms, X), X)
        return X.shape[1]

    def _cut(self, rows):
        self.work = self.work[rows]

    @cached_property
    def far_tolerance(self):
        """Replaces `rank_tolerance` at far ranks, where near-ties are many.

        Twice the largest relative rounding error of the keys of some pairs of rows.
        Read it inside a task, where BLAS has one thread.
        """
        if self.kind == GENERIC or self.X.dtype == np.float64:
            return self.rank_tolerance
        # Keys of a sample of the rows and a quarter of it, in the dtype of X.
        sample = slice(None, None, max(1, len(self) // 256))
        rows = self.work[sample]
        half = self.half[sample]
        scale = self.scale[sample]
        points = rows if self.kind == EUCLIDEAN else rows * scale[:, None]
        keys = half[:, None] - scale[:, None] * (rows @ points[::4].T)

        # The same keys in float64, and the sizes that errors are relative to.
        exact = self.centred(self.X[sample].astype(np.float64))
        norms = np.vecdot(exact, exact)
        if self.kind == EUCLIDEAN:
            exact_keys = norms[:, None] / 2 - exact @ exact[::4].T
            sizes = (norms[::4] + norms[:, None]) / 2
        else:
            exact /= np.sqrt(np.where(norms > 0, norms, 1))[:, None]
            exact_keys = -exact @ exact[::4].T
            sizes = np.ones_like(keys)

        errors = np.abs(keys - exact_keys)
        # A row and itself.
        np.fill_diagonal(errors[::4], 0)
        relative = np.divide(errors, sizes, out=np.zeros_like(errors), where=sizes > 0)
        largest = 2 * float(relative.max())
        eps = float(np.finfo(rows.dtype).eps)
        return min(self.rank_tolerance, max(largest, eps))

    def read(self, points, far=None):
        return read_rows(points)

    def distances(self, points, rows=slice(None)):
        return finite_distances(points, self.X[rows], self.metric)
