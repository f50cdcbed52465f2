"""Influence where columns have any offset and unit."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)

from skvalue import InfluenceValuer

from ..cases import one_of_each

# Estimator -> number of classes; those without a penalty have the same values in any
# unit.
PENALISED = [
    (Ridge(), 0),
    (LogisticRegression(), 2),
    (LogisticRegression(), 3),
    (RidgeClassifier(), 2),
    (RidgeClassifier(), 3),
    (PoissonRegressor(alpha=0.1), 0),
]
FREE = [
    (LinearRegression(), 0),
    (LogisticRegression(C=np.inf), 2),
    (LogisticRegression(C=np.inf), 3),
]
UNITS = [(1e-6, 1.0, 1e6), (1e6, 1e6, 1e6), (1e-6, 1e-6, 1e-6)]
RULES = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def problem_of(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    target = X[:, 0] + 0.8 * rng.normal(size=90)
    if n_classes:
        y = np.digitize(target, [0.0] if n_classes == 2 else [-0.5, 0.5])
    else:
        y = np.exp(0.3 * target)
    return X, y


def values(estimator, X, y, order, has_points):
    points = {"X_val": X[60:], "y_val": y[60:]} if has_points else {}
    valuer = InfluenceValuer(clone(estimator), order=order)
    return valuer.fit(X[:60], y[:60], **points).values_


@RULES
@pytest.mark.parametrize(
    ("model", "offset", "order", "has_points"),
    one_of_each(PENALISED + FREE, [1e4, 1e6, 1e8], [1, 2], [True, False]),
)
def test_values_do_not_depend_on_the_offset(model, offset, order, has_points):
    estimator, n_classes = model
    X, y = problem_of(n_classes)
    moved = X + offset
    rounded = moved - offset  # what is left of the digits
    expected = values(estimator, rounded, y, order, has_points)
    found = values(estimator, moved, y, order, has_points)
    atol = 1e-8 * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=atol)


@RULES
@pytest.mark.parametrize(
    ("model", "units", "offset", "order", "has_points"),
    one_of_each(FREE, UNITS, [0.0, 1e4], [1, 2], [True, False]),
)
def test_values_without_a_penalty_do_not_depend_on_the_unit(
    model, units, offset, order, has_points
):
    estimator, n_classes = model
    X, y = problem_of(n_classes)
    expected = values(estimator, X, y, order, has_points)
    found = values(estimator, (X + offset) * units, y, order, has_points)
    atol = 1e-8 * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=atol)
