"""Contributions of players to the disjoint blocks that follow them on a circle."""

from typing import NamedTuple

import numpy as np

from ...samplers import circle_blocks


class CircleGains(NamedTuple):
    """What all players add to blocks of others on one circle.

    Parameters
    ----------
    gains : ndarray of shape (n,)
        Sum of the contributions of each player.
    blocks : ndarray of int of shape (n, size)
        Members of all blocks; the block q starts at position q.
    utilities : ndarray of shape (n,)
        Utilities of the blocks.
    """

    gains: np.ndarray
    blocks: np.ndarray
    utilities: np.ndarray


def join_circle(size, count, order, utilities):
    """Let every player join ``count`` blocks of a size, of the players in an order."""
    blocks, players = circle_blocks(order, size, count)
    of_blocks, joined = utilities.joined_by_each(blocks, players)
    changes = (joined - of_blocks[:, None]).ravel()
    gains = np.bincount(players.ravel(), changes, utilities.n)
    return CircleGains(gains, blocks, of_blocks)


def block_values(utilities, n_shuffles, players, seeds):
    """Values of players from disjoint blocks of others, as private fits release them.

    Parameters
    ----------
    utilities : Utilities
        Utilities of the game.
    n_shuffles : ndarray of int of shape (K + 1,)
        Number of shuffles of each layer; that of layer 0 is ignored.
    players : ndarray of int or None
        The players; None: all players, with half as many coalitions for each.
    seeds : callable
        ``seeds(k, shuffle)`` returns the random generator of an order.

    Returns
    -------
    values : ndarray of shape (n_players,)
        Sums of the layers, over the number of players of the game.
    """
    n = utilities.n
    valued = np.arange(n) if players is None else np.asarray(players)
    values = utilities.of(valued[:, None]) - utilities.game.empty_utility
    for k in range(1, len(n_shuffles)):
        n_blocks = (n - 1) // k
        layer = np.zeros(len(valued))
        for shuffle in range(n_shuffles[k]):
            order = seeds(k, shuffle).permutation(n)
            if players is None:
                gains = join_circle(k, n_blocks, order, utilities).gains
            else:
                gains = np.array(
                    [_gain_of(i, k, n_blocks, order, utilities) for i in valued]
                )
            layer += gains / (n_blocks * n_shuffles[k])
        values = values + layer
    return values / n


def _gain_of(player, size, count, order, utilities):
    """Sum of the gains of one player that joins the blocks that follow it."""
    place = int(np.flatnonzero(order == player)[0])
    followers = order[(place + 1 + np.arange(count * size)) % len(order)]
    blocks = followers.reshape(count, size)
    joined = np.column_stack([blocks, np.full(count, player)])
    return (utilities.of(joined) - utilities.of(blocks)).sum()
