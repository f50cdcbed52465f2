"""Logistic regression with an L2 penalty on many coalitions at once."""

from functools import partial

import numpy as np
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from ...linear import ONE_CLASS, SOLVED, UNSOLVED
from .base import BatchedSolver, complete_probabilities, one_class

TOLERANCE = (
    1e-7  # of the Newton decrement before the last step, in standard errors of the fit
)
MAX_STEPS = 200
_NEARBY = 4  # most differing rows for which a coalition starts from the one before
_MAX_COEFFICIENTS = 200
_DUAL_TOLERANCE = (
    1e-9  # of the gradient, relative to the largest possible gradient of the losses
)


class CompiledNewton:
    """Newton's method by compiled loops."""

    def __init__(self, solver):
        self.solver = solver

    def solve(self, masks, counts):
        """Coefficients (m, K, p) of coalitions, and their status; see
        `LogisticSolver`."""
        from ...linear.logistic_kernels import solve_tile

        solver = self.solver
        coefs = np.zeros((len(masks), solver.n_vectors, solver.X.shape[1]))
        status = np.zeros(len(masks), dtype=np.int64)
        solve_tile(
            solver.X, solver.y, solver.weights, solver.scale, solver.penalty,
            np.ascontiguousarray(masks), solver.n_classes, solver.start, _NEARBY, TOLERANCE,
            MAX_STEPS, coefs, status,
        )  # fmt: skip
        return coefs, status


class LogisticSolver(BatchedSolver):
    """Minimises ``C * sum of log-losses + |coef|^2 / 2`` to convergence; the intercept
    is free.

    `tol`, `max_iter` and `solver` of the estimator are ignored. An engine gives
    coefficients of shape (m, K, p): of two classes K = 1, of more a row each, which is
    0 for the classes that a coalition lacks, and for the first of two that it has.
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
        self.penalty = np.full(X.shape[1], 1.0 / parameters["C"])
        if parameters["fit_intercept"]:
            self.X, self.X_val = (
                np.c_[X, np.ones(len(X))],
                np.c_[X_val, np.ones(len(X_val))],
            )
            self.penalty = np.r_[self.penalty, 0.0]
        self.scale = (self.weights @ np.abs(self.X)) / len(X)
        self.n_vectors = self.n_classes if self.n_classes > 2 else 1
        self.start, self._few, self._is_prepared = np.zeros(len(self.penalty)), 0, False

    def fits(self):
        if self.n_classes == 2:
            return True
        small = self.n_classes * self.X.shape[1] <= _MAX_COEFFICIENTS
        liblinear = self.training.estimator.solver == "liblinear"  # two classes only
        return (
            small
            and not liblinear
            and self.scores.response_method() != "decision_function"
        )

    def prepare(self):
        if (
            not self._is_prepared and self.n_classes == 2
        ):  # the fit on all rows starts large ones
            whole = self.weights[None] > 0
            start = self.engine.solve(whole, self.counts(whole))[0][0, 0]
            d, compiled = (
                np.count_nonzero(self.penalty),
                type(self.engine) is CompiledNewton,
            )
            if d >= 4 and compiled and self.training.sample_weight is None:
                self._few = (
                    d // 2
                )  # most rows of a coalition that is solved in the dual
            self.start = start
        self._is_prepared = True

    def tile_scores(self, masks, sizes):
        counts = self.counts(masks)
        coefs = np.zeros((len(masks), self.n_vectors, self.X.shape[1]))
        status = np.full(len(masks), ONE_CLASS)
        few = sizes <= self._few
        two = few & (counts > 0).all(axis=1)
        if two.any():
            from ...linear.dual_kernels import dual_tile

            coefs[two, 0], solved = dual_tile(
                self.X, (self.y == 1) * 1.0, masks[two], np.full(two.sum(), 1 / self.penalty[0]),
                self.penalty[-1] == 0, _DUAL_TOLERANCE, MAX_STEPS,
            )  # fmt: skip
            status[two] = np.where(solved, SOLVED, UNSOLVED)
        if not few.all():
            coefs[~few], status[~few] = self.engine.solve(masks[~few], counts[~few])
        return self.score(coefs, counts, sizes), status

    def score(self, coefs, counts, sizes):
        """Scores of models of coefficients (m, K, p), of coalitions of ``counts`` of
        each class."""
        (m, k, p), V = coefs.shape, len(self.X_val)
        margins = (coefs.reshape(m * k, p) @ self.X_val.T).reshape(m, k, V)
        if self.n_classes > 2:
            margins = np.where(
                (counts > 0)[:, None, :], margins.transpose(0, 2, 1), -np.inf
            )
            return self.score_votes(margins, counts, sizes, partial(softmax, axis=2))
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
