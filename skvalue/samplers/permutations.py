"""Coalitions as prefixes of random orders of the players.

Source of the orthogonal orders: R. Mitchell, J. Cooper, E. Frank, G. Holmes: "Sampling Permutations
for Shapley Value Estimation", JMLR 23, 2022 (section 5.2, orthogonal spherical codes).
"""

import numpy as np

ORDERS = ("permutation", "antithetic", "latin", "orthogonal")

_SHIFTS = 8
_DIRECTIONS = 4


def draw_orders(rng, n, kind="permutation"):
    """Draw one replicate: a few orders, each of them uniform, which together vary little.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    n : int
        Number of players.
    kind : {"permutation", "antithetic", "latin", "orthogonal"}, default="permutation"
        One order; an order and its reverse (whoever joins early once, joins late once); up to 8
        cyclic shifts of one order by equal steps, so that a player's positions are spread evenly
        (for n <= 8 each position once: a Latin square); or the orders of the coordinates of up to 4
        random vectors at right angles to each other, and their reverses, so that ranks in different
        orders are next to uncorrelated, and those in an order and its reverse opposite.

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
    if kind == "orthogonal":
        ahead = np.argsort(_orthogonal(rng, n, min(n - 1, _DIRECTIONS)), axis=1, kind="stable")
        return np.concatenate([ahead, ahead[:, ::-1]]) if n > 1 else np.zeros((1, 1), np.int64)
    order = rng.permutation(n)
    if kind == "permutation":
        return order[None]
    if kind == "antithetic":
        return np.stack([order, order[::-1]])
    shifts = min(n, _SHIFTS)
    return np.stack([np.roll(order, -(n * step // shifts)) for step in range(shifts)])


def _orthogonal(rng, n, count):
    """Random directions of sum zero at right angles, each uniform; (count, n).

    The order of the coordinates of a uniform direction is uniform. By Gram and Schmidt, in sums
    whose bits do not depend on the threads of a BLAS.
    """
    vectors = rng.standard_normal((count, n))
    vectors -= vectors.mean(axis=1, keepdims=True)
    for i, vector in enumerate(vectors):
        for _ in range(2):  # again, for what rounding left
            for other in vectors[:i]:
                vector -= (vector * other).sum() / (other * other).sum() * other
    return vectors


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
