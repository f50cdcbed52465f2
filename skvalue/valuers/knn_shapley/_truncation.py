"""The error of `max_rank`, by which only the nearest rows are ranked."""

from functools import lru_cache

import numpy as np

from ._sizes import near_rows


def max_rank_bound(n, max_rank, n_neighbors=1, semivalue="shapley", min_coalition=0):
    """Bound of the error of values when only the nearest rows are ranked.

    Rows beyond rank R = `max_rank` >= K count as tied. Their values, and the exact
    ones, are in an interval of length 1/(R + 1) - 1/n; the error of the values of
    nearer rows comes from the weights of the ranks beyond R, whose sum is 1/R - 1/n.
    The sum of the values is exact. For another semivalue, 1 / r becomes ``near[r]`` of
    `SizeTables`.

    Parameters
    ----------
    n : int
        Number of players.
    max_rank : int
        Number of ranks.
    n_neighbors : int, default=1
        Number K of neighbours, at most `max_rank`.
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or tuple, default="shapley"
        The semivalue.
    min_coalition : int, default=0
        Number of rows that a coalition has at least.

    Returns
    -------
    bound : float
        Bound of ``|value - exact value|``; 0 if all rows are ranked.

    Examples
    --------
    >>> round(max_rank_bound(n=1000, max_rank=100), 6)
    0.009
    """
    near = near_rows(n, n_neighbors, semivalue, min_coalition).near
    return max(0.0, float(near[min(max_rank, n)] - near[n]))


# A fit asks several times.
@lru_cache(maxsize=64)
def smallest_max_rank(n, tol, n_neighbors=1, semivalue="shapley", min_coalition=0):
    """Smallest number of ranks whose `max_rank_bound` is at most ``tol``.

    The bound decreases with the rank, so that a search in its table of n numbers finds
    the smallest one. For the Shapley value it is 1 / (tol + 1/n), rounded up, or K if
    that is larger.

    Parameters
    ----------
    n : int
        Number of players.
    tol : float
        Largest error of a value, at least 0.
    n_neighbors : int, default=1
        Number K of neighbours, the smallest rank.
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or tuple, default="shapley"
        The semivalue.
    min_coalition : int, default=0
        Number of rows that a coalition has at least.

    Returns
    -------
    max_rank : int
        The number of ranks, at most n.

    Examples
    --------
    >>> smallest_max_rank(n=1000, tol=0.01)
    91
    """
    near = near_rows(n, n_neighbors, semivalue, min_coalition).near
    first = min(n_neighbors, n)
    return first + int(np.searchsorted(near[n] - near[first:], -tol))
