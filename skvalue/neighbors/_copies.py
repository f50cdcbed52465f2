"""Copies of rows: clusters of rows of one label within a radius."""

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

# Fraction of honest rows that have an honest neighbour within the radius.
_MERGED = 0.01

# Distances up to this are those of equal rows.
_ZERO = 1e-9


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
        Cluster of each row.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [3.0]])
    >>> copy_clusters(X, np.zeros(3), radius=0.2).tolist()
    [0, 0, 1]
    """
    neighbors = NearestNeighbors(radius=max(radius, _ZERO), metric=metric).fit(X)
    graph = neighbors.radius_neighbors_graph(X).tocoo()
    graph.data = (y[graph.row] == y[graph.col]).astype(np.int8)
    graph.eliminate_zeros()
    _, clusters = connected_components(graph, directed=False)
    return clusters
