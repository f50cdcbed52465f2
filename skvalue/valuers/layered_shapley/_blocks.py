"""Layers of some players from disjoint blocks of the others, as they are released."""

import numpy as np

from ...samplers import circle_blocks


def block_layers(utilities, shuffles, players, seeds):
    """Layers of some players without noise, from disjoint blocks of the others.

    Parameters
    ----------
    utilities : Utilities
        Utilities of the game.
    shuffles : ndarray of int of shape (K + 1,)
        Number of shuffles of each layer; that of layer 0 is ignored.
    players : ndarray of int or None
        The players; None: all players, with half as many coalitions for each.
    seeds : callable
        ``seeds(k, shuffle)`` returns the random generator of an order.

    Returns
    -------
    layers : ndarray of shape (K + 1, n_players)
        Mean marginal contributions of each player, by size.
    """
    n, all_players = utilities.n, players is None
    players = np.arange(n) if all_players else np.asarray(players)
    layers = np.zeros((len(shuffles), len(players)))
    layers[0] = utilities.of(players[:, None]) - utilities.game.empty_utility
    for k in range(1, len(shuffles)):
        count = (n - 1) // k
        for shuffle in range(shuffles[k]):
            order = seeds(k, shuffle).permutation(n)
            if all_players:
                blocks, joining = circle_blocks(order, k, count)
                bases, joined = utilities.joined_by_each(blocks, joining)
                found = np.bincount(joining.ravel(), (joined - bases[:, None]).ravel(), n)
            else:
                found = np.array([_gains(utilities, order, k, count, i) for i in players])
            layers[k] += found / (count * shuffles[k])
    return layers


def _gains(utilities, order, k, count, i):
    """Sum of the contributions of one player to the blocks that follow it on the circle."""
    place = int(np.flatnonzero(order == i)[0])
    blocks = order[(place + 1 + np.arange(count * k)) % len(order)].reshape(count, k)
    joined = np.column_stack([blocks, np.full(count, i)])
    return (utilities.of(joined) - utilities.of(blocks)).sum()
