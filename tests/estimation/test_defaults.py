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
def test_the_default_sampler_depends_on_players_and_semivalue(semivalue, n, sampler):
    assert choose_sampler(semivalue, n) == sampler


@pytest.mark.parametrize(
    ("sizes", "count"), [((100, 100, 10), 4000), ((10_000, 10_000, 20), 8000)]
)
def test_the_default_number_of_coalitions_depends_on_the_sizes(sizes, count):
    assert default_evaluations(*sizes) == count


def test_t_halfwidths_are_quantiles_times_errors():
    halfwidth = t_halfwidth(np.array([1.0, 0.0]), np.array([10.0, np.inf]), 0.95)
    assert halfwidth.round(3).tolist() == [2.228, 0.0]


@pytest.mark.parametrize(("count", "halfwidth"), [(1001, 0.0398), (1, np.inf)])
def test_bernstein_halfwidths_are_those_of_the_theorem(count, halfwidth):
    errors = np.array([0.01])
    assert bernstein_halfwidth(errors, count, 1.0, 0.95).round(4) == [halfwidth]
