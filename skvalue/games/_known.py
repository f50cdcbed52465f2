"""Games whose semivalues are known in closed form, to try methods on."""

import numpy as np

from ._protocol import FunctionGame


def airport_game(costs):
    """A coalition of aeroplanes needs the longest runway that one of them needs.

    Parameters
    ----------
    costs : array-like of shape (n_players,)
        Cost of the runway that each needs.

    Returns
    -------
    game : FunctionGame
        The utility is that cost. In the Shapley value every section of the runway is paid in equal
        parts by those who use it (Littlechild and Owen 1973).

    Examples
    --------
    >>> from skvalue.games import airport_game
    >>> airport_game([1, 2, 4]).utility([[True, True, False]]).tolist()
    [2.0]
    """
    costs = np.asarray(costs, dtype=np.float64)
    return FunctionGame(lambda masks: (masks * costs).max(axis=1), len(costs))


def voting_game(votes, quota):
    """A coalition wins with enough votes.

    Parameters
    ----------
    votes : array-like of shape (n_players,)
        Votes of each player.
    quota : float
        Votes that win.

    Returns
    -------
    game : FunctionGame
        The utility is 1 for a coalition that wins, else 0.

    Examples
    --------
    >>> from skvalue.games import voting_game
    >>> game = voting_game([4, 2, 1], quota=5)
    >>> game.utility([[True, False, True], [False, True, True]]).tolist()
    [1.0, 0.0]
    """
    votes = np.asarray(votes, dtype=np.float64)
    return FunctionGame(lambda masks: (masks @ votes >= quota).astype(float), len(votes))


def gloves_game(n_left, n_right):
    """Players hold a left or a right glove each; a pair is worth 1.

    Parameters
    ----------
    n_left, n_right : int
        Players with a left glove, who come first, and with a right one.

    Returns
    -------
    game : FunctionGame
        The utility is the number of pairs.

    Examples
    --------
    >>> from skvalue.games import gloves_game
    >>> gloves_game(1, 2).utility([[True, True, True], [False, True, True]]).tolist()
    [1.0, 0.0]
    """

    def pairs(masks):
        left, right = masks[:, :n_left].sum(axis=1), masks[:, n_left:].sum(axis=1)
        return np.minimum(left, right).astype(float)

    return FunctionGame(pairs, n_left + n_right)
