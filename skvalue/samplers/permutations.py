"""Coalitions as prefixes of random permutations of the players.

Source of the orthogonal permutations: R. Mitchell, J. Cooper, E. Frank, G. Holmes: "Sampling
Permutations for Shapley Value Estimation", JMLR 23, 2022 (section 5.2, orthogonal spherical codes).
"""

import numpy as np

ORDERS = ("permutation", "antithetic", "latin", "orthogonal")

_SHIFTS = 8
_DIRECTIONS = 4


def draw_orders(rng, n, kind="permutation"):
    """Draw one replicate: a few permutations, each uniform, that reduce the variance together.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    n : int
        Number of players.
    kind : {"permutation", "antithetic", "latin", "orthogonal"}, default="permutation"
        "permutation": one permutation. "antithetic": a permutation and its reverse. "latin": up to
        8 cyclic shifts of a permutation by equal steps, so that the positions of a player are
        evenly spaced (for n <= 8 each position once: a Latin square). "orthogonal": the orders of
        the coordinates of up to 4 random orthogonal vectors, and their reverses, so that positions
        in different permutations are almost uncorrelated.

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
    """Random orthogonal directions of sum zero, each uniform, as an array (count, n).

    By Gram-Schmidt without BLAS, so that the result does not depend on the number of threads.
    """
    vectors = rng.standard_normal((count, n))
    vectors -= vectors.mean(axis=1, keepdims=True)
    for i, vector in enumerate(vectors):
        for _ in range(2):  # twice, because of rounding errors
            for other in vectors[:i]:
                vector -= (vector * other).sum() / (other * other).sum() * other
    return vectors


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
    >>> prefix_masks(np.array([[2, 0, 1], [2, 0, 1]]), np.array([1, 2])).astype(int).tolist()
    [[0, 1, 0], [0, 1, 1]]
    """
    return positions < np.asarray(sizes)[:, None]


def prefix_marginals(orders, utilities, weights):
    """Mean weighted marginal contribution of every player over a few permutations.

    Parameters
    ----------
    orders : ndarray of int of shape (n_orders, n)
        Players in the order in which they join.
    utilities : ndarray of shape (n_orders, n + 1)
        Utilities of the prefixes of 0..n players.
    weights : ndarray of shape (n,)
        Weight of a marginal contribution at each position: n times the probability, under the
        semivalue, of a coalition of that many players.

    Returns
    -------
    mean : ndarray of shape (n,)
        One entry per player. With equal weights the sum is exactly the utility of all players
        minus that of the empty coalition (efficiency of the Shapley value).

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
