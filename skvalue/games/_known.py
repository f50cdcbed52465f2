"""Games with known semivalues, for testing methods."""

import numpy as np

from ._protocol import FunctionGame


def airport_game(costs):
    """Airport game: the utility of a coalition is the largest cost among its players.

    Parameters
    ----------
    costs : array-like of shape (n_players,)
        Cost of the runway that each player needs.

    Returns
    -------
    game : FunctionGame
        The game. Its Shapley value splits the cost of every section of the runway
        equally between the players that need it (Littlechild and Owen 1973).

    Examples
    --------
    >>> from skvalue.games import airport_game
    >>> airport_game([1, 2, 4]).utility([[True, True, False]]).tolist()
    [2.0]
    """
    costs = np.asarray(costs, dtype=np.float64)

    def largest_costs(masks):
        return (masks * costs).max(axis=1)

    return FunctionGame(largest_costs, len(costs))


def voting_game(votes, quota):
    """Weighted voting game: a coalition wins if its votes reach the quota.

    Parameters
    ----------
    votes : array-like of shape (n_players,)
        Number of votes of each player.
    quota : float
        Number of votes needed to win.

    Returns
    -------
    game : FunctionGame
        The game; the utility of a winning coalition is 1, of any other 0.

    Examples
    --------
    >>> from skvalue.games import voting_game
    >>> game = voting_game([4, 2, 1], quota=5)
    >>> game.utility([[True, False, True], [False, True, True]]).tolist()
    [1.0, 0.0]
    """
    votes = np.asarray(votes, dtype=np.float64)

    def wins(masks):
        return (masks @ votes >= quota).astype(float)

    return FunctionGame(wins, len(votes))


def gloves_game(n_left, n_right):
    """Glove game: a player has one left or right glove, the utility counts pairs.

    Parameters
    ----------
    n_left, n_right : int
        Numbers of players with a left glove, which come first, and with a right glove.

    Returns
    -------
    game : FunctionGame
        The game; the utility of a coalition is its number of pairs.

    Examples
    --------
    >>> from skvalue.games import gloves_game
    >>> gloves_game(1, 2).utility([[True, True, True], [False, True, True]]).tolist()
    [1.0, 0.0]
    """

    def n_pairs(masks):
        left = masks[:, :n_left].sum(axis=1)
        right = masks[:, n_left:].sum(axis=1)
        return np.minimum(left, right).astype(float)

    return FunctionGame(n_pairs, n_left + n_right)
