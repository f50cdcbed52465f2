"""How many near rows a random coalition has: what the games of neighbours need of a
semivalue."""

from typing import NamedTuple

import numpy as np

from ...semivalues import size_weights


class SizeTables(NamedTuple):
    """The coalition S of the n - 1 others that a player joins, as tables of its near
    rows.

    ``sizes[s] = n P(|S| = s)`` for s < min(K, n), ``near[r] = P(F) / K`` for the event
    F that S has fewer than K of the r - 1 nearest of these others, and ``joint[r] =
    P(F, i in S)`` for one such row i. For the Shapley value, all sizes have the same
    probability 1 / n, and a random order gives ``near[r] = 1 / max(r, K)``.
    """

    sizes: np.ndarray
    near: np.ndarray
    joint: np.ndarray


def near_rows(n, n_neighbors, semivalue="shapley", min_coalition=0):
    """Tables of the random coalition of a semivalue.

    Players are exchangeable, so that P(F) for r and for r + 1 differ by the probability
    D_r that S has K - 1 of the r - 1 nearest rows and the next one, and ``joint`` by
    ``(K - 1) / (r - 1) D_r``. If every row is in S with probability t, D_r is the
    probability that the K-th success is at trial r; t is 1/2 for Banzhaf, 1 for
    leave-one-out, and has a beta distribution for Beta-Shapley. If all sizes from T on
    are equally likely, with H(N, T, m) the hypergeometric number of successes in m of N
    draws, T of them successes,

        ``D_r = K n / (r (r + 1) (n - T)) P(H(n, T, r + 1) <= K)``.

    Parameters
    ----------
    n, n_neighbors : int
        Numbers of players and of neighbours K.
    semivalue, min_coalition
        As in `KNNShapleyValuer`.

    Returns
    -------
    tables : SizeTables
        The tables.
    """
    k, r = n_neighbors, np.maximum(np.arange(n + 1), 1)
    if semivalue == "shapley" and not min_coalition:
        u = np.minimum(k - 1, r - 1)
        joint = np.divide(
            u * (u + 1) / 2, r * (r - 1), out=np.zeros(n + 1), where=r > 1
        )
        return SizeTables(np.ones(min(k, n)), 1.0 / np.maximum(r, k), joint)
    if min_coalition:
        sizes = np.where(
            np.arange(min(k, n)) < min_coalition, 0.0, 1.0 / (n - min_coalition)
        )
    else:
        sizes = size_weights(semivalue, n)[:k]
    if k >= n:
        steps = np.zeros(0)
    elif min_coalition:
        steps = _calibrated_steps(n, k, min_coalition)
    else:
        steps = _steps(n, k, semivalue)
    one = sizes @ np.arange(len(sizes)) / max(n - 1, 1)  # P(|S| < K, i in S)
    near, joint = np.full(n + 1, sizes.sum()), np.full(n + 1, one)
    both = steps * (k - 1) / np.maximum(np.arange(k, k + len(steps)) - 1, 1)
    for table, drops in ((near, steps), (joint, both)):
        table[k:n] += np.cumsum(drops[::-1])[::-1]
        table[:k] = table[min(k, n)]
    joint[:2] = 0.0  # there is no nearer row
    return SizeTables(sizes * n, near / k, joint)


def _steps(n, k, semivalue):
    """D_r of `near_rows` for r = K..n-1, where rows are in S with a random
    probability."""
    r = np.arange(k, n)
    if semivalue == "leave-one-out":
        return (r == k).astype(float)
    if semivalue == "banzhaf":
        first, last = np.full(k, 0.5), np.full(len(r), 0.5)
    else:
        alpha, beta = semivalue
        first = (beta + np.arange(k)) / (alpha + beta + np.arange(k))
        last = (alpha + r - k) / (alpha + beta + r)
    return _from_ratios(first, r / (r - k + 1) * last)


def _calibrated_steps(n, k, least):
    """D_r of `near_rows` for r = K..n-1, where all sizes from ``least`` on are equally
    likely."""
    m = np.arange(k, n)  # draws
    first = np.maximum(least - np.arange(k), 0) / (n - np.arange(k))
    failures = np.maximum(n - least - m + k, 0)
    exactly = _from_ratios(first, failures * (m + 1) / ((m - k + 1) * (n - m)))
    at_most = np.zeros(n + 1 - k)  # of K successes in m = K..n draws
    at_most[:-1] = np.cumsum((exactly * (least - k) / (n - m))[::-1])[::-1]
    at_most += float(least <= k)
    return k * n / (m * (m + 1) * (n - least)) * at_most[1:]


def _from_ratios(first, ratios):
    """Terms whose first one is a product, and the ratios of each term to the one before
    it."""
    with np.errstate(divide="ignore"):  # the logarithm of 0
        logs = (
            np.log(first).sum() + np.cumsum(np.log(np.r_[1.0, ratios]))[: len(ratios)]
        )
    return np.exp(logs)
