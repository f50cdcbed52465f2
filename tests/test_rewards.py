"""Targets, the bound on rho, and shares of money, on random monotone games."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skvalue.rewards import by_period, largest_rho, payments, rho_targets, shares
from skvalue.semivalues import enumerate_semivalue


def monotone_game(n, rng):
    """A random monotone game: utilities by bit mask, often equal to a smaller one."""
    utilities = np.zeros(2**n)
    for mask in range(1, 2**n):
        largest_before = max(
            utilities[mask & ~(1 << i)] for i in range(n) if mask >> i & 1
        )
        utilities[mask] = largest_before + rng.exponential() * (rng.random() < 0.7)
    return utilities


def shapley(utilities):
    n = int(np.log2(len(utilities)))

    def utility(players):
        return utilities[sum(1 << i for i in players)]

    return enumerate_semivalue(utility, n)


SIZES_AND_SEEDS = list(product((2, 3, 4), range(30)))
GAMES = [monotone_game(n, np.random.default_rng(seed)) for n, seed in SIZES_AND_SEEDS]
GAMES = [utilities for utilities in GAMES if shapley(utilities).max() > 0]


# Targets ------------------------------------------------------------------------------


def test_targets_by_hand():
    np.testing.assert_allclose(rho_targets([1, 2, -1], 8.0, 2.0), [2, 8, 0])


def test_the_party_of_largest_value_gets_the_grand_value():
    for utilities in GAMES[::9]:
        targets = rho_targets(shapley(utilities), utilities[-1], 0.3)
        assert targets.max() == utilities[-1]


def test_a_null_party_gets_nothing_and_equal_parties_get_the_same():
    targets = rho_targets([0.0, 1.5, 1.5, 2.0], 5.0, 0.4)
    assert targets[0] == 0
    assert targets[1] == targets[2] < targets[3]


def test_the_sum_of_targets_falls_with_rho():
    for utilities in GAMES[::9]:
        values = shapley(utilities)
        totals = [
            rho_targets(values, utilities[-1], rho).sum()
            for rho in (1e-9, 0.2, 0.5, 1.0, 3.0)
        ]
        assert np.all(np.diff(totals) <= 1e-12)
        if values.min() > 0:
            assert totals[0] == pytest.approx(len(values) * utilities[-1], rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.floats(0.02, 1.0))
def test_a_party_that_adds_more_gets_more(seed, n, rho):
    """F4, strict monotonicity; the coalitions without the party do not change."""
    rng = np.random.default_rng(seed)
    utilities = monotone_game(n, rng)
    i = int(rng.integers(n))
    raised = utilities.copy()
    with_i = [mask for mask in range(2**n) if mask >> i & 1]
    chosen = rng.choice(with_i, rng.integers(1, len(with_i) + 1), replace=False)
    raised[chosen] += rng.exponential(size=len(chosen)) + 1e-6
    if shapley(utilities).max() <= 1e-9:
        return
    before = rho_targets(shapley(utilities), utilities[-1], rho)[i]
    if raised[-1] > before + 1e-9:
        assert rho_targets(shapley(raised), raised[-1], rho)[i] > before


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.floats(0.02, 1.0))
def test_a_party_that_adds_more_than_another_gets_more(seed, n, rho):
    """F3, strict desirability: to every coalition of the other parties."""
    rng = np.random.default_rng(seed)
    utilities = monotone_game(n, rng)
    i, j = rng.permutation(n)[:2]

    def swap(mask):
        """The coalition with the places of i and j exchanged."""
        unchanged = mask & ~(1 << i | 1 << j)
        return unchanged | (mask >> i & 1) << j | (mask >> j & 1) << i

    # Make i and j alike, then i better at some coalitions.
    for mask in range(2**n):
        if mask >> j & 1 and not mask >> i & 1:
            utilities[swap(mask)] = utilities[mask]
    only_i = [mask for mask in range(2**n) if mask >> i & 1 and not mask >> j & 1]
    chosen = rng.choice(only_i, rng.integers(1, len(only_i) + 1), replace=False)
    utilities[chosen] += 0.1
    values = shapley(utilities)
    if values[i] > 0:
        targets = rho_targets(values, max(utilities[-1], 1.0), rho)
        assert targets[i] > targets[j]


# The largest rho ----------------------------------------------------------------------


def test_the_largest_rho_is_a_bound_and_tight():
    n_tight = 0
    for utilities in GAMES:
        values = shapley(utilities)
        standalone = utilities[1 << np.arange(len(values))]
        rho = largest_rho(values, standalone, utilities[-1])
        if not 0 < rho < np.inf:
            continue
        targets = rho_targets(values, utilities[-1], rho)
        assert np.all(targets >= standalone - 1e-9)
        beyond = rho_targets(values, utilities[-1], rho * 1.02)
        n_tight += np.any(beyond < standalone - 1e-9)
    assert n_tight > 50


@pytest.mark.parametrize(
    ("values", "standalone", "expected"),
    [
        ([1.0, 2.0], [0.0, 1.0], np.inf),
        ([0.0, 2.0], [0.5, 1.0], 0),
        ([1.0, 2.0], [0.5, 4.0], -np.inf),
    ],
)
def test_the_largest_rho_where_every_or_no_rho_will_do(values, standalone, expected):
    assert largest_rho(values, standalone, 3.0) == expected


def test_the_largest_rho_is_negative_for_more_than_the_grand_value_alone():
    assert largest_rho([1.0, 2.0], [4.0, 1.0], 3.0) < 0


# Shares -------------------------------------------------------------------------------


@given(st.lists(st.floats(-10, 1e6), min_size=1, max_size=12), st.integers(1, 10**7))
@settings(max_examples=100, deadline=None)
def test_shares_add_up_to_the_budget(values, n_cents):
    if max(values) <= 0:
        return
    rounded = shares(values, n_cents / 100, unit=0.01)
    assert round(rounded.sum() * 100) == n_cents
    np.testing.assert_allclose(rounded * 100, np.round(rounded * 100), atol=1e-6)
    exact = shares(values, n_cents / 100)
    assert exact.sum() == pytest.approx(n_cents / 100)
    assert np.all(np.abs(rounded - exact) < 0.01 + 1e-9)
    assert np.all(exact[np.array(values) <= 0] == 0)


def test_several_names_of_a_party_gain_shares():
    """The clip of negative values is convex: the documented counterexample."""
    assert shares([3.0, 1.0], 8.0)[1] == 2
    assert shares([3.0, 3.0, -2.0], 8.0)[1:].sum() == 4


# Payments -----------------------------------------------------------------------------


def test_payments_of_several_names_add_up():
    row_values, order = np.random.default_rng(0).normal(size=(2, 60))
    expected = pytest.approx(40 * row_values.sum(), abs=1e-12 * 2400)
    one_name = np.zeros(60, int)
    random_names = np.argsort(np.argsort(order)) // 9
    for names in (one_name, np.arange(60) % 7, random_names):
        values = np.bincount(names, row_values)
        assert payments(values, 40.0).sum() == expected


def test_undecided_values_wait_in_the_reserve():
    values = np.array([1.0, -1.0, 1.0, 0.0, 0.5])
    errors = np.array([0.5, 0.5, 0.52, 0.0, 0.0])
    paid = payments(values, 2.0, errors=errors, undecided="reserve")
    np.testing.assert_array_equal(paid, [2.0, -2.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(payments(values, 2.0) - paid, [0, 0, 2.0, 0, 0])


# Periods ------------------------------------------------------------------------------


def test_values_are_summed_over_the_periods_of_a_party():
    values = [[0.3, 0.2, np.nan], [0.2, 0.1, 0.4]]
    np.testing.assert_allclose(by_period(values), [0.5, 0.3, 0.4])
    np.testing.assert_allclose(by_period(values, [2, 3]), [1.2, 0.7, 1.2])


def test_joining_earlier_never_pays_less():
    utilities = monotone_game(3, np.random.default_rng(0))
    without = np.append(shapley(utilities[:4]), np.nan)
    values = shapley(utilities)
    late = by_period([without, values])
    early = by_period([values, values])
    assert late[2] <= early[2]
    np.testing.assert_allclose(late - values, [*without[:2], 0], atol=1e-12)


# Refusals -----------------------------------------------------------------------------


REFUSED = [
    (rho_targets, ([0.0, -1.0], 1.0, 0.5), "values"),
    (rho_targets, ([1.0, np.nan], 1.0, 1.0), "values"),
    (rho_targets, ([[1.0]], 1.0, 1.0), "values"),
    (rho_targets, ([1.0], 0.0, 0.5), "grand_value"),
    (rho_targets, ([1.0], 1.0, -1), "rho"),
    (largest_rho, ([1.0, 2.0], [1.0], 3.0), "standalone"),
    (largest_rho, ([1.0], [-1.0], 3.0), "standalone"),
    (largest_rho, ([0.0], [1.0], 3.0), "values"),
    (shares, ([0.0, -1.0], 10.0), "values"),
    (shares, ([1.0], 1.1, 0.25), "budget"),
    (shares, ([1.0], np.inf), "budget"),
    (payments, ([1.0], -2.0), "price"),
    (payments, ([np.nan], 2.0), "values"),
    (partial(payments, undecided="drop"), ([1.0], 2.0), "undecided"),
    (partial(payments, undecided="reserve"), ([1.0], 2.0), "errors"),
    (partial(payments, undecided="reserve", errors=[1.0, 2.0]), ([1.0], 2.0), "errors"),
    (partial(payments, undecided="reserve", errors=[-1.0]), ([1.0], 2.0), "errors"),
    (by_period, ([1.0],), "values_of_periods"),
    (by_period, ([[1.0, np.inf]],), "values_of_periods"),
    (by_period, ([[1.0], [np.nan]],), "values_of_periods"),
    (by_period, ([[1.0], [2.0]], [1.0]), "lengths"),
    (by_period, ([[1.0], [2.0]], [1.0, 0.0]), "lengths"),
]


@pytest.mark.parametrize(("function", "arguments", "name"), REFUSED)
def test_arguments_out_of_range_are_refused(function, arguments, name):
    with pytest.raises(ValueError, match=f"{name} must"):
        function(*arguments)
