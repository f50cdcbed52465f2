"""Boosted trees in the process: closed forms, left-out folds, and what they add."""

from itertools import combinations

import numpy as np
import pytest

from skvalue.estimation import make_design
from skvalue.estimation.process import (
    MANY_COALITIONS,
    Hyper,
    HyperPrior,
    Leaves,
    blend_pair_posterior,
    blend_posterior,
    condition,
    covariance,
    cross_fit,
    fit_blend,
    left_out_errors,
    rest_weight,
    semivalue_posterior,
)
from skvalue.games import FunctionGame
from skvalue.semivalues import coalition_weights, size_weights, tabulated_semivalue

from .small_games import all_masks, play, small_half

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1), (1, 16), small_half]
PLAYERS = pytest.mark.parametrize("n", [2, 3, 7])
ALL_SEMIVALUES = pytest.mark.parametrize("semivalue", SEMIVALUES)


N = 14


def jumps(masks):
    """Utilities of coalitions of 14 players, by the first pair with only its first."""
    rng = np.random.default_rng(3)
    utilities = np.zeros(len(masks))
    is_open = np.ones(len(masks), dtype=bool)
    for first in range(0, N, 2):
        is_decided = is_open & masks[:, first] & ~masks[:, first + 1]
        utilities[is_decided] = rng.normal()
        is_open &= ~is_decided
    return utilities


def smooth(masks):
    """A saturating sum of what 14 players are worth."""
    return np.tanh(masks @ np.linspace(0.05, 0.3, N))


def drawn(design, utility):
    """The coalitions that a design knows, in its order, and their utilities."""
    codes, _ = design.logged()
    codes = np.unique(np.append(codes, 2**N - 1))
    masks = (codes[:, None] >> np.arange(N)) % 2 == 1
    return masks, utility(masks)


def at_random(m):
    """Different coalitions of 14 players, and utilities that jump."""
    masks = all_masks(N)[1 + np.random.default_rng(0).permutation(2**N - 1)[:m]]
    return masks, jumps(masks)


def random_leaves(n, k=40, seed=0):
    """Leaves of up to n players, one of which has none."""
    rng = np.random.default_rng(seed)
    side = rng.integers(3, size=(k, n))
    side[0] = 0
    return Leaves(side == 1, side == 2, rng.normal(size=k))


@pytest.fixture(scope="module")
def played():
    """The design of the game that jumps, after enough coalitions for trees."""
    design = play(FunctionGame(jumps, N), "process", "shapley", MANY_COALITIONS)
    design.values()
    return design


@pytest.fixture(scope="module")
def jumping(played):
    """The blend of that game."""
    _, blend = fit_blend(*drawn(played, jumps))
    return blend


# Closed forms -------------------------------------------------------------------------


def test_utilities_of_leaves_by_hand():
    required = np.array([[False, False], [True, False], [False, True]])
    excluded = np.array([[False, False], [False, True], [False, False]])
    leaves = Leaves(required, excluded, np.array([1.0, 10.0, 100.0]))
    masks = np.array([[False, False], [True, False], [False, True], [True, True]])
    assert leaves.utilities(masks).tolist() == [1, 11, 101, 101]


@PLAYERS
@ALL_SEMIVALUES
def test_semivalues_of_leaves_are_those_of_all_coalitions(n, semivalue):
    leaves = random_leaves(n)
    expected = tabulated_semivalue(leaves.utilities(all_masks(n)), semivalue)
    values = leaves.semivalues(size_weights(semivalue, n))
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


@PLAYERS
@ALL_SEMIVALUES
def test_interactions_of_leaves_are_sums_over_all_coalitions(n, semivalue):
    if n == 2 and callable(semivalue):
        pytest.skip("a semivalue of half of the players has none of one player")
    leaves = random_leaves(n)
    masks = all_masks(n)
    p = coalition_weights(semivalue, n - 1)
    expected = []
    for i, j in combinations(range(n), 2):
        n_others = masks.sum(axis=1) - masks[:, i] - masks[:, j]
        signs = np.where(masks[:, i] == masks[:, j], 1, -1)
        expected.append(signs * p[n_others] @ leaves.utilities(masks))
    interactions = leaves.interactions(size_weights(semivalue, n - 1))
    np.testing.assert_allclose(interactions, expected, rtol=0, atol=1e-12)


def test_leaves_for_many_coalitions_are_those_for_each():
    # Memberships are computed in tiles.
    leaves = random_leaves(N, k=5000)
    masks = all_masks(N)[:1000]
    utilities = leaves.utilities(masks)
    for row in (0, 500, 999):
        alone = leaves.utilities(masks[row : row + 1])
        np.testing.assert_allclose(utilities[row], alone[0], rtol=0, atol=1e-12)


# Left-out folds -----------------------------------------------------------------------


def test_a_left_out_prediction_does_not_depend_on_its_utility():
    masks, utilities = at_random(150)
    changed = utilities.copy()
    changed[7] += 100
    before = cross_fit(masks, utilities)
    after = cross_fit(masks, changed)
    same_fold = before.folds == before.folds[7]
    np.testing.assert_array_equal(before.left_out[same_fold], after.left_out[same_fold])
    assert (before.left_out != after.left_out).any()


def test_the_leaves_of_a_cross_fit_predict_jumps():
    masks, utilities = at_random(MANY_COALITIONS)
    everything = all_masks(N)
    predicted = cross_fit(masks, utilities).leaves.utilities(everything)
    exact = jumps(everything)
    assert np.corrcoef(predicted[1:], exact[1:])[0, 1] > 0.9


def test_a_player_whom_nothing_depends_on_is_in_no_leaf():
    masks, _ = at_random(200)
    utilities = 1.0 * (masks[:, 1] & masks[:, 2])
    leaves = cross_fit(masks, utilities).leaves
    values = leaves.semivalues(size_weights("shapley", N))
    assert np.abs(values[3:]).max() < 1e-3
    np.testing.assert_allclose(values[[1, 2]], 0.5, atol=1e-3)


def test_left_out_errors_are_those_of_predictions_from_the_other_folds():
    masks, utilities = at_random(60)
    hyper = Hyper.from_vector(HyperPrior.of(N, relevance_sd=0.5).mean)
    process = condition(hyper, masks, utilities)
    folds = np.arange(60) % 4
    matrix = covariance(masks, hyper)
    z = (utilities - process.center) / process.spread
    expected = np.zeros(60)
    for fold in range(4):
        out = folds == fold
        known = matrix[np.ix_(~out, ~out)]
        prediction = matrix[np.ix_(out, ~out)] @ np.linalg.solve(known, z[~out])
        expected[out] = process.spread * (z[out] - prediction)
    errors = left_out_errors(process, folds)
    np.testing.assert_allclose(errors, expected, rtol=0, atol=1e-5)


# What they add ------------------------------------------------------------------------


def test_few_coalitions_have_no_trees():
    masks, utilities = at_random(50)
    fitted, blend = fit_blend(masks, utilities)
    assert MANY_COALITIONS > 50
    assert fitted.trees is None
    assert blend.rest is None
    assert rest_weight(blend, np.ones(N + 1)) == 0


def test_values_of_games_that_jump_are_closer(jumping):
    q = size_weights("shapley", N)
    empty = jumps(np.zeros((1, N), dtype=bool))[0]
    exact = tabulated_semivalue(jumps(all_masks(N)), "shapley")
    alone, _ = semivalue_posterior(jumping.process, q, empty)
    values, errors = blend_posterior(jumping, q, empty)
    assert np.abs(values - exact).mean() < 0.9 * np.abs(alone - exact).mean()
    assert np.mean(np.abs(values - exact) <= 2 * errors) >= 0.8


def test_values_of_smooth_games_are_not_worse():
    game = FunctionGame(smooth, N)
    design = play(game, "process", "shapley", MANY_COALITIONS)
    _, blend = fit_blend(*drawn(design, smooth))
    q = size_weights("shapley", N)
    exact = tabulated_semivalue(smooth(all_masks(N)), "shapley")
    alone, _ = semivalue_posterior(blend.process, q, 0.0)
    values, _ = blend_posterior(blend, q, 0.0)
    assert np.abs(values - exact).mean() < 1.1 * np.abs(alone - exact).mean()


@ALL_SEMIVALUES
def test_any_semivalue_of_a_blend_is_within_its_errors(jumping, semivalue):
    empty = jumps(np.zeros((1, N), dtype=bool))[0]
    exact = tabulated_semivalue(jumps(all_masks(N)), semivalue)
    values, errors = blend_posterior(jumping, size_weights(semivalue, N), empty)
    assert (np.abs(values - exact) <= 4 * errors + 1e-9).all()


def test_shapley_values_of_a_blend_sum_to_the_gain(jumping):
    values, _ = blend_posterior(jumping, size_weights("shapley", N), 0.25)
    gain = jumps(np.ones((1, N), dtype=bool))[0] - 0.25
    np.testing.assert_allclose(values.sum(), gain, rtol=0, atol=1e-5)


def test_all_coalitions_are_exact_with_trees():
    n = 9
    masks = all_masks(n)
    utilities = np.random.default_rng(0).normal(size=2**n)
    _, blend = fit_blend(masks[1:], utilities[1:])
    assert blend.rest is not None
    values, errors = blend_posterior(blend, size_weights("shapley", n), utilities[0])
    expected = tabulated_semivalue(utilities, "shapley")
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-6)
    assert errors.max() < 1e-2


def test_interactions_of_games_that_jump(jumping):
    masks = all_masks(N)
    p = coalition_weights("banzhaf", N - 1)
    expected = []
    for i, j in combinations(range(N), 2):
        signs = np.where(masks[:, i] == masks[:, j], 1, -1)
        n_others = masks.sum(axis=1) - masks[:, i] - masks[:, j]
        expected.append(signs * p[n_others] @ jumps(masks))
    empty = jumps(masks[:1])[0]
    interactions = blend_pair_posterior(jumping, size_weights("banzhaf", N - 1), empty)
    assert np.corrcoef(interactions, expected)[0, 1] > 0.98


# Nothing changes the bits -------------------------------------------------------------


@pytest.mark.parametrize(
    "first_limit", [350, pytest.param(MANY_COALITIONS - 2, marks=pytest.mark.slow)]
)
def test_a_run_that_resumes_has_the_same_trees(played, first_limit):
    game = FunctionGame(jumps, N)
    first = play(game, "process", "shapley", first_limit)
    resumed = make_design(
        "process", "shapley", N, seed=0, empty_utility=game.empty_utility
    )
    resumed.restore(first.arrays())
    resumed.limit = MANY_COALITIONS
    while (masks := resumed.ask()) is not None:
        resumed.tell(game.utility(masks))
    np.testing.assert_array_equal(played.values(), resumed.values())
    np.testing.assert_array_equal(played.variances()[0], resumed.variances()[0])


def test_other_semivalues_follow_from_the_same_trees(played, jumping):
    # Nothing is fitted again, and the bits are those of a fit.
    q = size_weights("banzhaf", N)
    other, _, _ = played.reweighted(q)
    values, _ = blend_posterior(jumping, q, played.empty_utility)
    np.testing.assert_array_equal(other.values(), values)
