"""Approximate contributions of all players, corrected by exact ones of some drawn
players."""

import numpy as np

_FLOOR = 0.1  # of the mean length, which every player counts at least


def draw_players(lengths, count, rng):
    """Draw players, those of long steps with a larger probability.

    Parameters
    ----------
    lengths : ndarray of shape (n,)
        Lengths of their steps: expected errors up to a factor. Infinite where nothing
        is known.
    count : int
        Number of players.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    players : ndarray of int
        The players, all different; those of probability 1 among them.
    probabilities : ndarray of shape (n,)
        Probability of every player, 0 for some of length 0 at most.
    """
    sizes = _sizes(lengths)
    probabilities, free = np.zeros(len(sizes)), sizes > 0
    left = min(count, np.count_nonzero(free))
    while left and free.any():
        probabilities[free] = sizes[free] * (left / sizes[free].sum())
        certain = free & (probabilities >= 1 - 1e-9)
        probabilities[certain], free = 1.0, free & ~certain
        if not certain.any():
            break
        left -= np.count_nonzero(certain)
    uncertain = np.flatnonzero(free & (probabilities < 1))
    # Systematic sampling: one draw decides for all.
    cumulated = np.floor(np.cumsum(probabilities[uncertain]) + rng.random())
    drawn = uncertain[np.diff(cumulated, prepend=0.0) > 0]
    return np.sort(np.r_[np.flatnonzero(probabilities == 1), drawn]), probabilities


def corrections(approximate, players, probabilities, exact):
    """Approximate contributions made unbiased: those of certain players, and what is
    added.

    Those of players of probability 1 are exact; to all others, the Horvitz-Thompson
    estimate of their errors is added.

    Parameters
    ----------
    approximate, probabilities : ndarrays of shape (n,)
        Approximate contributions, and probabilities of the players.
    players : ndarray of int
        The players drawn, see `draw_players`.
    exact : ndarray of shape (len(players),)
        Their exact contributions.

    Returns
    -------
    contributions, added : ndarrays of shape (n,)
        Contributions, and their corrections.
    """
    p, errors = probabilities[players], exact - approximate[players]
    contributions, added = approximate.copy(), np.zeros(len(approximate))
    contributions[players[p == 1]] = exact[p == 1]
    added[players[p < 1]] = (errors / p)[p < 1]
    return contributions, added


def _sizes(lengths):
    """Expected errors up to a factor; one of infinite length counts as much as all
    others."""
    known = np.isfinite(lengths)
    sizes = np.where(known, lengths, 0.0)
    sizes += _FLOOR * sizes.mean()
    return np.where(known, sizes, max(sizes.sum(), 1.0))


def contributions(game, mask, rng):
    """Contributions to a coalition, and their corrections, (2, n)."""
    count = game.n_trained[mask.sum()]
    if count == game.n_players:
        exact = game.trained(mask)
        return np.stack([exact, np.zeros_like(exact)])
    steps, lengths = game.steps(mask)
    if game.exact:  # the players without steps
        count = np.count_nonzero(np.isinf(lengths))
    players, probabilities = draw_players(lengths, count, rng)
    exact = game.trained(mask, players) if len(players) else np.zeros(0)
    return np.stack(corrections(steps, players, probabilities, exact))
