"""Subsets: their probabilities and importance weights give the semivalue exactly."""

from math import comb

import numpy as np
import pytest

from skvalue.samplers import SizeStrata, draw_subsets, neyman_allocation
from skvalue.semivalues import size_weights, tabulated_semivalue

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1), (1, 16), (0.5, 2.5)]


@pytest.mark.parametrize("semivalue", SEMIVALUES)
@pytest.mark.parametrize("stratified", [True, False])
@pytest.mark.parametrize("n", [2, 3, 7])
def test_weighted_means_over_all_coalitions_are_the_semivalue(semivalue, stratified, n):
    utilities = np.random.default_rng(n).normal(size=2**n)
    q = size_weights(semivalue, n)
    strata = SizeStrata.of(q, stratified)
    masks = (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1
    sizes = masks.sum(axis=1)
    n_of_size = np.array([comb(n, size) for size in sizes])
    values = np.full(n, q[-1] * utilities[-1] - q[0] * utilities[0])
    for label in range(strata.n_strata):
        probabilities = strata.probabilities[label, sizes] / n_of_size
        for i in range(n):
            if strata.inside_weight[label] > 0:
                weights = probabilities * masks[:, i] * strata.inside[sizes]
                mean = weights @ utilities / weights.sum()
                values[i] += strata.inside_weight[label] * mean
            if strata.outside_weight[label] > 0:
                weights = probabilities * ~masks[:, i] * strata.outside[sizes]
                mean = weights @ utilities / weights.sum()
                values[i] -= strata.outside_weight[label] * mean
    expected = tabulated_semivalue(utilities, semivalue)
    np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize("semivalue", SEMIVALUES)
@pytest.mark.parametrize("n", [2, 50, 20_000])
def test_probabilities_and_weights_have_the_right_sums(semivalue, n):
    q = size_weights(semivalue, n)
    strata = SizeStrata.of(q)
    np.testing.assert_allclose(strata.probabilities.sum(axis=1), 1)
    assert strata.inside_weight.sum() == pytest.approx(1 - q[-1])
    assert strata.outside_weight.sum() == pytest.approx(1 - q[0])
    assert strata.n_strata <= 12
    assert np.isfinite(strata.inside).all()
    assert np.isfinite(strata.outside).all()


def test_subsets_for_the_banzhaf_value_are_uniform():
    strata = SizeStrata.of(size_weights("banzhaf", 10), stratified=False)
    binomial = np.array([comb(10, k) for k in range(10)]) / (2**10 - 2)
    np.testing.assert_allclose(strata.probabilities[0, 1:10], binomial[1:], rtol=1e-12)
    # All weights are equal, so that the two means are not weighted.
    for weights in (strata.inside, strata.outside):
        assert np.ptp(weights[1:10]) < 1e-9 * weights[1]


def test_drawn_subsets_have_the_probabilities_of_sizes_and_are_uniform():
    strata = SizeStrata.of(size_weights("shapley", 8))
    rng = np.random.default_rng(0)
    for label in range(strata.n_strata):
        masks = draw_subsets(rng, strata, np.full(4000, label))
        frequencies = np.bincount(masks.sum(axis=1), minlength=9) / 4000
        np.testing.assert_allclose(frequencies, strata.probabilities[label], atol=0.04)
        np.testing.assert_allclose(masks.mean(axis=0), masks.mean(), atol=0.04)


@pytest.mark.parametrize(
    ("std", "count", "floor", "counts"),
    [
        ([0.0, 0.0], 10, 0.25, [5, 5]),
        ([np.nan, 1.0, 1.0], 9, 0.25, [3, 3, 3]),
        ([1.0, 3.0, 0.0], 1000, 0.3, [275, 625, 100]),
    ],
)
def test_neyman_allocation_by_hand(std, count, floor, counts):
    assert neyman_allocation(std, count, floor=floor).tolist() == counts


def test_neyman_allocation_gives_all_draws():
    assert neyman_allocation(np.ones(7), 32).sum() == 32
