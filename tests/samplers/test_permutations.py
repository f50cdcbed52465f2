"""Permutations are uniform, and their prefixes give semivalues."""

from itertools import permutations

import numpy as np
import pytest

from skvalue.samplers import (
    ORDERS,
    draw_orders,
    marginal_masks,
    prefix_marginals,
    prefix_masks,
)
from skvalue.semivalues import size_weights, tabulated_semivalue


@pytest.mark.parametrize("kind", ORDERS)
def test_every_order_is_uniform(kind):
    rng = np.random.default_rng(0)
    replicates = np.array([draw_orders(rng, 3, kind) for _ in range(3000)])
    for orders in np.moveaxis(replicates, 1, 0):
        for order in permutations(range(3)):
            count = (orders == order).all(axis=1).sum()
            assert abs(count - 500) < 4.5 * np.sqrt(500 * 5 / 6)


def test_antithetic_orders_are_reverses():
    order, reverse = draw_orders(np.random.default_rng(1), 9, "antithetic")
    np.testing.assert_array_equal(order, reverse[::-1])


@pytest.mark.parametrize("kind", ORDERS)
def test_one_player_has_one_order(kind):
    orders = draw_orders(np.random.default_rng(0), 1, kind)
    assert (orders == 0).all()
    assert orders.shape[1] == 1


@pytest.mark.parametrize("kind", ORDERS)
def test_the_mean_over_replicates_is_the_shapley_value(kind):
    n = 5
    table = np.random.default_rng(1).normal(size=2**n)
    table[0] = 0
    exact = tabulated_semivalue(table)
    rng = np.random.default_rng(2)
    replicates = []
    for _ in range(1000):
        orders = draw_orders(rng, n, kind)
        # The coalition of the players i has index sum_i 2^i in the table.
        indices = np.cumsum(2**orders, axis=1)
        utilities = table[np.c_[np.zeros(len(orders), dtype=int), indices]]
        replicates.append(prefix_marginals(orders, utilities, np.ones(n)))
    errors = np.std(replicates, axis=0) / np.sqrt(1000)
    assert (np.abs(np.mean(replicates, axis=0) - exact) < 4.5 * errors).all()


ORDERS_BY_HAND = np.array([[2, 0, 1], [1, 2, 0]])


def test_prefixes_by_hand():
    positions = np.argsort(ORDERS_BY_HAND, axis=1)
    masks = prefix_masks(positions, np.array([1, 2]))
    assert masks.tolist() == [[False, False, True], [False, True, True]]


def test_marginals_by_hand():
    utilities = np.array([[0.0, 1.0, 3.0, 6.0], [0.0, 5.0, 5.0, 6.0]])
    weights = np.array([1.0, 2.0, 3.0])
    means = prefix_marginals(ORDERS_BY_HAND, utilities, weights)
    # Player 0 joins second and third, and so on.
    expected = [(2 * 2 + 3 * 1) / 2, (3 * 3 + 1 * 5) / 2, (1 * 1 + 2 * 0) / 2]
    np.testing.assert_allclose(means, expected)


def test_an_unknown_kind_is_refused():
    message = "kind must be one of 'permutation'.* Got 'sobol'"
    with pytest.raises(ValueError, match=message):
        draw_orders(np.random.default_rng(0), 3, "sobol")


SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1)]


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_the_mean_marginal_contribution_is_the_semivalue(semivalue):
    n = 5
    table = np.random.default_rng(1).normal(size=2**n)
    players = np.array([0, 2, 3])
    exact = tabulated_semivalue(table, semivalue)[players]
    masks = marginal_masks(
        np.random.default_rng(2), size_weights(semivalue, n), players, 4000
    )
    # The coalition of the players i has index sum_i 2^i in the table.
    without, joined = table[masks @ 2 ** np.arange(n)]
    contributions = joined - without
    errors = contributions.std(axis=0) / np.sqrt(len(contributions))
    assert (np.abs(contributions.mean(axis=0) - exact) < 4.5 * errors + 1e-12).all()


@pytest.mark.parametrize("semivalue", SEMIVALUES)
def test_a_pair_of_masks_differs_in_its_player(semivalue):
    rng = np.random.default_rng(3)
    players = np.array([3, 0])
    without, joined = marginal_masks(rng, size_weights(semivalue, 4), players, 50)
    difference = np.eye(4, dtype=bool)[players]
    np.testing.assert_array_equal(joined & ~without, np.tile(difference, (50, 1, 1)))
    assert not (without & ~joined).any()
