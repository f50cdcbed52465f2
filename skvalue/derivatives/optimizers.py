"""Steps of optimisers, and the adjoints of the steps: their transposed derivatives.

States are tuples of arrays of one library, numpy or torch: the parameters and their
running means.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

OPTIMIZERS = ("sgd", "adamw")
# Factor of the learning rate by the fraction of steps that are done.
SCHEDULES = {
    "constant": lambda fraction: 1.0,
    "linear": lambda fraction: 1.0 - fraction,
    "cosine": lambda fraction: (1.0 + np.cos(np.pi * fraction)) / 2,
}
_DECAY = 0.999  # of the mean of squared gradients of AdamW


@dataclass(frozen=True)
class Optimizer:
    """Stochastic gradient descent with momentum, or AdamW, as in torch.

    In AdamW, ``eps`` is added under the root of the mean squared gradient and not to
    the root, whose derivative is infinite at zero. ``schedule`` maps the fraction of
    steps done to the factor of the learning rate.

    >>> step = Optimizer("sgd", 0.5)
    >>> step.step(step.start(np.ones(1)), np.ones(1), 0, 10)
    (array([0.5]),)
    """

    name: str = "sgd"
    learning_rate: float = 0.1
    momentum: float = 0.0
    weight_decay: float = 0.0
    schedule: str | Callable = "constant"
    eps: float = 1e-8

    def rate(self, t, n_steps):
        """Learning rate of step t of n, from 0."""
        schedule = self.schedule
        if not callable(schedule):
            schedule = SCHEDULES[schedule]
        return self.learning_rate * float(schedule(t / n_steps))

    def start(self, theta):
        """State before the first step."""
        n_means = 2 if self.name == "adamw" else int(self.momentum > 0)
        return (theta, *(0 * theta for _ in range(n_means)))

    def step(self, state, gradient, t, n_steps):
        """State after step t."""
        rate = self.rate(t, n_steps)
        if self.name == "sgd":
            theta, *means = state
            direction = gradient
            if self.weight_decay:
                direction = direction + self.weight_decay * theta
            if means:
                direction = self.momentum * means[0] + direction
            return (theta - rate * direction, direction)[: len(state)]
        theta, *means = state
        first, second = self._means(means, gradient)
        scale, root = self._corrected(second, t)
        theta = (1 - rate * self.weight_decay) * theta - (rate * scale) * first / root
        return theta, first, second

    def adjoint(self, state, gradient, t, n_steps, adjoints):
        """Derivatives by the state before step t and by the gradient.

        The derivatives are those of a function of the state after step t, whose
        derivatives by that state are ``adjoints``. The gradient counts as a constant in
        the first result.
        """
        by_theta, *by_means = adjoints
        rate = self.rate(t, n_steps)
        mu = self.momentum
        if self.name == "sgd":
            by_gradient = -rate * by_theta
            if by_means:
                by_gradient = by_gradient + by_means[0]
            if self.weight_decay:
                by_theta = by_theta + self.weight_decay * by_gradient
            return (by_theta, *(mu * by_gradient for _ in by_means)), by_gradient
        first, second = self._means(state[1:], gradient)
        scale, root = self._corrected(second, t)
        by_first = by_means[0] - (rate * scale) * by_theta / root
        of_root = rate * scale / 2 / (1 - _DECAY ** (t + 1))
        by_square = of_root * by_theta * first / root**3
        by_second = by_means[1] + by_square
        by_gradient = (1 - mu) * by_first + 2 * (1 - _DECAY) * gradient * by_second
        by_theta = (1 - rate * self.weight_decay) * by_theta
        return (by_theta, mu * by_first, _DECAY * by_second), by_gradient

    def _means(self, means, gradient):
        first = self.momentum * means[0] + (1 - self.momentum) * gradient
        return first, _DECAY * means[1] + (1 - _DECAY) * gradient**2

    def _corrected(self, second, t):
        """Factor of the first mean, root of the second, corrected for starts at 0."""
        root = (second / (1 - _DECAY ** (t + 1)) + self.eps) ** 0.5
        return 1 / (1 - self.momentum ** (t + 1)), root
