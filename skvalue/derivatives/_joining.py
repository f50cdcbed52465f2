"""Values of rows that join: their gradients at models recorded along walks."""

import numpy as np

from ..linear import probabilities
from ._players import gradients_at


def recorded_positions(q, n_permutations, skip, n_models):
    """Positions 0..n at which parameters are kept, a list for each permutation.

    ``q`` (n + 1,) is `size_weights` of n + 1 players, of which one joins. Together the
    positions are the quantiles of q; they are spread at random over the permutations
    after the first `skip`.

    >>> recorded_positions(np.full(4, 0.25), 3, 1, n_models=8)
    [[], [1, 1, 2, 0], [2, 3, 0, 3]]
    """
    quantiles = (np.arange(n_models) + 0.5) / n_models
    positions = np.searchsorted(np.cumsum(q) / q.sum(), quantiles)
    positions = np.random.default_rng(0).permutation(positions).tolist()
    n_counted = n_permutations - skip
    recorded = [positions[first::n_counted] for first in range(n_counted)]
    return [[]] * skip + recorded


def joining_values(model, thetas, rate):
    """Mean gain (n_players,) by a step along each gradient, at parameters (m, p)."""
    values = np.zeros(model.n_players)
    for theta, utility in zip(thetas, model.utilities(thetas)):
        after_steps = theta - rate * gradients_at(model, theta)
        values += model.utilities(after_steps) - utility
    return values / len(thetas)


def class_probabilities(model, thetas):
    """Mean probabilities (n_rows, n_classes) of the players' rows over parameters."""
    return probabilities(model.outputs(thetas)).mean(axis=0)
