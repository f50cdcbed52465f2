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
    n_groups = codes.max(initial=-1) + 1
    edges = np.ones(len(pairs)), tuple(codes[pairs].T)
    graph = coo_array(edges, (n_groups, n_groups))
    _, component_of_group = connected_components(graph, directed=False)
    return by_first_row(component_of_group[codes])


def groups_of(codes, chosen=None):
    """Rows of each group.

    Without `chosen`, a mask of the rows that are looked at, groups have at least two
    rows.

    >>> groups_of(np.array([0, 1, 0]))
    [array([0, 2])]
    """
    if chosen is None:
        chosen = np.bincount(codes)[codes] > 1
    rows = np.flatnonzero(chosen)
    if len(rows) == 0:
        return []
    rows = rows[np.argsort(codes[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(codes[rows])) + 1
    return np.split(rows, starts)


def differing(codes, groups):
    """Whether each row is in a group with different labels.

    >>> differing(np.array([0, 1, 1]), np.array([0, 0, 1])).tolist()
    [True, True, False]
    """
    pairs = np.unique(np.stack([groups, codes]), axis=1)
    n_labels = np.bincount(pairs[0])
    return n_labels[groups] > 1
