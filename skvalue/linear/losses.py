"""Losses of linear models, as functions of decisions z (n, K), with two derivatives.

The scale is that of scikit-learn's metrics: log-loss, squared error, deviance.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_softmax, softmax, xlogy


@dataclass(frozen=True)
class Loss:
    """A loss; targets are codes of classes if `classes`, else of shape (n, K)."""

    name: str
    values: Any  # (z, y) -> (n,)
    gradient: Any  # (z, y) -> (n, K)
    curvature: Any  # (z, y) -> (n, K, K)
    link: Any = np.asarray  # from the mean target to the decision
    classes: bool = False

    def __reduce__(
        self,
    ):  # functions without a name cannot be pickled: by the loss's own name
        return self.name


def probabilities(outputs):
    """Probabilities of classes from outputs (..., k); a single one is that of the
    second class."""
    if outputs.shape[-1] == 1:
        outputs = np.concatenate([np.zeros_like(outputs), outputs], axis=-1)
    return softmax(outputs, axis=-1)


def _one(curvature):
    """A curvature of one decision as (n, 1, 1)."""
    return lambda z, y: curvature(z, y)[:, :, None]


def _softplus(z):
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


def _softmax_curvature(z, y):
    p = softmax(z, axis=1)
    return p[:, :, None] * (np.eye(z.shape[1]) - p[:, None, :])


SQUARED = Loss(
    name="SQUARED",
    values=lambda z, y: ((z - y) ** 2).sum(axis=1),
    gradient=lambda z, y: 2 * (z - y),
    curvature=lambda z, y: np.broadcast_to(
        2 * np.eye(z.shape[1]), (*z.shape, z.shape[1])
    ),
)
LOGISTIC = Loss(
    name="LOGISTIC",
    values=lambda z, y: _softplus(z[:, 0]) - y * z[:, 0],
    gradient=lambda z, y: expit(z) - y[:, None],
    curvature=_one(lambda z, y: expit(z) * expit(-z)),
    classes=True,
)
SOFTMAX = Loss(
    name="SOFTMAX",
    values=lambda z, y: -log_softmax(z, axis=1)[np.arange(len(y)), y],
    gradient=lambda z, y: softmax(z, axis=1) - (np.arange(z.shape[1]) == y[:, None]),
    curvature=_softmax_curvature,
    classes=True,
)
POISSON = Loss(
    name="POISSON",
    values=lambda z, y: 2 * (xlogy(y, y) - y * z - y + np.exp(z))[:, 0],
    gradient=lambda z, y: 2 * (np.exp(z) - y),
    curvature=_one(lambda z, y: 2 * np.exp(z)),
    link=np.log,
)
GAMMA = Loss(
    name="GAMMA",
    values=lambda z, y: 2 * (z - np.log(y) + y * np.exp(-z) - 1)[:, 0],
    gradient=lambda z, y: 2 * (1 - y * np.exp(-z)),
    curvature=_one(lambda z, y: 2 * y * np.exp(-z)),
    link=np.log,
)
