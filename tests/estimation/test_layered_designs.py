"""Designs of Layered Shapley on small games: unbiased, with honest errors, at the
stated cost."""

from math import comb

import numpy as np
import pytest

from skvalue.estimation import LAYER_DESIGNS, Utilities, plan_layers, play_layers
from skvalue.games import FunctionGame
from skvalue.samplers import layer_counts
from skvalue.semivalues import enumerate_semivalue


def table_game(table):
    """The game whose coalitions have the utilities of a table, by their codes."""
    n = len(table).bit_length() - 1
    return FunctionGame(
        lambda masks: table[masks @ (1 << np.arange(n))], n, cache_size=0
    )


def random_game(n, rng, sums=3.0):
    """Noise of every coalition, with sums of numbers of the players, and its Shapley
    values."""
    members = (np.arange(2**n)[:, None] >> np.arange(n)) % 2
    table = members @ rng.normal(scale=sums, size=n) + rng.normal(size=2**n)
    values = enumerate_semivalue(lambda players: table[sum(1 << i for i in players)], n)
    return table_game(table), values


def estimate(plan, game, seed=0):
    utilities = Utilities(game)
    for found in play_layers(
        plan, utilities, lambda *key: np.random.default_rng((seed, *key))
    ):
        last = found
    return last, utilities


def values_of(estimate):
    return estimate.layers.sum(axis=0) / estimate.layers.shape[1]


def wanted(n, scale):
    return np.r_[np.inf, scale / np.arange(1, n) ** 1.5]


def check_unbiased(n, design, scale, n_seeds, rng, **options):
    game, values = random_game(n, rng, **options)
    plan = plan_layers(design, n, wanted(n, scale), n_shuffles=3)
    runs = [estimate(plan, game, seed)[0] for seed in range(n_seeds)]
    found = np.array([values_of(run) for run in runs])
    error = found.std(axis=0, ddof=1) / np.sqrt(n_seeds)
    assert (np.abs(found.mean(axis=0) - values) <= 4 * error + 1e-12).all()
    return found, runs


@pytest.mark.parametrize("design", LAYER_DESIGNS)
def test_unbiased(design, rng):
    check_unbiased(8, design, 4.0, 60, rng)


def test_unbiased_with_blocks_of_circles(rng):
    # The square of a sum of numbers: a player's value is its number times that of all.
    n, numbers = 12, rng.normal(size=12)
    game = FunctionGame(lambda masks: (masks @ numbers) ** 2, n, cache_size=0)
    plan = plan_layers("blocks", n, np.r_[np.inf, 3.5 * np.arange(2, 13)], n_shuffles=3)
    assert sum(plan.in_circles(k) for k in plan.sampled) > 5
    found = np.array([values_of(estimate(plan, game, seed)[0]) for seed in range(15)])
    error = found.std(axis=0, ddof=1) / 15**0.5
    assert (np.abs(found.mean(axis=0) - numbers * numbers.sum()) <= 5 * error).all()
    assert (error > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "scale"), [(8, 12.0), (9, 0.3), (10, 3.0), (11, 1.0), (12, 3.0)]
)
@pytest.mark.parametrize("design", LAYER_DESIGNS)
def test_unbiased_in_2000_runs(design, n, scale, rng):
    found, runs = check_unbiased(n, design, scale, 2000, rng, sums=0.0)
    stated = np.array([run.variance for run in runs])
    if design != "iid":  # runs without a draw, which nothing can be told from
        stated = np.where(np.isfinite(stated), stated, 0.0)
    finite = np.isfinite(stated).all(axis=0)
    if found.std() > 1e-9 and finite.any():
        ratio = stated[:, finite].mean() / found.var(axis=0, ddof=1)[finite].mean()
        # The mean variance over players counts as one more draw; without a second draw,
        # differences of neighbours in size count what sets them apart.
        plan = plan_layers(design, n, wanted(n, scale), n_shuffles=3)
        least = {"blocks": 3, "poisson": plan.counts[plan.sampled].min(), "iid": 5}[
            design
        ]
        assert 0.9 < ratio < 1.1 * (1 + 1 / least)


@pytest.mark.parametrize("design", LAYER_DESIGNS)
def test_everything_enumerated_is_exact(design, rng):
    game, values = random_game(7, rng)
    plan = plan_layers(design, 7, np.full(7, np.inf))
    found, utilities = estimate(plan, game)
    np.testing.assert_allclose(values_of(found), values, atol=1e-12)
    assert not found.variance.any()
    assert utilities.n_evaluated <= 2**7
    assert plan.cost == 2**7 - 1  # all but the empty coalition


@pytest.mark.parametrize("design", ["blocks", "poisson"])
def test_nothing_drawn_has_an_infinite_variance(design, rng):
    game, _ = random_game(8, rng)
    plan = plan_layers(design, 8, np.r_[np.inf, np.full(7, 1e-9)], n_shuffles=3)
    found, _ = estimate(plan, game)
    assert not found.layers[1:].any()
    assert np.isinf(found.variance).all()


@pytest.mark.parametrize("design", LAYER_DESIGNS)
def test_layers_are_those_of_the_definition(design, rng):
    # With one layer enumerated and the others left out.
    game, _ = random_game(6, rng)
    found, _ = estimate(plan_layers(design, 6, np.full(3, np.inf)), game)
    masks = np.array([[(code >> i) % 2 == 1 for i in range(6)] for code in range(64)])
    v = game.utility(masks)
    for k in range(3):
        for i in range(6):
            gains = [
                v[code | 1 << i] - v[code]
                for code in range(64)
                if masks[code].sum() == k and not masks[code, i]
            ]
            assert len(gains) == comb(5, k)
            assert found.layers[k, i] == pytest.approx(np.mean(gains))


@pytest.mark.parametrize("design", LAYER_DESIGNS)
def test_the_core_weighs_every_layer(design, rng):
    # Utilities that depend on sizes alone: any uniform sample gives them, on average.
    game = FunctionGame(lambda masks: masks.sum(axis=1) ** 0.5, 9, cache_size=0)
    plan = plan_layers(design, 9, wanted(9, 2.0), n_shuffles=3)
    total = np.zeros(9)
    for seed in range(60):
        for members, weights, utilities in estimate(plan, game, seed)[0].core:
            np.testing.assert_allclose(utilities, members.shape[1] ** 0.5)
            assert (np.diff(np.sort(members, axis=1), axis=1) > 0).all()
            total[members.shape[1]] += weights.sum() / 60
    np.testing.assert_allclose(total[1:], 1.0, atol=0.5)


@pytest.mark.parametrize("design", LAYER_DESIGNS)
def test_players_are_equally_often_in_the_core(design):
    game = FunctionGame(lambda masks: masks.sum(axis=1) ** 0.5, 40, cache_size=0)
    plan = plan_layers(
        design, 40, np.r_[np.inf, 1 / np.arange(1, 40)], max_evaluations=2000
    )
    core = [kept for seed in range(5) for kept in estimate(plan, game, seed)[0].core]
    counts = np.bincount(
        np.concatenate([members.ravel() for members, *_ in core]), minlength=40
    )
    assert 0.6 * counts.mean() < counts.min() <= counts.max() < 1.4 * counts.mean()


@pytest.mark.parametrize("design", LAYER_DESIGNS)
def test_cost_is_about_what_is_planned(design, rng):
    game, _ = random_game(12, rng)
    for limit in (60, 300, 1500):
        plan = plan_layers(design, 12, wanted(12, 1.0), max_evaluations=limit)
        evaluated = np.mean(
            [estimate(plan, game, seed)[1].n_evaluated for seed in range(8)]
        )
        assert evaluated <= 1.2 * max(limit, plan.cost) + 15
    counts = plan_layers("blocks", 12, wanted(12, 1.0), max_evaluations=300).counts
    assert counts[1] > counts[6]


def test_counts_of_algorithm_1():
    bounds = 0.5 / np.maximum(np.arange(100), 1)
    counts = layer_counts(bounds, tol=0.05, confidence=0.95)
    # As printed, for the constant 1: Hoeffding's range is twice the bound.
    k = np.arange(1, 100)
    np.testing.assert_allclose(
        counts[1:], np.log(2 * 100 / 0.05) / (2 * 0.05**2 * k**2)
    )
    joint = layer_counts(bounds, 0.05, 0.95, "neyman")[1:]
    squares = (bounds[1:] ** 2 / joint).sum() * (2 / 100) ** 2  # sum of squared ranges
    assert 2 * np.exp(-2 * 0.05**2 / squares) == pytest.approx(0.05)
    assert joint[9] / joint[0] == pytest.approx(0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("allocation", "tol"), [("bound", 0.3), ("neyman", 0.1)])
def test_coverage_of_independent_draws(allocation, tol, rng):
    # The worst case of Hoeffding's inequality for player 0, who adds c / k or takes it
    # away.
    n, c, failure = 12, 1.0, 0.01
    codes = np.arange(2**n)
    others = codes >> 1
    sizes = ((others[:, None] >> np.arange(n - 1)) % 2).sum(axis=1)
    gains = rng.choice([-c, c], 2 ** (n - 1))[others] / np.maximum(sizes, 1)
    game = table_game(np.where(codes % 2 == 1, gains, 0.0))
    exact = np.mean([gains[sizes == k].mean() for k in range(n)])
    bounds = c / np.maximum(np.arange(n), 1)
    counts = layer_counts(bounds, tol, 1 - failure, allocation)
    plan = plan_layers("iid", n, counts)
    assert len(plan.sampled) >= 6  # it is no enumeration

    def errors(plan):
        return np.array(
            [abs(values_of(estimate(plan, game, s)[0])[0] - exact) for s in range(500)]
        )

    assert (errors(plan) < tol).mean() >= 1 - failure
    if allocation == "neyman":  # with half the range, as printed, the claim is false
        printed = plan_layers("iid", n, counts / 4)
        assert (errors(printed) < tol).mean() < 1 - failure
