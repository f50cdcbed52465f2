"""Designs of Layered Shapley on small games.

Unbiased, with honest errors, at the stated cost.
"""

import tracemalloc
from math import comb

import numpy as np
import pytest
from sklearn import config_context

from skvalue.estimation import LAYER_DESIGNS, Utilities, plan_layers, play_layers
from skvalue.games import FunctionGame
from skvalue.samplers import layer_counts
from skvalue.semivalues import enumerate_semivalue

ALL_DESIGNS = pytest.mark.parametrize("design", LAYER_DESIGNS)


def table_game(table):
    """The game whose coalitions have the utilities of a table, by their codes."""
    n = len(table).bit_length() - 1
    return FunctionGame(
        lambda masks: table[masks @ (1 << np.arange(n))], n, cache_size=0
    )


def random_game(n, rng, scale=3.0):
    """Noise of every coalition, with sums of numbers of the players.

    The game, and its Shapley values.
    """
    members = (np.arange(2**n)[:, None] >> np.arange(n)) % 2
    table = members @ rng.normal(scale=scale, size=n) + rng.normal(size=2**n)
    values = enumerate_semivalue(lambda players: table[sum(1 << i for i in players)], n)
    return table_game(table), values


def size_game(n):
    """Utilities that depend on sizes alone."""
    return FunctionGame(lambda masks: masks.sum(axis=1) ** 0.5, n, cache_size=0)


def play(plan, game, seed=0):
    """The last estimate of a plan, and the utilities that it evaluated."""
    utilities = Utilities(game)
    *_, estimate = play_layers(
        plan, utilities, lambda *key: np.random.default_rng((seed, *key))
    )
    return estimate, utilities


def estimates(plan, game, n_seeds):
    """Estimates with the first seeds."""
    return [play(plan, game, seed)[0] for seed in range(n_seeds)]


def values_of(estimate):
    return estimate.layers.sum(axis=0) / estimate.layers.shape[1]


def decreasing_counts(n, scale):
    """Coalitions wanted of each size: fewer large ones."""
    return np.r_[np.inf, scale / np.arange(1, n) ** 1.5]


def check_unbiased(estimates, values, n_errors=4):
    """The mean of the values is within some standard errors; returns the values."""
    estimated = np.array([values_of(estimate) for estimate in estimates])
    error = estimated.std(axis=0, ddof=1) / np.sqrt(len(estimated))
    bias = np.abs(estimated.mean(axis=0) - values)
    assert (bias <= n_errors * error + 1e-12).all()
    return estimated


@ALL_DESIGNS
def test_values_are_unbiased(design, rng):
    game, values = random_game(8, rng)
    plan = plan_layers(design, 8, decreasing_counts(8, 4.0), n_shuffles=3)
    check_unbiased(estimates(plan, game, 60), values)


def test_blocks_on_circles_are_unbiased(rng):
    # The square of a sum of numbers: a player's value is its number times that of all.
    n = 12
    numbers = rng.normal(size=n)
    game = FunctionGame(lambda masks: (masks @ numbers) ** 2, n, cache_size=0)
    counts = np.r_[np.inf, 3.5 * np.arange(2, n + 1)]
    plan = plan_layers("blocks", n, counts, n_shuffles=3)
    assert sum(plan.in_circles(k) for k in plan.sampled) > 5
    values = numbers * numbers.sum()
    estimated = check_unbiased(estimates(plan, game, 15), values, n_errors=5)
    assert (estimated.std(axis=0) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "scale"), [(8, 12.0), (9, 0.3), (10, 3.0), (11, 1.0), (12, 3.0)]
)
@ALL_DESIGNS
def test_values_and_variances_are_unbiased_in_2000_runs(design, n, scale, rng):
    game, values = random_game(n, rng, scale=0.0)
    plan = plan_layers(design, n, decreasing_counts(n, scale), n_shuffles=3)
    runs = estimates(plan, game, 2000)
    estimated = check_unbiased(runs, values)
    stated = np.array([run.variance for run in runs])
    if design != "iid":  # runs without a draw, which nothing can be told from
        stated = np.where(np.isfinite(stated), stated, 0.0)
    is_finite = np.isfinite(stated).all(axis=0)
    if estimated.std() > 1e-9 and is_finite.any():
        variance = estimated.var(axis=0, ddof=1)
        ratio = stated[:, is_finite].mean() / variance[is_finite].mean()
        # The mean variance over players counts as one more draw; without a second draw,
        # differences of neighbours in size count what sets them apart.
        n_draws = {
            "blocks": 3,
            "poisson": plan.counts[plan.sampled].min(initial=np.inf),
            "iid": 5,
        }
        assert 0.9 < ratio < 1.1 * (1 + 1 / n_draws[design])


@ALL_DESIGNS
def test_everything_enumerated_is_exact(design, rng):
    game, values = random_game(7, rng)
    plan = plan_layers(design, 7, np.full(7, np.inf))
    estimate, utilities = play(plan, game)
    np.testing.assert_allclose(values_of(estimate), values, atol=1e-12)
    assert not estimate.variance.any()
    assert utilities.n_evaluated <= 2**7
    assert plan.cost == 2**7 - 1  # all but the empty coalition


@pytest.mark.parametrize("design", ["blocks", "poisson"])
def test_nothing_drawn_has_an_infinite_variance(design, rng):
    game, _ = random_game(8, rng)
    plan = plan_layers(design, 8, np.r_[np.inf, np.full(7, 1e-9)], n_shuffles=3)
    estimate, _ = play(plan, game)
    assert not estimate.layers[1:].any()
    assert np.isinf(estimate.variance).all()


@ALL_DESIGNS
def test_layers_are_those_of_the_definition(design, rng):
    game, _ = random_game(6, rng)
    estimate, _ = play(plan_layers(design, 6, np.full(3, np.inf)), game)
    codes = np.arange(64)
    masks = (codes[:, None] >> np.arange(6)) % 2 == 1
    utilities = game.utility(masks)
    for k in range(3):
        for player in range(6):
            without = codes[(masks.sum(axis=1) == k) & ~masks[:, player]]
            gains = utilities[without | 1 << player] - utilities[without]
            assert len(gains) == comb(5, k)
            assert estimate.layers[k, player] == pytest.approx(np.mean(gains))


@ALL_DESIGNS
def test_the_core_weighs_every_layer(design):
    # Any uniform sample has the utilities of its sizes, on average.
    plan = plan_layers(design, 9, decreasing_counts(9, 2.0), n_shuffles=3)
    total = np.zeros(9)
    for estimate in estimates(plan, size_game(9), 60):
        for members, weights, utilities in estimate.core:
            size = members.shape[1]
            np.testing.assert_allclose(utilities, size**0.5)
            assert (np.diff(np.sort(members, axis=1), axis=1) > 0).all()
            total[size] += weights.sum() / 60
    np.testing.assert_allclose(total[1:], 1.0, atol=0.5)


@ALL_DESIGNS
def test_players_are_equally_often_in_the_core(design):
    counts = np.r_[np.inf, 1 / np.arange(1, 40)]
    plan = plan_layers(design, 40, counts, max_evaluations=2000)
    members = []
    for estimate in estimates(plan, size_game(40), 5):
        members += [coalitions.members.ravel() for coalitions in estimate.core]
    n_coalitions = np.bincount(np.concatenate(members), minlength=40)
    mean = n_coalitions.mean()
    assert 0.6 * mean < n_coalitions.min() <= n_coalitions.max() < 1.4 * mean


@pytest.mark.parametrize("limit", [60, 300, 1500])
@ALL_DESIGNS
def test_the_cost_is_about_what_is_planned(design, limit, rng):
    game, _ = random_game(12, rng)
    counts = decreasing_counts(12, 1.0)
    plan = plan_layers(design, 12, counts, max_evaluations=limit)
    n_evaluated = [play(plan, game, seed)[1].n_evaluated for seed in range(8)]
    assert np.mean(n_evaluated) <= 1.2 * max(limit, plan.cost) + 15


def test_a_limit_keeps_more_small_coalitions_than_large_ones():
    counts = decreasing_counts(12, 1.0)
    plan = plan_layers("blocks", 12, counts, max_evaluations=300)
    assert plan.counts[1] > plan.counts[6]


BOUNDS = 0.5 / np.maximum(np.arange(100), 1)


def test_bound_counts_are_those_of_algorithm_1():
    counts = layer_counts(BOUNDS, tol=0.05, confidence=0.95)
    # As printed, for the constant 1: Hoeffding's range is twice the bound.
    k = np.arange(1, 100)
    printed = np.log(2 * 100 / 0.05) / (2 * 0.05**2 * k**2)
    np.testing.assert_allclose(counts[1:], printed)


def test_neyman_counts_are_those_of_hoeffding_for_the_sum_of_draws():
    counts = layer_counts(BOUNDS, 0.05, 0.95, "neyman")[1:]
    squared_ranges = (BOUNDS[1:] ** 2 / counts).sum() * (2 / 100) ** 2
    assert 2 * np.exp(-2 * 0.05**2 / squared_ranges) == pytest.approx(0.05)
    assert counts[9] / counts[0] == pytest.approx(0.1)


@ALL_DESIGNS
def test_contributions_to_large_coalitions_are_those_of_an_additive_game(design, rng):
    # All coalitions that lack at most two of 70 players are evaluated.
    n = 70
    numbers = rng.normal(size=n)
    game = FunctionGame(lambda masks: masks @ numbers, n, cache_size=0)
    counts = np.r_[np.inf, np.zeros(n - 3), np.inf, np.inf]
    plan = plan_layers(design, n, counts)
    assert plan.enumerated[-2:].all()
    estimate, _ = play(plan, game)
    np.testing.assert_allclose(estimate.layers[-2:], [numbers, numbers], atol=1e-12)


class TestCoverage:
    """The worst case of Hoeffding's inequality: player 0 adds c / k, or minus that."""

    n = 12
    failure = 0.01

    @pytest.fixture(autouse=True)
    def worst_case(self, rng):
        codes = np.arange(2**self.n)
        others = codes >> 1
        sizes = ((others[:, None] >> np.arange(self.n - 1)) % 2).sum(axis=1)
        signs = rng.choice([-1.0, 1.0], 2 ** (self.n - 1))
        gains = signs[others] / np.maximum(sizes, 1)
        self.game = table_game(np.where(codes % 2 == 1, gains, 0.0))
        self.exact = np.mean([gains[sizes == k].mean() for k in range(self.n)])

    def counts(self, allocation, tol):
        bounds = 1.0 / np.maximum(np.arange(self.n), 1)
        return layer_counts(bounds, tol, 1 - self.failure, allocation)

    def coverage(self, plan, tol):
        """Fraction of 500 estimates of the value of player 0 that are within `tol`."""
        runs = estimates(plan, self.game, 500)
        errors = [abs(values_of(run)[0] - self.exact) for run in runs]
        return np.mean(np.array(errors) < tol)

    @pytest.mark.slow
    @pytest.mark.parametrize(("allocation", "tol"), [("bound", 0.3), ("neyman", 0.1)])
    def test_independent_draws_are_within_the_tolerance(self, allocation, tol):
        plan = plan_layers("iid", self.n, self.counts(allocation, tol))
        assert len(plan.sampled) >= 6  # it is no enumeration
        assert self.coverage(plan, tol) >= 1 - self.failure

    @pytest.mark.slow
    def test_with_half_the_range_as_printed_they_are_not(self):
        plan = plan_layers("iid", self.n, self.counts("neyman", 0.1) / 4)
        assert self.coverage(plan, 0.1) < 1 - self.failure


# Memory -------------------------------------------------------------------------------


def play_layer_three(working_memory):
    """2,000 independent coalitions of three others for each of 200 players."""
    plan = plan_layers("iid", 200, [0.0, 0.0, 0.0, 2000.0])
    with config_context(working_memory=working_memory):
        return play(plan, size_game(200), seed=3)[0]


def test_independent_coalitions_need_the_working_memory_alone():
    tracemalloc.start()
    try:
        play_layer_three(1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The contributions are 3.2 megabytes, and many masks at a time 33.
    assert peak < 2.5 * 2**20


def test_estimates_in_little_memory_are_those_in_much(rng):
    game, _ = random_game(10, rng)
    counts = [0.0, 0.0, 0.0, 50.0, 70.0, 3.0]
    for design in ("blocks", "iid"):
        plan = plan_layers(design, 10, counts)
        by_memory = []
        for working_memory in (0.01, 1024):
            with config_context(working_memory=working_memory):
                by_memory.append(play(plan, game, seed=1)[0])
        little, much = by_memory
        np.testing.assert_allclose(little.layers, much.layers, rtol=1e-12)
        np.testing.assert_allclose(little.variance, much.variance, rtol=1e-10)
        # As many rows in the core, of the same members.
        members = [
            np.concatenate([core.members.ravel() for core in estimate.core])
            for estimate in by_memory
        ]
        np.testing.assert_array_equal(*map(np.sort, members))
