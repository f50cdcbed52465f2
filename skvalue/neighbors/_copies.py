"""Copies of rows: clusters of rows of one label within a radius, chosen on public points."""

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

_MERGED = 0.01  # fraction of honest rows that have an honest neighbour within the radius
_ZERO = 1e-9  # distances up to this are those of equal rows


def copy_radius(X_val, y_val, n, metric="euclidean"):
    """Radius within which about 1 % of n honest rows have a neighbour of their label.

    The quantile, at the level ``0.01 n_val / n``, of the distances of points from the nearest other
    point of their label: near 0, the probability of a neighbour grows in proportion to the number
    of rows. Distances of 0 are left out; 0 if there are no others. With continuous targets, of any
    label.
    """
    nearest = [np.zeros(0)]
    for label in np.unique(y_val):
        points = X_val[y_val == label]
        if len(points) > 1:
            near = NearestNeighbors(n_neighbors=1, metric=metric).fit(points)
            nearest.append(near.kneighbors()[0][:, 0])
    nearest = np.concatenate(nearest)
    nearest = nearest[nearest > _ZERO]
    return float(np.quantile(nearest, min(1.0, _MERGED * len(y_val) / n))) if len(nearest) else 0.0


def copy_clusters(X, y, radius, metric="euclidean"):
    """Cluster of every row: connected by rows of one label that are at most `radius` apart."""
    near = NearestNeighbors(radius=max(radius, _ZERO), metric=metric).fit(X)
    graph = near.radius_neighbors_graph(X).tocoo()
    graph.data = (y[graph.row] == y[graph.col]).astype(np.int8)
    graph.eliminate_zeros()
    return connected_components(graph, directed=False)[1]
