"""Coalitions as prefixes of random permutations of the players."""

import numpy as np

ORDERS = ("permutation", "antithetic")


def draw_orders(rng, n, kind="permutation"):
    """Draw one replicate: one or two permutations, each uniform.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    n : int
        Number of players.
    kind : {"permutation", "antithetic"}, default="permutation"
        "permutation": one permutation. "antithetic": a permutation and its reverse,
        which reduce the variance together.

    Returns
    -------
    orders : ndarray of int of shape (n_orders, n)
        Players in the order in which they join.

    Raises
    ------
    ValueError
        If `kind` is unknown.

    Examples
    --------
    >>> draw_orders(np.random.default_rng(0), 4, "antithetic").tolist()
    [[2, 0, 1, 3], [3, 1, 0, 2]]
    """
    if kind not in ORDERS:
        raise ValueError(
            f"kind must be one of {', '.join(map(repr, ORDERS))}. Got {kind!r}."
        )
    order = rng.permutation(n)
    if kind == "antithetic":
        return np.stack([order, order[::-1]])
    return order[None]


def prefix_masks(positions, sizes):
    """Coalitions that are prefixes of permutations.

    Parameters
    ----------
    positions : ndarray of int of shape (m, n)
        Position of every player in the permutation of each coalition.
    sizes : ndarray of int of shape (m,)
        Sizes of the coalitions.

    Returns
    -------
    masks : ndarray of bool of shape (m, n)
        The coalitions.

    Examples
    --------
    >>> positions = np.array([[2, 0, 1], [2, 0, 1]])
    >>> prefix_masks(positions, np.array([1, 2])).tolist()
    [[False, True, False], [False, True, True]]
    """
    return positions < np.asarray(sizes)[:, None]


def marginal_masks(rng, probabilities, players, n_orders):
    """Draw coalitions without and with some players, for their marginal contributions.

    The others of a coalition are those that come first in a permutation. Over many
    draws, a player's mean contribution is its semivalue, without weights.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    probabilities : ndarray of shape (n,)
        Probabilities of the sizes of the coalitions that a player joins, as
        `skvalue.semivalues.size_weights`.
    players : ndarray of int of shape (m,)
        The players.
    n_orders : int
        Number of permutations, each of which has a coalition for every player.

    Returns
    -------
    masks : ndarray of bool of shape (2, n_orders, m, n)
        Coalitions without the players, and with them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> without, joined = marginal_masks(rng, np.array([0, 1, 0]), np.arange(3), 1)
    >>> without.sum(axis=2).tolist(), joined.sum(axis=2).tolist()
    ([[1, 1, 1]], [[2, 2, 2]])
    """
    n = len(probabilities)
    positions = rng.permuted(np.tile(np.arange(n), (n_orders, 1)), axis=1)
    own = positions[:, players, None]
    sizes = rng.choice(n, own.shape, p=probabilities)

    # Positions among the others.
    positions = positions[:, None, :]
    is_own = positions == own
    without = (positions - (positions > own) < sizes) & ~is_own
    return np.stack([without, without | is_own])


def prefix_marginals(orders, utilities, weights):
    """Mean weighted marginal contribution of every player over a few permutations.

    Parameters
    ----------
    orders : ndarray of int of shape (n_orders, n)
        Players in the order in which they join.
    utilities : ndarray of shape (n_orders, n + 1)
        Utilities of the prefixes of 0..n players.
    weights : ndarray of shape (n,)
        Weight of a marginal contribution at each position: n times the probability,
        under the semivalue, of a coalition of that many players.

    Returns
    -------
    mean : ndarray of shape (n,)
        One entry per player. With equal weights the sum is exactly the utility of all
        players minus that of the empty coalition (efficiency of the Shapley value).

    Examples
    --------
    >>> orders = np.array([[1, 0]])
    >>> utilities = np.array([[0.0, 0.5, 2.0]])
    >>> prefix_marginals(orders, utilities, np.ones(2)).tolist()
    [1.5, 0.5]
    """
    contributions = np.diff(utilities, axis=1) * weights
    total = np.zeros(orders.shape[1])
    for order, contributions_of_order in zip(orders, contributions):
        total[order] += contributions_of_order
    return total / len(orders)
