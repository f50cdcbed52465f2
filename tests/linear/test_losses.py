"""Losses of linear models and their derivatives."""

import pickle

import numpy as np
import pytest
from sklearn.metrics import (
    log_loss,
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_squared_error,
)

from skvalue.linear import GAMMA, LOGISTIC, POISSON, SOFTMAX, SQUARED

LOSSES = [SQUARED, LOGISTIC, SOFTMAX, POISSON, GAMMA]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
STEP = 1e-5


def problem(loss, rng, n=7):
    """Decisions and targets."""
    n_decisions = 3 if loss is SOFTMAX else 1
    z = rng.normal(size=(n, n_decisions))
    if loss.classes:
        return z, rng.integers(0, max(2, n_decisions), n)
    return z, rng.uniform(0.5, 2.0, size=(n, 1))


def central_differences(function, z):
    """Derivatives of the results (n, ...) for rows by each decision, (n, ..., K)."""
    columns = []
    for unit in np.eye(z.shape[1]):
        change = function(z + STEP * unit) - function(z - STEP * unit)
        columns.append(change / (2 * STEP))
    return np.stack(columns, axis=-1)


@each_loss
def test_the_gradient_is_the_derivative_of_the_loss(loss, rng):
    z, y = problem(loss, rng)
    expected = central_differences(lambda z: loss.values(z, y), z)
    np.testing.assert_allclose(loss.gradient(z, y), expected, atol=1e-8)


@each_loss
def test_the_curvature_is_the_derivative_of_the_gradient(loss, rng):
    z, y = problem(loss, rng)
    expected = central_differences(lambda z: loss.gradient(z, y), z)
    np.testing.assert_allclose(loss.curvature(z, y), expected, atol=1e-8)


@pytest.mark.parametrize(
    "loss", [SQUARED, LOGISTIC, SOFTMAX], ids=lambda loss: loss.name
)
def test_derivatives_of_the_curvature_along_a_change(loss, rng):
    z, y = problem(loss, rng)
    change = rng.normal(size=z.shape)
    above = loss.curvature(z + STEP * change, y)
    below = loss.curvature(z - STEP * change, y)
    found = loss.curvature_derivative(z, change)
    np.testing.assert_allclose(found, (above - below) / (2 * STEP), atol=1e-8)


@pytest.mark.parametrize("loss", [SQUARED, POISSON, GAMMA], ids=lambda loss: loss.name)
def test_the_inverse_link_inverts_the_link(loss, rng):
    means = rng.uniform(0.5, 2.0, size=(5, 1))
    np.testing.assert_allclose(loss.inverse_link(loss.link(means)), means)


def test_losses_are_those_of_the_metrics_of_scikit_learn(rng):
    def mean(loss, z, y):
        return loss.values(z, y).mean()

    z, y = problem(SQUARED, rng)
    assert mean(SQUARED, z, y) == pytest.approx(mean_squared_error(y, z))
    for loss in (LOGISTIC, SOFTMAX):
        z, y = problem(loss, rng)
        q = loss.inverse_link(z)
        q = q[:, 0] if loss is LOGISTIC else q
        expected = log_loss(y, q, labels=np.arange(max(2, z.shape[1])))
        assert mean(loss, z, y) == pytest.approx(expected)
    for loss, metric in (
        (POISSON, mean_poisson_deviance),
        (GAMMA, mean_gamma_deviance),
    ):
        z, y = problem(loss, rng)
        expected = metric(y[:, 0], loss.inverse_link(z)[:, 0])
        assert mean(loss, z, y) == pytest.approx(expected)


def test_the_curvature_of_certain_classes_keeps_its_digits():
    curvature = LOGISTIC.curvature(np.array([[40.0], [-40.0]]), None)
    np.testing.assert_allclose(curvature[:, 0, 0], np.exp(-40.0), rtol=1e-12)


@each_loss
def test_a_pickled_loss_is_the_same_object(loss):
    assert pickle.loads(pickle.dumps(loss)) is loss
