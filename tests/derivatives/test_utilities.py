"""Utilities of decisions at validation points, and their gradients."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    mean_squared_error,
    r2_score,
    roc_auc_score,
)

from skvalue.derivatives import AccuracyGap, evaluate

from ..linear.models import MODELS, fit, problem

REGRESSIONS = ("ridge", "poisson", "kernel-ridge")


def random_weights(n_points=40):
    weights = np.random.default_rng(0).random(n_points)
    return weights / weights.sum()


def squared_mean(z, y, weights):
    """A utility that is no mean over points."""
    return z.mean() ** 2, np.full(z.shape, 2 * z.mean() / z.size)


@pytest.mark.parametrize(
    ("name", "utility"),
    [
        *((name, "neg_loss") for name in MODELS),
        *((name, "neg_mean_squared_error") for name in REGRESSIONS),
        *((name, "r2") for name in REGRESSIONS),
        ("binary", "accuracy"),
        ("multiclass", "accuracy"),
        ("ridge-classifier-3", "accuracy"),
        ("binary", "roc_auc"),
        ("binary", AccuracyGap(np.arange(40) % 3)),
        ("multiclass", AccuracyGap(np.arange(40) % 2)),
        ("ridge", squared_mean),
    ],
)
def test_gradients_of_utilities_equal_central_differences(name, utility):
    estimator, X, y, X_val, y_val = problem(name, n=60)
    _, model = fit(estimator, X, y)
    z = model.design(X_val) @ model.theta
    weights = random_weights()
    points, value, gradient = evaluate(utility, model, z, y_val, weights)
    assert points is None or value == pytest.approx(weights @ points)

    step = 1e-5 * np.random.default_rng(1).normal(size=z.shape)
    _, above, _ = evaluate(utility, model, z + step, y_val, weights)
    _, below, _ = evaluate(utility, model, z - step, y_val, weights)
    expected = (above - below) / (2 * 1e-5)
    slope = (gradient * step).sum() / 1e-5
    assert slope == pytest.approx(expected, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_scores_of_targets_are_those_of_scikit_learn(name):
    estimator, X, y, X_val, y_val = problem(name, n=60)
    fitted, model = fit(estimator, X, y)
    z = model.design(X_val) @ model.theta
    weights = random_weights()
    predicted = fitted.predict(X_val)
    r2 = r2_score(y_val, predicted, sample_weight=weights)
    error = mean_squared_error(y_val, predicted, sample_weight=weights)
    for utility, score in (("r2", r2), ("neg_mean_squared_error", -error)):
        _, value, _ = evaluate(utility, model, z, y_val, weights)
        assert value == pytest.approx(score)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_r2_of_equal_targets_is_refused(name):
    estimator, X, y, X_val, _ = problem(name, n=60)
    _, model = fit(estimator, X, y)
    z = model.design(X_val) @ model.theta
    with pytest.raises(ValueError, match="'r2' needs y_val of at least two values"):
        evaluate("r2", model, z, np.ones(40), random_weights())


def test_smoothed_scores_of_large_decisions_are_the_scores():
    estimator, X, y, X_val, y_val = problem("binary")
    _, model = fit(estimator, X, y)
    z = model.design(X_val) @ model.theta
    weights = np.full(40, 1 / 40)
    accuracy = accuracy_score(y_val, z[:, 0] > 0)
    area = roc_auc_score(y_val, z[:, 0])
    for utility, score in (("accuracy", accuracy), ("roc_auc", area)):
        _, value, _ = evaluate(utility, model, 1e6 * z, y_val, weights)
        assert value == pytest.approx(score)
