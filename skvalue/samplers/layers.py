"""Layers of coalitions by size: many small coalitions, few large ones.

Layer k of a player is its mean marginal contribution to the coalitions of k other
players; the Shapley value is the mean over layers. If marginal contributions decrease
as c / k, few coalitions of the large layers are enough (Watson, Andreeva, Yang and
Sarkar: "Differentially Private Shapley Values for Data Evaluation", Algorithm 1).
"""

from math import comb

import numpy as np

ALLOCATIONS = ("bound", "neyman")


def layer_counts(bounds, tol, confidence, allocation="bound"):
    """Number of coalitions per layer for a value within `tol` with `confidence`.

    With that many independent draws, and at least one per layer,
    ``Pr(|estimate - value| >= tol) <= 1 - confidence``.

    Parameters
    ----------
    bounds : array-like of shape (n_layers,)
        Largest absolute marginal contribution to the coalitions of each size
        0, 1, ..., n_layers - 1. There is one coalition of size 0.
    tol, confidence : float
        Error bound (alpha in the paper), and the probability of a smaller error (1 -
        beta).
    allocation : {"bound", "neyman"}, default="bound"
        "bound", as in the paper: the mean of every layer is within `tol`, ``m = (2 c)^2
        ln(2 K / (1 - confidence)) / (2 tol^2)`` for a bound c and K layers, so that m
        decreases as 1 / k^2 if c decreases as 1 / k. The range of contributions in [-c,
        c] is 2 c; the paper uses c. "neyman": the mean of all layers is within `tol`,
        by Hoeffding's inequality for the sum of all draws, with m proportional to c.

    Returns
    -------
    counts : ndarray of shape (n_layers,)
        Real numbers, which can be below 1; infinite for size 0.

    References
    ----------
    Algorithm 1 and Lemma C.1 of the paper.

    Examples
    --------
    >>> bounds = [1, 1, 1 / 2, 1 / 3]
    >>> layer_counts(bounds, tol=0.1, confidence=0.95).round(1).tolist()
    [inf, 1015.0, 253.8, 112.8]
    >>> layer_counts(bounds, 0.1, 0.95, allocation="neyman").round(1).tolist()
    [inf, 84.5, 42.3, 28.2]
    """
    bounds = np.asarray(bounds, dtype=np.float64)
    n_layers = len(bounds)
    failure = 1 - confidence
    # The coalition of size 0 is not sampled.
    sampled = bounds[1:]
    counts = np.full(n_layers, np.inf)
    if allocation == "bound":
        counts[1:] = 2 * sampled**2 * np.log(2 * n_layers / failure) / tol**2
    else:
        total = sampled.sum() * np.log(2 / failure)
        counts[1:] = 2 * sampled * total / (tol * n_layers) ** 2
    return counts


def systematic_counts(rng, means):
    """Random integers of given means, with partial sums within 1 of the means' sums.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    means : array-like of shape (n,)
        Nonnegative means.

    Returns
    -------
    counts : ndarray of int of shape (n,)
        The means, each rounded up or down.

    Examples
    --------
    >>> counts = systematic_counts(np.random.default_rng(0), [0.25] * 8)
    >>> counts.sum(), counts.max()
    (np.int64(2), np.int64(1))
    """
    # Counts of the integers between consecutive points, all moved by one random shift.
    points = np.r_[0.0, np.cumsum(means)] + rng.random()
    return np.diff(np.floor(points)).astype(np.int64)


def partitions(rng, n, size, count):
    """Partition the players into sets of one size, several times independently.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    n, size, count : int
        Number of players, size of the sets, and number of partitions.

    Returns
    -------
    sets : ndarray of int of shape (count, n_sets, size)
        Players of each set, n_sets = ceil(n / size). An incomplete last set is filled
        with players of the set before it.
    once : ndarray of bool of shape (n_sets, size)
        Entries of a partition in which every player occurs exactly once.

    Examples
    --------
    >>> sets, once = partitions(np.random.default_rng(0), 5, 2, count=3)
    >>> sets.shape, np.unique(sets[0][once]).tolist()
    ((3, 3, 2), [0, 1, 2, 3, 4])
    """
    orders = rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)
    n_full, n_remaining = divmod(n, size)
    starts = np.arange(n_full, dtype=np.int64) * size
    if n_remaining:
        starts = np.append(starts, n - size)
    once = np.ones((len(starts), size), dtype=bool)
    if n_remaining:
        once[-1, : size - n_remaining] = False
    return orders[:, starts[:, None] + np.arange(size)], once


def circle_blocks(order, size, count):
    """Disjoint blocks of other players for every player: its successors on a circle.

    Given one player, the order of the others is uniform, so that each of its blocks is
    a uniform subset of the others; no other player is in two of them. A block is used
    for several players.

    Parameters
    ----------
    order : ndarray of int of shape (n,)
        A random permutation of the players, closed to a circle.
    size : int
        Size of the blocks.
    count : int
        Number of blocks of each player, at most ``(n - 1) // size``.

    Returns
    -------
    blocks : ndarray of int of shape (n, size)
        Block q starts at position q.
    players : ndarray of int of shape (n, count)
        The players that block q is used for.

    Examples
    --------
    Player 2 is followed by the block of 3 and 4, and player 0 by that of 1 and 2 and
    that of 3 and 4:

    >>> blocks, players = circle_blocks(np.arange(5), size=2, count=2)
    >>> blocks[3].tolist(), players[3].tolist()
    ([3, 4], [2, 0])
    """
    n = len(order)
    starts = np.arange(n)[:, None]
    blocks = order[(starts + np.arange(size)) % n]
    players = order[(starts - 1 - size * np.arange(count)) % n]
    return blocks, players


def all_subsets(n, size):
    """All subsets of one size, in the order of `subset_ranks`.

    Parameters
    ----------
    n, size : int
        Number of players, and size of the subsets.

    Returns
    -------
    subsets : ndarray of int of shape (binom(n, size), size)
        Players of each subset, ascending.

    Examples
    --------
    >>> all_subsets(4, 2).tolist()
    [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]]
    """
    subsets = np.zeros((1, 0), dtype=np.int64)
    for k in range(1, size + 1):
        # The first binom(top, k - 1) subsets of size k - 1 have only players below top.
        counts = [comb(top, k - 1) for top in range(k - 1, n - size + k)]
        below = np.concatenate([np.arange(count) for count in counts])
        tops = np.repeat(np.arange(k - 1, n - size + k), counts)
        subsets = np.column_stack([subsets[below], tops])
    return subsets


def subset_ranks(subsets):
    """Rank of every subset among all subsets of its size, in colexicographic order.

    Parameters
    ----------
    subsets : ndarray of int of shape (m, size)
        Players of each subset, ascending.

    Returns
    -------
    ranks : ndarray of int of shape (m,)
        Ranks from 0.

    Examples
    --------
    >>> subset_ranks(all_subsets(5, 3)).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    n_subsets, size = subsets.shape
    n = int(subsets.max(initial=-1)) + 1
    ranks = np.zeros(n_subsets, dtype=np.int64)
    # The k-th player c adds binom(c, k + 1), the sum of binom(b, k) over all b below c.
    # Sums that overflow do so modulo 2^64: those that are looked up are exact, because
    # they are below the number of subsets.
    binomials = np.ones(n, dtype=np.int64)
    for k in range(size):
        binomials = np.cumsum(binomials) - binomials
        ranks += binomials[subsets[:, k]]
    return ranks


def uniform_subsets(rng, n, size, count):
    """Independent uniform subsets of one size.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    n, size, count : int
        Number of players, size of the subsets, and number of subsets.

    Returns
    -------
    subsets : ndarray of int of shape (count, size)
        Players of each subset, in random order.

    Examples
    --------
    >>> uniform_subsets(np.random.default_rng(0), 8, 3, count=2).shape
    (2, 3)
    """
    orders = rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)
    return orders[:, :size]


def distinct_subsets(rng, n, size, mean):
    """Draw every subset of one size independently with the same probability.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    n, size : int
        Number of players, and size of the subsets.
    mean : float
        Expected number of subsets; all subsets if it is at least their number. If there
        are more than 2^53 subsets, the number drawn has a Poisson instead of a binomial
        distribution, which is the same to numerical precision.

    Returns
    -------
    subsets : ndarray of int of shape (m, size)
        Players of each subset, ascending; the subsets are distinct.

    Examples
    --------
    >>> len(distinct_subsets(np.random.default_rng(0), 8, 3, mean=56))
    56
    """
    total = comb(n, size)
    if total < 2**53:
        count = int(rng.binomial(total, min(1.0, mean / total)))
    else:
        count = int(rng.poisson(mean))
    if 2 * count > total:
        # Rejection would be slow: choose from all subsets.
        return all_subsets(n, size)[np.sort(rng.permutation(total)[:count])]

    # Draw as many as are missing, and reject those that occurred before.
    subsets = np.zeros((0, size), dtype=np.int64)
    while len(subsets) < count:
        drawn = uniform_subsets(rng, n, size, count - len(subsets))
        subsets = np.concatenate([subsets, np.sort(drawn, axis=1)])
        _, first_occurrences = np.unique(subsets, axis=0, return_index=True)
        subsets = subsets[np.sort(first_occurrences)]
    return subsets
