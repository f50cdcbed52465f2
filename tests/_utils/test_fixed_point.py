"""Sums of weights in fixed point."""

from math import fsum

import numpy as np
import pytest

from skvalue._utils.fixed_point import exact_sum, to_integers, unit_of

WEIGHTS = {
    "values": lambda rng: rng.normal(size=(3, 500)) / 500,
    "many points": lambda rng: rng.random((1, 200_000)),
    "large": lambda rng: rng.normal(size=(2, 50)) * 1e300,
    "small": lambda rng: rng.normal(size=(2, 50)) * 1e-285,
    "of all sizes": lambda rng: rng.normal(size=(2, 80)) * 10.0 ** np.arange(-40, 40),
    "zeros": lambda rng: np.zeros((2, 5)),
    "no points": lambda rng: np.zeros((2, 0)),
    "powers of two": lambda rng: np.full((1, 1024), 1.0),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_sums_are_exact_up_to_the_unit(name, rng):
    """The largest sum fits 63 bits, and is as exact as a rounded one."""
    weights = WEIGHTS[name](rng)
    largest = np.abs(weights).max(axis=0, initial=0.0)
    n_points = weights.shape[1]
    for line in (*weights, largest, -largest):
        line = line[None]
        integers = to_integers(line, unit_of(line)).tolist()[0]
        assert abs(sum(integers)) < 2**62
        total = exact_sum(np.sum, line)
        bound = (n_points * 2.0**-61 + 2.0**-53) * fsum(np.abs(line[0]))
        assert abs(total - fsum(line[0])) <= bound


def test_the_order_of_additions_does_not_matter(rng):
    """As it does for rounded sums."""
    weights = rng.normal(size=(1, 1000))
    integers = to_integers(weights, unit_of(weights))[0]
    assert np.cumsum(integers)[-1] == np.cumsum(integers[::-1])[-1]
    assert np.cumsum(weights[0])[-1] != np.cumsum(weights[0, ::-1])[-1]
