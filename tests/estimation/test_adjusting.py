"""Values adjusted by control variates: unbiased, with honest and smaller errors."""

import numpy as np
import pytest

from skvalue.estimation import FEWEST, make_design
from skvalue.games import FunctionGame

from .small_games import KINDS, control_variates, estimate, exact_values, noisy_game

SAMPLERS = {
    "shapley": "stratified",
    "banzhaf": "subsets",
    (4, 1): "stratified",
    (1, 3): "stratified",
}


@pytest.mark.parametrize(("semivalue", "sampler"), SAMPLERS.items())
def test_a_linear_game_of_the_features_has_hardly_an_error(semivalue, sampler):
    # The utility is a sum of features: what remains is the ridge, and the expectations
    # are exact.
    n = 9
    worth = np.random.default_rng(1).normal(size=n)

    def utility(masks):
        sizes = masks.sum(axis=1)
        return (sizes > 0) * (masks @ worth / np.maximum(sizes, 1) + sizes / n)

    game = FunctionGame(utility, n)
    exact = exact_values(game, semivalue)
    plain = estimate(game, sampler, semivalue, 2000)
    controls = control_variates(n, ("sizes", "additive"))
    adjusted = estimate(game, sampler, semivalue, 2000, controls=controls)

    ratio = adjusted.design.adjusted.ratio
    assert ratio < 0.2
    assert adjusted.errors.mean() == pytest.approx(ratio * plain.errors.mean(), rel=0.2)
    errors = np.abs(adjusted.values - exact)
    assert errors.max() < 0.3 * np.abs(plain.values - exact).max()
    assert (errors <= 5 * adjusted.errors).all()


@pytest.mark.parametrize(
    ("noise", "kinds"),
    [(3.0, KINDS), (0.1, KINDS), (0.1, ("counts",))],
    ids=["unexplained game", "explained game", "game explained in part"],
)
def test_adjusted_values_are_near_enumerated_ones(noise, kinds):
    game = noisy_game(9, noise)
    controls = control_variates(9, kinds)
    adjusted = estimate(game, "stratified", "shapley", 3000, 5, controls)
    errors = np.abs(adjusted.values - exact_values(game, "shapley"))
    assert (errors <= 4.5 * adjusted.errors).all()
    gain = adjusted.design.full - game.empty_utility
    assert adjusted.values.sum() == pytest.approx(gain, abs=1e-12)
    assert adjusted.design.is_adjusted
    assert adjusted.design.adjusted.ratio < 1.05


def check_same_bits(estimate, other):
    np.testing.assert_array_equal(estimate.values, other.values)
    np.testing.assert_array_equal(estimate.errors, other.errors)
    np.testing.assert_array_equal(estimate.freedom, other.freedom)


def test_values_stay_as_they_are_if_the_ratio_of_errors_is_too_large():
    game = noisy_game(9, 3.0)
    plain = estimate(game, "stratified", "shapley", 2000, 7)
    controls = control_variates(9, largest_ratio=0.5)
    refused = estimate(game, "stratified", "shapley", 2000, 7, controls)
    assert refused.design.adjusted.ratio > 0.5
    check_same_bits(refused, plain)


def test_values_of_too_few_coalitions_are_not_adjusted():
    game = noisy_game(9, 3.0)
    plain = estimate(game, "stratified", "shapley", FEWEST, 7)
    few = estimate(game, "stratified", "shapley", FEWEST, 7, control_variates(9))
    assert few.design.adjusted is None
    check_same_bits(few, plain)


def test_masks_drawn_again_give_the_same_bits():
    game = noisy_game(9)
    adjustment, rows = control_variates(9)
    first = estimate(game, "stratified", "shapley", 2000, 7, (adjustment, rows))
    restored = make_design(
        "stratified",
        "shapley",
        9,
        seed=7,
        empty_utility=game.empty_utility,
        adjustment=adjustment,
    )
    restored.restore(first.design.arrays())
    restored.adjust(rows)
    variances, _ = restored.variances()
    np.testing.assert_array_equal(restored.values(), first.values)
    np.testing.assert_array_equal(np.sqrt(variances), first.errors)


@pytest.mark.parametrize(
    "game",
    [noisy_game(8), FunctionGame(lambda masks: masks.any(axis=1) * 1.0, 8)],
    ids=["noisy game", "constant game"],
)
def test_strata_without_coalitions_of_one_side_can_be_adjusted(game):
    q = np.array([0, 1, 0, 0, 2, 0, 0, 1.0]) / 4

    def semivalue(_n):
        return q

    adjusted = estimate(game, "stratified", semivalue, 2000, 1, control_variates(8))
    errors = np.abs(adjusted.values - exact_values(game, semivalue))
    assert (errors <= 4.5 * adjusted.errors + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.05, 1.0])
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1)])
def test_adjusted_values_are_unbiased_and_their_errors_honest(semivalue, noise):
    game = noisy_game(10, noise)
    controls = control_variates(10)
    sampler = SAMPLERS[semivalue]
    runs = [
        estimate(game, sampler, semivalue, 1500, seed, controls) for seed in range(60)
    ]
    values = np.array([run.values for run in runs])
    errors = np.array([run.errors for run in runs])
    spread = values.std(axis=0, ddof=1)
    bias = values.mean(axis=0) - exact_values(game, semivalue)
    standardised_bias = bias / (spread / np.sqrt(60))
    assert np.abs(standardised_bias).max() < 4.5
    assert (standardised_bias**2).mean() < 2.5
    claimed = np.sqrt((errors**2).mean() / (spread**2).mean())
    assert 0.85 < claimed < 1.15
