"""Least squares and ridge regression on many coalitions at once."""

import numpy as np
from scipy.linalg import lstsq
from sklearn.linear_model import LinearRegression, Ridge

from ...linear import SOLVED, UNSOLVED, column_centers
from ...linear.linear_kernels import ridge_tile
from .base import BatchedSolver

_MAX_PRODUCTS = 20_000_000  # of pairs of columns that are kept for all rows

# A coalition is computed from the one before it if at most this many rows differ.
_NEARBY = 4


class CompiledForm:
    """Coefficients in closed form, by compiled loops."""

    def __init__(self, solver):
        self.X = solver.X
        self.y = solver.y - solver.shift
        self.weights = solver.weights
        self.penalty = solver.penalty
        self.products = None

    def prepare(self):
        """Precompute, once, the products that all coalitions use."""
        if self.products is not None:
            return
        rows, columns = np.tril_indices(self.X.shape[1])
        if len(self.X) * len(rows) > _MAX_PRODUCTS:
            rows = rows[:0]
            columns = columns[:0]
        weighted = self.X * self.weights[:, None]
        self.right = weighted * self.y[:, None]
        self.products = weighted[:, rows] * self.X[:, columns]

    def coefs(self, masks, widest):
        """Coefficients (m, p), and a mask of those that were computed.

        Those of a matrix whose condition number may be above ``widest`` are not.
        """
        coefs = np.empty((len(masks), self.X.shape[1]))
        is_fresh = np.ones(len(masks), dtype=bool)
        n_differing = np.count_nonzero(masks[1:] != masks[:-1], axis=1)
        is_fresh[1:] = n_differing > _NEARBY
        matrix_numbers = np.full(len(masks), -1)
        if self.products.shape[1]:
            matrix_numbers[is_fresh] = np.arange(np.count_nonzero(is_fresh))
        fresh = masks[is_fresh].astype(np.float64)
        solved = ridge_tile(
            X=self.X,
            y=self.y,
            w=self.weights,
            penalty=self.penalty,
            masks=np.ascontiguousarray(masks),
            nearby=_NEARBY,
            widest=widest,
            grams=fresh @ self.products,
            rights=fresh @ self.right,
            numbers=matrix_numbers,
            coefs=coefs,
        )
        return coefs, solved


class LinearSolver(BatchedSolver):
    """Minimises ``sum of squares + alpha |coef|^2`` in closed form, intercept free."""

    engine_class = CompiledForm

    def __init__(self, training, X, X_val):
        super().__init__(training, X, X_val)
        self.fit_intercept = training.estimator.fit_intercept
        # Targets and columns are centred; the intercept compensates. Not by means, from
        # which a single large number would keep all others away.
        center = np.zeros(X.shape[1])
        self.shift = 0.0
        if self.fit_intercept:
            center = column_centers(X)
            self.shift = np.median(self.y)
        self.X = X - center
        self.X_val = X_val - center
        alpha = getattr(training.estimator, "alpha", 0.0)  # LinearRegression has none
        self.penalty = np.full(X.shape[1], float(alpha))
        if self.fit_intercept:
            self.X = np.c_[self.X, np.ones(len(X))]
            self.X_val = np.c_[self.X_val, np.ones(len(X_val))]
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
        status = np.where(solved, SOLVED, UNSOLVED)
        return self.scores.of_targets(predictions, sizes), status


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
        of_engine, is_solved = self.engine.coefs(masks[solved], widest)
        coefs[solved] = of_engine
        solved[solved] = is_solved
        for i in np.flatnonzero(~solved):
            coefs[i] = self._least_norm(masks[i])
        predictions = coefs @ self.X_val.T + self.shift
        return self.scores.of_targets(predictions, sizes), np.full(len(masks), SOLVED)

    def _least_norm(self, mask):
        """Coefficients (p,) of one coalition, as scikit-learn computes them.

        It centres by weighted means, scales by square roots of weights, calls LAPACK.
        """
        X = self.X[mask]
        y = self.y[mask] - self.shift
        w = self.weights[mask]
        root = np.sqrt(w)
        if not self.fit_intercept:
            return self._lstsq(X * root[:, None], y * root)

        X = X[:, :-1]
        mean = w @ X / w.sum()
        y_mean = w @ y / w.sum()
        centered = X - mean
        rounding = 4 * len(X) * np.finfo(np.float64).eps
        are_equal = np.abs(centered).max() <= rounding * np.abs(X).max()
        if are_equal:  # or there is one row
            return np.r_[np.zeros(X.shape[1]), y_mean]
        coef = self._lstsq(centered * root[:, None], (y - y_mean) * root)
        return np.r_[coef, y_mean - mean @ coef]

    def _lstsq(self, X, y):
        """Coefficients (p,) of least norm.

        The estimator drops a column of a small unit beside one of a large unit, as if
        it depended on it. If columns are independent in units of their own, the
        coefficients are those of all of them.
        """
        tol = self.training.estimator.tol
        coef, _, rank, _ = lstsq(X, y, cond=tol, check_finite=False)
        n_rows, n_columns = X.shape
        sizes = np.sqrt(np.square(X).sum(axis=0))
        if rank == n_columns or n_rows < n_columns or not sizes.all():
            return coef
        scaled, _, rank, _ = lstsq(X / sizes, y, cond=tol, check_finite=False)
        return scaled / sizes if rank == n_columns else coef
