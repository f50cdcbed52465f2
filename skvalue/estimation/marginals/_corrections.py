"""Approximate contributions of all players, corrected by exact ones of some players."""

import numpy as np

_FLOOR = 0.1  # of the mean length, which every player counts at least


def contributions(game, mask, rng):
    """Contributions of all players to a coalition, made unbiased.

    Parameters
    ----------
    game : MarginalGame
        The game.
    mask : ndarray of bool of shape (n,)
        The coalition.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    contributions : ndarray of shape (2, n)
        Contributions, and what is added to correct them.
    """
    n_trained = game.n_trained[mask.sum()]
    if n_trained == game.n_players:
        exact = game.trained(mask)
        return np.stack([exact, np.zeros_like(exact)])

    steps, lengths = game.steps(mask)
    if game.exact:  # all but the players without steps
        n_trained = np.count_nonzero(np.isinf(lengths))
    players, probabilities = draw_players(lengths, n_trained, rng)
    exact = game.trained(mask, players) if len(players) else np.zeros(0)
    return np.stack(corrections(steps, players, probabilities, exact))


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
    # Probabilities are proportional to the errors. Players for which that is 1 or more
    # are certain, and the others share what remains.
    errors = _expected_errors(lengths)
    probabilities = np.zeros(len(errors))
    is_open = errors > 0
    n_left = min(count, np.count_nonzero(is_open))
    while n_left and is_open.any():
        probabilities[is_open] = errors[is_open] * (n_left / errors[is_open].sum())
        is_certain = is_open & (probabilities >= 1 - 1e-9)
        probabilities[is_certain] = 1.0
        is_open = is_open & ~is_certain
        if not is_certain.any():
            break
        n_left -= np.count_nonzero(is_certain)

    # Systematic sampling: one draw decides for all.
    uncertain = np.flatnonzero(is_open & (probabilities < 1))
    cumulated = np.floor(np.cumsum(probabilities[uncertain]) + rng.random())
    is_drawn = np.diff(cumulated, prepend=0.0) > 0
    certain = np.flatnonzero(probabilities == 1)
    return np.sort(np.r_[certain, uncertain[is_drawn]]), probabilities


def corrections(approximate, players, probabilities, exact):
    """Approximate contributions made unbiased, by exact ones of some players.

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
    p = probabilities[players]
    estimated_errors = (exact - approximate[players]) / p
    is_certain = p == 1

    contributions = approximate.copy()
    contributions[players[is_certain]] = exact[is_certain]
    added = np.zeros(len(approximate))
    added[players[p < 1]] = estimated_errors[p < 1]
    return contributions, added


def _expected_errors(lengths):
    """Expected errors up to a factor.

    One of infinite length counts as much as all others.
    """
    is_finite = np.isfinite(lengths)
    errors = np.where(is_finite, lengths, 0.0)
    errors += _FLOOR * errors.mean()
    return np.where(is_finite, errors, max(errors.sum(), 1.0))
