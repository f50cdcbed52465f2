"""Least squares and ridge regression on many coalitions at once."""

import numpy as np
from scipy.linalg import lstsq
from sklearn.linear_model import LinearRegression, Ridge

from ...linear import SOLVED, UNSOLVED
from .base import BatchedSolver

_MAX_PRODUCTS = 20_000_000  # most products of pairs of columns kept for all rows
_NEARBY = 4  # most differing rows for which a coalition is computed from the one before


class CompiledForm:
    """Coefficients in closed form, by compiled loops."""

    def __init__(self, solver):
        self.X, self.y, self.products = solver.X, solver.y - solver.shift, None
        self.weights, self.penalty = solver.weights, solver.penalty

    def prepare(self):
        """Precompute, once, the products that all coalitions use."""
        if self.products is None:
            rows, columns = np.tril_indices(self.X.shape[1])
            width = len(rows) if len(self.X) * len(rows) <= _MAX_PRODUCTS else 0
            weighted = self.X * self.weights[:, None]
            self.right = weighted * self.y[:, None]
            self.products = weighted[:, rows[:width]] * self.X[:, columns[:width]]

    def coefs(self, masks, widest):
        """Coefficients (m, p), and a mask of those that were computed."""
        from ...linear.linear_kernels import ridge_tile

        coefs = np.empty((len(masks), self.X.shape[1]))
        numbers = np.full(len(masks), -1)
        fresh = np.ones(len(masks), dtype=bool)
        fresh[1:] = np.count_nonzero(masks[1:] != masks[:-1], axis=1) > _NEARBY
        if self.products.shape[1]:
            numbers[fresh] = np.arange(np.count_nonzero(fresh))
        some = masks[fresh].astype(np.float64)
        solved = ridge_tile(
            self.X, self.y, self.weights, self.penalty, np.ascontiguousarray(masks), _NEARBY,
            widest, some @ self.products, some @ self.right, numbers, coefs,
        )  # fmt: skip
        return coefs, solved


class LinearSolver(BatchedSolver):
    """Minimises ``sum of squares + alpha |coef|^2`` in closed form; the intercept is
    free."""

    engine_class = CompiledForm

    def __init__(self, training, X, X_val):
        super().__init__(training, X, X_val)
        self.fit_intercept = training.estimator.fit_intercept
        # Targets and columns are centred; the intercept compensates.
        centre = X.mean(axis=0) if self.fit_intercept else np.zeros(X.shape[1])
        self.shift = self.y.mean() if self.fit_intercept else 0.0
        self.X, self.X_val = X - centre, X_val - centre
        alpha = getattr(training.estimator, "alpha", 0.0)  # LinearRegression has none
        self.penalty = np.full(X.shape[1], float(alpha))
        if self.fit_intercept:
            self.X, self.X_val = (
                np.c_[part, np.ones(len(part))] for part in (self.X, self.X_val)
            )
            self.penalty = np.r_[self.penalty, 0.0]

    def prepare(self):
        self.engine.prepare()


class RidgeSolver(LinearSolver):
    """Ridge regression; `tol`, `max_iter` and `solver` of the estimator are ignored."""

    name = "ridge"
    estimator = Ridge

    @staticmethod
    def allows(parameters):
        alpha = parameters["alpha"]
        return np.ndim(alpha) == 0 and 0 < alpha < np.inf and not parameters["positive"]

    def tile_scores(self, masks, sizes):
        coefs, solved = self.engine.coefs(masks, np.inf)
        predictions = coefs @ self.X_val.T + self.shift
        return self.scores.of_targets(predictions, sizes), np.where(
            solved, SOLVED, UNSOLVED
        )


class LeastSquaresSolver(LinearSolver):
    """The least-squares fit of least norm.

    Coalitions of at most two rows per column are solved one by one, as the estimator
    does.
    """

    name = "least squares"
    estimator = LinearRegression

    @staticmethod
    def allows(parameters):
        return not parameters["positive"]

    def tile_scores(self, masks, sizes):
        coefs = np.empty((len(masks), self.X.shape[1]))
        solved = sizes > 2 * self.X.shape[1]
        # The estimator drops singular values below `tol`, so there must be none.
        widest = 1e-2 / max(self.training.estimator.tol, 1e-5) ** 2
        coefs[solved], solved[solved] = self.engine.coefs(masks[solved], widest)
        for i in np.flatnonzero(~solved):
            coefs[i] = self._least_norm(masks[i])
        predictions = coefs @ self.X_val.T + self.shift
        return self.scores.of_targets(predictions, sizes), np.full(len(masks), SOLVED)

    def _least_norm(self, mask):
        """As scikit-learn: centre by weighted means, scale by square roots of weights,
        LAPACK."""
        X, y, w = self.X[mask], self.y[mask] - self.shift, self.weights[mask]
        root = np.sqrt(w)
        if not self.fit_intercept:
            return self._lstsq(X * root[:, None], y * root)
        X = X[:, :-1]
        mean, y_mean = w @ X / w.sum(), w @ y / w.sum()
        centred, rounding = X - mean, 4 * len(X) * np.finfo(np.float64).eps
        if (
            np.abs(centred).max() <= rounding * np.abs(X).max()
        ):  # one row, or equal rows
            return np.r_[np.zeros(X.shape[1]), y_mean]
        coef = self._lstsq(centred * root[:, None], (y - y_mean) * root)
        return np.r_[coef, y_mean - mean @ coef]

    def _lstsq(self, X, y):
        return lstsq(X, y, cond=self.training.estimator.tol, check_finite=False)[0]
