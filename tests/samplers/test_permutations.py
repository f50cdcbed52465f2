"""Orders: each uniform, and what goes together spread evenly."""

from itertools import permutations

import numpy as np
import pytest

from skvalue.samplers import ORDERS, draw_orders, prefix_marginals, prefix_masks
from skvalue.semivalues import tabulated_semivalue


@pytest.mark.parametrize("kind", ORDERS)
def test_every_order_is_uniform(kind):
    rng = np.random.default_rng(0)
    drawn = np.array([draw_orders(rng, 3, kind) for _ in range(3000)])
    for place in range(drawn.shape[1]):
        counts = [
            (drawn[:, place] == order).all(axis=1).sum()
            for order in permutations(range(3))
        ]
        assert abs(np.array(counts) - 500).max() < 4.5 * np.sqrt(500 * 5 / 6)


def test_antithetic_orders_are_reverses():
    one, other = draw_orders(np.random.default_rng(1), 9, "antithetic")
    np.testing.assert_array_equal(one, other[::-1])


def test_one_player_has_one_order():
    for kind in ORDERS:
        orders = draw_orders(np.random.default_rng(0), 1, kind)
        assert (orders == 0).all()
        assert orders.shape[1] == 1


@pytest.mark.parametrize("kind", ORDERS)
def test_the_mean_over_replicates_is_the_shapley_value(kind):
    n, powers = 5, 2 ** np.arange(5)
    worth = np.random.default_rng(1).normal(size=2**n)
    worth[0] = 0
    exact, rng = tabulated_semivalue(worth), np.random.default_rng(2)
    replicates = []
    for _ in range(1000):
        orders = draw_orders(rng, n, kind)
        joined = np.cumsum(powers[orders], axis=1)
        utilities = worth[np.c_[np.zeros(len(orders), int), joined]]
        replicates.append(prefix_marginals(orders, utilities, np.ones(n)))
    error = np.std(replicates, axis=0) / np.sqrt(1000)
    assert (np.abs(np.mean(replicates, axis=0) - exact) < 4.5 * error).all()


def test_prefixes_and_marginals():
    orders = np.array([[2, 0, 1], [1, 2, 0]])
    masks = prefix_masks(np.argsort(orders, axis=1), np.array([1, 2]))
    assert masks.tolist() == [[False, False, True], [False, True, True]]
    utilities = np.array([[0.0, 1.0, 3.0, 6.0], [0.0, 5.0, 5.0, 6.0]])
    mean = prefix_marginals(orders, utilities, np.array([1.0, 2.0, 3.0]))
    # Player 0 joins second and third, and so on.
    np.testing.assert_allclose(
        mean, [(2 * 2 + 3 * 1) / 2, (3 * 3 + 5) / 2, (1 + 0) / 2]
    )


def test_unknown_kind():
    with pytest.raises(
        ValueError, match="kind must be one of 'permutation'.* Got 'sobol'"
    ):
        draw_orders(np.random.default_rng(0), 3, "sobol")
