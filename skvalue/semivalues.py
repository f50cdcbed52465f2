"""Semivalues: weights of marginal contributions by the size of the coalition.

The semivalue of player i in a game v of n players is the sum over coalitions S without
i of ``p[|S|] * (v(S + i) - v(S))``, where the weights p, one for each size 0..n-1,
satisfy ``sum_k binom(n - 1, k) p[k] = 1`` (Dubey, Neyman and Weber 1981).
"""

from collections.abc import Mapping, Set
from numbers import Integral

import numpy as np
from scipy.special import gammaln

__all__ = [
    "absence_moments",
    "check_semivalue",
    "coalition_weights",
    "enumerate_semivalue",
    "log_size_weights",
    "size_weights",
    "tabulated_semivalue",
]

_NAMED = ("shapley", "banzhaf", "leave-one-out")
# Bounds of alpha and beta, whose ratios are then finite.
_MIN_PARAMETER = 1e-6
_MAX_PARAMETER = 1e300


def check_semivalue(semivalue, custom=False):
    """Validate a semivalue.

    Parameters
    ----------
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, tuple or callable
        A tuple ``(alpha, beta)`` is Beta(alpha, beta)-Shapley of Kwon and Zou (2022):
        large alpha puts weight on small coalitions, (1, 1) is the Shapley value. A
        callable is a custom semivalue, see `size_weights`.
    custom : bool, default=False
        Whether callables are allowed.

    Returns
    -------
    semivalue : str, tuple of float or callable
        The validated semivalue.

    Raises
    ------
    ValueError
        If it is none of the names above and no pair of numbers from 1e-6 to 1e300.

    Examples
    --------
    >>> check_semivalue((16, 1))
    (16.0, 1.0)
    """
    if isinstance(semivalue, str) and semivalue in _NAMED:
        return semivalue
    if custom and callable(semivalue):
        return semivalue
    try:
        # They can be iterated over, and have no first and second number.
        if isinstance(semivalue, (str, bytes, Set, Mapping)):
            raise TypeError
        alpha, beta = map(float, semivalue)
    except (TypeError, ValueError):
        alpha = beta = np.nan
    is_valid = [
        _MIN_PARAMETER <= parameter <= _MAX_PARAMETER for parameter in (alpha, beta)
    ]
    if not all(is_valid):
        callables = ", or a callable" if custom else ""
        raise ValueError(
            "semivalue must be 'shapley', 'banzhaf', 'leave-one-out' or a pair (alpha, "
            f"beta) of numbers from {_MIN_PARAMETER:g} to {_MAX_PARAMETER:g}"
            f"{callables}. Got {semivalue!r}."
        )
    return alpha, beta


def coalition_weights(semivalue, n):
    """Weight of one coalition of each size.

    Parameters
    ----------
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, (alpha, beta) or callable
        The semivalue, see `size_weights`.
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
    # Weights that underflow (Banzhaf, n > 1074) are 0; those of `size_weights` do not
    # underflow.
    return np.exp(log_size_weights(semivalue, n) - _log_binomial(n - 1))


def log_size_weights(semivalue, n):
    """Log-probability of each size of the coalition that a player joins.

    These are ``log(binom(n - 1, k) p[k])`` for the weights p of `coalition_weights`,
    computed without either factor, so that they neither overflow nor underflow for any
    n.

    Parameters
    ----------
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, (alpha, beta) or callable
        The semivalue, see `size_weights`.
    n : int
        Number of players.

    Returns
    -------
    log_q : ndarray of shape (n,)
        Logarithms of probabilities that sum to one; -inf for sizes of probability 0.

    Raises
    ------
    ValueError
        If n is below 1, or a callable does not return n probabilities that sum to one.

    Examples
    --------
    >>> log_size_weights("shapley", 4).round(3).tolist()
    [-1.386, -1.386, -1.386, -1.386]
    """
    semivalue = check_semivalue(semivalue, custom=True)
    _check_players(n)
    k = np.arange(n)
    if callable(semivalue):
        with np.errstate(divide="ignore"):
            return np.log(_custom_weights(semivalue, n))
    if semivalue == "leave-one-out":
        return np.where(k == n - 1, 0.0, -np.inf)
    if semivalue == "shapley":
        return np.full(n, -np.log(n))
    if semivalue == "banzhaf":
        return _log_binomial(n - 1) - (n - 1) * np.log(2)
    # The weight of a coalition of size k is E t^k (1-t)^(n-1-k) with t ~ Beta(beta,
    # alpha). The recursion over sizes avoids the cancellation of log-gamma functions
    # for large alpha or beta.
    alpha, beta = semivalue
    i = k[:-1]
    log_empty = -np.log1p(beta / (alpha + i)).sum()
    log_ratios = np.log((beta + i) / (alpha + (n - 2 - i)))
    log_growth = np.concatenate([[0.0], np.cumsum(log_ratios)])
    return _log_binomial(n - 1) + log_empty + log_growth


def size_weights(semivalue, n):
    """Probability of each size of the coalition that a player joins.

    In a random permutation a player joins coalitions of all sizes with equal
    probability, so that the weight of its marginal contribution at position r = 1..n is
    ``n * q[r - 1]``, where ``q[r - 1] = p[r - 1] binom(n - 1, r - 1)`` (and not ``p[r -
    1] 2**(n - 1)``, the weight for uniform subsets).

    Parameters
    ----------
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, (alpha, beta) or callable
        The semivalue, see `check_semivalue`. A callable takes the number of players n
        and returns these n probabilities, non-negative and with the sum 1.
    n : int
        Number of players.

    Returns
    -------
    q : ndarray of shape (n,)
        ``q[k]`` is the probability of k players; the sum is one.

    Raises
    ------
    ValueError
        If n is below 1, or a callable does not return n probabilities that sum to one.

    Examples
    --------
    >>> size_weights("banzhaf", 5).round(4).tolist()
    [0.0625, 0.25, 0.375, 0.25, 0.0625]
    >>> float(size_weights((4, 1), 2000).sum().round(6))
    1.0
    """
    _check_players(n)
    if isinstance(semivalue, str) and semivalue == "shapley":
        return np.full(n, 1.0 / n)
    q = np.exp(log_size_weights(semivalue, n))
    return q / q.sum()


def _custom_weights(semivalue, n):
    """The probabilities (n,) of a callable, checked."""
    q = np.asarray(semivalue(n), dtype=np.float64)
    if q.shape != (n,) or not (q >= 0).all() or abs(q.sum() - 1) > 1e-6:
        raise ValueError(
            f"A callable semivalue must return {n} non-negative weights with the sum 1 "
            f"for n={n} players. Got shape {q.shape} with the sum {q.sum():.6g}."
        )
    return q / q.sum()


def _log_binomial(n):
    """Logarithms of binom(n, 0), ..., binom(n, n)."""
    k = np.arange(n + 1)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def _check_players(n):
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"n must be a whole number of players, at least 1. Got {n!r}.")


def absence_moments(semivalue, n):
    """Probability that i given players are absent from the random coalition.

    For i = 0..n-1. A semivalue of this family draws a random t; then every other player
    joins with probability t. Players that never change the utility do not matter, so
    that these moments determine the semivalue of a game with few effective players, for
    any total number of players.

    Parameters
    ----------
    semivalue : {"shapley", "banzhaf", "leave-one-out"} or (alpha, beta)
        The semivalue, see `check_semivalue`.
    n : int
        Number of moments.

    Returns
    -------
    r : ndarray of shape (n,)
        ``r[i] = E (1 - t)^i``: 1 / (i + 1) for the Shapley value, ``0.5**i`` for
        Banzhaf.

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
    """Semivalue by enumeration of all 2^n coalitions, as a reference.

    Parameters
    ----------
    utility : callable
        ``utility(players)`` of a sorted tuple of player indices.
    n : int
        Number of players, at most 20.
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, (alpha, beta) or callable, \
            default="shapley"
        The semivalue, see `size_weights`.

    Returns
    -------
    values : ndarray of shape (n,)
        The value of every player.

    Raises
    ------
    ValueError
        If n is above 20 or below 1, or a utility is not finite.

    Examples
    --------
    The glove game: player 0 has the only left glove, two other players one right glove
    each.

    >>> gloves = lambda players: float(0 in players and len(players) > 1)
    >>> enumerate_semivalue(gloves, 3).round(3).tolist()
    [0.667, 0.167, 0.167]
    """
    _check_players(n)
    if n > 20:
        raise ValueError(f"n must be at most 20 to enumerate 2^n coalitions. Got {n}.")
    coalition_weights(semivalue, n)  # refused before 2^n utilities are computed
    utilities = []
    for code in range(2**n):
        players = tuple(i for i in range(n) if code >> i & 1)
        utilities.append(utility(players))
    return tabulated_semivalue(utilities, semivalue)


def tabulated_semivalue(utilities, semivalue="shapley"):
    """Semivalue of a game from the utilities of all coalitions.

    Parameters
    ----------
    utilities : array-like of shape (2 ** n,)
        Utility of every coalition; player i is in coalition c if bit i of c is set.
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, (alpha, beta) or callable, \
            default="shapley"
        The semivalue, see `size_weights`.

    Returns
    -------
    values : ndarray of shape (n,)
        The value of every player.

    Raises
    ------
    ValueError
        If the number of utilities is not a power of two, or one is not finite.

    Examples
    --------
    >>> gloves = [0, 0, 0, 1, 0, 1, 0, 1]  # the game of `enumerate_semivalue`
    >>> tabulated_semivalue(gloves).round(3).tolist()
    [0.667, 0.167, 0.167]
    """
    utilities = np.asarray(utilities, dtype=np.float64)
    n = utilities.size.bit_length() - 1
    if n < 1 or utilities.shape != (2**n,):
        raise ValueError(
            f"utilities must have 2^n entries, n >= 1. Got shape {utilities.shape}."
        )
    if not np.isfinite(utilities).all():
        code = np.flatnonzero(~np.isfinite(utilities))[0]
        players = [i for i in range(n) if code >> i & 1]
        raise ValueError(
            f"utilities must be finite. Got {utilities[code]} for the coalition of the "
            f"players {players}."
        )

    # Sizes of all coalitions of the other n - 1 players.
    sizes = np.zeros(1, dtype=np.int64)
    for _ in range(n - 1):
        sizes = np.concatenate([sizes, sizes + 1])
    weights = coalition_weights(semivalue, n)[sizes]

    values = np.empty(n)
    for i in range(n):
        # Coalitions without and with player i, in the same order of the others.
        by_player = utilities.reshape(2 ** (n - 1 - i), 2, 2**i)
        values[i] = weights @ (by_player[:, 1] - by_player[:, 0]).ravel()
    return values
