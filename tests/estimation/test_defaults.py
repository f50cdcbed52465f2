"""Defaults of the estimation, and the constants of its intervals."""

import numpy as np
import pytest

from skvalue.estimation import (
    bernstein_halfwidth,
    choose_sampler,
    default_evaluations,
    t_halfwidth,
)


@pytest.mark.parametrize(
    ("semivalue", "n", "sampler"),
    [
        ("shapley", 10, "exact"),
        ("shapley", 100, "stratified"),
        ("banzhaf", 100, "subsets"),
    ],
)
def test_default_sampler(semivalue, n, sampler):
    assert choose_sampler(semivalue, n) == sampler


@pytest.mark.parametrize(
    ("sizes", "count"), [((100, 100, 10), 4000), ((10_000, 10_000, 20), 8000)]
)
def test_default_number_of_coalitions(sizes, count):
    assert default_evaluations(*sizes) == count


def test_halfwidths():
    halfwidth = t_halfwidth(np.array([1.0, 0.0]), np.array([10.0, np.inf]), 0.95)
    assert halfwidth.round(3).tolist() == [2.228, 0.0]
    errors = np.array([0.01])
    assert bernstein_halfwidth(errors, 1001, 1.0, 0.95).round(4).tolist() == [0.0398]
    assert bernstein_halfwidth(errors, 1, 1.0, 0.95).tolist() == [np.inf]
