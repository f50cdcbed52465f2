"""Scales and directions from public data."""

import numpy as np
import pytest

from skvalue.derivatives import column_scales, gradient_event, newest_weights, public_directions


def test_column_scales():
    mean, scale = column_scales(np.array([[0.0, 1.0], [2.0, 3.0]]))
    assert mean.tolist() == [1.0, 2.0]
    assert scale.tolist() == [1.0, 1.0]


def test_directions_start_with_the_mean_gradient():
    basis = public_directions(np.array([[1.0, 0.5], [1.0, -0.5]]), np.ones(2), 2)
    assert abs(basis).round(3).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_noise_of_100_releases():
    event = gradient_event(100, 1.0, epsilon=1.0, delta=5e-5)
    assert event.event.scale / 10 == pytest.approx(6.71, abs=5e-3)
    assert event.event.sensitivity == 2.0


@pytest.mark.parametrize(
    ("arguments", "fractions"),
    [
        (("correlated", 4), [1.0, 0.5, 0.33, 0.25]),
        ((lambda t, k: 1.0 if t == 1 else 0.75 - 0.7 * t / k, 4), [1.0, 0.4, 0.22, 0.05]),
    ],
)
def test_weights_of_the_newest_release(arguments, fractions):
    np.testing.assert_allclose(newest_weights(*arguments), fractions, atol=6e-3)
