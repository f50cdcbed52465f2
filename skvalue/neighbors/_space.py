"""Players prepared for one metric: what a product needs to become an order by distance."""

from collections import defaultdict
from functools import cached_property
from threading import Lock

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS, pairwise_distances

from .._utils.parallel import row_map

__all__ = ["METRICS", "Buffers", "Labels", "Space"]

EUCLIDEAN, COSINE, GENERIC = 0, 1, 2  # the codes of the compiled loops
JUDGES = "What is compared with X (X_val, or rows to value)"  # in messages

# Metrics by name. The first two are one matrix product; the others go through scikit-learn. SciPy's
# that take something from the data ("mahalanobis", "seuclidean") would change with the blocks.
METRICS = {"euclidean", "cosine"} | (
    set(PAIRWISE_DISTANCE_FUNCTIONS) - {"precomputed", "nan_euclidean", "haversine"}
)
METRICS |= {"braycurtis", "canberra", "chebyshev", "correlation", "hamming", "sqeuclidean"}


def _center(X):
    """A point near the mean, in X's precision: of at most 2047 rows, which is near enough."""
    return X[:: max(1, len(X) // 1024)].mean(axis=0, dtype=np.float64).astype(X.dtype)


def _squared_norms(X):
    with np.errstate(over="ignore", under="ignore"):  # refused by `check_norms`
        return np.vecdot(X, X)


def is_far(center, mean_norm):
    """Whether the center of some rows is far from the origin, next to their mean squared norm."""
    return bool(_squared_norms(center) > 0.25 * mean_norm)


def check_norms(squares, rows, name="X", small=None):
    """Refuse squared norms for which the precision of the rows has no room, or no digits.

    A key is at most a few squared norms, and keys are subtracted: a sixteenth of the largest number
    leaves room for that. ``small`` is a mask of rows whose norms count, and are too small to.
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


def all_small(squares):
    """A mask of all rows if even their largest squared norm has lost digits, else of none."""
    return np.full(len(squares), squares.max(initial=0) < np.finfo(squares.dtype).tiny)


def inverse_from(squares, rows, name="X"):
    """One over the norm of every row; 0 for a row of zeros: its cosine with everything is 0."""
    check_norms(squares, rows, name, squares < np.finfo(rows.dtype).tiny)
    norms = np.sqrt(squares)
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)


def _inverse_norms(X, name="X"):
    return inverse_from(_squared_norms(X), X, name)


class Buffers:
    """Scratch arrays handed from task to task: fresh memory costs more than the product in it.

    A set is taken with `take` and given back with `give`, so that there are as many sets of a kind
    as tasks that run at the same time. What an engine keeps as long as the players (a copy on a
    device, an index) is asked for with `hold`. Pickled without its content.
    """

    def __init__(self):
        self._free, self._held, self._lock = defaultdict(list), {}, Lock()

    def hold(self, name, make):
        """Return what is held under a name; ``make()`` it at the first call."""
        with self._lock:
            if name not in self._held:
                self._held[name] = make()
            return self._held[name]

    def take(self, kind, make):
        """Return a free set, or the one that ``make()`` returns."""
        try:
            return self._free[kind].pop()  # atomic
        except IndexError:
            return make()

    def give(self, kind, arrays):
        """Return a set for the next task."""
        self._free[kind].append(arrays)

    def __reduce__(self):
        return Buffers, ()


class Labels:
    """Classes of the players.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Class codes.
    n_classes : int
        Number of classes.
    """

    def __init__(self, labels, n_classes):
        self.labels = np.asarray(labels, dtype=np.int64)
        self.n_classes = n_classes


class Space:
    """Players under one metric.

    For "euclidean" and "cosine" a pair's key, which grows with its distance, is
    ``half[i] - scale[i] * <x_i, q>``; other metrics go through
    `sklearn.metrics.pairwise_distances`, block by block.

    Parameters
    ----------
    X : ndarray of shape (n, d), float32 or float64
        The players. A reference is kept; distances are computed in its precision.
    metric : str or callable
        A name in `METRICS`, or what `sklearn.metrics.pairwise_distances` takes.
    center : "mean", ndarray of shape (d,) or None, default="mean"
        Where the products of "euclidean" are computed around: "mean" takes a point near the mean
        of the players where the origin is far; the `center` of another space gives the same keys.

    Raises
    ------
    ValueError
        If squared norms overflow or underflow the precision of X.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.neighbors import Space
    >>> space = Space(np.array([[0.0, 1.0], [3.0, 4.0]]), "euclidean")
    >>> len(space)
    2
    """

    def __init__(self, X, metric, center="mean"):
        self.metric = metric
        self.X = self.work = X
        self.buffers = Buffers()
        n, d = X.shape
        self.center = None
        if metric == "euclidean":
            self.kind = EUCLIDEAN
            norms = row_map(_squared_norms, X)
            if isinstance(center, str):
                # Far from the origin a product cancels: compute around the mean.
                center = _center(X)
                center = center if is_far(center, norms.mean(dtype=np.float64)) else None
            if center is not None:
                self.center = center
                self.work = X - self.center
                norms = row_map(_squared_norms, self.work)
            check_norms(norms, self.work, small=all_small(norms))
            self.half = norms / 2
            self.scale = np.ones(n, dtype=X.dtype)
        elif metric == "cosine":
            self.kind = COSINE
            self.scale = row_map(_inverse_norms, X)  # 0 for zeros, as in scikit-learn
            self.half = np.zeros(n, dtype=X.dtype)
        else:
            self.kind = GENERIC
            self.half = np.zeros(n, dtype=X.dtype)
            self.scale = np.ones(n, dtype=X.dtype)
        self._finish(d)

    def _finish(self, length):
        """Sizes and tolerances; ``length`` is the number of terms of an inner product."""
        dtype = self.X.dtype
        eps = float(np.finfo(dtype).eps)
        self.largest_half = float(self.half.max())
        self.mean_half = float(self.half.mean(dtype=np.float64))
        # Keys closer than this are decided again from the rows. In balls no rounding is larger,
        # whatever the rows (those of one number all over round one way), so that who is in a ball
        # does not hang on the other rows. Ranks allow for the common size, which grows as sqrt(d),
        # and where they are many and float32 is coarse, for less.
        self.ball_tolerance = eps * (8.0 + length)
        self.rank_tolerance = eps * (8.0 + np.sqrt(length))
        if dtype == np.float32:
            self.rank_tolerance = 6.0 * eps

    @cached_property
    def far_tolerance(self):
        """What takes the place of `rank_tolerance` far out, where near-ties are many.

        Twice the largest rounding error among the keys of pairs of some rows, relative to their
        sizes. A float32 product runs in BLAS: ask from a task, where that has one thread.
        """
        if self.kind == GENERIC or self.X.dtype == np.float64:
            return self.rank_tolerance
        some = slice(None, None, max(1, len(self) // 256))
        rows, half, scale = self.work[some], self.half[some], self.scale[some]
        judges = (rows if self.kind == EUCLIDEAN else rows * scale[:, None])[::4]
        keys = half[:, None] - scale[:, None] * (rows @ judges.T)
        wide = self.X[some].astype(np.float64) - (0 if self.center is None else self.center)
        norms = np.vecdot(wide, wide)
        if self.kind == EUCLIDEAN:
            exact, size = norms[:, None] / 2 - wide @ wide[::4].T, (norms[::4] + norms[:, None]) / 2
        else:
            wide /= np.sqrt(np.where(norms > 0, norms, 1))[:, None]
            exact, size = -wide @ wide[::4].T, np.ones_like(keys)
        error = np.abs(keys - exact)
        np.fill_diagonal(error[::4], 0)  # a row and itself
        largest = np.divide(error, size, out=np.zeros_like(error), where=size > 0).max()
        return min(self.rank_tolerance, max(2 * float(largest), float(np.finfo(rows.dtype).eps)))

    def __len__(self):
        return len(self.X)

    def __sizeof__(self):
        # A cluster sends what is large to every worker once, not with every task.
        arrays = [self.X, self.half, self.scale] + ([] if self.work is self.X else [self.work])
        return object.__sizeof__(self) + sum(getattr(array, "nbytes", 0) for array in arrays)

    def queries(self, Q):
        """Prepare judges for the product.

        Parameters
        ----------
        Q : ndarray of shape (n_judges, d)
            The judges, in the precision of the players.

        Returns
        -------
        work : ndarray of shape (n_judges, d)
            The judges in the form that the product takes.
        half : ndarray of shape (n_judges,)
            Half their squared norms; zeros where the metric has no use for them.
        """
        if self.kind == EUCLIDEAN:
            work = Q if self.center is None else Q - self.center
            squares = _squared_norms(work)
            check_norms(squares, work, JUDGES)
            return work, squares.astype(np.float64) / 2
        if self.kind == COSINE:
            return Q * _inverse_norms(Q, JUDGES)[:, None], np.zeros(len(Q))
        return Q, np.zeros(len(Q))

    def distances(self, Q, rows=slice(None)):
        """Compute distances of a metric that is no product.

        Parameters
        ----------
        Q : ndarray of shape (n_judges, d)
            The judges.
        rows : slice or ndarray of int, default=slice(None)
            The players asked for; all of them by default.

        Returns
        -------
        distances : ndarray of shape (n_judges, n_rows)
            The distances.
        """
        return finite_distances(Q, self.X[rows], self.metric)


def finite_distances(Q, X, metric):
    """`sklearn.metrics.pairwise_distances`, none of which may be NaN or infinity."""
    if sparse.issparse(X) and sparse.issparse(Q):  # rounded to float32 ties would be lost
        Q, X = Q.astype(np.float64, copy=False), X.astype(np.float64, copy=False)
    distances = pairwise_distances(Q, X, metric=metric)
    if not np.isfinite(distances).all():
        raise ValueError(
            f"metric must give finite distances. Got NaN or infinity from metric={metric!r}."
        )
    return distances


def ball_rule(space, Q, radius):
    """When a product puts a player inside a judge's closed ball, and when the rows must decide.

    Parameters
    ----------
    space : Space
        The players.
    Q : ndarray or Rows of shape (n_judges, d)
        The judges.
    radius : float
        The radius.

    Returns
    -------
    work : ndarray or csr_array of shape (n_judges, d)
        The judges in the form that the product takes.
    threshold : ndarray of shape (n_judges,)
        Inside where ``scale * product - half`` is at least this.
    slack : ndarray of shape (n_judges,)
        Added to ``ball_tolerance * half``: how near to the threshold the exact key decides.
    limit : float
        Inside where the exact key is at most this.
    """
    work, query_half = space.queries(Q)
    closed = 1e-12  # the ball is closed: a distance that rounds to the radius is inside
    if space.kind == EUCLIDEAN:
        slack = space.ball_tolerance * query_half
        return work, query_half - radius**2 / 2, slack, radius**2 * (1 + closed)
    n_judges = len(query_half)
    if space.kind == COSINE:
        slack = np.full(n_judges, space.ball_tolerance)
        return work, np.full(n_judges, 1.0 - radius), slack, radius - 1.0 + closed
    limit = radius * (1 + closed)
    return work, np.full(n_judges, -limit), np.zeros(n_judges), limit
