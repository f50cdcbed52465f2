"""Objectives of fitted estimators in arrays."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skvalue.linear import Hessian, linear_model, row_products, supports

from .models import MODELS, centered, decisions, fit, problem

each_model = pytest.mark.parametrize("name", MODELS)
some_models = pytest.mark.parametrize(
    "name", ["binary", "multiclass", "ridge", "poisson"]
)


@each_model
def test_decisions_are_those_of_scikit_learn(name):
    estimator, X, y, X_val, _ = problem(name)
    fitted, model = fit(estimator, X, y)
    z = centered(model.design(X_val) @ model.theta)
    np.testing.assert_allclose(z, decisions(fitted, X_val), atol=1e-7)


@each_model
def test_the_gradient_vanishes_at_the_coefficients_of_scikit_learn(name):
    estimator, X, y, _, _ = problem(name)
    _, model = fit(estimator, X, y)
    penalty = model.penalty + model.weights.sum() * model.row_penalty
    gradient = model.X.T @ model.gradient() + penalty[:, None] * model.theta
    assert np.abs(gradient).max() < 1e-5


@each_model
def test_derivatives_by_weights_equal_central_differences(name):
    estimator, X, y, X_val, _ = problem(name, n=60)
    rng = np.random.default_rng(1)
    weights = np.random.default_rng(2).uniform(0.5, 1.5, 60)

    def fitted(weights):
        return clone(estimator).fit(X, y, sample_weight=weights)

    model = linear_model(fitted(weights), X, y, weights)
    points = model.design(X_val)
    slopes = rng.normal(size=(len(X_val), model.theta.shape[1]))
    slopes -= slopes.mean(axis=1, keepdims=True) * (slopes.shape[1] > 1)
    direction = Hessian(model).solve((points.T @ slopes).T[None])
    rows = [0, 7, 31]
    derivatives = -row_products(model, direction)[0][rows] / weights[rows]

    step = 1e-4
    expected = []
    for row in rows:
        change = step * (np.arange(60) == row)
        difference = decisions(fitted(weights + change), X_val)
        difference = difference - decisions(fitted(weights - change), X_val)
        expected.append((slopes * difference).sum() / (2 * step))
    np.testing.assert_allclose(derivatives, expected, atol=1e-6)


def sparse_problem(name):
    """A problem with many zeros."""
    estimator, X, y, X_val, _ = problem(name, n=50)
    X = np.where(np.abs(X) > 0.5, X, 0)
    X_val = np.where(np.abs(X_val) > 0.5, X_val, 0)
    return estimator, X, y, X_val


@some_models
def test_sparse_rows_give_what_dense_rows_give(name):
    estimator, X, y, _ = sparse_problem(name)
    fitted, dense = fit(estimator, X, y)
    rows = sparse.csr_array(X)
    model = linear_model(fitted, rows, y)
    assert sparse.issparse(model.X)
    assert sparse.issparse(model.design(rows[:3]))
    direction = np.random.default_rng(0).normal(size=(2, *dense.theta.T.shape))
    direction -= direction.mean(axis=1, keepdims=True) * (direction.shape[1] > 1)
    np.testing.assert_allclose(
        Hessian(model).solve(direction), Hessian(dense).solve(direction)
    )
    np.testing.assert_allclose(
        row_products(model, direction), row_products(dense, direction)
    )


@some_models
def test_rows_are_those_that_the_last_step_of_a_pipeline_gets(name):
    estimator, X, y, X_val = sparse_problem(name)
    transformer = PolynomialFeatures(2, include_bias=False)
    pipeline, model = fit(make_pipeline(transformer, clone(estimator)), X, y)
    z = centered(model.design(X_val) @ model.theta)
    np.testing.assert_allclose(z, decisions(pipeline, X_val), atol=1e-9)
    assert supports(pipeline)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Lasso(), "estimator must be one of LogisticRegression"),
        (
            LogisticRegression(l1_ratio=0.5, solver="saga"),
            "estimator must have an L2 penalty",
        ),
        (Ridge(positive=True), "positive=False"),
        (KernelRidge(kernel="precomputed"), "kernel must not be 'precomputed'"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimators_without_derivatives_are_refused(estimator, message):
    X = np.eye(6)
    y = np.arange(6) % 2
    with pytest.raises(ValueError, match=message):
        linear_model(estimator.fit(X, y), X, y)
