"""Weights and moments of semivalues, and the enumeration oracle on games with known
values."""

from fractions import Fraction
from math import comb, prod

import numpy as np
import pytest

from skvalue.semivalues import (
    absence_moments,
    check_semivalue,
    coalition_weights,
    enumerate_semivalue,
    log_size_weights,
    size_weights,
    tabulated_semivalue,
)

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1), (1, 16), (0.5, 2.5)]


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_absence_moments_are_probabilities_of_the_weights(semivalue):
    # i given players out of n - 1 others are absent: sum over coalitions that avoid
    # them.
    n = 9
    p = coalition_weights(semivalue, n)
    expected = [sum(comb(n - 1 - i, k) * p[k] for k in range(n - i)) for i in range(n)]
    np.testing.assert_allclose(
        absence_moments(semivalue, n), expected, rtol=1e-12, atol=1e-15
    )


def test_beta_one_one_is_shapley():
    beta, shapley = coalition_weights((1, 1), 12), coalition_weights("shapley", 12)
    np.testing.assert_allclose(beta, shapley, rtol=1e-12)


def test_large_alpha_weights_small_coalitions():
    size = [size_weights(s, 20) @ np.arange(20) for s in [(16, 1), (1, 1), (1, 16)]]
    assert size[0] < size[1] < size[2]


def test_bad_semivalue():
    for bad in (
        "shapely",
        (1,),
        (1, 2, 3),
        (0, 1),
        (-1, 2),
        (1, np.nan),
        3,
        (1e-320, 1),
    ):
        with pytest.raises(ValueError, match="semivalue must be 'shapley'.* Got"):
            check_semivalue(bad)


def test_enumeration_refuses_large_games():
    with pytest.raises(ValueError, match="n must be at most 20.* Got 21"):
        enumerate_semivalue(len, 21)


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_size_weights_for_any_number_of_players(semivalue):
    for n in (1, 2, 7, 30, 100_000):
        q, logs = size_weights(semivalue, n), log_size_weights(semivalue, n)
        assert q.shape == (n,)
        assert q.sum() == pytest.approx(1, rel=1e-12)
        np.testing.assert_allclose(np.exp(logs), q, rtol=1e-6, atol=1e-300)
        if n <= 30:
            p = coalition_weights(semivalue, n)
            assert (p >= 0).all()
            of_sizes = [comb(n - 1, k) * p[k] for k in range(n)]
            np.testing.assert_allclose(q, of_sizes, rtol=1e-9)
            assert sum(of_sizes) == pytest.approx(1, rel=1e-12)


def test_weights_along_an_order_are_not_those_of_subsets():
    # n q[r-1] on a fixed order of 5 gives the Shapley value of a game of its own;
    # 2^(n-1) p[r-1], the weight for uniform subsets, does not: its mean over positions
    # is not one.
    for semivalue in ("shapley", "banzhaf", (4, 1)):
        right = 5 * size_weights(semivalue, 5)
        printed = 2**4 * coalition_weights(semivalue, 5)
        assert right.mean() == pytest.approx(1)
        assert abs(printed - right).max() > 0.3


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_a_table_of_utilities_gives_the_enumeration(semivalue, rng):
    table = rng.normal(size=2**6)
    values = enumerate_semivalue(
        lambda players: table[sum(2**i for i in players)], 6, semivalue
    )
    np.testing.assert_allclose(
        tabulated_semivalue(table, semivalue), values, atol=1e-12
    )
    with pytest.raises(ValueError, match="utilities must have 2.n entries.* Got 6"):
        tabulated_semivalue(table[:6])


def test_a_semivalue_by_a_function():
    two_others = lambda n: (np.arange(n) == 2).astype(float)  # noqa: E731
    np.testing.assert_allclose(size_weights(two_others, 5), [0, 0, 1, 0, 0])
    values = enumerate_semivalue(lambda players: len(players) ** 2, 5, two_others)
    np.testing.assert_allclose(values, 5)
    with pytest.raises(
        ValueError, match="semivalue must be 'shapley'.* of numbers from 1e-06 to 1e"
    ):
        check_semivalue(two_others)
    with pytest.raises(ValueError, match="must return 5 non-negative weights.*sum 2.5"):
        size_weights(lambda n: np.full(n, 0.5), 5)
    with pytest.raises(
        ValueError, match="must return 5 non-negative weights.* Got shape"
    ):
        size_weights(lambda n: np.ones(1), 5)


@pytest.mark.parametrize(
    "semivalue", [(1e8, 2), (1e12, 1), (1, 1e10), (1e9, 1e9), (1e300, 1)]
)
def test_beta_of_large_parameters(semivalue):
    alpha, beta = (Fraction(part) for part in semivalue)
    tolerance = {"rtol": 1e-11, "atol": 1e-300}
    for n in (1, 2, 6, 25):
        expected = []
        for k in range(n):  # E t^k (1 - t)^(n - 1 - k) of t ~ Beta(beta, alpha)
            probability = prod((beta + i for i in range(k)), start=Fraction(1))
            probability *= prod(alpha + i for i in range(n - 1 - k))
            expected.append(
                float(probability / prod(alpha + beta + i for i in range(n - 1)))
            )
        np.testing.assert_allclose(
            coalition_weights(semivalue, n), expected, **tolerance
        )
        of_sizes = expected * np.array([comb(n - 1, k) for k in range(n)], dtype=float)
        np.testing.assert_allclose(size_weights(semivalue, n), of_sizes, **tolerance)


def test_players_are_counted():
    for n in (0, -1, 1.5, None):
        for function in (coalition_weights, log_size_weights, size_weights):
            with pytest.raises(
                ValueError, match="n must be a whole number of players, at least 1"
            ):
                function("shapley", n)
