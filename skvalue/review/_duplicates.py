"""Equal and nearly equal rows, whose labels should agree."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.decomposition import TruncatedSVD
from sklearn.neighbors import NearestNeighbors

_NEAR = 0.2  # of the median distance from the nearest row
_WIDE = 64  # columns, above which distances are between projections


def duplicate_groups(exact, vectors=None):
    """Number of the group of duplicates of each row.

    Rows are in one group if they are equal, or if each is the other's nearest row at a distance
    below 0.2 times the median distance from the nearest row.

    Parameters
    ----------
    exact : ndarray of shape (n_samples,)
        Codes that are equal for equal rows.
    vectors : array or sparse matrix of shape (n_samples, n_features), default=None
        Vectors between which distances are computed; without them rows must be equal. More than 64
        columns are projected to 64.

    Returns
    -------
    groups : ndarray of shape (n_samples,)
        Numbers from 0; a row without duplicates is a group.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.review import duplicate_groups
    >>> X = np.array([[0.0], [5.0], [0.0], [5.001], [9.0], [14.0]])
    >>> duplicate_groups(X[:, 0], X).tolist()
    [0, 1, 0, 1, 2, 3]
    """
    _, first, codes = np.unique(exact, return_index=True, return_inverse=True)
    pairs = np.zeros((2, 0), dtype=np.intp)
    if vectors is not None and len(first) > 2:
        pairs = _near_pairs(vectors[first])
    graph = coo_array((np.ones(pairs.shape[1]), tuple(pairs)), (len(first), len(first)))
    groups = connected_components(graph, directed=False)[1][codes]
    return by_first_row(groups)


def _near_pairs(vectors):
    if vectors.shape[1] > _WIDE:
        vectors = TruncatedSVD(_WIDE, random_state=0).fit_transform(vectors)
    distances, nearest = NearestNeighbors(n_neighbors=1).fit(vectors).kneighbors()
    distances, nearest = distances[:, 0], nearest[:, 0]
    rows = np.arange(len(nearest))
    near = (nearest[nearest] == rows) & (distances < _NEAR * np.median(distances))
    return np.array([rows[near], nearest[near]])


def by_first_row(groups):
    """The groups, numbered in the order of their first rows."""
    _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def merge_groups(first, second):
    """Groups of the rows that are connected by one of two groupings."""
    rows = np.arange(len(first))
    edges = [(rows, groups + len(rows)) for groups in (first, second)]
    edges[1] = (rows, edges[1][1] + first.max() + 1)
    here, there = np.concatenate(edges, axis=1)
    n = there.max() + 1
    parts = connected_components(coo_array((np.ones(len(here)), (here, there)), (n, n)), False)[1]
    return by_first_row(parts[rows])


def differing(codes, groups):
    """Whether each row is in a group with different labels.

    >>> differing(np.array([0, 1, 1]), np.array([0, 0, 1])).tolist()
    [True, True, False]
    """
    pairs = np.unique(np.stack([groups, codes]), axis=1)
    return np.bincount(pairs[0])[groups] > 1
