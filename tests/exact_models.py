"""Linear models in 60 digits, by Newton's method, for tests of rounding errors."""

import numpy as np
import pytest

mpmath = pytest.importorskip("mpmath")
DIGITS = 60
_STEPS = 60


def _matrix(X, fit_intercept):
    rows = [[mpmath.mpf(float(x)) for x in row] for row in X]
    if fit_intercept:
        rows = [[*row, mpmath.mpf(1)] for row in rows]
    return rows


def _dot(a, b):
    return mpmath.fsum(x * y for x, y in zip(a, b))


class ExactLogistic:
    """Minimises ``C * sum of log-losses + |coef|^2 / 2``; the intercept is free.

    Newton's method starts from an optimum in float64 of centred and scaled columns.
    """

    def __init__(self, X, y, n_classes, C=1.0, fit_intercept=True):
        self.fit_intercept = fit_intercept
        self.n_classes = n_classes
        self.k = 1 if n_classes == 2 else n_classes
        with mpmath.workdps(DIGITS):
            rows = _matrix(X, fit_intercept)
            self.center = [mpmath.mpf(0)] * len(rows[0])
            if fit_intercept:
                n = len(rows)
                columns = list(zip(*rows))[:-1]
                self.center[:-1] = [mpmath.fsum(column) / n for column in columns]
            rows = [self._centered(row) for row in rows]
            self.theta = self._newton(rows, y, mpmath.mpf(C))

    def _centered(self, row):
        return [x - c for x, c in zip(row, self.center)]

    def _probabilities(self, theta, row):
        p = len(row)
        z = [_dot(row, theta[a * p : (a + 1) * p]) for a in range(self.k)]
        if self.k == 1:
            z = [mpmath.mpf(0), *z]
        top = max(z)
        powers = [mpmath.exp(x - top) for x in z]
        total = mpmath.fsum(powers)
        return [power / total for power in powers]

    def _objective(self, theta, rows, y, C):
        losses = [
            -mpmath.log(self._probabilities(theta, row)[label])
            for row, label in zip(rows, y)
        ]
        p = len(rows[0])
        shrunk = [
            t
            for i, t in enumerate(theta)
            if not (self.fit_intercept and i % p == p - 1)
        ]
        return C * mpmath.fsum(losses) + _dot(shrunk, shrunk) / 2

    def _newton(self, rows, y, C):
        p = len(rows[0])
        size = self.k * p
        theta = [mpmath.mpf(0)] * size
        value = self._objective(theta, rows, y, C)
        first = 1 if self.k == 1 else 0
        for _ in range(_STEPS):
            gradient = [mpmath.mpf(0)] * size
            hessian = mpmath.zeros(size)
            for i in range(size):
                if not (self.fit_intercept and i % p == p - 1):
                    gradient[i] += theta[i]
                    hessian[i, i] += 1
            for row, label in zip(rows, y):
                q = self._probabilities(theta, row)[first:]
                for a in range(self.k):
                    residual = C * (q[a] - (label == a + first))
                    for i in range(p):
                        gradient[a * p + i] += residual * row[i]
                    for b in range(self.k):
                        curvature = C * q[a] * ((a == b) - q[b])
                        for i in range(p):
                            for j in range(p):
                                hessian[a * p + i, b * p + j] += (
                                    curvature * row[i] * row[j]
                                )
            if self.k > 1 and self.fit_intercept:  # shifts of all intercepts
                for a in range(self.k):
                    for b in range(self.k):
                        hessian[a * p + p - 1, b * p + p - 1] += 1
            step = mpmath.lu_solve(hessian, mpmath.matrix(gradient))
            decrement = mpmath.fsum(gradient[i] * step[i] for i in range(size))
            factor = mpmath.mpf(1)
            while True:
                trial = [t - factor * step[i] for i, t in enumerate(theta)]
                ahead = self._objective(trial, rows, y, C)
                if ahead <= value + mpmath.mpf(10) ** (5 - DIGITS) * abs(value):
                    break
                factor /= 2
            theta = trial
            value = ahead
            if decrement < mpmath.mpf(10) ** -40:
                return theta
        raise AssertionError("no optimum")

    def losses(self, X, y):
        """Log-losses (n,) at other rows, at most that of a probability of 2e-16."""
        with mpmath.workdps(DIGITS):
            losses = [
                -mpmath.log(self._probabilities(self.theta, self._centered(row))[label])
                for row, label in zip(_matrix(X, self.fit_intercept), y)
            ]
            smallest = -np.log(np.finfo(float).eps)
            return np.array([min(float(loss), smallest) for loss in losses])


class ExactRidge:
    """Minimises ``sum of squares + alpha |coef|^2``; the intercept is free."""

    def __init__(self, X, y, alpha=0.0, fit_intercept=True):
        self.fit_intercept = fit_intercept
        with mpmath.workdps(DIGITS):
            rows = mpmath.matrix(_matrix(X, fit_intercept))
            gram = rows.T * rows
            for i in range(X.shape[1]):
                gram[i, i] += alpha
            right = rows.T * mpmath.matrix([mpmath.mpf(float(t)) for t in y])
            self.theta = mpmath.lu_solve(gram, right)

    def losses(self, X, y):
        """Squared errors (n,) at other rows."""
        with mpmath.workdps(DIGITS):
            predicted = mpmath.matrix(_matrix(X, self.fit_intercept)) * self.theta
            return np.array(
                [
                    float((predicted[i] - mpmath.mpf(float(t))) ** 2)
                    for i, t in enumerate(y)
                ]
            )
