"""Every sampler, semivalue and game against enumeration."""

import numpy as np
import pytest

from skvalue.estimation import SAMPLERS, RunState, Stopping, make_design, t_halfwidth
from skvalue.games import FunctionGame, airport_game, gloves_game, voting_game
from skvalue.semivalues import tabulated_semivalue

# "marginals" takes the contributions of all players to a coalition, not utilities.
ESTIMATED = [sampler for sampler in SAMPLERS if sampler not in ("exact", "marginals")]


def small_half(n):
    """A semivalue of one's own: coalitions of less than half of the players, all sizes
    alike."""
    return (np.arange(n) < n // 2) / (n // 2)


SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1), (1, 3), small_half]


def all_masks(n):
    return (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1


def random_game(number):
    """Games of 6 to 12 players: known ones, noise, and noise around a sum and its
    square."""
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
    worth, noise, powers = rng.normal(size=n), rng.normal(size=2**n), 2 ** np.arange(n)
    if kind == "noise":
        return FunctionGame(lambda masks: noise[masks @ powers], n)
    return FunctionGame(
        lambda masks: (
            np.tanh(masks @ worth / 3) + 0.1 * noise[masks @ powers] + masks.mean(1)
        ),
        n,
    )


def played(game, sampler, semivalue, limit, seed, **options):
    """The design of a game after all its coalitions."""
    n, empty_utility = game.n_players, game.empty_utility
    design = make_design(
        sampler, semivalue, n, seed=seed, empty_utility=empty_utility, **options
    )
    design.limit = limit
    while (masks := design.ask()) is not None:
        design.tell(game.utility(masks))
    return design


def estimate(game, sampler, semivalue, limit, seed, rows=None, **options):
    """Values, errors, degrees of freedom, and the design."""
    design = played(game, sampler, semivalue, limit, seed, **options)
    design.adjust(rows)
    return (*result(design), design)


def result(design):
    """Values, errors and degrees of freedom."""
    return RunState([design], [np.arange(design.n)], design.n, Stopping()).result()


def noisy_game(n, noise=0.1, seed=3):
    """A saturating sum of the worth of the players, and noise of the coalition."""
    rng = np.random.default_rng(seed)
    worth, errors, powers = (
        rng.normal(1, 1, n),
        rng.normal(size=2**n),
        2 ** np.arange(n),
    )
    return FunctionGame(
        lambda masks: np.tanh(masks @ worth / n) + noise * errors[masks @ powers], n
    )


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2))]
)
@pytest.mark.parametrize(
    "number",
    [*range(6), *(pytest.param(i, marks=pytest.mark.slow) for i in range(6, 30))],
)
def test_agrees_with_enumeration(number, part):
    # Two semivalues a game; with the slow parts all of them.
    game = random_game(number)
    table = game.utility(all_masks(game.n_players))
    for semivalue in [SEMIVALUES[(number + 2 * part + i) % 6] for i in (0, 1)]:
        exact = tabulated_semivalue(table, semivalue)
        for sampler in ESTIMATED:
            values, errors, _, design = estimate(
                game, sampler, semivalue, 3000, 1000 + number
            )
            assert design.n_evaluations <= 3000
            off = np.abs(values - exact)
            assert (off <= 4 * errors + 1e-9).all(), (
                sampler,
                semivalue,
                (off / errors).max(),
            )


@pytest.mark.parametrize(("number", "semivalue"), [*enumerate(SEMIVALUES)])
def test_exhaustive_is_exact(number, semivalue):
    game = random_game(number)
    exact = tabulated_semivalue(game.utility(all_masks(game.n_players)), semivalue)
    values, errors, _, design = estimate(game, "exact", semivalue, None, 0)
    np.testing.assert_allclose(values, exact, atol=1e-12)
    assert (errors == 0).all()
    assert design.n_evaluations == 1 + 2**game.n_players


@pytest.mark.parametrize("unit", [2.0**300, 2.0**-300])
@pytest.mark.parametrize("sampler", ["stratified", "antithetic"])
def test_no_unit_of_the_utility_changes_the_degrees_of_freedom(sampler, unit):
    # Their squared variances would overflow, or vanish.
    noise = np.random.default_rng(3).normal(size=64)
    plain, scaled = (
        FunctionGame(lambda masks, u=u: u * noise[masks @ 2 ** np.arange(6)], 6)
        for u in (1, unit)
    )
    values, errors, freedom, _ = estimate(plain, sampler, "shapley", 300, 0)
    found = estimate(scaled, sampler, "shapley", 300, 0)
    np.testing.assert_allclose(found[0] / unit, values)
    np.testing.assert_allclose(found[1] / unit, errors)
    np.testing.assert_allclose(found[2], freedom)
    assert (freedom > 3).all()


@pytest.mark.parametrize("sampler", ESTIMATED)
def test_shapley_values_sum_to_the_gain(sampler):
    game = random_game(3)
    values, _, _, design = estimate(game, sampler, "shapley", 700, 1)
    assert values.sum() == pytest.approx(design.full - game.empty_utility, abs=1e-12)


def additive(worth):
    return FunctionGame(lambda masks: masks @ worth, len(worth))


@pytest.mark.parametrize("sampler", ["permutation", "antithetic"])
def test_orders_of_an_additive_game_have_no_error(sampler):
    worth = np.random.default_rng(0).normal(size=40)
    values, errors, *_ = estimate(additive(worth), sampler, "shapley", 1000, 0)
    np.testing.assert_allclose(values, worth, atol=1e-12)
    assert errors.max() < 1e-12


def saturating(n, sign=1.0):
    """The first few to join make nearly all of the utility."""
    return FunctionGame(lambda masks: sign * (1 - 0.5 ** masks.sum(axis=1)), n)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_truncation_saves_coalitions_and_keeps_to_its_bound(sign):
    game = saturating(60, sign)
    plain = estimate(game, "permutation", "shapley", 10_000, 3)
    cut = estimate(game, "permutation", "shapley", 10_000, 3, truncation=1e-3)
    assert cut[3].block > 2 * plain[3].block  # more orders for as many coalitions
    exact = np.full(60, sign * (1 - 0.5**60) / 60)
    bias = cut[3].moments.bias
    assert (np.abs(cut[0] - exact) <= bias + 4 * cut[1]).all()
    assert (bias > 0).all()
    assert bias.max() < 3e-3
    assert cut[0].sum() == pytest.approx(sign * (1 - 0.5**60), abs=1e-12)


def test_a_negative_sum_does_not_truncate():
    # The utility falls below that of the empty coalition before it comes back to that
    # of all.
    def dip(masks):
        fraction = masks.mean(axis=1)
        return fraction * (fraction - 1) * 4 + 0.05 * fraction

    game = FunctionGame(dip, 60)
    design = estimate(game, "permutation", "shapley", 600, 0, truncation=0.01)[3]
    assert design.n_evaluations > 0.9 * 59 * design.block


@pytest.mark.parametrize("limit", [1500, 2200, 3100])
def test_truncation_ends_its_last_round_within_the_limit(limit):
    """Rounds shrink towards the limit, so that none is dropped where it is reached."""
    n, kept = 30, []
    game = FunctionGame(lambda masks: 1 - 0.7 ** masks.sum(axis=1), n)
    design = make_design("permutation", "shapley", n, 0.01, seed=0)
    run = RunState([design], [np.arange(n)], n, Stopping(max_evaluations=limit))
    while (masks := run.ask()) is not None:
        kept.append(len(masks))
        run.tell(game.utility(masks))
    assert sum(kept) <= limit
    assert run.n_evaluations == sum(kept) > limit - n


def test_truncation_waits_for_a_flat_stretch():
    # One prefix happens to be as good as all of them: no reason to stop.
    def touch(masks):
        size = masks.sum(axis=1)
        return np.where(size == 10, 1.0, size / 100)

    game = FunctionGame(touch, 100)
    design = estimate(game, "permutation", "shapley", 2000, 0, truncation=0.02)[3]
    assert design.n_evaluations > 0.9 * 99 * design.block


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ESTIMATED)
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1)])
def test_intervals_cover(sampler, semivalue):
    """95 % intervals of 200 repetitions hold the value in 93 to 97 % of all (rows,
    repetitions).

    Standard errors off by a tenth would give 92.2 or 96.9 %.
    """
    game = random_game(4)
    exact = tabulated_semivalue(game.utility(all_masks(game.n_players)), semivalue)
    covered = []
    for seed in range(200):
        values, errors, freedom, _ = estimate(
            game, sampler, semivalue, 2000, 1000 + seed
        )
        covered.append(np.abs(values - exact) <= t_halfwidth(errors, freedom, 0.95))
    assert 0.93 < np.mean(covered) < 0.97
