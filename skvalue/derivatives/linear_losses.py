"""Losses of the rows of a linear model, with the derivatives that its training needs."""

import numpy as np
from sklearn import get_config

from .._utils.parallel import one_blas_thread
from ._losses import SOFTMAX, SQUARED


class LinearLosses:
    """Losses of rows under a softmax regression, or squared errors of a linear regression.

    Parameters are the coefficients and the intercepts of each decision, as one vector.

    >>> losses = LinearLosses(np.zeros((4, 3)), np.array([0, 1, 0, 1]), n_classes=2)
    >>> losses.start(0).shape, losses.values(losses.start(0)).round(2)
    ((8,), array([0.69, 0.69, 0.69, 0.69]))
    """

    settings = staticmethod(one_blas_thread)  # context of a training

    def __init__(self, X, y, n_classes=0):
        self._X = np.column_stack([X, np.ones(len(X))]).astype(np.float64, copy=False)
        self._y = y if n_classes else y.reshape(len(y), 1)
        self._loss = SOFTMAX if n_classes else SQUARED
        self._shape = self._X.shape[1], n_classes or 1

    def __len__(self):
        return len(self._y)

    def n_together(self, n_rows):
        """Number of steps whose derivatives fit into half of `working_memory`."""
        p, k = self._shape
        n_bytes = 8 * (3 * p * k + n_rows * (p + k * (k + 3)))
        return int(get_config()["working_memory"] * 2**19) // n_bytes

    def start(self, seed):
        """Initial parameters: zeros, whatever the seed is."""
        return np.zeros(self._shape[0] * self._shape[1])

    def values(self, theta):
        """Loss of each row."""
        return self._loss.values(self._X @ theta.reshape(self._shape), self._y)

    def gradient(self, theta, rows, weights=None):
        """Gradient of the weighted sum of losses of some rows, divided by their number."""
        x, y = self._X[rows], self._y[rows]
        slopes = self._loss.gradient(x @ theta.reshape(self._shape), y) / len(x)
        if weights is not None:
            slopes = weights[rows, None] * slopes
        return (x.T @ slopes).reshape(-1)

    def total_gradient(self, theta, weights):
        """Gradient of the weighted sum of all losses."""
        return len(self) * self.gradient(theta, slice(None), weights)

    def linearized(self, theta, rows):
        """`gradient` at weights one, and a function of a direction c of parameters.

        It returns the derivatives of the product of the gradient and c by the parameters, and by
        the weights of the rows.
        """
        x, y = self._X[rows], self._y[rows]
        z = x @ theta.reshape(self._shape)
        slopes = self._loss.gradient(z, y) / len(x)

        def pullback(direction):
            dz = x @ direction.reshape(self._shape)
            turned = np.einsum("nkl,nl->nk", self._loss.curvature(z, y), dz) / len(x)
            return (x.T @ turned).reshape(-1), (slopes * dz).sum(axis=1)

        return (x.T @ slopes).reshape(-1), pullback
