"""Softmax and linear regression as a `RowModel`."""

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from sklearn import get_config

from .._utils.parallel import one_blas_thread
from ..linear import SOFTMAX, SQUARED
from ..privacy import clip_and_noise, clip_rows
from ._row_models import RowModel

_BLOCK = 2**21  # numbers in a block


@dataclass(frozen=True)
class LinearRows:
    """Rows with a constant column, their norms, and their labels."""

    X: np.ndarray
    norms: np.ndarray
    y: np.ndarray

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        return LinearRows(self.X[rows], self.norms[rows], self.y[rows])


class LinearRowModel(RowModel):
    """Softmax regression, or linear regression (n_classes 0) of the squared error.

    Parameters are (n_features + 1, n_outputs), flat; the last row is the intercept. A
    code above the last class has no gradient.

    >>> model = LinearRowModel(3, n_classes=2)
    >>> rows = model.rows(np.zeros((4, 3)), np.array([0, 1, 0, 1]))
    >>> model.n_parameters, model.losses(model.start(None), rows).round(2)
    (8, array([0.69, 0.69, 0.69, 0.69]))
    """

    numerics_context = staticmethod(one_blas_thread)

    def __init__(self, n_features, n_classes=0):
        self.n_classes = n_classes
        self._loss = SQUARED
        n_outputs = 1
        if n_classes:
            self._loss = SOFTMAX
            n_outputs = n_classes
        self._shape = (n_features + 1, n_outputs)
        self.n_parameters = (n_features + 1) * n_outputs

    def start(self, rng):
        """Zeros."""
        return np.zeros(self.n_parameters)

    def rows(self, X, y):
        """Rows with a constant column."""
        X = np.column_stack([np.asarray(X, dtype=np.float64), np.ones(len(X))])
        y = np.asarray(y)
        if not self.n_classes:
            y = y.reshape(len(X), 1)  # as the outputs
        with np.errstate(over="ignore"):
            return LinearRows(X, np.linalg.norm(X, axis=1), y)

    def losses(self, theta, rows):
        """Log-losses, or squared errors."""
        return self._loss.values(rows.X @ theta.reshape(self._shape), rows.y)

    def gradient_sum(self, theta, rows, weights, step=None):
        """Gradient of the weighted losses; with ``step``, plus half its change."""
        slopes = weights[:, None] * self._slopes(theta, rows, step)
        return (rows.X.T @ slopes).ravel()

    def row_gradients(self, theta, rows, step=None):
        """The same of each row."""
        slopes = self._slopes(theta, rows, step)
        return (rows.X[:, :, None] * slopes[:, None]).reshape(len(rows), -1)

    def gradient_sum_and_products(
        self, theta, rows, directions, max_norm=None, is_secret=False
    ):
        """Sum of the clipped gradients, and their products with directions."""
        X = rows.X
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = self._slopes(theta, rows, by_row=is_secret)
            if max_norm is not None:
                X, slopes = _clipped(rows, slopes, max_norm)
        return (X.T @ slopes).ravel(), self._products(X, slopes, directions)

    def _products(self, X, slopes, directions):
        """Products (k, b) of the gradients of rows with directions (k, p)."""
        n_rows = len(X)
        n_columns, n_outputs = self._shape
        products = np.zeros((len(directions), n_rows))
        if not n_rows:  # a secret sample may be empty
            return products
        size = max(1, _BLOCK // (n_rows * n_outputs))
        for start in range(0, len(directions), size):
            block = directions[start : start + size].reshape(-1, *self._shape)
            block = block.transpose(1, 0, 2).reshape(n_columns, -1)
            changes = (X @ block).reshape(n_rows, -1, n_outputs)
            products[start : start + size] = np.einsum("bkc,bc->kb", changes, slopes)
        return products

    def linearized(self, theta, rows):
        """The mean gradient, and the derivatives of its product with a direction."""
        z = rows.X @ theta.reshape(self._shape)
        slopes = self._loss.gradient(z, rows.y) * (1 / len(rows))

        def pullback(direction):
            change = rows.X @ direction.reshape(self._shape)
            slope_changes = self._slope_changes(z, change) * (1 / len(rows))
            return (rows.X.T @ slope_changes).ravel(), (slopes * change).sum(axis=1)

        return (rows.X.T @ slopes).ravel(), pullback

    def steps_in_memory(self, n_rows):
        """Number of steps whose derivatives fit into half of `working_memory`."""
        n_columns, n_outputs = self._shape
        n_numbers = 3 * n_columns * n_outputs + n_rows * (n_columns + 4 * n_outputs)
        n_bytes = 8 * n_numbers
        return int(get_config()["working_memory"] * 2**19) // n_bytes

    def probabilities(self, theta, X):
        """Probabilities of the classes, or predicted targets."""
        z = np.column_stack([X, np.ones(len(X))]) @ theta.reshape(self._shape)
        if self.n_classes:
            return softmax(z, axis=1)
        return z[:, 0]

    # Runs of steps, all in memory of the CPU ------------------------------------------

    def taking_steps(self):
        """No context."""
        return nullcontext()

    def steps_at_a_time(self, n_rows):
        """One: nothing waits for its result."""
        return 1

    def vectors(self, array):
        """Arrays of float64."""
        return np.asarray(array, dtype=np.float64)

    def vectors_of(self, arrays):
        """The same."""
        return arrays

    def arrays(self, vectors):
        """The same."""
        return vectors

    def batches(self, rows, batches, is_secret=False):
        """Yield the rows of each batch."""
        for batch in batches:
            if batch is None:
                yield rows
            else:
                yield rows[batch]

    def clipped(self, gradients, max_norm):
        """By `clip_rows`."""
        return clip_rows(gradients, max_norm)

    def noisy(self, vector, noise, scale):
        """By `clip_and_noise`."""
        return clip_and_noise(vector[None], None, noise[None], scale)[0]

    def _slopes(self, theta, rows, step=None, by_row=False):
        """Derivatives of losses by outputs; with ``step``, plus half their change.

        If `by_row`, those of a row have the same bits whatever other rows there are.
        """
        coefs = theta.reshape(self._shape)
        if by_row:
            # A product of two vectors for each output: a product of matrices rounds a
            # row in a way that depends on the number of rows. The others of a secret
            # sample would then tell whether a row is in it.
            z = np.vecdot(rows.X[:, None], np.ascontiguousarray(coefs.T))
        else:
            z = rows.X @ coefs

        slopes = self._slopes_at(z, rows.y)
        if step is not None:
            change = rows.X @ step.reshape(self._shape)
            slopes = slopes + 0.5 * self._slope_changes(z, change)
        return slopes

    def _slopes_at(self, z, y):
        """Derivatives of the losses by outputs z (n, n_outputs)."""
        if not self.n_classes:
            return 2.0 * (z - y)
        is_class = y < self.n_classes
        has_class = np.flatnonzero(is_class)
        slopes = softmax(z, axis=1)
        slopes[has_class, y[has_class]] -= 1.0
        slopes[~is_class] = 0.0
        return slopes

    def _slope_changes(self, z, change):
        """Product of the second derivatives by the outputs with a change of these."""
        if not self.n_classes:
            return 2.0 * change
        q = softmax(z, axis=1)
        return q * (change - (q * change).sum(axis=1, keepdims=True))


def _clipped(rows, slopes, max_norm):
    """X, and derivatives by the outputs, of rows with gradients of at most a norm.

    Rows whose gradients are not finite are zero: an error would reveal the others.
    """
    norms = rows.norms * np.linalg.norm(slopes, axis=1)
    is_finite = np.isfinite(norms)[:, None]
    scaled = slopes / np.maximum(norms / max_norm, 1.0)[:, None]
    slopes = np.where(is_finite, scaled, 0.0)
    if is_finite.all():
        return rows.X, slopes
    return np.where(is_finite, rows.X, 0.0), slopes
