"""Other semivalues from the coalitions of a fit."""

import numpy as np
import pytest

from skvalue.estimation import expected_variances
from skvalue.games import FunctionGame
from skvalue.samplers import SizeStrata
from skvalue.semivalues import size_weights, tabulated_semivalue

from .test_games import all_masks, noisy_game, played, small_half
from .test_games import result as result_of

SLOW = pytest.mark.slow
TARGETS = ["banzhaf", (4, 1), small_half]
TARGETS += [
    pytest.param(target, marks=SLOW) for target in ("shapley", "leave-one-out", (1, 3))
]
N = 9


def play(game, sampler, semivalue, seed=0, limit=1500):
    return played(game, sampler, semivalue, limit, seed)


def result(design, semivalue=None):
    if semivalue is not None:
        design, *_ = design.reweighted(size_weights(semivalue, design.n))
    return result_of(design)


@pytest.mark.parametrize("sampler", ["stratified", "subsets", "exact"])
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (2, 1)])
def test_the_own_semivalue_has_the_values_of_the_fit(sampler, semivalue):
    design = play(noisy_game(N, 0.2), sampler, semivalue)
    for again, found in zip(result(design, semivalue), result(design)):
        np.testing.assert_allclose(again, found, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("source", ["shapley", pytest.param((3, 2), marks=SLOW)])
@pytest.mark.parametrize("target", TARGETS)
def test_agrees_with_enumeration(source, target):
    game = noisy_game(N, 0.2)
    exact = tabulated_semivalue(game.utility(all_masks(N)), target)
    for sampler in ("stratified", "subsets"):
        values, errors, _ = result(play(game, sampler, source, limit=3000), target)
        assert (np.abs(values - exact) <= 4.5 * errors).all()
        assert errors.max() < 0.2


def test_sizes_that_are_not_drawn_are_named():
    design = play(noisy_game(N, 0.2), "stratified", small_half)
    with pytest.raises(
        ValueError, match=r"Coalitions of 5 to 8 players are never drawn"
    ):
        result(design, "shapley")
    game = FunctionGame(lambda masks: masks.mean(axis=1) ** 2, 200)
    design = play(game, "subsets", "banzhaf")
    with pytest.raises(
        ValueError, match=r"of 1 to 50, 150 to 199 players are drawn too rarely"
    ):
        result(design, "shapley")


def test_expected_variance_is_that_of_games_of_sizes():
    # Utilities are noise around a function of the size, as the formula supposes.
    n, m, sizes = 40, 4000, np.arange(41)
    mean, spread, worth = (
        np.sqrt(sizes),
        1.5 - sizes / n,
        np.random.default_rng(0).normal(size=n),
    )

    def utility(masks):
        noise = np.sqrt(2) * np.sin(1000 * (masks @ worth))
        return mean[masks.sum(1)] + spread[masks.sum(1)] * noise

    game = FunctionGame(utility, n)
    by_size = np.stack([np.ones(n + 1), mean, mean**2 + spread**2])
    for target in ("banzhaf", (1, 4)):
        q = size_weights(target, n)
        design = play(game, "stratified", "shapley", limit=m)
        other, drawn, own = design.reweighted(q)
        strata = SizeStrata.of(size_weights("shapley", n)).reweighted(q)
        expected = expected_variances(strata, design.moments.pooled[0], q, by_size)
        np.testing.assert_allclose((drawn, own), expected, rtol=0.15)
        assert other.variances()[0].mean() == pytest.approx(drawn, rel=0.2)
    assert play(game, "stratified", target, limit=m).variances()[
        0
    ].mean() == pytest.approx(own, rel=0.25)


@SLOW
@pytest.mark.parametrize("target", ["banzhaf", (4, 1), (1, 4)])
def test_claimed_errors_are_true(target):
    game = noisy_game(12, 0.2, seed=1)
    exact = tabulated_semivalue(game.utility(all_masks(12)), target)
    runs = [
        result(play(game, "stratified", "shapley", s, 3000), target) for s in range(40)
    ]
    off = np.array([values - exact for values, *_ in runs])
    claimed = np.sqrt(np.mean([errors**2 for _, errors, _ in runs]))
    assert 0.85 < claimed / np.sqrt((off**2).mean()) < 1.15
    bias = off.mean(axis=0)
    assert (bias**2).mean() < 2 * claimed**2 / len(runs)
