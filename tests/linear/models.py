"""Fitted linear models of scikit-learn, and their decisions."""

import numpy as np
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)

from skvalue.linear import linear_model

from ..problems import noisy_line

EXACT = {"tol": 1e-12, "max_iter": 10_000, "solver": "newton-cholesky"}
LIBLINEAR = EXACT | {"solver": "liblinear"}

# Name -> (estimator, number of classes; 0 is a regression).
MODELS = {
    "binary": (LogisticRegression(C=0.7, **EXACT), 2),
    "weighted-classes": (LogisticRegression(class_weight={0: 2.0, 1: 0.5}, **EXACT), 2),
    "no-penalty": (LogisticRegression(C=np.inf, **EXACT), 2),
    "liblinear": (LogisticRegression(intercept_scaling=2.0, **LIBLINEAR), 2),
    "multiclass": (LogisticRegression(**EXACT), 4),
    "no-intercept": (LogisticRegression(fit_intercept=False, **EXACT), 3),
    "ridge": (Ridge(alpha=2.0), 0),
    "least-squares": (LinearRegression(), 0),
    "ridge-classifier": (RidgeClassifier(alpha=0.5), 2),
    "ridge-classifier-3": (RidgeClassifier(class_weight={0: 1, 1: 2, 2: 0.5}), 3),
    "poisson": (PoissonRegressor(alpha=0.1, **EXACT), 0),
    "gamma": (GammaRegressor(alpha=0.1, **EXACT), 0),
    "kernel-ridge": (KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3), 0),
    "kernel-ridge-polynomial": (KernelRidge(alpha=2.0, kernel="poly", degree=2), 0),
}


def has_squared_loss(name):
    """Whether Newton's first step is the solution."""
    return "ridge" in name or name == "least-squares"


def problem(name, n=200, n_points=40, d=4):
    """Estimator, rows, labels or targets, and validation points of a model."""
    estimator, n_classes = MODELS[name]
    if "kernel" in name:
        n = min(n, 80)
    X, y, X_val, y_val = noisy_line(0, n, n_points, d, n_classes, coef=(1.0, -0.5))
    if name in ("poisson", "gamma"):
        y = np.exp(0.3 * y)
        y_val = np.exp(0.3 * y_val)
    return estimator, X, y, X_val, y_val


def fit(estimator, X, y):
    """A fitted estimator, and its objective."""
    fitted = clone(estimator).fit(X, y)
    return fitted, linear_model(fitted, X, y)


def centered(z):
    """Decisions (..., K), of which several count up to a constant."""
    return z - z.mean(axis=-1, keepdims=True) if z.shape[-1] > 1 else z


def decisions(estimator, X):
    """Decisions (n, K) by the methods of scikit-learn."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    if hasattr(last, "decision_function"):
        z = estimator.decision_function(X)
    else:
        z = estimator.predict(X)
        if isinstance(last, (PoissonRegressor, GammaRegressor)):
            z = np.log(z)
    return centered(z.reshape(len(z), -1))
