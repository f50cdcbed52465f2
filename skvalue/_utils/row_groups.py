"""Groups of rows as codes: one number for each row, equal in a group."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


def by_first_row(groups):
    """The groups, numbered in the order of their first rows."""
    _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def merge_pairs(codes, pairs):
    """Groups of the rows that are connected by equal codes or by pairs of rows.

    >>> merge_pairs(np.array([0, 0, 1, 2]), np.array([[1, 3]])).tolist()
    [0, 0, 1, 0]
    """
    n = codes.max(initial=-1) + 1
    graph = coo_array((np.ones(len(pairs)), tuple(codes[pairs].T)), (n, n))
    return by_first_row(connected_components(graph, directed=False)[1][codes])


def groups_of(codes, chosen=None):
    """Rows of each group that has at least two; `chosen` rows alone.

    >>> groups_of(np.array([0, 1, 0]))
    [array([0, 2])]
    """
    rows = np.flatnonzero(np.bincount(codes)[codes] > 1 if chosen is None else chosen)
    rows = rows[np.argsort(codes[rows], kind="stable")]
    return np.split(rows, np.flatnonzero(np.diff(codes[rows])) + 1) if len(rows) else []


def differing(codes, groups):
    """Whether each row is in a group with different labels.

    >>> differing(np.array([0, 1, 1]), np.array([0, 0, 1])).tolist()
    [True, True, False]
    """
    return np.bincount(np.unique(np.stack([groups, codes]), axis=1)[0])[groups] > 1
