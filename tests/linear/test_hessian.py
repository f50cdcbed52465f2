"""Linear systems with the Hessian of a linear model."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LinearRegression

from skvalue.linear import Hessian, linear_model

from .models import fit, problem


@pytest.mark.parametrize("name", ["binary", "multiclass", "ridge", "gamma"])
def test_conjugate_gradients_solve_where_the_hessian_does_not_fit_into_memory(name):
    estimator, X, y, _, _ = problem(name, n=80)
    _, model = fit(estimator, X, y)
    vectors = np.array([model.X[:3].T @ model.gradient(slice(3))]).swapaxes(1, 2)
    exact = Hessian(model).solve(vectors)
    with config_context(working_memory=0):
        hessian = Hessian(model)
    assert hessian.solver == "cg"
    solutions = hessian.solve(vectors)
    np.testing.assert_allclose(solutions, exact, atol=1e-8 * np.abs(exact).max())
    np.testing.assert_allclose(hessian.product(solutions), vectors, atol=1e-8)


def test_models_without_a_unique_optimum_are_refused():
    X = np.random.default_rng(0).normal(size=(5, 8))
    model = linear_model(LinearRegression().fit(X, X[:, 0]), X, X[:, 0])
    with pytest.raises(ValueError, match="estimator must have a unique optimum"):
        Hessian(model)
