"""Weights and moments of semivalues, and enumeration of games with known values."""

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
ALL_SEMIVALUES = pytest.mark.parametrize("semivalue", SEMIVALUES)


def number_of_subsets(n, sizes):
    """Number of subsets of n players of each size, as floats."""
    return np.array([comb(n, k) for k in sizes], dtype=float)


@ALL_SEMIVALUES
def test_absence_moments_are_probabilities_of_the_weights(semivalue):
    # i given players out of n - 1 others are absent: sum over coalitions that avoid
    # them.
    n = 9
    weights = coalition_weights(semivalue, n)
    expected = [
        number_of_subsets(n - 1 - i, range(n - i)) @ weights[: n - i] for i in range(n)
    ]
    np.testing.assert_allclose(
        absence_moments(semivalue, n), expected, rtol=1e-12, atol=1e-15
    )


def test_beta_one_one_is_shapley():
    np.testing.assert_allclose(
        coalition_weights((1, 1), 12), coalition_weights("shapley", 12), rtol=1e-12
    )


def test_large_alpha_weights_small_coalitions():
    mean_sizes = [
        size_weights(semivalue, 20) @ np.arange(20)
        for semivalue in [(16, 1), (1, 1), (1, 16)]
    ]
    assert mean_sizes == sorted(mean_sizes)
    assert len(set(mean_sizes)) == 3


@pytest.mark.parametrize(
    "semivalue",
    [
        "shapely",
        (1,),
        (1, 2, 3),
        (0, 1),
        (-1, 2),
        (1, np.nan),
        3,
        (1e-320, 1),
        "12",
        b"12",
        {1, 2},
        {1: 2, 3: 4},
    ],
    ids=str,
)
def test_unknown_semivalues_are_refused(semivalue):
    with pytest.raises(ValueError, match="semivalue must be 'shapley'.* Got"):
        check_semivalue(semivalue)


def test_enumeration_of_large_games_is_refused():
    with pytest.raises(ValueError, match="n must be at most 20.* Got 21"):
        enumerate_semivalue(len, 21)


@pytest.mark.parametrize("n", [1, 2, 7, 30, 100_000])
@ALL_SEMIVALUES
def test_size_weights_are_probabilities_for_any_number_of_players(semivalue, n):
    q = size_weights(semivalue, n)
    assert q.shape == (n,)
    assert q.sum() == pytest.approx(1, rel=1e-12)
    logs = log_size_weights(semivalue, n)
    np.testing.assert_allclose(np.exp(logs), q, rtol=1e-6, atol=1e-300)


@pytest.mark.parametrize("n", [1, 2, 7, 30])
@ALL_SEMIVALUES
def test_size_weights_are_sums_of_coalition_weights(semivalue, n):
    weights = coalition_weights(semivalue, n)
    assert (weights >= 0).all()
    of_sizes = number_of_subsets(n - 1, range(n)) * weights
    np.testing.assert_allclose(size_weights(semivalue, n), of_sizes, rtol=1e-9)
    assert of_sizes.sum() == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1)])
def test_weights_along_an_order_are_not_those_of_subsets(semivalue):
    # n q[r-1] on a fixed order of 5 gives the Shapley value of a game of its own;
    # 2^(n-1) p[r-1], the weight for uniform subsets, does not: its mean over positions
    # is not one.
    of_order = 5 * size_weights(semivalue, 5)
    printed = 2**4 * coalition_weights(semivalue, 5)
    assert of_order.mean() == pytest.approx(1)
    assert abs(printed - of_order).max() > 0.3


@ALL_SEMIVALUES
def test_a_table_of_utilities_gives_the_enumeration(semivalue, rng):
    table = rng.normal(size=2**6)

    def utility(players):
        return table[sum(2**i for i in players)]

    np.testing.assert_allclose(
        tabulated_semivalue(table, semivalue),
        enumerate_semivalue(utility, 6, semivalue),
        atol=1e-12,
    )


def test_a_table_without_all_coalitions_is_refused():
    with pytest.raises(ValueError, match=r"utilities must have 2.n entries.* \(6,\)"):
        tabulated_semivalue(np.zeros(6))


@pytest.mark.parametrize("value", [np.nan, np.inf, None])
def test_utilities_that_are_not_finite_are_refused(value):
    def utility(players):
        return value if players == (0, 2) else len(players)

    message = r"utilities must be finite. Got .* for the coalition .* \[0, 2\]"
    with pytest.raises(ValueError, match=message):
        enumerate_semivalue(utility, 3)


@pytest.mark.parametrize("shape", [(2, 4), (1,), (0,), (3, 1), ()])
def test_tables_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match="2.n entries"):
        tabulated_semivalue(np.zeros(shape))


def two_others(n):
    """Weights of coalitions of two other players."""
    return (np.arange(n) == 2).astype(float)


def test_a_function_of_the_number_of_players_is_a_semivalue():
    np.testing.assert_allclose(size_weights(two_others, 5), [0, 0, 1, 0, 0])
    values = enumerate_semivalue(lambda players: len(players) ** 2, 5, two_others)
    np.testing.assert_allclose(values, 5)


def test_a_function_is_refused_where_it_is_not_expected():
    with pytest.raises(
        ValueError, match="semivalue must be 'shapley'.* of numbers from 1e-06 to 1e"
    ):
        check_semivalue(two_others)


@pytest.mark.parametrize(
    ("semivalue", "message"),
    [
        (lambda n: np.full(n, 0.5), "must return 5 non-negative weights.*sum 2.5"),
        (lambda n: np.ones(1), "must return 5 non-negative weights.* Got shape"),
    ],
    ids=["another sum", "another shape"],
)
def test_functions_that_return_no_probabilities_are_refused(semivalue, message):
    with pytest.raises(ValueError, match=message):
        size_weights(semivalue, 5)


@pytest.mark.parametrize("n", [1, 2, 6, 25])
@pytest.mark.parametrize(
    "semivalue", [(1e8, 2), (1e12, 1), (1, 1e10), (1e9, 1e9), (1e300, 1)]
)
def test_weights_of_large_parameters_are_exact(semivalue, n):
    alpha, beta = (Fraction(parameter) for parameter in semivalue)
    total = prod(alpha + beta + i for i in range(n - 1))
    expected = []
    for k in range(n):  # E t^k (1 - t)^(n - 1 - k) of t ~ Beta(beta, alpha)
        numerator = prod((beta + i for i in range(k)), start=Fraction(1))
        numerator *= prod(alpha + i for i in range(n - 1 - k))
        expected.append(float(numerator / total))
    tolerances = {"rtol": 1e-11, "atol": 1e-300}
    np.testing.assert_allclose(coalition_weights(semivalue, n), expected, **tolerances)
    of_sizes = expected * number_of_subsets(n - 1, range(n))
    np.testing.assert_allclose(size_weights(semivalue, n), of_sizes, **tolerances)


@pytest.mark.parametrize("n", [0, -1, 1.5, None])
@pytest.mark.parametrize(
    "function", [coalition_weights, log_size_weights, size_weights]
)
def test_numbers_of_players_that_are_none_are_refused(function, n):
    with pytest.raises(
        ValueError, match="n must be a whole number of players, at least 1"
    ):
        function("shapley", n)


@pytest.mark.parametrize("n", [0, -1, 2.0, "3", None])
def test_enumeration_of_no_number_of_players_is_refused(n):
    with pytest.raises(ValueError, match="n must be a whole number of players"):
        enumerate_semivalue(len, n)
