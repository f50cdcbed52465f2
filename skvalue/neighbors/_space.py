"""Rows prepared for one metric: what turns inner products into an order by distance."""

from abc import ABC, abstractmethod
from collections import defaultdict
from functools import cached_property
from threading import Lock

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS, pairwise_distances

from .._utils.parallel import row_map
from ._rows import read_rows
from .kernels.kinds import COSINE, EUCLIDEAN, GENERIC

_THIN = 0.05  # a sparse tile of points of lower density stays sparse in products
POINTS = "What is compared with X (X_val, or rows to value)"  # for error messages

# Metrics by name. The first two take one matrix product; the others are computed by
# scikit-learn. SciPy's "mahalanobis" and "seuclidean" are left out: they estimate
# scales from each block of rows.
METRICS = {"euclidean", "cosine"} | (
    set(PAIRWISE_DISTANCE_FUNCTIONS) - {"precomputed", "nan_euclidean", "haversine"}
)
METRICS |= {
    "braycurtis",
    "canberra",
    "chebyshev",
    "correlation",
    "hamming",
    "sqeuclidean",
}


def squared_norms(X):
    """Squared norms of dense or sparse rows; those that overflow are refused by
    `check_norms`."""
    with np.errstate(over="ignore", under="ignore"):
        if sparse.issparse(X):
            return np.asarray(X.multiply(X).sum(axis=1)).ravel().astype(X.dtype)
        return np.vecdot(X, X)


def far_center(some, mean_norm):
    """Mean of some rows, if it is far from the origin compared with the mean squared
    norm."""
    center = some.mean(axis=0, dtype=np.float64).astype(some.dtype)
    return center if squared_norms(center) > 0.25 * mean_norm else None


def check_norms(squares, rows, name="X", small=None):
    """Refuse squared norms that overflow or underflow the dtype of the rows.

    A key is at most a few squared norms, and keys are subtracted: norms up to a
    sixteenth of the largest number leave room for that. ``small``: mask of rows whose
    squares have lost digits.
    """
    bad = not squares.max(initial=0) <= np.finfo(rows.dtype).max / 16
    if not bad and small is not None and small.any():
        rows = rows[small]
        bad = rows.count_nonzero() if sparse.issparse(rows) else np.any(rows)
    if bad:
        raise ValueError(
            f"{name} must have squared norms that fit its precision ({rows.dtype}), neither too "
            "large for it nor too small. Scale it, or pass float64."
        )


def inverse_from(squares, rows, name="X"):
    """Inverse norm of each row; 0 for a row of zeros, whose cosine with any row is
    0."""
    check_norms(squares, rows, name, squares < np.finfo(rows.dtype).tiny)
    norms = np.sqrt(squares)
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)


class Buffers:
    """Scratch arrays that tasks reuse, since allocating memory takes longer than the
    product in it.

    `take` and `give` keep one set of arrays for each task that runs at the same time.
    ``cached``, filled under the lock, is for an index or a copy on a device. No content
    is pickled.
    """

    def __init__(self):
        self._free, self.cached, self.lock = defaultdict(list), {}, Lock()

    def take(self, kind):
        """Return a free set, or None."""
        try:
            return self._free[kind].pop()  # atomic
        except IndexError:
            return None

    def give(self, kind, arrays):
        """Return a set for the next task."""
        self._free[kind].append(arrays)

    def __reduce__(self):
        return Buffers, ()


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
        self.X, self.metric = X, metric
        self.codes = np.zeros(len(X), dtype=np.uint8) if codes is None else codes
        self.n_classes = n_classes
        self.kind = {"euclidean": EUCLIDEAN, "cosine": COSINE}.get(metric, GENERIC)
        self.buffers = Buffers()
        self.half = np.zeros(len(X), dtype=X.dtype)
        self.scale = np.ones(len(X), dtype=X.dtype)
        self.center = None  # for "euclidean": subtracted before products are computed
        # Largest size of one array of one task, in bytes; threads would not see the
        # setting.
        self.budget = get_config()["working_memory"] * 2**20 / 32
        length = self._measure()  # the number of terms of an inner product
        eps = float(np.finfo(X.dtype).eps)
        self.largest_half = float(self.half.max())
        self.mean_half = float(self.half.mean(dtype=np.float64))
        # Pairs with keys closer than this are compared again from the rows. For balls
        # it bounds the rounding error of any row (errors of constant rows add up), so
        # that whether a row is in a ball does not depend on the other rows. For ranks
        # it is the usual size of the error, which grows as sqrt(d), and less in
        # float32, where near-ties are many.
        self.ball_tolerance = eps * (8.0 + length)
        self.rank_tolerance = eps * (8.0 + np.sqrt(length))
        if X.dtype == np.float32:
            self.rank_tolerance = 6.0 * eps

    @abstractmethod
    def _measure(self):
        """Set `half`, `scale` and `center`; return the number of terms of an inner
        product."""

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
            Which rows; all of them by default.

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
            Some rows or points.

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
            scale = inverse_from(squares, points, POINTS)[:, None]
            is_sparse = sparse.issparse(points)
            work = points.multiply(scale).tocsr() if is_sparse else points * scale
        if sparse.issparse(work):
            n_numbers = work.shape[0] * work.shape[1]
            if (
                work.nnz > _THIN * n_numbers
                and n_numbers * work.dtype.itemsize <= self.budget
            ):
                return work.toarray(), half
        return work, half

    def __len__(self):
        return len(self.X)

    def __sizeof__(self):
        # Clusters send large objects to each worker once, not with each task.
        arrays = {
            id(array): array
            for array in vars(self).values()
            if hasattr(array, "nbytes")
        }
        return object.__sizeof__(self) + sum(array.nbytes for array in arrays.values())


class DenseSpace(Space):
    """Rows in memory."""

    def _measure(self):
        X = self.work = self.X
        if self.kind == EUCLIDEAN:
            norms = row_map(squared_norms, X)
            # Far from the origin products suffer from cancellation: subtract the mean,
            # for which that of at most 2047 rows is near enough.
            self.center = far_center(
                X[:: max(1, len(X) // 1024)], norms.mean(dtype=np.float64)
            )
            if self.center is not None:
                self.work = X - self.center
                norms = row_map(squared_norms, self.work)
            all_small = norms.max() < np.finfo(X.dtype).tiny
            check_norms(norms, self.work, small=np.full(len(X), all_small))
            self.half = norms / 2
        elif self.kind == COSINE:
            self.scale = inverse_from(
                row_map(squared_norms, X), X
            )  # 0 for zeros, as scikit-learn
        return X.shape[1]

    @cached_property
    def far_tolerance(self):
        """Replaces `rank_tolerance` at far ranks, where near-ties are many.

        Twice the largest relative rounding error of the keys of some pairs of rows.
        Read it inside a task, where BLAS has one thread.
        """
        if self.kind == GENERIC or self.X.dtype == np.float64:
            return self.rank_tolerance
        some = slice(None, None, max(1, len(self) // 256))
        rows, half, scale = self.work[some], self.half[some], self.scale[some]
        points = (rows if self.kind == EUCLIDEAN else rows * scale[:, None])[::4]
        keys = half[:, None] - scale[:, None] * (rows @ points.T)
        wide = self.centred(self.X[some].astype(np.float64))
        norms = np.vecdot(wide, wide)
        if self.kind == EUCLIDEAN:
            exact, size = (
                norms[:, None] / 2 - wide @ wide[::4].T,
                (norms[::4] + norms[:, None]) / 2,
            )
        else:
            wide /= np.sqrt(np.where(norms > 0, norms, 1))[:, None]
            exact, size = -wide @ wide[::4].T, np.ones_like(keys)
        error = np.abs(keys - exact)
        np.fill_diagonal(error[::4], 0)  # a row and itself
        largest = np.divide(error, size, out=np.zeros_like(error), where=size > 0).max()
        return min(
            self.rank_tolerance,
            max(2 * float(largest), float(np.finfo(rows.dtype).eps)),
        )

    def read(self, points, far=None):
        return read_rows(points)

    def distances(self, points, rows=slice(None)):
        return finite_distances(points, self.X[rows], self.metric)


def finite_distances(points, X, metric):
    """`sklearn.metrics.pairwise_distances`; an error if any is NaN or infinity."""
    if sparse.issparse(X) and sparse.issparse(
        points
    ):  # rounding to float32 would break ties
        points, X = (
            points.astype(np.float64, copy=False),
            X.astype(np.float64, copy=False),
        )
    distances = pairwise_distances(points, X, metric=metric)
    if not np.isfinite(distances).all():
        raise ValueError(
            f"metric must give finite distances. Got NaN or infinity from metric={metric!r}."
        )
    return distances


def ball_rule(space, points, radius):
    """Return (work, threshold, slack, limit): when a row is in the closed ball of a
    point.

    It is if ``scale * product - half`` is at least the threshold of the point; within
    ``slack + ball_tolerance * half`` of the threshold, if its exact key is at most the
    limit.
    """
    work, point_half = space.queries(points)
    n_points = len(point_half)
    closed = 1e-12  # the ball is closed: a distance that rounds to the radius is inside
    if space.kind == EUCLIDEAN:
        slack = space.ball_tolerance * point_half
        return work, point_half - radius**2 / 2, slack, radius**2 * (1 + closed)
    slack = np.full(n_points, space.ball_tolerance)
    if space.kind == COSINE:
        return work, np.full(n_points, 1.0 - radius), slack, radius - 1.0 + closed
    limit = radius * (1 + closed)
    return work, np.full(n_points, -limit), np.zeros(n_points), limit
