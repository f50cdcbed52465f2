"""Directions of the gradients of public rows."""

import numpy as np

from skvalue.derivatives import public_directions


def test_gradients_whose_mean_is_zero_have_the_singular_directions():
    gradients = np.array([[2.0, 0, 0], [-2.0, 0, 0], [0, 1.0, 0], [0, -1.0, 0]])
    basis = public_directions(gradients, np.full(4, 0.25), n_components=2)
    np.testing.assert_allclose(np.abs(basis), np.eye(3)[:, :2])


def test_the_first_direction_is_that_of_the_mean(rng):
    gradients = rng.normal(size=(10, 4)) + 1
    weights = np.full(10, 0.1)
    basis = public_directions(gradients, weights, n_components=3)
    mean = weights @ gradients
    np.testing.assert_allclose(basis[:, 0], mean / np.linalg.norm(mean))
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
