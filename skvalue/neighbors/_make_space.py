"""Rows prepared for one metric, wherever they are."""

from ._block_space import BlockSpace
from ._dense_space import DenseSpace
from ._distance_space import DistanceSpace
from ._rows import Rows


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
    if isinstance(X, Rows):
        return BlockSpace(X, metric, codes, n_classes)
    return DenseSpace(X, metric, codes, n_classes)
