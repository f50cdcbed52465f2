"""Semivalues: how marginal contributions to coalitions of every size are weighted.

A semivalue of a game v of n players gives player i the sum over coalitions S without i of
``p[|S|] * (v(S + i) - v(S))``, where the weights p, one for each size 0..n-1, satisfy
``sum_k binom(n - 1, k) p[k] = 1`` (Dubey, Neyman and Weber 1981).
"""

from itertools import combinations

import numpy as np
from scipy.special import gammaln

__all__ = ["absence_moments", "check_semivalue", "coalition_weights", "enumerate_semivalue"]

_NAMED = ("shapley", "banzhaf", "leave-one-out")


def check_semivalue(semivalue):
    """Return the semivalue, checked.

    Parameters
    ----------
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or tuple of two positive floats
        A tuple ``(alpha, beta)`` is Beta(alpha, beta)-Shapley of Kwon and Zou (2022): large alpha
        weights small coalitions, (1, 1) is the Shapley value.

    Returns
    -------
    semivalue : str or tuple of float
        The semivalue.

    Raises
    ------
    ValueError
        If it is no name above and no pair of positive numbers.

    Examples
    --------
    >>> check_semivalue((16, 1))
    (16.0, 1.0)
    """
    if isinstance(semivalue, str) and semivalue in _NAMED:
        return semivalue
    try:
        alpha, beta = (float(part) for part in semivalue)
    except (TypeError, ValueError):
        alpha = beta = -1.0
    if not (0 < alpha < np.inf and 0 < beta < np.inf):
        raise ValueError(
            "semivalue must be 'shapley', 'banzhaf', 'leave-one-out' or a pair (alpha, beta) of "
            f"positive numbers. Got {semivalue!r}."
        )
    return alpha, beta


def coalition_weights(semivalue, n):
    """Weight of one coalition of each size.

    Parameters
    ----------
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or (alpha, beta)
        The semivalue, see `check_semivalue`.
    n : int
        Number of players.

    Returns
    -------
    p : ndarray of shape (n,)
        ``p[k]`` weights the marginal contributions to coalitions of k players.

    Examples
    --------
    >>> coalition_weights("shapley", 3).round(3).tolist()
    [0.333, 0.167, 0.333]
    >>> coalition_weights("banzhaf", 3).tolist()
    [0.25, 0.25, 0.25]
    """
    semivalue = check_semivalue(semivalue)
    k = np.arange(n)
    if semivalue == "banzhaf":
        return np.full(n, 0.5 ** (n - 1))
    if semivalue == "leave-one-out":
        return (k == n - 1).astype(float)
    alpha, beta = (1.0, 1.0) if semivalue == "shapley" else semivalue
    # Coalitions form with a random density t ~ Beta(beta, alpha); p[k] = E t^k (1-t)^(n-1-k).
    return np.exp(_log_beta(k + beta, n - 1 - k + alpha) - _log_beta(beta, alpha))


def _log_beta(a, b):
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def absence_moments(semivalue, n):
    """Chance that i given players are all absent from the random coalition, for i = 0..n-1.

    A semivalue of this family draws a density t, then every other player joins with chance t.
    Players who never change the utility do not matter, so these moments are all that a game with
    few effective players needs, whatever the number of all players.

    Parameters
    ----------
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or (alpha, beta)
        The semivalue, see `check_semivalue`.
    n : int
        Number of moments.

    Returns
    -------
    r : ndarray of shape (n,)
        ``r[i] = E (1 - t)^i``: 1 / (i + 1) for the Shapley value, ``0.5**i`` for Banzhaf.

    Examples
    --------
    >>> absence_moments("shapley", 4).tolist() == [1, 1 / 2, 1 / 3, 1 / 4]
    True
    """
    semivalue = check_semivalue(semivalue)
    i = np.arange(n)
    if semivalue == "shapley":
        return 1.0 / (i + 1)
    if semivalue == "banzhaf":
        return 0.5**i
    if semivalue == "leave-one-out":
        return (i == 0).astype(float)
    alpha, beta = semivalue
    ratios = (alpha + i[:-1]) / (alpha + beta + i[:-1])
    return np.concatenate([[1.0], np.cumprod(ratios)])[:n]


def enumerate_semivalue(utility, n, semivalue="shapley"):
    """Semivalue by all 2^n coalitions: the oracle of every other computation.

    Parameters
    ----------
    utility : callable
        ``utility(players)`` with a sorted tuple of player numbers.
    n : int
        Number of players, at most 20.
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or (alpha, beta), default="shapley"
        The semivalue, see `check_semivalue`.

    Returns
    -------
    values : ndarray of shape (n,)
        The value of every player.

    Raises
    ------
    ValueError
        If n is above 20.

    Examples
    --------
    The glove game: player 0 has the only left glove, two others a right one each.

    >>> gloves = lambda players: float(0 in players and len(players) > 1)
    >>> enumerate_semivalue(gloves, 3).round(3).tolist()
    [0.667, 0.167, 0.167]
    """
    if n > 20:
        raise ValueError(f"n must be at most 20 to enumerate 2^n coalitions. Got {n}.")
    weights = coalition_weights(semivalue, n)
    values = np.zeros(n)
    table = {}
    for size in range(n + 1):
        for players in combinations(range(n), size):
            table[players] = utility(players)
    for players, value in table.items():
        size = len(players)
        inside = set(players)
        for i in range(n):
            # With i the coalition is S + i for an S one smaller, without i it is S itself.
            values[i] += value * weights[size - 1] if i in inside else -value * weights[size]
    return values
