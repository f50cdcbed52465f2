"""What each player changes in the utility of a coalition, along a step of its model."""

from typing import NamedTuple

import numpy as np

from ....linear import group_changes, utility_changes

MOST_PREDICTIONS = 2_000_000  # at once


class Steps(NamedTuple):
    """What each player changes in the utility of a coalition, along a step.

    Parameters
    ----------
    utility : float
        The utility.
    changes : ndarray of shape (n_players,)
        Its changes by a player that joins or leaves.
    lengths : ndarray of shape (n_players,)
        Squared lengths of the steps; infinite where there is none, and 0 if they are
        exact.
    """

    utility: float
    changes: np.ndarray
    lengths: np.ndarray


class Work(NamedTuple):
    """Operations of a fit, of one with a row more, and of a row's step."""

    fit: float
    joined: float
    step: float


class Players(NamedTuple):
    """Who joins or leaves: signs (n_players,), 1 or -1, and the player of every row.

    The codes of players are None if they are the rows.
    """

    signs: np.ndarray
    codes: np.ndarray | None


def mask_of(S, n_rows):
    """Mask (1, n_rows) of the rows S."""
    mask = np.zeros((1, n_rows), dtype=bool)
    mask[0, S] = True
    return mask


def changes_along_steps(optimum, rows, players, utility):
    """Changes of the utility and squared lengths of steps, of rows or of groups."""
    signs, codes = players
    try:
        if codes is not None:
            return group_changes(optimum, rows, codes, signs, utility)
        return utility_changes(optimum, rows, signs, utility)
    except np.linalg.LinAlgError:
        return np.zeros(len(signs)), np.full(len(signs), np.inf)
