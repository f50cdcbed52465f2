"""Logistic regression with an L2 penalty on many coalitions at once."""

from functools import partial
from itertools import combinations

import numpy as np
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from .base import BatchedSolver, complete_probabilities, one_class
from .status import ONE_CLASS, TWO_CLASSES

TOLERANCE = 1e-7  # of the Newton decrement before the last step, in standard errors of the fit
MAX_STEPS = 200
_NEARBY = 4  # most differing rows for which a coalition starts from the one before
_MAX_COEFFICIENTS = 200
_DUAL_TOLERANCE = 1e-9  # of the gradient, relative to the largest possible gradient of the losses
_MAX_PRODUCTS = 2**25  # most products of rows with rows and points that are kept for the dual


class CompiledNewton:
    """Newton's method by compiled loops."""

    def __init__(self, solver):
        self.X, self.y, self.n_classes = solver.X, solver.y, solver.n_classes
        self.terms = solver.weights, solver.scale, solver.penalty

    def solve(self, masks, positive, start):
        """Coefficients (m, p) of coalitions of two classes, and the status of all."""
        from .logistic_kernels import solve_tile

        coefs = np.zeros((len(masks), self.X.shape[1]))
        status = np.zeros(len(masks), dtype=np.int64)
        solve_tile(
            self.X, positive.astype(np.float64), *self.terms, np.ascontiguousarray(masks), start,
            _NEARBY, TOLERANCE, MAX_STEPS, coefs, status,
        )  # fmt: skip
        return coefs, status

    def solve_many(self, masks, counts):
        """Coefficients (m, C, p) of coalitions of at least three classes, and the status of all."""
        from .softmax_kernels import solve_tile

        coefs = np.zeros((len(masks), self.n_classes, self.X.shape[1]))
        status = np.zeros(len(masks), dtype=np.int64)
        solve_tile(
            self.X, self.y, *self.terms, np.ascontiguousarray(masks), self.n_classes, _NEARBY,
            TOLERANCE, MAX_STEPS, coefs, status,
        )  # fmt: skip
        return coefs, status


class LogisticSolver(BatchedSolver):
    """Minimises ``C * sum of log-losses + |coef|^2 / 2`` to convergence; the intercept is free.

    `tol`, `max_iter` and `solver` of the estimator are ignored.
    """

    name = "logistic"
    estimator = LogisticRegression
    methods = ("predict", "predict_proba", "decision_function")
    engine_class = CompiledNewton
    has_dual = True  # whether coalitions of few rows are solved in the dual, on the CPU

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
            self.X, self.X_val = np.c_[X, np.ones(len(X))], np.c_[X_val, np.ones(len(X_val))]
            self.penalty = np.r_[self.penalty, 0.0]
        self.scale = (self.weights @ np.abs(self.X)) / len(X)
        self._start = self._dual = None
        self.engine = self.engine_class(self)

    def fits(self):
        if self.n_classes == 2:
            return True
        small = self.n_classes * self.X.shape[1] <= _MAX_COEFFICIENTS
        liblinear = self.training.estimator.solver == "liblinear"  # two classes only
        return small and not liblinear and self.scores.response_method() != "decision_function"

    def prepare(self):
        if self.n_classes == 2 and self._start is None:  # the fit on all rows starts large ones
            whole = np.ones((1, len(self.X)), dtype=bool)
            zero = np.zeros(self.X.shape[1])
            self._start = self.engine.solve(whole, self.y == 1, zero)[0][0]
            free = bool(self.penalty[-1] == 0)
            d = len(self.penalty) - free
            n, n_val = len(self.X), len(self.X_val)
            if (
                self.has_dual and self.training.sample_weight is None
                and d >= 4 and n * (n + n_val) <= _MAX_PRODUCTS
            ):  # fmt: skip
                rows = self.X[:, :d]
                self._dual = rows @ rows.T, rows @ self.X_val[:, :d].T, free

    def tile_scores(self, masks, sizes):
        counts = self.counts(masks)
        if self.n_classes > 2:
            margins, status = self._many(masks, counts)
            return self.score_votes(margins, counts, sizes, partial(softmax, axis=2)), status
        margins, status = self._two(masks, counts, sizes)
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
        return self.scores.of_classes(answers, sizes), status

    @property
    def start(self):
        """The coefficients of all rows, of two classes."""
        return self._start

    def _two(self, masks, counts, sizes):
        """Margins (m, V) of models of two classes; coalitions of few rows use the dual."""
        if self._dual is None:
            coefs, status = self.engine.solve(masks, self.y == 1, self._start)
            return coefs @ self.X_val.T, status
        margins = np.zeros((len(masks), len(self.X_val)))
        status = np.full(len(masks), ONE_CLASS)
        two = (counts > 0).all(axis=1)
        few = sizes <= (len(self.penalty) - self._dual[2]) // 2  # else the dual is slower
        if (two & few).any():
            margins[two & few], status[two & few] = self._dual_margins(masks[two & few])
        if not few.all():
            coefs, status[~few] = self.engine.solve(masks[~few], self.y == 1, self._start)
            margins[~few] = coefs @ self.X_val.T
        return margins, status

    def _dual_margins(self, masks):
        """Margins (m, V) of models of fewer rows than features, and their status."""
        from .dual_kernels import dual_tile

        gram, gram_val, free = self._dual
        margins = np.empty((len(masks), len(self.X_val)))
        status = np.empty(len(masks), dtype=np.int64)
        dual_tile(
            gram, gram_val, (self.y == 1) * 1.0, masks, 1 / self.penalty[0], free,
            _DUAL_TOLERANCE, MAX_STEPS, margins, status,
        )  # fmt: skip
        return margins, status

    def _many(self, masks, counts):
        """Margins (m, V, C), minus infinity for a class that a coalition lacks."""
        coefs, status = self.engine.solve_many(masks, counts)
        # scikit-learn fits two classes with one vector, of half the penalty of the softmax.
        for pair in combinations(range(self.n_classes), 2):
            both = np.flatnonzero((status == TWO_CLASSES) & (counts[:, pair] > 0).all(axis=1))
            if len(both):
                start = np.zeros(self.X.shape[1])
                part = self.engine.solve(masks[both], self.y == pair[1], start)
                coefs[both, pair[1]], status[both] = part
        margins = (coefs @ self.X_val.T).transpose(0, 2, 1)
        return np.where((counts > 0)[:, None, :], margins, -np.inf), status
