"""Derivatives of functions of trained parameters by weights, back through training."""

from math import isqrt
from typing import Any, NamedTuple

import numpy as np

from .._utils.parallel import tiles
from ._row_models import RowModel
from .optimizers import Optimizer

# Steps whose batches go to the device together.
_STEPS_AT_A_TIME = 256


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


def train(model, rows, theta, batches, optimizer, weights=None):
    """Parameters after training, from the start ``theta``.

    Step t is one of ``optimizer`` along the gradient of ``sum_i w_i l_i / B`` over the
    B rows of batch t. ``rows`` are those of a `RowModel`; ``weights`` None are ones. (A
    row of weight 0 still counts in B: without it, the sum loses one term.)
    """
    if weights is None:
        weights = np.ones(len(rows))
    training = _Training(model, rows, batches, optimizer)
    steps = range(len(batches))
    theta, *_ = training.state_after(steps, optimizer.start(theta), weights)
    return theta


class _Training(NamedTuple):
    """A model, its rows, the batches of the steps, and how these are taken."""

    model: RowModel
    rows: Any
    batches: list
    optimizer: Optimizer

    def state_after(self, steps, state, weights):
        """State after steps of the training from a state, for weights of the rows."""
        for block in tiles(len(steps), _STEPS_AT_A_TIME):
            numbers = steps[block]
            batches = [self.batches[t] for t in numbers]
            step_weights = [weights[batch] / len(batch) for batch in batches]
            of_steps = zip(
                numbers,
                self.model.batches(self.rows, batches),
                self.model.vectors_of(step_weights),
            )
            with self.model.taking_steps():
                for t, batch_rows, batch_weights in of_steps:
                    gradient = self.model.gradient_sum(
                        state[0], batch_rows, batch_weights
                    )
                    state = self.optimizer.step(state, gradient, t, len(self.batches))
        return state


def unrolled_derivatives(model, rows, theta, batches, optimizer, slope):
    """Derivatives of a function of trained parameters by the weights of rows, at one.

    Reverse mode through all steps of `train` (Maclaurin, Duvenaud and Adams 2015; Ilyas
    and Engstrom 2025). Of T steps, states are kept every sqrt(T), or more rarely if
    more steps fit into scikit-learn's `working_memory`; the steps after each of them
    are taken again on the way back.

    Parameters
    ----------
    model : RowModel
        The model.
    rows : object
        Its rows.
    theta : ndarray or tensor of shape (p,)
        Start of the training.
    batches : list of ndarray
        Rows of each step, each at most once a step.
    optimizer : Optimizer
        How steps are taken.
    slope : callable
        Gradient of the function by the trained parameters.

    Returns
    -------
    derivatives : ndarray of shape (n,)
        Derivatives by the weight of each row.
    end : ndarray or tensor of shape (p,)
        The trained parameters.
    """
    n_steps = len(batches)
    largest_batch = max(map(len, batches))
    every = max(isqrt(n_steps - 1) + 1, model.steps_in_memory(largest_batch))

    # Forwards, the state at the start of each block of steps is kept.
    training = _Training(model, rows, batches, optimizer)
    ones = np.ones(len(rows))
    states = [optimizer.start(theta)]
    for first in range(0, n_steps - every, every):
        steps = range(first, first + every)
        states.append(training.state_after(steps, states[-1], ones))

    # Backwards from the last block, its steps are taken again, and then differentiated.
    derivatives = np.zeros(len(rows))
    end = None
    adjoints = None
    while states:
        state = states.pop()
        first = len(states) * every
        block_steps = []
        block = batches[first : first + every]
        for t, batch_rows in enumerate(model.batches(rows, block), first):
            gradient, pullback = model.linearized(state[0], batch_rows)
            block_steps.append((t, state, gradient, pullback))
            state = optimizer.step(state, gradient, t, n_steps)
        if end is None:
            end = state[0]
            adjoints = optimizer.start(slope(end))
        block_derivatives = []
        while block_steps:  # popped, so that memory is freed on the way
            t, before, gradient, pullback = block_steps.pop()
            adjoints, by_gradient = optimizer.adjoint(
                before, gradient, t, n_steps, adjoints
            )
            by_theta, by_weights = pullback(by_gradient)
            adjoints = (adjoints[0] + by_theta, *adjoints[1:])
            block_derivatives.append((t, by_weights))

        # Those of all steps of the block come from the device at once.
        numbers, vectors = zip(*block_derivatives)
        for t, by_weights in zip(numbers, model.arrays(vectors)):
            derivatives[batches[t]] += by_weights
    return derivatives, end
