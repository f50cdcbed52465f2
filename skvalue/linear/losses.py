"""Losses of linear models, as functions of decisions z (n, K), with three derivatives.

The scale is that of scikit-learn's metrics: log-loss, squared error, deviance. Targets
y are codes of classes (n,) for losses of classes, else numbers (n, K). Every loss here
exists once: whatever trains, removes or adds rows takes its derivatives from this file.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_softmax, softmax, xlogy


@dataclass(frozen=True)
class Loss:
    """A loss of decisions, with its derivatives by them.

    Parameters
    ----------
    name : str
        Name of the constant of this module that is the loss.
    values : callable
        ``values(z, y)`` returns the losses (n,).
    gradient : callable
        ``gradient(z, y)`` returns their first derivatives (n, K).
    curvature : callable
        ``curvature(z, y)`` returns their second derivatives (n, K, K).
    curvature_derivative : callable or None
        ``curvature_derivative(z, change)`` returns the derivatives (n, K, K) of the
        curvature along changes (n, K) of the decisions; None for losses of which
        nothing needs them.
    link : callable
        Maps the mean target to the decision.
    inverse_link : callable
        Maps decisions (n, K) to mean targets: of classes, to the probability of the
        second of two, or to those of all.
    classes : bool
        Whether targets are codes of classes.
    """

    name: str
    values: Callable
    gradient: Callable
    curvature: Callable
    curvature_derivative: Callable | None = None
    link: Callable = np.asarray
    inverse_link: Callable = np.asarray
    classes: bool = False

    def __reduce__(self):
        # Code asks which loss it has by `is`: a pickled loss is the same object again.
        return self.name


def probabilities(outputs):
    """Probabilities of classes from outputs (..., k); a single one is class 1's."""
    if outputs.shape[-1] == 1:
        outputs = np.concatenate([np.zeros_like(outputs), outputs], axis=-1)
    return softmax(outputs, axis=-1)


def _class_curvature_derivative(q, change):
    """Derivatives of ``diag(q) - q q'`` along changes of decisions, q probabilities."""
    q_change = q * (change - (q * change).sum(axis=1, keepdims=True))
    diagonal = q_change[:, :, None] * np.eye(q.shape[1])
    return (
        diagonal
        - q_change[:, :, None] * q[:, None, :]
        - q[:, :, None] * q_change[:, None, :]
    )


# Squared error ------------------------------------------------------------------------


def _squared_error(z, y):
    return ((z - y) ** 2).sum(axis=1)


def _squared_error_gradient(z, y):
    return 2 * (z - y)


def _squared_error_curvature(z, y):
    n, k = z.shape
    return np.broadcast_to(2 * np.eye(k), (n, k, k))


def _squared_error_curvature_derivative(z, change):
    n, k = z.shape
    return np.zeros((n, k, k))


SQUARED = Loss(
    name="SQUARED",
    values=_squared_error,
    gradient=_squared_error_gradient,
    curvature=_squared_error_curvature,
    curvature_derivative=_squared_error_curvature_derivative,
)

# Log-loss of two classes, by the decision for the second ------------------------------


def _logistic_loss(z, y):
    softplus = np.maximum(z[:, 0], 0) + np.log1p(np.exp(-np.abs(z[:, 0])))
    return softplus - y * z[:, 0]


def _logistic_gradient(z, y):
    return expit(z) - y[:, None]


def _logistic_curvature(z, y):
    # Not q - q^2 for the probability q, which loses all digits where q is almost 1.
    return (expit(z) * expit(-z))[:, :, None]


def _logistic_curvature_derivative(z, change):
    return _class_curvature_derivative(expit(z), change)


LOGISTIC = Loss(
    name="LOGISTIC",
    values=_logistic_loss,
    gradient=_logistic_gradient,
    curvature=_logistic_curvature,
    curvature_derivative=_logistic_curvature_derivative,
    inverse_link=expit,
    classes=True,
)

# Log-loss of K classes, by a decision for each ----------------------------------------


def _softmax_probabilities(z):
    return softmax(z, axis=1)


def _softmax_loss(z, y):
    return -log_softmax(z, axis=1)[np.arange(len(y)), y]


def _softmax_gradient(z, y):
    return _softmax_probabilities(z) - (np.arange(z.shape[1]) == y[:, None])


def _softmax_curvature(z, y):
    q = _softmax_probabilities(z)
    return q[:, :, None] * (np.eye(z.shape[1]) - q[:, None, :])


def _softmax_curvature_derivative(z, change):
    return _class_curvature_derivative(_softmax_probabilities(z), change)


SOFTMAX = Loss(
    name="SOFTMAX",
    values=_softmax_loss,
    gradient=_softmax_gradient,
    curvature=_softmax_curvature,
    curvature_derivative=_softmax_curvature_derivative,
    inverse_link=_softmax_probabilities,
    classes=True,
)

# Deviances, by the logarithm of the mean ----------------------------------------------


def _poisson_deviance(z, y):
    return 2 * (xlogy(y, y) - y * z - y + np.exp(z))[:, 0]


def _poisson_gradient(z, y):
    return 2 * (np.exp(z) - y)


def _poisson_curvature(z, y):
    return (2 * np.exp(z))[:, :, None]


POISSON = Loss(
    name="POISSON",
    values=_poisson_deviance,
    gradient=_poisson_gradient,
    curvature=_poisson_curvature,
    link=np.log,
    inverse_link=np.exp,
)


def _gamma_deviance(z, y):
    return 2 * (z - np.log(y) + y * np.exp(-z) - 1)[:, 0]


def _gamma_gradient(z, y):
    return 2 * (1 - y * np.exp(-z))


def _gamma_curvature(z, y):
    return (2 * y * np.exp(-z))[:, :, None]


GAMMA = Loss(
    name="GAMMA",
    values=_gamma_deviance,
    gradient=_gamma_gradient,
    curvature=_gamma_curvature,
    link=np.log,
    inverse_link=np.exp,
)
