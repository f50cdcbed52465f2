"""Logistic regression with an L2 penalty on many coalitions at once."""

from functools import partial

import numpy as np
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from ...linear import ONE_CLASS, SOLVED, UNSOLVED, column_centers, column_scales
from ...linear.dual_kernels import dual_tile
from ...linear.logistic_kernels import solve_tile
from .base import BatchedSolver, complete_probabilities, one_class

# Of the Newton decrement before the last step, in standard errors of the fit.
TOLERANCE = 1e-7
MAX_STEPS = 200

# Of the gradient in the dual, relative to the largest possible one of the losses.
_DUAL_TOLERANCE = 1e-9

# Largest squared norm of a row, by its penalty, up to which the dual keeps its digits.
_MAX_DUAL_NORM = 1e6

# A coalition starts from the one before it if at most this many rows differ.
_NEARBY = 4
_MAX_COEFFICIENTS = 200  # of three and more classes, in total


class CompiledNewton:
    """Newton's method by compiled loops."""

    def __init__(self, solver):
        self.solver = solver

    def solve(self, masks, counts):
        """Coefficients (m, K, p) of coalitions, and their status (m,).

        See `LogisticSolver`.
        """
        solver = self.solver
        coefs = np.zeros((len(masks), solver.n_vectors, solver.X.shape[1]))
        status = np.zeros(len(masks), dtype=np.int64)
        solve_tile(
            X=solver.X,
            y=solver.y,
            w=solver.weights,
            scale=solver.scale,
            penalty=solver.penalty,
            masks=np.ascontiguousarray(masks),
            n_classes=solver.n_classes,
            start=solver.start,
            nearby=_NEARBY,
            tolerance=TOLERANCE,
            max_steps=MAX_STEPS,
            coefs=coefs,
            status=status,
        )
        return coefs, status


class LogisticSolver(BatchedSolver):
    """Minimises ``C * sum of log-losses + |coef|^2 / 2``; the intercept is free.

    `tol`, `max_iter` and `solver` of the estimator are ignored. Columns are centred if
    the intercept makes up for it, and scaled together with their penalty, which changes
    no decision: Newton's method then keeps its digits, whatever their units. An engine
    gives coefficients of shape (m, K, p): of two classes K = 1, of more a row each,
    which is 0 for the classes that a coalition lacks, and for the first of two that it
    has.
    """

    name = "logistic"
    estimator = LogisticRegression
    methods = ("predict", "predict_proba", "decision_function")
    engine_class = CompiledNewton

    @staticmethod
    def allows(parameters):
        return (
            0 < parameters["C"] < np.inf
            and parameters["penalty"] in ("deprecated", "l2")
            and not parameters["l1_ratio"]
            and parameters["class_weight"] is None
            and not parameters["dual"]
            and not parameters["warm_start"]
            and (parameters["solver"] != "liblinear" or not parameters["fit_intercept"])
        )

    def __init__(self, training, X, X_val):
        super().__init__(training, X, X_val)
        parameters = training.estimator.get_params()
        self.fit_intercept = parameters["fit_intercept"]
        self.C = parameters["C"]
        penalty = 1.0 / self.C
        if self.fit_intercept:
            center = column_centers(X)
            X = X - center
            X_val = X_val - center

        # Losses have curvatures of at most a quarter.
        self.unit = column_scales(X, 4 * penalty / len(X))
        self.X = X / self.unit
        self.X_val = X_val / self.unit
        self.penalty = penalty / self.unit**2
        if self.fit_intercept:
            self.unit = np.r_[self.unit, 1.0]
            self.X = np.c_[self.X, np.ones(len(X))]
            self.X_val = np.c_[self.X_val, np.ones(len(X_val))]
            self.penalty = np.r_[self.penalty, 0.0]
        self.scale = (self.weights @ np.abs(self.X)) / len(X)
        self.n_vectors = self.n_classes if self.n_classes > 2 else 1

        # Set by `prepare`: the model of all rows, from which large coalitions start,
        # and the number of rows up to which a coalition is solved in the dual.
        self.start = np.zeros(len(self.penalty))
        self._max_dual_rows = 0
        self._is_prepared = False

        # Largest squared norm of a row times its weight, in units in which the penalty
        # is 1.
        squares = np.square(self.X * self.unit) @ (self.penalty > 0)
        self._largest_norm = self.C * (self.weights * squares).max()

    def fits(self):
        if self.n_classes == 2:
            return True
        is_small = self.n_classes * self.X.shape[1] <= _MAX_COEFFICIENTS
        is_liblinear = self.training.estimator.solver == "liblinear"  # two classes only
        has_decisions = self.scores.response_method() == "decision_function"
        return is_small and not is_liblinear and not has_decisions

    def prepare(self):
        if self._is_prepared or self.n_classes != 2:
            return
        all_rows = self.weights[None] > 0
        coefs, _ = self.engine.solve(all_rows, self.counts(all_rows))
        n_penalised = np.count_nonzero(self.penalty)
        is_compiled = type(self.engine) is CompiledNewton
        if n_penalised >= 4 and is_compiled and self.training.sample_weight is None:
            self._dual_X = self.X * self.unit
            if self._largest_norm <= _MAX_DUAL_NORM:
                self._max_dual_rows = n_penalised // 2
        self.start = coefs[0, 0]
        self._is_prepared = True

    def notice(self, sizes):
        """See `BatchedSolver`: rows as few as columns are separable.

        Their coefficients are limited by the penalty alone, whose digits are lost if it
        nearly vanishes beside the rows.
        """
        n_penalised = np.count_nonzero(self.penalty)
        are_few = (sizes > 1) & (sizes <= n_penalised)
        if self._largest_norm <= _MAX_DUAL_NORM or not are_few.any():
            return None
        what = "squared norms"
        cure = "Scale the columns, for example by StandardScaler."
        if self.training.sample_weight is not None:
            what = "squared norms times weights"
            cure = "Scale the columns, for example by StandardScaler, or the weights."
        return (
            f"Models of as few rows as columns ({n_penalised}) have few right digits: "
            f"C={self.C:g} hardly penalises coefficients of columns of this size, of "
            f"which rows have {what} of up to {self._largest_norm / self.C:.0e}. {cure}"
        )

    def tile_scores(self, masks, sizes):
        counts = self.counts(masks)
        coefs = np.zeros((len(masks), self.n_vectors, self.X.shape[1]))
        status = np.full(len(masks), ONE_CLASS)

        # Few rows are solved in the dual, those of one class are left as they are.
        is_few = sizes <= self._max_dual_rows
        in_dual = is_few & (counts > 0).all(axis=1)
        if in_dual.any():
            coefs[in_dual, 0], status[in_dual] = self._solve_dual(masks[in_dual])
        if not is_few.all():
            solved = self.engine.solve(masks[~is_few], counts[~is_few])
            coefs[~is_few], status[~is_few] = solved
        return self.score(coefs, counts, sizes), status

    def _solve_dual(self, masks):
        """Coefficients (m, p) of coalitions of two classes, and their status.

        The dual has one penalty for all coefficients: columns are not scaled.
        """
        coefs, solved = dual_tile(
            X=self._dual_X,
            t=(self.y == 1) * 1.0,
            masks=masks,
            c=np.full(len(masks), self.C),
            free=self.fit_intercept,
            rtol=_DUAL_TOLERANCE,
            max_steps=MAX_STEPS,
        )
        return coefs * self.unit, np.where(solved, SOLVED, UNSOLVED)

    def score(self, coefs, counts, sizes):
        """Scores (m,) of models of coefficients (m, K, p).

        ``counts`` (m, C) are the numbers of rows of each class in their coalitions,
        ``sizes`` (m,) those of all rows.
        """
        m, k, p = coefs.shape
        n_points = len(self.X_val)
        margins = (coefs.reshape(m * k, p) @ self.X_val.T).reshape(m, k, n_points)
        if self.n_classes > 2:
            is_present = (counts > 0)[:, None, :]
            votes = np.where(is_present, margins.transpose(0, 2, 1), -np.inf)
            return self.score_votes(votes, counts, sizes, partial(softmax, axis=2))

        margins = margins[:, 0]
        margins[counts[:, 1] == 0] = -np.inf
        margins[counts[:, 0] == 0] = np.inf
        method = self.scores.response_method()
        if method == "predict":
            answers = margins > 0
        elif method == "decision_function":
            margins[one_class(counts)] = 0.0
            answers = margins
        else:
            probabilities = np.stack([expit(-margins), expit(margins)], axis=2)
            answers = complete_probabilities(probabilities, counts)
        return self.scores.of_classes(answers, sizes)
