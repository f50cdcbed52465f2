"""The protocol of models with losses of rows, and a utility at validation points."""

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


class RowModel(metaclass=ABCMeta):
    """The losses of rows under a model, with derivatives by its parameters.

    Parameters are a flat float64 array (p,), or one of `vectors` on the device of the
    model; derivatives are in the library of the parameters. Rows are in a form of the
    model: see `rows`; they have a length, and are indexed. `numerics_context` is the
    context of a training.
    """

    n_parameters: int
    numerics_context: Any

    @abstractmethod
    def start(self, rng):
        """Parameters at the start; they depend on the generator, not on rows."""

    @abstractmethod
    def rows(self, X, y):
        """Rows in the form that the other methods take."""

    @abstractmethod
    def losses(self, theta, rows):
        """Loss (b,) of each row."""

    @abstractmethod
    def gradient_sum(self, theta, rows, weights, step=None):
        """Gradient (p,) of the weighted sum of losses, in the library of ``theta``.

        With ``step`` (p,), plus half the Hessian times the step. See `parameters`.
        """

    @abstractmethod
    def row_gradients(self, theta, rows, step=None):
        """The same of each row, (b, p)."""

    @abstractmethod
    def gradient_sum_and_products(
        self, theta, rows, directions, max_norm=None, is_secret=False
    ):
        """Sum (p,) of clipped gradients, and their products (k, b) with directions.

        If the rows are a secret sample, the gradient of a row has the same bits
        whatever other rows are in it.
        """

    @abstractmethod
    def linearized(self, theta, rows):
        """The mean gradient of rows, and a function of a direction c of parameters.

        It returns the derivatives of the product of the gradient and c by the
        parameters, and by the weights of the rows, as `vectors`, and may be called
        once.
        """

    @abstractmethod
    def steps_in_memory(self, n_rows):
        """Number of `linearized` steps that fit into half of the working memory."""

    @abstractmethod
    def probabilities(self, theta, X):
        """Probabilities of the classes, (b, n_classes), or predicted targets (b,)."""

    def parameters(self, theta):
        """Parameters in the model's library, in which long trainings step."""
        return theta

    # Runs of steps on a device, which do not wait for it after each step -------------

    @abstractmethod
    def taking_steps(self):
        """Context of some steps."""

    @abstractmethod
    def steps_at_a_time(self, n_rows):
        """Number of steps that a run takes before their results are read."""

    @abstractmethod
    def vectors(self, array):
        """Numbers in float64, in the library and on the device of the model."""

    @abstractmethod
    def vectors_of(self, arrays):
        """Several arrays (k_i,) as `vectors`, copied to the device at once; a list."""

    @abstractmethod
    def arrays(self, vectors):
        """Several `vectors` as arrays, copied from the device at once; a list."""

    @abstractmethod
    def batches(self, rows, batches, is_secret=False):
        """Yield the rows of each batch: an index of rows, or None for all.

        All indices go to the device together. ``is_secret`` as in
        `gradient_sum_and_products`.
        """

    @abstractmethod
    def clipped(self, gradients, max_norm):
        """Gradients (b, p), clipped as by `clip_rows`."""

    @abstractmethod
    def noisy(self, vector, noise, scale):
        """A vector (p,) with noise of this scale, see `clip_and_noise`."""


@dataclass(frozen=True, eq=False)
class Utility:
    """Minus the weighted mean loss of a model at validation points, times ``scale``."""

    model: RowModel
    points: Any  # rows of the model
    weights: np.ndarray
    scale: float = 1.0

    def on_device(self):
        """The same, with weights on the device, for many gradients."""
        return replace(self, weights=self.model.vectors(self.weights))

    def value(self, theta):
        """The utility."""
        return -self.scale * float(self.weights @ self.model.losses(theta, self.points))

    def gradient(self, theta, step=None):
        """Its gradient; with ``step`` (p,), plus half the Hessian times the step."""
        return -self.scale * self.model.gradient_sum(
            theta, self.points, self.weights, step
        )

    def point_gradients(self, theta, points, step=None):
        """The same of the utility at each of a slice of the points, (n_points, p)."""
        return -self.scale * self.model.row_gradients(theta, self.points[points], step)
