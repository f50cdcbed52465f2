"""A run of gradient descent, and what each row adds to the utility in its steps.

A step from theta along the clipped gradients g_j of the rows B is ``theta - eta / |B| sum_j g_j``.
To first order the utility increases by ``-eta / |B| sum_j <g_j, grad U(theta)>``: row j adds its
term, the Shapley value of the game of the step. To second order it adds
``-eta / |B| <g_j, grad U + H d / 2>``, for the step d and the Hessian H of the utility (J. T. Wang,
P. Mittal, D. Song, R. Jia: "Data Shapley in One Training Run", ICLR 2025, Theorems 3 and 4).
"""

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass

import numpy as np

from .._utils.parallel import tiles
from ..privacy import clip_and_noise, clipping_margin

RUN_RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

_BLOCK = 2**21  # numbers in a block
_REPEATS = 3
_MOST = 1.25  # largest sum of values to first order over the gain of utility


class RunModel(metaclass=ABCMeta):
    """A model, its public validation points, and the clipped gradients of any rows.

    Parameters are flat float64 arrays of length `n_parameters`.
    """

    n_parameters: int

    @abstractmethod
    def initial(self, rng):
        """Initial parameters; they depend on the generator, not on the rows."""

    @abstractmethod
    def rows(self, X, y):
        """Rows in the form that `pass_over` takes; a code above the last class has no gradient."""

    @abstractmethod
    def pass_over(self, theta, rows, directions, max_norm=None):
        """Sum (p,) of the rows' clipped gradients, and their products (k, b) with directions."""

    @abstractmethod
    def utility_of(self, theta):
        """Utility: minus the weighted mean loss of the validation points."""

    @abstractmethod
    def utility_gradient(self, theta, step=None):
        """Gradient of the utility; with ``step`` (p,), plus half the Hessian times the step."""

    @abstractmethod
    def point_gradients(self, theta, part, step=None):
        """The same of the utility at each of a slice of the points, (n_points, p)."""

    @abstractmethod
    def probabilities(self, theta, X):
        """Probabilities of the classes, (b, n_classes), or predicted targets (b,)."""


@dataclass(frozen=True)
class Run:
    """A run: parameters before every step and after the last, and the rows of every step."""

    thetas: np.ndarray  # (n_steps + 1, p)
    batches: tuple  # indices of rows of each step; None: all rows
    learning_rate: float
    order: int

    def direction(self, t):
        """The step t, if it enters values (order 2)."""
        return self.thetas[t + 1] - self.thetas[t] if self.order == 2 else None

    @property
    def n_steps(self):
        return len(self.batches)


def norm_bound(clip, n, p):
    """Bound to clip to, so that the computed sum of n gradients changes by at most ``2 clip``.

    The relative rounding error of a sum of n numbers, in any order, is at most n times the machine
    epsilon, so that of the sum of n vectors of norm ``clip`` is at most ``n^2`` times.
    """
    return clip * (1 - clipping_margin(p) - n**2 * np.finfo(np.float64).eps)


def descend(model, rows, n, theta, *, n_steps, learning_rate, order, clip, batches, draw=None):
    """Yield the parameters, the batch and the products of the rows after every step.

    ``batches`` yields indices of rows, or None for all. With ``draw``, noise is added to the sum of
    clipped gradients of each step, which is divided by the public size of `batches`.
    """
    max_norm = None if clip is None else norm_bound(clip, n, model.n_parameters)
    for t, (batch, size) in zip(range(n_steps), batches):
        some = rows if batch is None else rows[batch]
        direction = model.utility_gradient(theta)[None]
        total, products = model.pass_over(theta, some, direction, max_norm)
        if draw is not None:
            noise = draw((1, len(total)), (t,))
            total = clip_and_noise(total[None], None, noise, draw.scale)[0]
        step = -learning_rate / size * total
        if not np.isfinite(step).all():
            raise ValueError(
                f"learning_rate must be smaller: the parameters diverged in step {t}. Got "
                f"{learning_rate:g}."
            )
        if order == 2:
            direction = model.utility_gradient(theta, step)[None]
            products = model.pass_over(theta, some, direction, max_norm)[1]
        theta = theta + step
        yield theta, batch, -learning_rate / size * products[0]


def value_rows(model, run, rows, n, clip, n_fit):
    """Values of rows along a run in which each is in every step, with weight 1 / n_fit."""
    max_norm = None if clip is None else norm_bound(clip, n_fit, model.n_parameters)
    values = np.zeros(n)
    for t in range(run.n_steps):
        direction = model.utility_gradient(run.thetas[t], run.direction(t))
        products = model.pass_over(run.thetas[t], rows, direction[None], max_norm)[1]
        values -= run.learning_rate / n_fit * products[0]
    return values


def point_values(model, run, rows, n, n_points, clip):
    """Yield a slice of the validation points and the rows' values at each, (k, n)."""
    max_norm = None if clip is None else norm_bound(clip, n, model.n_parameters)
    for part in tiles(n_points, max(1, _BLOCK // max(model.n_parameters, n))):
        values = np.zeros((part.stop - part.start, n))
        for t, batch in enumerate(run.batches):
            directions = model.point_gradients(run.thetas[t], part, run.direction(t))
            some = rows if batch is None else rows[batch]
            where = slice(None) if batch is None else batch
            products = model.pass_over(run.thetas[t], some, directions, max_norm)[1]
            values[:, where] -= run.learning_rate / products.shape[1] * products
        yield part, values


def shuffled_batches(n, size, rng):
    """Endless batches of an epoch after the other: (rows, number of rows)."""
    if size is None or size >= n:
        while True:
            yield None, n
    while True:
        order = rng.permutation(n)
        for start in range(0, n - size + 1, size):
            yield np.sort(order[start : start + size]), size


def public_run_rate(make_model, X, y, rng, *, n_steps, clip, noise_std):
    """Learning rate of a run, from runs on validation points (X, y), which are public.

    ``make_model(part)`` evaluates on a part of the points; the run is on the others, with noise of
    standard deviation ``noise_std`` on the mean gradient. The result is the smallest of `RUN_RATES`
    with at least nine tenths of the best gain of utility, among those at which values to first
    order sum to at most 1.25 times the gain: of larger rates values say little.
    """
    gains, sums, n = np.zeros(len(RUN_RATES)), np.zeros(len(RUN_RATES)), len(y)
    for _ in range(_REPEATS):
        order = rng.permutation(n)
        train, test = np.sort(order[: (n + 1) // 2]), np.sort(order[n // 2 :])
        model = make_model(test)
        rows, theta = model.rows(X[train], y[train]), model.initial(rng)
        noise = noise_std * rng.standard_normal((n_steps, len(theta)))
        for number, rate in enumerate(RUN_RATES):
            with np.errstate(over="ignore", invalid="ignore"):
                found = _rehearsal(model, rows, len(train), theta, rate, clip, noise)
            gains[number], sums[number] = [gains[number], sums[number]] + found
    usable = np.isfinite(gains) & (sums <= _MOST * gains)
    best = gains[usable].max(initial=0.0)
    return RUN_RATES[int((usable & (gains >= 0.9 * best)).argmax())] if best > 0 else RUN_RATES[0]


def _rehearsal(model, rows, n, theta, rate, clip, noise):
    """Gain of utility in a run on public rows, and the sum of the values to first order."""
    max_norm = None if clip is None else norm_bound(clip, n, model.n_parameters)
    none, empty, total = np.zeros((0, len(theta))), model.utility_of(theta), 0.0
    for extra in noise:
        step = -rate * (model.pass_over(theta, rows, none, max_norm)[0] / n + extra)
        total += model.utility_gradient(theta) @ step
        theta = theta + step
    return np.array([model.utility_of(theta) - empty, total])


# Linear models ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearRows:
    """Rows with a constant column, their norms, and their labels."""

    X: np.ndarray
    norms: np.ndarray
    y: np.ndarray

    def __getitem__(self, some):
        return LinearRows(self.X[some], self.norms[some], self.y[some])


class LinearRunModel(RunModel):
    """Softmax regression, or linear regression (n_classes 0) of the squared error.

    Parameters are (n_features + 1, n_outputs), flat; the last row is the intercept. The utility is
    multiplied by ``scale``, such as the squared unit of standardised targets.
    """

    def __init__(self, X_val, y_val, weights, n_classes, scale=1.0):
        self.n_classes, self._n_outputs, self._scale = n_classes, n_classes or 1, scale
        self._points, self._weights = self.rows(X_val, y_val), weights
        self.n_parameters = self._points.X.shape[1] * self._n_outputs

    def initial(self, rng):
        """Zeros."""
        return np.zeros(self.n_parameters)

    def rows(self, X, y):
        """Rows with a constant column."""
        X = np.column_stack([np.asarray(X, dtype=np.float64), np.ones(len(X))])
        with np.errstate(over="ignore"):
            return LinearRows(X, np.linalg.norm(X, axis=1), np.asarray(y))

    def pass_over(self, theta, rows, directions, max_norm=None):
        """Sum of the clipped gradients, and their products with directions."""
        W, k, X = theta.reshape(-1, self._n_outputs), len(directions), rows.X
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = self._residuals(X @ W, rows.y)
            if max_norm is not None:
                norms = rows.norms * np.linalg.norm(residuals, axis=1)
                counted = np.isfinite(norms)[:, None]  # an error would reveal the others
                scaled = residuals / np.maximum(norms / max_norm, 1.0)[:, None]
                residuals = np.where(counted, scaled, 0.0)
                X = X if counted.all() else np.where(counted, X, 0.0)
        products = np.zeros((k, len(X)))
        for part in tiles(k, max(1, _BLOCK // (len(X) * self._n_outputs))):
            some = directions[part].reshape(-1, *W.shape).transpose(1, 0, 2).reshape(len(W), -1)
            changes = (X @ some).reshape(len(X), -1, self._n_outputs)
            products[part] = np.einsum("bkc,bc->kb", changes, residuals)
        return (X.T @ residuals).ravel(), products

    def utility_of(self, theta):
        """Minus the mean log-loss, or the mean squared error."""
        z = self._points.X @ theta.reshape(-1, self._n_outputs)
        y = self._points.y
        if not self.n_classes:
            return -self._scale * float(self._weights @ (z[:, 0] - y) ** 2)
        z = z - z.max(axis=1, keepdims=True)
        losses = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y]
        return -self._scale * float(self._weights @ losses)

    def utility_gradient(self, theta, step=None):
        """Gradient of the utility; with ``step``, plus half the Hessian times the step."""
        slopes = self._slopes(theta, self._points, step)
        return (self._points.X.T @ (self._weights[:, None] * slopes)).ravel()

    def point_gradients(self, theta, part, step=None):
        """The same at each of a slice of the points."""
        points = self._points[part]
        slopes = self._slopes(theta, points, step)
        return (points.X[:, :, None] * slopes[:, None]).reshape(len(slopes), -1)

    def probabilities(self, theta, X):
        """Probabilities of the classes, or predicted targets."""
        z = self.rows(X, np.zeros(len(X))).X @ theta.reshape(-1, self._n_outputs)
        return _softmax(z) if self.n_classes else z[:, 0]

    def _slopes(self, theta, points, step):
        """Derivatives of the utility at the points by their outputs."""
        z = points.X @ theta.reshape(-1, self._n_outputs)
        slopes = self._residuals(z, points.y)
        if step is not None:
            change = points.X @ step.reshape(-1, self._n_outputs)
            if self.n_classes:
                p = _softmax(z)
                slopes += 0.5 * p * (change - (p * change).sum(axis=1, keepdims=True))
            else:
                slopes += change
        return -self._scale * slopes

    def _residuals(self, z, y):
        """Derivatives of the losses by the outputs; zero for labels above the last class."""
        if not self.n_classes:
            return 2.0 * (z - y[:, None])
        residuals, known = _softmax(z), np.flatnonzero(y < self.n_classes)
        residuals[known, y[known]] -= 1.0
        if len(known) < len(y):
            residuals[y >= self.n_classes] = 0.0
        return residuals


def _softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)
