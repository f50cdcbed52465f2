"""How many near rows a random coalition has: what the games need of a semivalue."""

from typing import NamedTuple

import numpy as np

from ...semivalues import size_weights


class SizeTables(NamedTuple):
    """The coalition S of the n - 1 others that a player joins, as tables.

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
    k = n_neighbors
    if semivalue == "shapley" and not min_coalition:
        return _shapley_tables(n, k)

    n_sizes = min(k, n)
    if min_coalition:
        is_too_small = np.arange(n_sizes) < min_coalition
        sizes = np.where(is_too_small, 0.0, 1.0 / (n - min_coalition))
    else:
        sizes = size_weights(semivalue, n)[:k]

    # D_r for r = K..n-1.
    if k >= n:
        steps = np.zeros(0)
    elif min_coalition:
        steps = _calibrated_steps(n, k, min_coalition)
    else:
        steps = _steps(n, k, semivalue)
    ranks = np.arange(k, k + len(steps))
    joint_steps = steps * (k - 1) / np.maximum(ranks - 1, 1)

    # At the last rank F is |S| < K; from there the tables add up the steps.
    near = np.full(n + 1, sizes.sum())
    joint = np.full(n + 1, sizes @ np.arange(len(sizes)) / max(n - 1, 1))
    _add_later_steps(near, steps, k, n)
    _add_later_steps(joint, joint_steps, k, n)
    # There is no nearer row.
    joint[:2] = 0.0
    return SizeTables(sizes * n, near / k, joint)


def _shapley_tables(n, k):
    """`near_rows` for the Shapley value, in closed form."""
    r = np.arange(n + 1, dtype=np.float64)
    # With u = min(K, r) - 1, ``joint[r] = u (u + 1) / 2 / (r (r - 1))``.
    joint = r - 1
    joint *= r
    np.divide(k * (k - 1) / 2, joint, out=joint, where=r > 1)
    joint[: k + 1] = 0.5
    # There is no nearer row.
    joint[:2] = 0.0
    near = np.maximum(r, k, out=r)
    np.divide(1.0, near, out=near)
    return SizeTables(np.ones(min(k, n)), near, joint)


def _add_later_steps(table, steps, k, n):
    """Add to a table (n + 1,), in place, the steps of its own and of later ranks."""
    table[k:n] += np.cumsum(steps[::-1])[::-1]
    table[:k] = table[min(k, n)]


def _steps(n, k, semivalue):
    """D_r of `near_rows` for r = K..n-1, if rows are in S with a random probability."""
    r = np.arange(k, n)
    if semivalue == "leave-one-out":
        return (r == k).astype(float)
    if semivalue == "banzhaf":
        factors = np.full(k, 0.5)
        failures = np.full(len(r), 0.5)
    else:
        alpha, beta = semivalue
        factors = (beta + np.arange(k)) / (alpha + beta + np.arange(k))
        failures = (alpha + r - k) / (alpha + beta + r)
    return _from_ratios(factors, r / (r - k + 1) * failures)


def _calibrated_steps(n, k, min_coalition):
    """D_r of `near_rows` for r = K..n-1, if all sizes from T on are equally likely."""
    # P(H(n, T, m) = K) for m = K..n-1 draws.
    m = np.arange(k, n)
    factors = np.maximum(min_coalition - np.arange(k), 0) / (n - np.arange(k))
    failures = np.maximum(n - min_coalition - m + k, 0)
    exactly = _from_ratios(factors, failures * (m + 1) / ((m - k + 1) * (n - m)))

    # P(H(n, T, m) <= K) for m = K..n draws.
    drops = exactly * (min_coalition - k) / (n - m)
    at_most = np.zeros(n + 1 - k)
    at_most[:-1] = np.cumsum(drops[::-1])[::-1]
    at_most += float(min_coalition <= k)
    return k * n / (m * (m + 1) * (n - min_coalition)) * at_most[1:]


def _from_ratios(factors, ratios):
    """Terms from the factors of the first, and the ratio of each to that before it."""
    # The logarithm of 0 is minus infinity.
    with np.errstate(divide="ignore"):
        log_first = np.log(factors).sum()
        log_ratios = np.log(np.r_[1.0, ratios])
        return np.exp(log_first + np.cumsum(log_ratios)[: len(ratios)])
