"""Derivatives of a function of trained parameters by the weights of rows, back through training."""

from math import isqrt

import numpy as np


def draw_batches(n, batch_size, n_epochs, rng):
    """Rows of each step: every epoch is a permutation of n rows, cut into batches.

    >>> [len(rows) for rows in draw_batches(5, 2, 2, np.random.default_rng(0))]
    [2, 2, 1, 2, 2, 1]
    """
    batches = []
    for _ in range(n_epochs):
        order = rng.permutation(n)
        batches += [np.sort(order[i : i + batch_size]) for i in range(0, n, batch_size)]
    return batches


def train(losses, theta, batches, optimizer, weights=None):
    """Parameters after training, from the start ``theta``.

    Step t is one of ``optimizer`` along the gradient of ``sum_i w_i l_i / B`` over the B rows of
    batch t. ``losses`` is a `LinearLosses` or a `TorchLosses`; ``weights`` None are ones. (A row of
    weight 0 still counts in B: without it, the sum loses one term.)
    """
    state = optimizer.start(theta)
    for t, rows in enumerate(batches):
        gradient = losses.gradient(state[0], rows, weights)
        state = optimizer.step(state, gradient, t, len(batches))
    return state[0]


def unrolled_derivatives(losses, theta, batches, optimizer, gradient):
    """Derivatives of a function of trained parameters by the weights of all rows, at weights one.

    Reverse mode through all steps of `train` (Maclaurin, Duvenaud and Adams 2015; Ilyas and
    Engstrom 2025). States are kept every sqrt(T) of T steps; the steps between two of them are
    taken again, so that at most 2 sqrt(T) states are in memory.

    Parameters
    ----------
    losses : LinearLosses or TorchLosses
        Losses of the rows.
    theta : ndarray or tensor of shape (p,)
        Start of the training.
    batches : list of ndarray
        Rows of each step, each at most once a step.
    optimizer : Optimizer
        How steps are taken.
    gradient : callable
        Gradient of the function by the trained parameters.

    Returns
    -------
    derivatives : ndarray of shape (n,)
        Derivatives by the weight of each row.
    end : ndarray or tensor of shape (p,)
        The trained parameters.
    """
    n_steps = len(batches)
    every = isqrt(n_steps - 1) + 1
    state, kept = optimizer.start(theta), []
    for t, rows in enumerate(batches):
        if t % every == 0:
            kept.append(state)
        state = optimizer.step(state, losses.gradient(state[0], rows), t, n_steps)
    end = state[0]
    by_theta = gradient(end)
    adjoints = (by_theta, *(0 * by_theta for _ in state[1:]))
    derivatives = np.zeros(len(losses))
    while kept:
        state, steps, first = kept.pop(), [], len(kept) * every
        for t in range(first, min(first + every, n_steps)):
            slope, pullback = losses.linearized(state[0], batches[t])
            steps.append((t, state, slope, pullback))
            state = optimizer.step(state, slope, t, n_steps)
        while steps:
            t, state, slope, pullback = steps.pop()
            (by_theta, *others), by_slope = optimizer.adjoint(state, slope, t, n_steps, adjoints)
            by_state, by_weights = pullback(by_slope)
            adjoints = (by_theta + by_state, *others)
            derivatives[batches[t]] += by_weights
    return derivatives, end
