"""Newton steps without rows, against estimators that are fitted again."""

import numpy as np
import pytest
from sklearn.base import clone

from skvalue.linear import Hessian, changes_without, corrected_steps, newton_steps

from .models import MODELS, centered, decisions, fit, has_squared_loss, problem

each_model = pytest.mark.parametrize("name", MODELS)


@each_model
def test_one_and_two_newton_steps_are_close_to_refits_without_a_row(name):
    estimator, X, y, X_val, _ = problem(name)
    fitted, model = fit(estimator, X, y)
    hessian = Hessian(model, model.weights.mean())
    rows = np.arange(0, len(y), 40)
    steps = newton_steps(
        model,
        hessian,
        X=model.X[rows],
        gradient=model.gradient(rows),
        curvature=model.curvature(rows),
        weights=model.weights[rows],
    )
    corrected = corrected_steps(model, hessian, steps, rows=rows)

    before = decisions(fitted, X_val)
    changes = []
    for row in rows:
        others = np.arange(len(y)) != row
        refitted = clone(estimator).fit(X[others], y[others])
        changes.append(decisions(refitted, X_val) - before)

    def error(steps):
        moved = centered(model.design(X_val) @ np.moveaxis(steps, 2, 1))
        return np.abs(moved - changes).max() / np.abs(changes).max()

    is_exact = has_squared_loss(name)
    assert error(steps) < (1e-8 if is_exact else 0.1)
    assert error(corrected) < (1e-8 if is_exact else 0.02)


@each_model
def test_a_newton_step_without_a_group_is_close_to_a_refit(name):
    estimator, X, y, X_val, _ = problem(name)
    fitted, model = fit(estimator, X, y)
    (step,) = changes_without(model, Hessian(model), [np.arange(20)])
    moved = centered(model.design(X_val) @ step.T)
    refitted = clone(estimator).fit(X[20:], y[20:])
    change = decisions(refitted, X_val) - decisions(fitted, X_val)
    tolerance = 1e-8 if has_squared_loss(name) else 0.25
    assert np.abs(moved - change).max() < tolerance * np.abs(change).max()
