"""Layers of coalitions: many small ones, few large ones.

The Shapley value of a player is the mean over sizes k of its mean marginal contribution to the
coalitions of k others, its layer k. Where marginal contributions fall as c / k, few coalitions of
the large layers are enough (Watson, Andreeva, Yang and Sarkar: "Differentially Private Shapley
Values for Data Evaluation", Algorithm 1).
"""

from math import comb

import numpy as np

ALLOCATIONS = ("bound", "neyman")


def layer_counts(bounds, accuracy, failure, allocation="bound"):
    """Coalitions that a player's layers need for an (accuracy, failure) estimate.

    Of independent draws, at least one a layer, so many give
    ``Pr(|estimate - value| >= accuracy) <= failure``.

    Parameters
    ----------
    bounds : array-like of shape (n_layers,)
        Largest marginal contribution, in absolute value, to the coalitions of each size
        0, 1, ..., n_layers - 1. Of size 0 there is one coalition.
    accuracy, failure : float
        Largest error (the paper's alpha), and the chance of a larger one (beta).
    allocation : {"bound", "neyman"}, default="bound"
        "bound", as in the paper: every layer's mean is within the accuracy, ``m = (2 c)^2 ln(2 K /
        failure) / (2 accuracy^2)`` for a bound c and K layers, so that m falls as 1 / k^2 where c
        falls as 1 / k.
        Contributions within c of 0 have a range of 2 c, of which the paper has half.
        "neyman": the mean of all layers is within the accuracy, by Hoeffding's inequality for the
        sum of all draws, with m in proportion to c.

    Returns
    -------
    counts : ndarray of shape (n_layers,)
        Real numbers, below 1 for layers of which less than a coalition is needed; infinite for
        size 0.

    References
    ----------
    The paper's Algorithm 1 and Lemma C.1.

    Examples
    --------
    >>> layer_counts([1, 1, 1 / 2, 1 / 3], accuracy=0.1, failure=0.05).round(1).tolist()
    [inf, 1015.0, 253.8, 112.8]
    >>> layer_counts([1, 1, 1 / 2, 1 / 3], 0.1, 0.05, allocation="neyman").round(1).tolist()
    [inf, 84.5, 42.3, 28.2]
    """
    bounds = np.asarray(bounds, dtype=np.float64)
    counts = np.full(len(bounds), np.inf)
    sampled = bounds[1:]
    if allocation == "bound":
        counts[1:] = 2 * sampled**2 * np.log(2 * len(bounds) / failure) / accuracy**2
    else:
        total = sampled.sum() * np.log(2 / failure)
        counts[1:] = 2 * sampled * total / (accuracy * len(bounds)) ** 2
    return counts


def systematic_counts(rng, means):
    """Integers with the given means, whose partial sums are within 1 of those of the means.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    means : array-like of shape (n,)
        The means, at least 0.

    Returns
    -------
    counts : ndarray of int of shape (n,)
        Each its mean rounded up or down.

    Examples
    --------
    >>> counts = systematic_counts(np.random.default_rng(0), [0.25] * 8)
    >>> counts.sum(), counts.max()
    (np.int64(2), np.int64(1))
    """
    sums = np.floor(np.r_[0.0, np.cumsum(means)] + rng.random())
    return np.diff(sums).astype(np.int64)


def partitions(rng, n, size, count):
    """Cut all players into sets of one size, several times, independently.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    n, size, count : int
        Players, size of the sets, and number of partitions.

    Returns
    -------
    sets : ndarray of int of shape (count, n_sets, size)
        Players of each set, n_sets = ceil(n / size). What does not divide is filled up from the set
        before.
    own : ndarray of bool of shape (n_sets, size)
        Places at which every player of a partition stands once.

    Examples
    --------
    >>> sets, own = partitions(np.random.default_rng(0), 5, 2, count=3)
    >>> sets.shape, np.unique(sets[0][own]).tolist()
    ((3, 3, 2), [0, 1, 2, 3, 4])
    """
    orders = rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)
    full, rest = divmod(n, size)
    starts = np.r_[np.arange(full) * size, [n - size] * bool(rest)].astype(np.int64)
    own = np.ones((len(starts), size), dtype=bool)
    if rest:
        own[-1, : size - rest] = False
    return orders[:, starts[:, None] + np.arange(size)], own


def circle_blocks(order, size, count):
    """Disjoint blocks of others for every player: what follows it on a circle, cut.

    Given one player, the order of the others is uniform, so that each of its blocks is a uniform
    subset of the others; no other player is in two of them. A block serves several players.

    Parameters
    ----------
    order : ndarray of int of shape (n,)
        A random order of the players, closed to a circle.
    size : int
        Size of the blocks.
    count : int
        Blocks of each player, at most ``(n - 1) // size``.

    Returns
    -------
    blocks : ndarray of int of shape (n, size)
        Block q begins at place q.
    players : ndarray of int of shape (n, count)
        The players that block q serves.

    Examples
    --------
    >>> blocks, players = circle_blocks(np.arange(5), size=2, count=2)
    >>> blocks[3].tolist(), players[3].tolist()  # 2 is followed by 3, 4; and 0 by 1, 2 and 3, 4
    ([3, 4], [2, 0])
    """
    n = len(order)
    starts = np.arange(n)[:, None]
    blocks = order[(starts + np.arange(size)) % n]
    return blocks, order[(starts - 1 - size * np.arange(count)) % n]


def all_subsets(n, size):
    """All subsets of one size, in the order of `subset_ranks`.

    Parameters
    ----------
    n, size : int
        Players, and size of the subsets.

    Returns
    -------
    subsets : ndarray of int of shape (binom(n, size), size)
        Players of each, ascending.

    Examples
    --------
    >>> all_subsets(4, 2).tolist()
    [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]]
    """
    subsets = np.zeros((1, 0), dtype=np.int64)
    for k in range(1, size + 1):
        # The first binom(top, k - 1) of the smaller ones are those of players below top.
        counts = [comb(top, k - 1) for top in range(k - 1, n - size + k)]
        below = np.concatenate([np.arange(count) for count in counts])
        tops = np.repeat(np.arange(k - 1, n - size + k), counts)
        subsets = np.column_stack([subsets[below], tops])
    return subsets


def subset_ranks(subsets):
    """Place of every subset among all of its size, in colexicographic order.

    Parameters
    ----------
    subsets : ndarray of int of shape (m, size)
        Players of each, ascending.

    Returns
    -------
    ranks : ndarray of int of shape (m,)
        The places.

    Examples
    --------
    >>> subset_ranks(all_subsets(5, 3)).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    ranks = np.zeros(len(subsets), dtype=np.int64)
    for place in range(subsets.shape[1]):
        binomials = np.ones(len(subsets), dtype=np.int64)
        for step in range(place + 1):  # binom(c, place + 1), exact at every step
            binomials = binomials * (subsets[:, place] - step) // (step + 1)
        ranks += binomials
    return ranks


def uniform_subsets(rng, n, size, count):
    """Independent uniform subsets of one size.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    n, size, count : int
        Players, size of the subsets, and number of subsets.

    Returns
    -------
    subsets : ndarray of int of shape (count, size)
        Players of each, in random order.

    Examples
    --------
    >>> uniform_subsets(np.random.default_rng(0), 8, 3, count=2).shape
    (2, 3)
    """
    return rng.permuted(np.tile(np.arange(n), (count, 1)), axis=1)[:, :size]


def distinct_subsets(rng, n, size, mean):
    """Every subset of one size, independently with the same chance.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    n, size : int
        Players, and size of the subsets.
    mean : float
        Mean number of subsets; at least as many as there are gives all. Where there are more than
        2^53, their number is drawn by the law of Poisson, from which the binomial cannot be told.

    Returns
    -------
    subsets : ndarray of int of shape (m, size)
        Players of each, ascending; no two are the same.

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
    if 2 * count > total:  # few are missing: choose among all
        return all_subsets(n, size)[np.sort(rng.permutation(total)[:count])]
    seen = np.zeros((0, size), dtype=np.int64)
    while len(seen) < count:
        more = np.sort(uniform_subsets(rng, n, size, count - len(seen)), axis=1)
        together = np.concatenate([seen, more])
        first = np.unique(together, axis=0, return_index=True)[1]
        seen = together[np.sort(first)]
    return seen
