"""Every sampler, semivalue and game against enumeration."""

import numpy as np
import pytest

from skvalue.estimation import SAMPLERS, RunState, Stopping, make_design, t_halfwidth
from skvalue.games import FunctionGame, airport_game, gloves_game, voting_game

from .small_games import estimate, exact_values, small_half

SLOW = pytest.mark.slow
SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1), (1, 3), small_half]
# "marginals" takes the contributions of all players to a coalition, not utilities.
ESTIMATED = [sampler for sampler in SAMPLERS if sampler not in ("exact", "marginals")]
ALL_ESTIMATED = pytest.mark.parametrize("sampler", ESTIMATED)


def random_game(number):
    """Games of 6 to 12 players.

    Known ones, noise, and noise around a sum and its square.
    """
    rng = np.random.default_rng([77, number])
    n = 6 + number % 7
    kind = ("airport", "voting", "gloves", "noise", "concave")[number % 5]
    if kind == "airport":
        return airport_game(rng.uniform(1, 3, n))
    if kind == "voting":
        votes = rng.integers(4, 10, n)
        return voting_game(votes, votes.sum() / 2 + 0.5)
    if kind == "gloves":
        return gloves_game(n // 2, n - n // 2)
    worth = rng.normal(size=n)
    noise = rng.normal(size=2**n)
    powers = 2 ** np.arange(n)
    if kind == "noise":
        return FunctionGame(lambda masks: noise[masks @ powers], n)

    def concave(masks):
        return np.tanh(masks @ worth / 3) + 0.1 * noise[masks @ powers] + masks.mean(1)

    return FunctionGame(concave, n)


@ALL_ESTIMATED
@pytest.mark.parametrize(
    "part", [0, pytest.param(1, marks=SLOW), pytest.param(2, marks=SLOW)]
)
@pytest.mark.parametrize(
    "number", [*range(6), *(pytest.param(i, marks=SLOW) for i in range(6, 30))]
)
def test_estimates_agree_with_enumeration(number, part, sampler):
    # Two semivalues a game; with the slow parts all of them.
    game = random_game(number)
    first = number + 2 * part
    for semivalue in (SEMIVALUES[first % 6], SEMIVALUES[(first + 1) % 6]):
        exact = exact_values(game, semivalue)
        # (A process of thousands of coalitions takes seconds.)
        limit = 120 if sampler == "process" else 3000
        values, errors, _, design = estimate(
            game, sampler, semivalue, limit, 1000 + number
        )
        assert design.n_evaluations <= limit
        assert (np.abs(values - exact) <= 4 * errors + 1e-9).all()


@pytest.mark.parametrize(("number", "semivalue"), [*enumerate(SEMIVALUES)])
def test_an_enumeration_is_exact(number, semivalue):
    game = random_game(number)
    values, errors, _, design = estimate(game, "exact", semivalue, None)
    np.testing.assert_allclose(values, exact_values(game, semivalue), atol=1e-12)
    assert (errors == 0).all()
    assert design.n_evaluations == 2**game.n_players


@pytest.mark.parametrize("unit", [2.0**300, 2.0**-300])
@pytest.mark.parametrize("sampler", ["stratified", "antithetic"])
def test_no_unit_of_the_utility_changes_the_degrees_of_freedom(sampler, unit):
    # Their squared variances would overflow, or vanish.
    noise = np.random.default_rng(3).normal(size=64)

    def game(unit):
        return FunctionGame(lambda masks: unit * noise[masks @ 2 ** np.arange(6)], 6)

    plain = estimate(game(1), sampler, "shapley", 300)
    scaled = estimate(game(unit), sampler, "shapley", 300)
    np.testing.assert_allclose(scaled.values / unit, plain.values)
    np.testing.assert_allclose(scaled.errors / unit, plain.errors)
    np.testing.assert_allclose(scaled.freedom, plain.freedom)
    assert (plain.freedom > 3).all()


@ALL_ESTIMATED
def test_shapley_values_sum_to_the_gain(sampler):
    game = random_game(3)
    values, _, _, design = estimate(game, sampler, "shapley", 300, 1)
    assert values.sum() == pytest.approx(design.full - game.empty_utility, abs=1e-12)


@pytest.mark.parametrize("sampler", ["permutation", "antithetic"])
def test_orders_of_an_additive_game_have_no_error(sampler):
    worth = np.random.default_rng(0).normal(size=40)
    game = FunctionGame(lambda masks: masks @ worth, 40)
    values, errors, *_ = estimate(game, sampler, "shapley", 1000)
    np.testing.assert_allclose(values, worth, atol=1e-12)
    assert errors.max() < 1e-12


# Truncation ---------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1.0, -1.0])
class TestTruncationOfASaturatingGame:
    """The first few to join make nearly all of the utility of 60 players."""

    n = 60

    def estimate(self, sign, **options):
        game = FunctionGame(lambda masks: sign * (1 - 0.5 ** masks.sum(axis=1)), self.n)
        return estimate(game, "permutation", "shapley", 10_000, 3, **options)

    def test_it_saves_coalitions(self, sign):
        plain = self.estimate(sign)
        truncated = self.estimate(sign, truncation=1e-3)
        # More orders for as many coalitions.
        assert truncated.design.block > 2 * plain.design.block

    def test_values_keep_to_the_bound_of_the_bias(self, sign):
        values, errors, _, design = self.estimate(sign, truncation=1e-3)
        gain = sign * (1 - 0.5**self.n)
        bias = design.moments.bias
        assert (np.abs(values - gain / self.n) <= bias + 4 * errors).all()
        assert (bias > 0).all()
        assert bias.max() < 3e-3
        assert values.sum() == pytest.approx(gain, abs=1e-12)


def dip(masks):
    """Falls below the utility of nobody before it comes back to that of all."""
    fraction = masks.mean(axis=1)
    return fraction * (fraction - 1) * 4 + 0.05 * fraction


def touch(masks):
    """One prefix happens to be as good as all of them."""
    sizes = masks.sum(axis=1)
    return np.where(sizes == 10, 1.0, sizes / 100)


@pytest.mark.parametrize(
    ("utility", "n", "limit", "truncation"),
    [(dip, 60, 600, 0.01), (touch, 100, 2000, 0.02)],
    ids=["utility below that of the empty coalition", "a single good prefix"],
)
def test_truncation_waits_for_a_flat_stretch(utility, n, limit, truncation):
    game = FunctionGame(utility, n)
    truncated = estimate(game, "permutation", "shapley", limit, truncation=truncation)
    design = truncated.design
    assert design.n_evaluations > 0.9 * (n - 1) * design.block


@pytest.mark.parametrize("limit", [1500, 2200, 3100])
def test_truncation_ends_its_last_round_within_the_limit(limit):
    # Rounds shrink towards the limit, so that none is dropped where it is reached.
    n = 30
    game = FunctionGame(lambda masks: 1 - 0.7 ** masks.sum(axis=1), n)
    design = make_design("permutation", "shapley", n, truncation=0.01, seed=0)
    run = RunState([design], [np.arange(n)], n, Stopping(max_evaluations=limit))
    n_evaluated = 0
    while (masks := run.ask()) is not None:
        n_evaluated += len(masks)
        run.tell(game.utility(masks))
    assert limit - n < n_evaluated <= limit
    assert run.n_evaluations == n_evaluated


@SLOW
@pytest.mark.parametrize("sampler", [name for name in ESTIMATED if name != "process"])
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1)])
def test_intervals_cover(sampler, semivalue):
    """95 % intervals of 200 repetitions hold the value in 93 to 97 % of all cases.

    Standard errors off by a tenth would give 92.2 or 96.9 %.
    """
    game = random_game(4)
    exact = exact_values(game, semivalue)
    is_covered = []
    for seed in range(1000, 1200):
        values, errors, freedom, _ = estimate(game, sampler, semivalue, 2000, seed)
        halfwidths = t_halfwidth(errors, freedom, 0.95)
        is_covered.append(np.abs(values - exact) <= halfwidths)
    assert 0.93 < np.mean(is_covered) < 0.97
