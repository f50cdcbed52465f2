"""Values adjusted by control variates: unbiased, with honest and smaller errors."""

import numpy as np
import pytest

from skvalue.estimation import FEWEST, Adjustment, combine, make_design
from skvalue.estimation.controls import make_controls
from skvalue.games import FunctionGame
from skvalue.semivalues import tabulated_semivalue

KINDS = ("sizes", "counts", "quadratic", "neighbors", "additive")


def all_masks(n):
    return (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1


def adjustment(n, kinds=KINDS, seed=0, **options):
    """Control variates of random rows of two classes."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), np.arange(n) % 2
    order = np.argsort(((rng.normal(size=(5, 1, 2)) - X) ** 2).sum(axis=2), axis=1)
    matches = (y[order] == rng.integers(0, 2, (5, 1))).astype(float)

    def make(strata, kinds):
        points = order, matches
        return make_controls(strata, codes=y, components=X, points=points, kinds=kinds)

    return Adjustment(make, kinds, **options)


def estimate(game, semivalue, limit, seed, adjustment=None, sampler="stratified"):
    design = make_design(
        sampler, semivalue, game.n_players, seed=seed, empty_utility=game.empty_utility,
        adjustment=adjustment,
    )  # fmt: skip
    design.limit = limit
    while (masks := design.ask()) is not None:
        design.tell(game.utility(masks))
    return (*combine([design], [None], game.n_players), design)


def noisy_game(n, noise=0.1, seed=3):
    """A saturating sum of the worth of the players, and noise of the coalition."""
    rng = np.random.default_rng(seed)
    worth, errors, powers = rng.normal(1, 1, n), rng.normal(size=2**n), 2 ** np.arange(n)
    return FunctionGame(
        lambda masks: np.tanh(masks @ worth / n) + noise * errors[masks @ powers], n
    )


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1), (1, 3)])
def test_a_linear_game_of_the_features_has_hardly_an_error(semivalue):
    # The utility is a sum of features: what is left is the ridge, and the expectations are exact.
    n, sampler = 9, "subsets" if semivalue == "banzhaf" else "stratified"
    rng = np.random.default_rng(1)
    worth = rng.normal(size=n)
    size = np.arange(1, n + 1)
    game = FunctionGame(
        lambda masks: masks.any(1) * (masks @ worth / size[masks.sum(1) - 1] + masks.sum(1) / n), n
    )
    exact = tabulated_semivalue(game.utility(all_masks(n)), semivalue)
    plain = estimate(game, semivalue, 2000, 0, sampler=sampler)
    values, errors, _, design = estimate(
        game, semivalue, 2000, 0, adjustment(n, ("sizes", "additive")), sampler
    )
    assert design.adjusted.ratio < 0.2
    assert errors.mean() == pytest.approx(design.adjusted.ratio * plain[1].mean(), rel=0.2)
    assert np.abs(values - exact).max() < 0.3 * np.abs(plain[0] - exact).max()
    assert (np.abs(values - exact) <= 5 * errors).all()


def test_adjusted_values_are_near_enumerated_ones_for_any_features():
    # Of a game that they do not explain, and of one that they explain in part.
    for noise, kinds in ((3.0, KINDS), (0.1, KINDS), (0.1, ("counts",))):
        game = noisy_game(9, noise)
        exact = tabulated_semivalue(game.utility(all_masks(9)), "shapley")
        values, errors, _, design = estimate(game, "shapley", 3000, 5, adjustment(9, kinds))
        assert (np.abs(values - exact) <= 4.5 * errors).all()
        assert values.sum() == pytest.approx(design.full - game.empty_utility, abs=1e-12)
        assert design.is_adjusted
        assert design.adjusted.ratio < 1.05


def test_without_an_adjustment_values_do_not_change():
    # Too large a ratio, too few coalitions, and no adjustment: the same bits.
    game = noisy_game(9, 3.0)
    plain = estimate(game, "shapley", 2000, 7)
    refused = estimate(game, "shapley", 2000, 7, adjustment(9, largest_ratio=0.5))
    assert refused[3].adjusted.ratio > 0.5
    few = estimate(game, "shapley", FEWEST, 7), estimate(game, "shapley", FEWEST, 7, adjustment(9))
    assert few[1][3].adjusted is None
    for one, other in ((plain, refused), few):
        for x, y in zip(one[:3], other[:3]):
            np.testing.assert_array_equal(x, y)


def test_masks_drawn_again_give_the_same_bits():
    game = noisy_game(9)
    values, errors, _, design = estimate(game, "shapley", 2000, 7, adjustment(9))
    other = make_design(
        "stratified", "shapley", 9, seed=7, empty_utility=game.empty_utility,
        adjustment=adjustment(9),
    )  # fmt: skip
    other.restore(design.arrays())
    np.testing.assert_array_equal(other.values(), values)
    np.testing.assert_array_equal(np.sqrt(other.variances()[0]), errors)


def test_surrogates_of_some_sizes_only():
    # Strata without coalitions of one side, and a constant game.
    q = np.r_[0, 1, 0, 0, 2, 0, 0, 1.0] / 4
    for game in (noisy_game(8), FunctionGame(lambda masks: masks.any(axis=1) * 1.0, 8)):
        exact = tabulated_semivalue(game.utility(all_masks(8)), lambda _n: q)
        values, errors, _, _ = estimate(game, lambda _n: q, 2000, 1, adjustment(8))
        assert (np.abs(values - exact) <= 4.5 * errors + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1)])
def test_adjusted_values_are_unbiased_and_their_errors_honest(semivalue):
    sampler = "subsets" if semivalue == "banzhaf" else "stratified"
    for noise in (0.05, 1.0):
        game, found = noisy_game(10, noise), []
        exact = tabulated_semivalue(game.utility(all_masks(10)), semivalue)
        for seed in range(60):
            found.append(estimate(game, semivalue, 1500, seed, adjustment(10), sampler)[:2])
        values, errors = map(np.array, zip(*found))
        spread = values.std(axis=0, ddof=1)
        bias = (values.mean(axis=0) - exact) / (spread / np.sqrt(60))
        assert np.abs(bias).max() < 4.5
        assert (bias**2).mean() < 2.5
        claimed = np.sqrt((errors**2).mean() / (spread**2).mean())
        assert 0.85 < claimed < 1.15, (noise, claimed)
