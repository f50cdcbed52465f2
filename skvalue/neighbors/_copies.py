"""Copies of rows: clusters of rows of one label within a radius."""

import numpy as np
from sklearn import get_config
from sklearn.neighbors import NearestNeighbors

from .._utils.row_groups import merge_pairs

# Fraction of honest rows that have an honest neighbour within the radius.
_MERGED = 0.01

# Distances up to this are those of equal rows.
_ZERO = 1e-9

# Bytes that a pair of neighbours takes in `copy_clusters`.
_PAIR_BYTES = 128


def copy_radius(X_val, y_val, n, metric="euclidean"):
    """Choose the radius of copies on public points.

    Within it, about 1 % of honest rows have a neighbour of their label. It is the
    quantile, at the level ``0.01 n_val / n``, of the distances of points from the
    nearest other point of their label: near 0, the probability of a neighbour grows in
    proportion to the number of rows. Distances of 0 are left out.

    Parameters
    ----------
    X_val : ndarray of shape (n_val, n_features)
        Public points.
    y_val : ndarray of shape (n_val,)
        Their labels; a constant for targets.
    n : int
        Number of rows.
    metric : str or callable, default="euclidean"
        Metric of `sklearn.neighbors.NearestNeighbors`.

    Returns
    -------
    radius : float
        The radius; 0 if there are no distances above 0.

    Examples
    --------
    >>> import numpy as np
    >>> copy_radius(np.array([[0.0], [1.0], [3.0]]), np.zeros(3), n=3)
    1.0
    """
    nearest = [np.zeros(0)]
    for label in np.unique(y_val):
        points = X_val[y_val == label]
        if len(points) > 1:
            neighbors = NearestNeighbors(n_neighbors=1, metric=metric).fit(points)
            distances, _ = neighbors.kneighbors()
            nearest.append(distances[:, 0])
    nearest = np.concatenate(nearest)
    nearest = nearest[nearest > _ZERO]
    if not len(nearest):
        return 0.0
    return float(np.quantile(nearest, min(1.0, _MERGED * len(y_val) / n)))


def copy_clusters(X, y, radius, metric="euclidean"):
    """Cluster rows: those of one label that are at most `radius` apart are connected.

    The pairs of neighbours in memory fit into scikit-learn's `working_memory`, also
    where all rows are equal.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        The rows.
    y : ndarray of shape (n,)
        Their labels.
    radius : float
        Largest distance between connected rows.
    metric : str or callable, default="euclidean"
        Metric of `sklearn.neighbors.NearestNeighbors`.

    Returns
    -------
    clusters : ndarray of int of shape (n,)
        Cluster of each row, numbered in the order of their first rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [3.0]])
    >>> copy_clusters(X, np.zeros(3), radius=0.2).tolist()
    [0, 0, 1]
    """
    neighbors = NearestNeighbors(radius=max(radius, _ZERO), metric=metric).fit(X)
    n = len(X)
    most_pairs = get_config()["working_memory"] * 2**20 / _PAIR_BYTES
    # Blocks of random rows have about the same numbers of neighbours. In the first one
    # all rows may be.
    order = np.random.default_rng(0).permutation(n)
    size = max(1, int(most_pairs / n))

    clusters = np.arange(n)
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    n_pairs = 0
    start = 0
    while start < n:
        block = order[start : start + size]
        start += size
        graph = neighbors.radius_neighbors_graph(X[block]).tocoo()
        rows = block[graph.row]
        others = graph.col
        is_new = (y[rows] == y[others]) & (clusters[rows] != clusters[others])
        pairs.append(np.column_stack([rows[is_new], others[is_new]]))
        n_pairs += len(pairs[-1])
        # Merging takes time in proportion to n: it waits until there is much to merge.
        if n_pairs >= n:
            clusters = merge_pairs(clusters, np.concatenate(pairs))
            pairs = pairs[:1]
            n_pairs = 0
        mean_neighbors = graph.nnz / len(block)
        fitting = most_pairs / max(1.0, 2 * mean_neighbors)
        size = max(1, int(min(4 * size, fitting)))
    return merge_pairs(clusters, np.concatenate(pairs))
