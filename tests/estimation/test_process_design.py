"""The design of the process: its plan, its values, and that nothing changes them."""

from time import thread_time

import numpy as np
import pytest

from skvalue.estimation import RunState, Stopping, make_design
from skvalue.estimation.process import (
    MAX_PLAYERS,
    Hyper,
    HyperPrior,
    ProcessDesign,
    allocate,
    blend_seconds,
    condition,
    fit_process,
    plan_masses,
    semivalue_posterior,
    size_masses,
)
from skvalue.games import FunctionGame
from skvalue.semivalues import size_weights, tabulated_semivalue

from .small_games import all_masks, estimate_of, exact_values, play, small_half

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1), (1, 3), small_half]


def lookup(utilities):
    """A game from the utilities of all coalitions."""
    n = len(utilities).bit_length() - 1
    powers = 2 ** np.arange(n)
    return FunctionGame(lambda masks: utilities[masks @ powers], n)


def ridge_game(n=10):
    """R2 of a ridge regression on rows of n parties of different sizes."""
    rng = np.random.default_rng(0)
    fractions = rng.dirichlet(np.ones(n))
    party = np.concatenate([np.arange(n), rng.choice(n, 5 * n, p=fractions)])
    X = rng.normal(size=(len(party), 5))
    coef = rng.normal(size=5)
    y = X @ coef + rng.normal(size=len(party))
    X_val = rng.normal(size=(100, 5))
    y_val = X_val @ coef + rng.normal(size=100)
    members = all_masks(n).astype(float)
    of_rows = members[:, party]
    grams = np.einsum("mr,ri,rj->mij", of_rows, X, X) + np.eye(5)
    products = of_rows @ (X * y[:, None])
    coefs = np.linalg.solve(grams, products[:, :, None])[:, :, 0]
    errors = ((coefs @ X_val.T - y_val) ** 2).mean(axis=1)
    return lookup(1 - errors / y_val.var())


def votes_game(n=10):
    """Accuracy of the vote of the three nearest of n rows, some labels wrong."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] > 0) ^ (rng.random(n) < 0.2)
    X_val = rng.normal(size=(60, 2))
    order = np.argsort(((X_val[:, None] - X) ** 2).sum(axis=2), axis=1)
    masks = all_masks(n)
    total = np.zeros(2**n)
    for nearest, label in zip(order, X_val[:, 0] > 0):
        members = masks[:, nearest]
        is_near = members & (np.cumsum(members, axis=1) <= 3)
        right = is_near @ (y[nearest] == label).astype(float)
        total += 2 * right > np.maximum(is_near.sum(axis=1), 1)
    return lookup(total / 60)


GAMES = {"ridge": ridge_game(), "votes": votes_game()}
ALL_GAMES = pytest.mark.parametrize("name", GAMES)


def drawn(design):
    """Codes of the coalitions of a design, in order."""
    codes, _ = design.logged()
    return codes


# Values -------------------------------------------------------------------------------


@ALL_GAMES
@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_values_are_within_their_errors(name, semivalue):
    game = GAMES[name]
    design = play(game, "process", semivalue, 120)
    values, errors, _, _ = estimate_of(design)
    misses = np.abs(values - exact_values(game, semivalue))
    # A few hyperparameters are those of the sizes that an asymmetric Beta weights.
    factor = 5 if isinstance(semivalue, tuple) else 4
    assert (misses <= factor * errors + 1e-9).all()


@pytest.mark.parametrize("n_coalitions", [22, 60])
@pytest.mark.parametrize(
    "semivalue", ["shapley", "banzhaf", (4, 1), (1, 4), (16, 1), (1, 16)]
)
def test_errors_have_the_size_of_misses(semivalue, n_coalitions):
    # Sizes that a Beta value hardly weights are seen too, or errors were too small.
    standardised = []
    for game in GAMES.values():
        exact = exact_values(game, semivalue)
        for seed in range(5):
            estimate = estimate_of(play(game, "process", semivalue, n_coalitions, seed))
            misses = np.abs(estimate.values - exact)
            standardised.append(misses / (estimate.errors + 1e-9))
    assert np.mean(np.array(standardised) <= 2) > 0.8
    assert np.mean(np.array(standardised) <= 0.5) < 0.75


def test_errors_allow_for_residuals_of_the_sizes_that_a_semivalue_weights():
    # A Beta value whose weight is on large coalitions, which the process predicts badly
    # or well; all hyperparameters and the spread of utilities are the same.
    rng = np.random.default_rng(0)
    masks = all_masks(9)[1 + rng.permutation(511)[:150]]
    is_large = masks.sum(axis=1) >= 6
    jumps = rng.choice([-1.0, 1.0], size=150)
    hyper = Hyper.from_vector(HyperPrior.of(9, 0.5).mean)

    def relative_error(is_unpredictable):
        process = condition(hyper, masks, np.where(is_unpredictable, jumps, 0.0))
        _, errors = semivalue_posterior(process, size_weights((1, 16), 9), 0.0)
        # On the whole, errors are in proportion to left-out residuals.
        larger = np.sqrt(np.mean(process.left_out_z**2))
        return errors.mean() / (process.spread * larger)

    assert relative_error(is_large) > 1.2 * relative_error(~is_large)


def test_errors_allow_for_the_few_residuals_that_decide_how_large_they_are():
    # Utilities that no process predicts, of all coalitions or of two; coalitions of one
    # size count equally.
    rng = np.random.default_rng(0)
    masks = all_masks(9)
    masks = masks[masks.sum(axis=1) == 4][rng.permutation(126)[:100]]
    jumps = rng.choice([-1.0, 1.0], size=100)
    hyper = Hyper.from_vector(HyperPrior.of(9, 0.5).mean)

    def relative_error(is_unpredictable):
        process = condition(hyper, masks, np.where(is_unpredictable, jumps, 0.0))
        _, errors = semivalue_posterior(process, size_weights("shapley", 9), 0.0)
        larger = np.sqrt(np.mean(process.left_out_z**2))
        return errors.mean() / (process.spread * larger)

    of_all = relative_error(np.ones(100, dtype=bool))
    of_two = relative_error(np.arange(100) < 2)
    assert of_two > 1.1 * of_all


@ALL_GAMES
def test_errors_are_smaller_than_those_of_stratified_subsets(name):
    game = GAMES[name]
    exact = exact_values(game, "shapley")

    def rmse(sampler):
        misses = []
        for seed in range(4):
            estimate = estimate_of(play(game, sampler, "shapley", 130, seed))
            misses.append(estimate.values - exact)
        return np.sqrt(np.mean(np.square(misses)))

    assert rmse("process") < 0.5 * rmse("stratified")


@pytest.mark.parametrize("semivalue", SEMIVALUES)
@pytest.mark.parametrize("n", [2, 3, 7])
def test_all_coalitions_are_exact(n, semivalue):
    utilities = np.random.default_rng(n).normal(size=2**n)
    if n == 2 and callable(semivalue):
        pytest.skip("half of two players is one: the values are singletons")
    game = lookup(utilities)
    values, errors, _, design = estimate_of(play(game, "process", semivalue, None))
    expected = tabulated_semivalue(utilities, semivalue)
    np.testing.assert_allclose(values, expected, atol=1e-6 * utilities.std())
    assert errors.max() < 1e-2 * utilities.std()
    assert design.n_evaluations <= 2**n - 1


def test_leave_one_out_needs_a_coalition_for_each_player():
    game = GAMES["ridge"]
    n = game.n_players
    design = play(game, "process", "leave-one-out", 2 * n + 1)
    expected = exact_values(game, "leave-one-out")
    np.testing.assert_allclose(design.values(), expected, atol=1e-6)
    assert design.n_evaluations == n + 1


@pytest.mark.parametrize(
    ("level", "empty"), [(0.0, 0.0), (3.0, 3.0), (1e-9, 0.0), (5.0, 2.0)]
)
def test_constant_utilities_have_the_values_of_the_empty_coalition(level, empty):
    game = FunctionGame(lambda masks: np.full(len(masks), level), 8, empty)
    values, errors, *_ = estimate_of(play(game, "process", "shapley", 40))
    np.testing.assert_allclose(values, (level - empty) / 8)
    assert (errors == 0).all()


@ALL_GAMES
def test_shapley_values_sum_to_the_gain(name):
    game = GAMES[name]
    design = play(game, "process", "shapley", 60)
    gain = design.full - game.empty_utility
    assert design.values().sum() == pytest.approx(gain, abs=1e-12)
    # Those of the posterior do before they are shifted, up to the jitter.
    masks = all_masks(10)[1::7]
    masks[-1] = True
    utilities = game.utility(masks)
    process = fit_process(masks, utilities)
    q = size_weights("shapley", 10)
    values, _ = semivalue_posterior(process, q, game.empty_utility)
    gain = utilities[-1] - game.empty_utility
    assert values.sum() == pytest.approx(gain, abs=1e-5)


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_the_unit_of_the_utility_does_not_matter(unit):
    utilities = GAMES["ridge"].utility(all_masks(10))
    plain = estimate_of(play(lookup(utilities), "process", "shapley", 60))
    scaled = estimate_of(play(lookup(unit * utilities), "process", "shapley", 60))
    np.testing.assert_allclose(scaled.values / unit, plain.values, rtol=1e-4)
    np.testing.assert_allclose(scaled.errors / unit, plain.errors, rtol=1e-3)


# Residuals and fits -------------------------------------------------------------------


def test_left_out_residuals_are_those_of_fits_without_each():
    game = GAMES["ridge"]
    masks = all_masks(10)[1::60]
    utilities = game.utility(masks)
    hyper = Hyper.from_vector(HyperPrior.of(10, 0.8).mean)
    process = condition(hyper, masks, utilities)
    z = (utilities - process.center) / process.spread
    matrix = np.linalg.inv(process.whitening.T @ process.whitening)
    for row in range(len(z)):
        others = np.arange(len(z)) != row
        inverse = np.linalg.inv(matrix[np.ix_(others, others)])
        predicted = matrix[row, others] @ inverse @ z[others]
        explained = matrix[row, others] @ inverse @ matrix[others, row]
        variance = matrix[row, row] - explained
        assert process.left_out[row] == pytest.approx(z[row] - predicted, rel=1e-6)
        expected = (z[row] - predicted) / np.sqrt(variance)
        assert process.left_out_z[row] == pytest.approx(expected, rel=1e-6)


def test_equal_coalitions_do_not_end_a_fit():
    # A merge drops them; jitter would carry them.
    game = GAMES["ridge"]
    masks = all_masks(10)[1::60]
    process = fit_process(masks, game.utility(masks))
    twice = np.concatenate([masks, masks])
    again = condition(process.hyper, twice, game.utility(twice))
    assert np.isfinite(again.alpha).all()


# The plan -----------------------------------------------------------------------------


def test_no_coalition_is_drawn_twice_nor_the_empty_or_the_full_one():
    design = play(GAMES["ridge"], "process", "shapley", 350)
    codes = drawn(design)
    assert len(np.unique(codes)) == len(codes) == 349
    assert codes.min() > 0
    assert codes.max() < 2**10 - 1


def test_players_are_members_about_equally_often():
    design = play(GAMES["ridge"], "process", "shapley", 101)
    n_memberships = ((drawn(design)[:, None] >> np.arange(10)) % 2).sum(axis=0)
    # The deviation of 100 draws at random would be 5.
    assert n_memberships.std() < 3.5


def test_masses_of_the_shapley_value_by_hand():
    n = 8
    sizes = np.arange(1, n)
    masses = size_masses(np.full(n, 1 / n))
    expected = 1 / np.sqrt(sizes * (n - sizes))
    np.testing.assert_allclose(masses[1:n] / masses[1], expected / expected[0])
    assert masses[0] == masses[n] == 0


@pytest.mark.parametrize(
    ("semivalue", "is_first", "power"),
    [
        ("shapley", True, 4),
        ("shapley", False, 1),
        ("banzhaf", True, 0.5),
        ((1, 16), True, 0.5),
        ((1, 16), False, 0.7),
    ],
)
def test_plans_draw_sizes_by_a_power_of_their_masses(semivalue, is_first, power):
    q = size_weights(semivalue, 8)
    expected = size_masses(q) ** power
    np.testing.assert_array_equal(plan_masses(q, is_first), expected)


def n_of_sizes(semivalue, limit, n=10):
    """Numbers of coalitions of each size in a run, without that of all players."""
    game = FunctionGame(lambda masks: masks.sum(axis=1) ** 0.5, n)
    codes = drawn(play(game, "process", semivalue, limit))
    sizes = ((codes[:, None] >> np.arange(n)) % 2).sum(axis=1)
    return np.bincount(sizes, minlength=n + 1)


def test_first_coalitions_for_shapley_values_are_small_or_large():
    counts = n_of_sizes("shapley", 22)
    assert counts[1] + counts[-2] >= 12
    assert counts[5] <= 2


@pytest.mark.parametrize("semivalue", [(1, 16), (16, 1)])
def test_sizes_of_little_weight_are_seen_too(semivalue):
    # Seven sizes hold less than a thousandth of the weight of the others.
    counts = n_of_sizes(semivalue, 60)
    assert (counts > 0).sum() >= 6


@pytest.mark.parametrize(
    ("masses", "count", "capacity", "counts"),
    [
        ([0, 1, 1, 0], 6, [9, 9, 9, 9], [0, 3, 3, 0]),
        ([0, 9, 1, 0], 6, [9, 2, 9, 9], [0, 2, 4, 0]),
        ([0, 1, 1, 0], 99, [9, 2, 3, 9], [0, 2, 3, 0]),
        ([0, 2, 1, 0], 2, [9, 9, 9, 9], [0, 1, 1, 0]),
        ([0, 0, 0, 0], 5, [9, 9, 9, 9], [0, 0, 0, 0]),
        ([1, 1, 1, 1], 0, [9, 9, 9, 9], [0, 0, 0, 0]),
    ],
)
def test_allocations_by_hand(masses, count, capacity, counts):
    allocated = allocate(np.array(masses, float), count, np.array(capacity))
    assert allocated.tolist() == counts


# Time ---------------------------------------------------------------------------------


class SlowFits(ProcessDesign):
    """A process whose fits are expected to take a minute."""

    closing_seconds = 60.0


@pytest.mark.parametrize(
    ("cls", "max_time", "reason"),
    [
        (SlowFits, 50.0, "max_time"),
        (SlowFits, 110.0, None),
        (ProcessDesign, 50.0, None),
    ],
)
def test_the_last_fit_counts_in_the_time_of_a_run(cls, max_time, reason):
    game = GAMES["votes"]
    design = cls(size_weights("shapley", 10), empty_utility=game.empty_utility)
    stopping = Stopping(max_evaluations=100, max_time=max_time)
    state = RunState([design], [np.arange(10)], 10, stopping)
    while (masks := state.ask()) is not None:
        state.tell(game.utility(masks))
    assert state.reason == reason
    assert design.has_values
    assert (design.n_evaluations < 100) == (reason is not None)


def test_there_is_nothing_left_to_fit_after_an_estimate():
    design = play(GAMES["votes"], "process", "shapley", 100)
    assert design.closing_seconds > 0
    design.values()
    assert design.closing_seconds == 0


def test_expected_seconds_grow_with_the_number_of_coalitions():
    seconds = [blend_seconds(m, 14) for m in (100, 1000, 4000)]
    assert 0 < seconds[0] < seconds[1] < seconds[2]
    design = play(GAMES["votes"], "process", "shapley", 12)
    # Before 100 coalitions there are plans, of fits, at 30 and 60.
    assert design.expected_seconds(100) > blend_seconds(100, 10)
    other = play(GAMES["votes"], "stratified", "shapley", 40)
    assert other.expected_seconds(100) == other.closing_seconds == 0


@pytest.mark.slow
@pytest.mark.parametrize("n_coalitions", [100, 400, 1000])
def test_a_fit_takes_about_the_expected_time(n_coalitions):
    design = play(GAMES["votes"], "process", "shapley", n_coalitions)
    start = thread_time()
    design.values()
    design.variances()
    seconds = thread_time() - start
    assert seconds / 5 < blend_seconds(n_coalitions, 10) < 5 * seconds


# Nothing changes the bits -------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 64])
def test_values_do_not_depend_on_the_size_of_calls(size):
    plain = play(GAMES["votes"], "process", "shapley", 100)
    other = play(GAMES["votes"], "process", "shapley", 100, size=size)
    np.testing.assert_array_equal(drawn(plain), drawn(other))
    np.testing.assert_array_equal(plain.values(), other.values())


@pytest.mark.parametrize("first_limit", [11, 30, 31, 45, 77])
@pytest.mark.parametrize("size", [7, 4096])
def test_a_run_that_resumes_is_one_that_was_never_ended(first_limit, size):
    game = GAMES["votes"]
    first = play(game, "process", "shapley", first_limit, size=size)
    first.values()
    resumed = make_design(
        "process", "shapley", 10, seed=0, empty_utility=game.empty_utility
    )
    resumed.restore(first.arrays())
    resumed.limit = 100
    while (masks := resumed.ask()) is not None:
        resumed.tell(game.utility(masks))
    plain = play(game, "process", "shapley", 100)
    np.testing.assert_array_equal(drawn(plain), drawn(resumed))
    np.testing.assert_array_equal(plain.values(), resumed.values())
    np.testing.assert_array_equal(plain.variances()[0], resumed.variances()[0])


def test_a_merge_has_the_values_of_all_its_coalitions_in_either_order():
    one = play(GAMES["votes"], "process", "shapley", 60, seed=0)
    other = play(GAMES["votes"], "process", "shapley", 70, seed=1)
    n_distinct = len(np.union1d(drawn(one), drawn(other)))
    assert n_distinct < len(drawn(one)) + len(drawn(other))  # some are in both

    merged = play(GAMES["votes"], "process", "shapley", 60, seed=0)
    merged.values()
    merged.merge(other)
    other.merge(one)
    np.testing.assert_array_equal(merged.values(), other.values())
    exact = exact_values(GAMES["votes"], "shapley")
    assert np.abs(merged.values() - exact).max() < np.abs(one.values() - exact).max()


def test_a_merge_resumes_without_the_coalitions_of_both():
    game = GAMES["votes"]
    design = play(game, "process", "shapley", 60, seed=0)
    design.merge(play(game, "process", "shapley", 60, seed=1))
    n_before = len(drawn(design))
    design.limit = 400
    while (masks := design.ask()) is not None:
        design.tell(game.utility(masks))
    codes = drawn(design)
    planned_before = design.plan_first  # coalitions planned after the merge
    new = codes[n_before:][max(0, planned_before - n_before) :]
    assert len(np.unique(new)) == len(new)
    assert not np.isin(new[-100:], codes[:n_before]).any()


# Other semivalues, and interactions ---------------------------------------------------


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_another_semivalue_is_that_of_the_same_process(semivalue):
    game = GAMES["ridge"]
    design = play(game, "process", "shapley", 120)
    values = design.values()
    q = size_weights(semivalue, 10)
    other, *variances = design.reweighted(q)
    misses = np.abs(other.values() - exact_values(game, semivalue))
    errors = np.sqrt(other.variances()[0])
    assert (misses <= 4 * errors + 1e-9).all()
    assert variances == [0.0, 0.0]
    np.testing.assert_array_equal(design.values(), values)  # as they were


def exact_interactions(game, semivalue):
    design = play(game, "exact", semivalue, None)
    return design.interactions(size_weights(semivalue, game.n_players - 1))


def test_exact_interactions_by_hand():
    # Gloves: the left one, and two right ones that replace each other.
    utilities = np.array([0, 0, 0, 1, 0, 1, 0, 1.0])
    expected = [[0, 0.5, 0.5], [0.5, 0, -0.5], [0.5, -0.5, 0]]
    interactions = exact_interactions(lookup(utilities), "shapley")
    np.testing.assert_allclose(interactions, expected)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1)])
def test_interactions_of_all_coalitions_are_exact(semivalue):
    utilities = np.random.default_rng(0).normal(size=2**6)
    game = lookup(utilities)
    design = play(game, "process", semivalue, None)
    interactions = design.interactions(size_weights(semivalue, 5))
    expected = exact_interactions(game, semivalue)
    np.testing.assert_allclose(interactions, expected, atol=1e-5)


@ALL_GAMES
def test_interactions_of_some_coalitions_are_near_the_exact_ones(name):
    game = GAMES[name]
    design = play(game, "process", "shapley", 300)
    interactions = design.interactions(size_weights("shapley", 9))
    exact = exact_interactions(game, "shapley")
    error = np.sqrt(np.mean((interactions - exact) ** 2))
    assert error < {"ridge": 0.35, "votes": 0.6}[name] * exact.std()
    np.testing.assert_array_equal(interactions, interactions.T)
    assert (np.diag(interactions) == 0).all()


def test_interactions_of_constant_utilities():
    game = FunctionGame(lambda masks: np.full(len(masks), 5.0), 4, empty_utility=2.0)
    design = play(game, "process", "shapley", 12)
    exact = exact_interactions(game, "shapley")
    interactions = design.interactions(size_weights("shapley", 3))
    np.testing.assert_allclose(interactions, exact)


# Refusals -----------------------------------------------------------------------------


def test_too_many_players_are_refused():
    with pytest.raises(ValueError, match="at most 32 players.*Got 33"):
        make_design("process", "shapley", MAX_PLAYERS + 1)


def test_there_are_no_values_of_fewer_coalitions_than_players():
    design = play(GAMES["ridge"], "process", "shapley", 10)
    assert not design.has_values
    assert play(GAMES["ridge"], "process", "shapley", 11).has_values
