"""Targets, the bound on rho, and shares of money, on random monotone games."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skvalue.rewards import by_period, largest_rho, payments, rho_targets, shares
from skvalue.semivalues import enumerate_semivalue


def monotone_game(n, rng):
    """A random monotone game as a table over bit masks, often with idle steps."""
    v = np.zeros(2**n)
    for mask in range(1, 2**n):
        below = max(v[mask & ~(1 << i)] for i in range(n) if mask >> i & 1)
        v[mask] = below + rng.exponential() * (rng.random() < 0.7)
    return v


def shapley(v):
    n = int(np.log2(len(v)))
    return enumerate_semivalue(lambda players: v[sum(1 << i for i in players)], n)


GAMES = [
    monotone_game(n, np.random.default_rng(seed))
    for n in (2, 3, 4)
    for seed in range(30)
]
GAMES = [v for v in GAMES if shapley(v).max() > 0]


class TestTargets:
    def test_by_hand(self):
        np.testing.assert_allclose(rho_targets([1, 2, -1], 8.0, 2.0), [2, 8, 0])

    def test_one_party_gets_everything(self):
        for v in GAMES[::9]:
            assert rho_targets(shapley(v), v[-1], 0.3).max() == v[-1]

    def test_null_and_symmetric_parties(self):
        targets = rho_targets([0.0, 1.5, 1.5, 2.0], 5.0, 0.4)
        assert targets[0] == 0
        assert targets[1] == targets[2] < targets[3]

    def test_group_welfare_falls_with_rho(self):
        for v in GAMES[::9]:
            phi = shapley(v)
            totals = [
                rho_targets(phi, v[-1], rho).sum() for rho in (1e-9, 0.2, 0.5, 1.0, 3.0)
            ]
            assert np.all(np.diff(totals) <= 1e-12)
            if phi.min() > 0:
                assert totals[0] == pytest.approx(len(phi) * v[-1], rel=1e-6)

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.floats(0.02, 1.0))
    def test_strict_monotonicity(self, seed, n, rho):
        """F4: what a party adds more, others' coalitions unchanged, raises its
        reward."""
        rng = np.random.default_rng(seed)
        v = monotone_game(n, rng)
        i = int(rng.integers(n))
        w = v.copy()
        with_i = [mask for mask in range(2**n) if mask >> i & 1]
        more = rng.choice(with_i, rng.integers(1, len(with_i) + 1), replace=False)
        w[more] += rng.exponential(size=len(more)) + 1e-6
        if shapley(v).max() <= 1e-9:
            return
        before = rho_targets(shapley(v), v[-1], rho)[i]
        if w[-1] > before + 1e-9:
            assert rho_targets(shapley(w), w[-1], rho)[i] > before

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.floats(0.02, 1.0))
    def test_strict_desirability(self, seed, n, rho):
        """F3: a party that adds more than another to every coalition of the rest gets
        more."""
        rng = np.random.default_rng(seed)
        v = monotone_game(n, rng)
        i, j = rng.permutation(n)[:2]

        def swap(mask):
            return (
                mask & ~(1 << i | 1 << j) | (mask >> i & 1) << j | (mask >> j & 1) << i
            )

        for mask in range(2**n):  # make i and j alike, then i better at some coalition
            if mask >> j & 1 and not mask >> i & 1:
                v[swap(mask)] = v[mask]
        gain = [mask for mask in range(2**n) if mask >> i & 1 and not mask >> j & 1]
        v[rng.choice(gain, rng.integers(1, len(gain) + 1), replace=False)] += 0.1
        phi = shapley(v)
        if phi[i] > 0:
            targets = rho_targets(phi, max(v[-1], 1.0), rho)
            assert targets[i] > targets[j]


class TestLargestRho:
    def test_is_a_bound_and_tight(self):
        tight = 0
        for v in GAMES:
            phi = shapley(v)
            single = v[1 << np.arange(len(phi))]
            bound = largest_rho(phi, single, v[-1])
            if not 0 < bound < np.inf:
                continue
            assert np.all(rho_targets(phi, v[-1], bound) >= single - 1e-9)
            tight += np.any(rho_targets(phi, v[-1], bound * 1.02) < single - 1e-9)
        assert tight > 50

    def test_where_nothing_or_everything_binds(self):
        assert largest_rho([1.0, 2.0], [0.0, 1.0], 3.0) == np.inf
        assert largest_rho([0.0, 2.0], [0.5, 1.0], 3.0) == 0
        assert largest_rho([1.0, 2.0], [4.0, 1.0], 3.0) < 0
        assert largest_rho([1.0, 2.0], [0.5, 4.0], 3.0) == -np.inf


class TestShares:
    @given(
        st.lists(st.floats(-10, 1e6), min_size=1, max_size=12), st.integers(1, 10**7)
    )
    @settings(max_examples=100, deadline=None)
    def test_add_up_to_the_budget(self, values, cents):
        if max(values) <= 0:
            return
        whole = shares(values, cents / 100, unit=0.01)
        assert round(whole.sum() * 100) == cents
        np.testing.assert_allclose(whole * 100, np.round(whole * 100), atol=1e-6)
        plain = shares(values, cents / 100)
        assert plain.sum() == pytest.approx(cents / 100)
        assert np.all(np.abs(whole - plain) < 0.01 + 1e-9)
        assert np.all(plain[np.array(values) <= 0] == 0)

    def test_names_of_one_party_gain(self):
        """The clip of negative values is convex: the documented counterexample."""
        assert shares([3.0, 1.0], 8.0)[1] == 2
        assert shares([3.0, 3.0, -2.0], 8.0)[1:].sum() == 4


class TestPayments:
    def test_names_of_one_party_add_up(self):
        rows, names = np.random.default_rng(0).normal(size=(2, 60))
        for codes in (
            np.zeros(60, int),
            np.arange(60) % 7,
            np.argsort(np.argsort(names)) // 9,
        ):
            values = np.bincount(codes, rows)
            assert payments(values, 40.0).sum() == pytest.approx(
                40 * rows.sum(), abs=1e-12 * 2400
            )

    def test_undecided_values_wait_in_the_reserve(self):
        values, errors = (
            np.array([1.0, -1.0, 1.0, 0.0, 0.5]),
            np.array([0.5, 0.5, 0.52, 0.0, 0.0]),
        )
        paid = payments(values, 2.0, errors=errors, undecided="reserve")
        np.testing.assert_array_equal(paid, [2.0, -2.0, 0.0, 0.0, 1.0])
        np.testing.assert_array_equal(payments(values, 2.0) - paid, [0, 0, 2.0, 0, 0])


class TestPeriods:
    def test_sums_over_the_periods_of_those_present(self):
        values = [[0.3, 0.2, np.nan], [0.2, 0.1, 0.4]]
        np.testing.assert_allclose(by_period(values), [0.5, 0.3, 0.4])
        np.testing.assert_allclose(by_period(values, [2, 3]), [1.2, 0.7, 1.2])

    def test_joining_earlier_never_pays_less(self):
        v = monotone_game(3, np.random.default_rng(0))
        without = np.append(shapley(v[:4]), np.nan)
        late, early = (
            by_period([without, shapley(v)]),
            by_period([shapley(v), shapley(v)]),
        )
        assert late[2] <= early[2]
        np.testing.assert_allclose(late - shapley(v), [*without[:2], 0], atol=1e-12)


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


def test_refuses():
    for function, arguments, name in REFUSED:
        with pytest.raises(ValueError, match=f"{name} must"):
            function(*arguments)
