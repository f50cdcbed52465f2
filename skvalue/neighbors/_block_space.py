"""Players that are read block by block, prepared for one metric."""

import numpy as np
from scipy import sparse
from sklearn import get_config

from ._rows import Rows, read_rows
from ._space import (
    COSINE,
    EUCLIDEAN,
    GENERIC,
    JUDGES,
    Buffers,
    Space,
    all_small,
    check_norms,
    finite_distances,
    inverse_from,
)

_SPARSE_METRICS = {"cityblock", "l1", "l2", "manhattan"}  # of scikit-learn's; beside the products
_THIN = 0.05  # a sparse judge tile of lower density is multiplied as it is


def budget():
    """Bytes for one array of one task."""
    return get_config()["working_memory"] * 2**20 / 32


def _squares(block):
    """Squared norms of the rows of a block."""
    if sparse.issparse(block):
        return np.asarray(block.multiply(block).sum(axis=1)).ravel().astype(block.dtype)
    return np.vecdot(block, block)


def inner(left, right):
    """Inner products (n_left, n_right) as an ndarray, of dense or sparse rows."""
    if not sparse.issparse(left) and not sparse.issparse(right):
        return left @ right.T
    if sparse.issparse(left) and sparse.issparse(right):
        return (left @ right.T.tocsr()).toarray()
    return left @ right.T if sparse.issparse(left) else (right @ left.T).T


class BlockSpace(Space):
    """Players that are read block by block.

    Parameters
    ----------
    X : Rows of shape (n, d)
        The players.
    metric : str or callable
        As in `Space`; for sparse rows "euclidean", "cosine", "manhattan" and its other names.

    Raises
    ------
    ValueError
        If squared norms overflow, or the metric does not take sparse rows.
    """

    def __init__(self, X, metric):
        self.metric, self.X, self.work = metric, X, None
        self.buffers, self.center, self.budget = Buffers(), None, budget()
        n, d = X.shape
        if X.is_sparse and metric not in _SPARSE_METRICS | {"euclidean", "cosine"}:
            raise ValueError(
                f"metric must be one of {sorted(_SPARSE_METRICS | {'cosine', 'euclidean'})} for "
                f"sparse X. Got {metric!r}."
            )
        self.kind = {"euclidean": EUCLIDEAN, "cosine": COSINE}.get(metric, GENERIC)
        self.half, self.scale = np.zeros(n, dtype=X.dtype), np.ones(n, dtype=X.dtype)
        if self.kind == EUCLIDEAN and not X.is_sparse:  # without its zeros a sparse X is not sparse
            room = max(16, min(4096, int(self.budget // (X.dtype.itemsize * d))))
            some = X[np.arange(0, n, max(1, -(-n // room)))].read()
            center = some.mean(axis=0, dtype=np.float64).astype(X.dtype)
            if np.vecdot(center, center) > 0.25 * _squares(some).mean(dtype=np.float64):
                self.center = center
        longest = d
        if self.kind != GENERIC:
            with np.errstate(over="ignore"):  # refused below
                for part, block in self.blocks(1):
                    squares = _squares(self._centred(block))
                    if self.kind == EUCLIDEAN:
                        check_norms(squares, block)
                        self.half[part] = squares / 2
                    else:
                        self.scale[part] = inverse_from(squares, block)
            if self.kind == EUCLIDEAN and all_small(self.half)[0]:
                for part, block in self.blocks(1):
                    check_norms(self.half[part], self._centred(block), small=self.half[part] >= 0)
            if X.is_sparse:
                longest = max(1, int(np.diff(X.source.indptr).max(initial=0)))
        self._finish(longest)

    def _centred(self, block):
        return block if self.center is None else block - self.center

    def blocks(self, n_judges):
        """Read the players in blocks fit for a product with so many judges."""
        d = self.X.shape[1]
        if self.X.is_sparse:
            d = 4 * self.X.source.nnz // max(1, self.X.source.shape[0]) + 1
        room = int(self.budget // (self.X.dtype.itemsize * (d + 3 * n_judges)))
        return self.X.blocks(min(max(room, 16), 2**16))

    def read(self, Q):
        """Judges in memory, of the kind of the players."""
        Q = read_rows(Q)
        if self.X.is_sparse:
            return sparse.csr_array(Q)
        return Q.toarray() if sparse.issparse(Q) else np.asarray(Q)

    def queries(self, Q):
        """As in `Space`; sparse judges come back dense unless they are too thin or too many."""
        Q = self.read(Q)
        if self.kind == EUCLIDEAN:
            work = self._centred(Q)
            squares = _squares(work)
            check_norms(squares, work, JUDGES)
            half = squares.astype(np.float64) / 2
        elif self.kind == COSINE:
            scale = inverse_from(_squares(Q), Q, JUDGES)
            work = sparse.diags_array(scale) @ Q if sparse.issparse(Q) else Q * scale[:, None]
            half = np.zeros(Q.shape[0])
        else:
            return Q, np.zeros(Q.shape[0])
        if sparse.issparse(work):
            work = sparse.csr_array(work)
            dense_bytes = work.shape[0] * work.shape[1] * work.dtype.itemsize
            if work.nnz > _THIN * work.shape[0] * work.shape[1] and dense_bytes <= self.budget:
                work = work.toarray()
        return work, half

    def distances(self, Q, rows=slice(None)):
        """As in `Space`, block by block."""
        X, Q = self.X[rows], self.read(Q)
        out = np.empty((Q.shape[0], len(X)))
        for part, block in X.blocks(max(1, int(self.budget // (8 * X.shape[1])))):
            out[:, part] = finite_distances(Q, block, self.metric)
        return out

    def products(self, queries, block, part):
        """``scale * <x, q>`` of a block of players, (n_block, n_judges); minus other distances."""
        if self.kind == GENERIC:
            return -finite_distances(block, queries, self.metric)
        product = inner(self._centred(block), queries)
        if self.kind == COSINE:
            product *= self.scale[part, None]
        return product


def make_space(X, metric):
    """Players under one metric: a `Space`, or a `BlockSpace` where X is `Rows`.

    Parameters
    ----------
    X : ndarray or Rows of shape (n, d)
        The players.
    metric : str or callable
        The metric, see `Space`.

    Returns
    -------
    space : Space
        The players.
    """
    return BlockSpace(X, metric) if isinstance(X, Rows) else Space(X, metric)
