"""Subsets: their probabilities and importance weights give the semivalue exactly."""

from math import comb

import numpy as np
import pytest

from skvalue.samplers import (
    SizeStrata,
    draw_distinct,
    draw_subsets,
    neyman_allocation,
)
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


# Different coalitions -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "counts"),
    [
        (6, [0, 2, 5, 7, 5, 2, 0]),
        (6, [1, 6, 15, 20, 15, 6, 1]),  # all
        (30, [0, 30, 100, *[40] * 25, 100, 30, 0]),
        (3, [0, 0, 0, 0]),
    ],
)
def test_distinct_subsets_are_different_and_of_the_sizes_asked_for(n, counts):
    masks = draw_distinct(np.random.default_rng(0), counts)
    assert len(np.unique(masks, axis=0)) == len(masks) == sum(counts)
    np.testing.assert_array_equal(np.repeat(np.arange(n + 1), counts), masks.sum(1))


@pytest.mark.parametrize("count", [2, 9, 10])  # of 20, of which 10 are taken
def test_subsets_that_are_taken_are_not_drawn_again(count):
    rng = np.random.default_rng(0)
    taken = draw_distinct(rng, [0, 0, 0, 10, 0, 0, 0])
    masks = draw_distinct(rng, [0, 0, 0, count, 0, 0, 0], taken)
    assert len(np.unique(np.concatenate([taken, masks]), axis=0)) == 10 + count


def test_players_are_members_about_equally_often_over_several_draws():
    rng = np.random.default_rng(0)
    counts = np.zeros(21, dtype=int)
    counts[7] = 10
    masks = draw_distinct(rng, counts)
    for _ in range(3):
        masks = np.concatenate([masks, draw_distinct(rng, counts, masks)])
    n_memberships = masks.sum(axis=0)
    assert np.ptp(n_memberships) <= 1  # 280 memberships of 20 players


def test_subsets_of_a_size_are_drawn_with_equal_probabilities():
    rng = np.random.default_rng(0)
    counts = np.zeros(6 + 1, dtype=int)
    counts[2] = 3
    total = np.zeros((6, 6))
    for _ in range(2000):
        masks = draw_distinct(rng, counts).astype(float)
        total += masks.T @ masks
    pairs = total[np.triu_indices(6, 1)]
    np.testing.assert_allclose(pairs, 2000 * 3 / 15, rtol=0.2)


def test_more_subsets_than_there_are_left_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="at most 4 for the size 1.*Got 5"):
        draw_distinct(rng, [0, 5, 0, 0, 0])
    taken = np.eye(4, dtype=bool)[:3]
    with pytest.raises(ValueError, match="at most 1 for the size 1.*Got 2"):
        draw_distinct(rng, [0, 2, 0, 0, 0], taken)
