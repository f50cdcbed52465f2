"""Coalitions as prefixes of random orders of the players."""

import numpy as np

ORDERS = ("permutation", "antithetic", "latin")

_SHIFTS = 8


def draw_orders(rng, n, kind="permutation"):
    """Draw one replicate: a few orders, each of them uniform, which together vary little.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    n : int
        Number of players.
    kind : {"permutation", "antithetic", "latin"}, default="permutation"
        One order; an order and its reverse (whoever joins early once, joins late once); or up to 8
        cyclic shifts of one order by equal steps, so that a player's positions are spread evenly
        (for n <= 8 each position once: a Latin square).

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
    >>> np.sort(draw_orders(np.random.default_rng(0), 4, "latin"), axis=0).tolist()[0]
    [0, 0, 0, 0]
    """
    if kind not in ORDERS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, ORDERS))}. Got {kind!r}.")
    order = rng.permutation(n)
    if kind == "permutation":
        return order[None]
    if kind == "antithetic":
        return np.stack([order, order[::-1]])
    shifts = min(n, _SHIFTS)
    return np.stack([np.roll(order, -(n * step // shifts)) for step in range(shifts)])


def prefix_masks(positions, sizes):
    """Coalitions of the players that joined first.

    Parameters
    ----------
    positions : ndarray of int of shape (m, n)
        Place of every player in the order that each coalition is a prefix of.
    sizes : ndarray of int of shape (m,)
        Numbers of players.

    Returns
    -------
    masks : ndarray of bool of shape (m, n)
        The coalitions.

    Examples
    --------
    >>> prefix_masks(np.array([[2, 0, 1], [2, 0, 1]]), np.array([1, 2])).astype(int).tolist()
    [[0, 1, 0], [0, 1, 1]]
    """
    return positions < np.asarray(sizes)[:, None]


def prefix_marginals(orders, utilities, weights):
    """Mean weighted marginal contribution of every player over a few orders.

    Parameters
    ----------
    orders : ndarray of int of shape (n_orders, n)
        Players in the order in which they join.
    utilities : ndarray of shape (n_orders, n + 1)
        Utilities of the prefixes of 0..n players.
    weights : ndarray of shape (n,)
        Weight of a marginal contribution at each position: n times the semivalue's chance of a
        coalition of as many players as have joined before.

    Returns
    -------
    mean : ndarray of shape (n,)
        One entry a player. With equal weights the sum is the utility of all players less that of
        none, exactly (the Shapley value's efficiency).

    Examples
    --------
    >>> prefix_marginals(np.array([[1, 0]]), np.array([[0.0, 0.5, 2.0]]), np.ones(2)).tolist()
    [1.5, 0.5]
    """
    gains = np.diff(utilities, axis=1) * weights
    mean = np.zeros(orders.shape[1])
    for order, gain in zip(orders, gains):
        mean[order] += gain
    return mean / len(orders)
