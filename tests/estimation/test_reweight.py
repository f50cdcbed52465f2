"""Other semivalues from the coalitions of a fit."""

import numpy as np
import pytest

from skvalue.estimation import expected_variances
from skvalue.games import FunctionGame
from skvalue.samplers import SizeStrata
from skvalue.semivalues import size_weights

from .small_games import estimate_of, exact_values, noisy_game, play, small_half

SLOW = pytest.mark.slow
TARGETS = ["banzhaf", (4, 1), small_half]
TARGETS += [
    pytest.param(target, marks=SLOW) for target in ("shapley", "leave-one-out", (1, 3))
]
N = 9


def reweighted(design, semivalue):
    """The estimate of another semivalue from the coalitions of a design."""
    other, _, _ = design.reweighted(size_weights(semivalue, design.n))
    return estimate_of(other)


@pytest.mark.parametrize("sampler", ["stratified", "subsets", "exact"])
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (2, 1)])
def test_the_own_semivalue_has_the_values_of_the_fit(sampler, semivalue):
    design = play(noisy_game(N, 0.2), sampler, semivalue, limit=1500)
    fitted = estimate_of(design)
    again = reweighted(design, semivalue)
    tolerances = {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(again.values, fitted.values, **tolerances)
    np.testing.assert_allclose(again.errors, fitted.errors, **tolerances)
    np.testing.assert_allclose(again.freedom, fitted.freedom, **tolerances)


@pytest.mark.parametrize("sampler", ["stratified", "subsets"])
@pytest.mark.parametrize("source", ["shapley", pytest.param((3, 2), marks=SLOW)])
@pytest.mark.parametrize("target", TARGETS)
def test_reweighted_values_agree_with_enumeration(source, target, sampler):
    game = noisy_game(N, 0.2)
    values, errors, _, _ = reweighted(play(game, sampler, source, limit=3000), target)
    assert (np.abs(values - exact_values(game, target)) <= 4.5 * errors).all()
    assert errors.max() < 0.2


def test_sizes_that_are_never_drawn_are_named():
    design = play(noisy_game(N, 0.2), "stratified", small_half, limit=1500)
    with pytest.raises(ValueError, match="Coalitions of 5 to 8 players are never dr"):
        reweighted(design, "shapley")


def test_sizes_that_are_drawn_too_rarely_are_named():
    game = FunctionGame(lambda masks: masks.mean(axis=1) ** 2, 200)
    design = play(game, "subsets", "banzhaf", limit=1500)
    with pytest.raises(
        ValueError, match="of 1 to 50, 150 to 199 players are drawn too rarely"
    ):
        reweighted(design, "shapley")


class TestExpectedVariance:
    """Utilities are noise around a function of the size, as the formula supposes."""

    n = 40
    n_coalitions = 4000
    sizes = np.arange(41)
    means = np.sqrt(sizes)
    deviations = 1.5 - sizes / 40
    worth = np.random.default_rng(0).normal(size=40)

    def utility(self, masks):
        sizes = masks.sum(axis=1)
        noise = np.sqrt(2) * np.sin(1000 * (masks @ self.worth))
        return self.means[sizes] + self.deviations[sizes] * noise

    def play(self, semivalue):
        game = FunctionGame(self.utility, self.n)
        return play(game, "stratified", semivalue, limit=self.n_coalitions)

    @pytest.mark.parametrize("target", ["banzhaf", (1, 4)])
    def test_it_is_that_of_the_formula_and_of_the_estimate(self, target):
        q = size_weights(target, self.n)
        design = self.play("shapley")
        other, drawn, own = design.reweighted(q)
        strata = SizeStrata.of(size_weights("shapley", self.n)).reweighted(q)
        squares = self.means**2 + self.deviations**2
        by_size = np.stack([np.ones(self.n + 1), self.means, squares])
        expected = expected_variances(strata, design.moments.pooled[0], q, by_size)
        np.testing.assert_allclose((drawn, own), expected, rtol=0.15)
        variances, _ = other.variances()
        assert variances.mean() == pytest.approx(drawn, rel=0.2)

    def test_that_of_an_own_fit_is_the_variance_of_such_a_fit(self):
        target = (1, 4)
        _, _, own = self.play("shapley").reweighted(size_weights(target, self.n))
        variances, _ = self.play(target).variances()
        assert variances.mean() == pytest.approx(own, rel=0.25)


@SLOW
@pytest.mark.parametrize("target", ["banzhaf", (4, 1), (1, 4)])
def test_claimed_errors_are_true(target):
    game = noisy_game(12, 0.2, seed=1)
    runs = [
        reweighted(play(game, "stratified", "shapley", 3000, seed), target)
        for seed in range(40)
    ]
    deviations = np.array([run.values for run in runs]) - exact_values(game, target)
    claimed = np.sqrt(np.mean([run.errors**2 for run in runs]))
    assert 0.85 < claimed / np.sqrt((deviations**2).mean()) < 1.15
    bias = deviations.mean(axis=0)
    assert (bias**2).mean() < 2 * claimed**2 / len(runs)
