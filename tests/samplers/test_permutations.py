"""Orders: each uniform, and what goes together spread evenly."""

from itertools import permutations

import numpy as np
import pytest

from skvalue.samplers import ORDERS, draw_orders, prefix_marginals, prefix_masks


@pytest.mark.parametrize("kind", ORDERS)
def test_every_order_is_uniform(kind):
    rng = np.random.default_rng(0)
    drawn = np.array([draw_orders(rng, 3, kind) for _ in range(3000)])
    for place in range(drawn.shape[1]):
        counts = [(drawn[:, place] == order).all(axis=1).sum() for order in permutations(range(3))]
        assert abs(np.array(counts) - 500).max() < 4.5 * np.sqrt(500 * 5 / 6)


def test_antithetic_orders_are_reverses():
    one, other = draw_orders(np.random.default_rng(1), 9, "antithetic")
    np.testing.assert_array_equal(one, other[::-1])


@pytest.mark.parametrize("n", [2, 5, 8, 9, 100])
def test_latin_orders_spread_positions(n):
    orders = draw_orders(np.random.default_rng(2), n, "latin")
    assert orders.shape == (min(n, 8), n)
    positions = np.sort(np.argsort(orders, axis=1), axis=0)
    if n <= 8:
        assert (positions == np.arange(n)[:, None]).all()
    gaps = np.diff(np.vstack([positions, positions[:1] + n]), axis=0)
    assert gaps.min() >= n // 8
    assert gaps.max() <= -(-n // min(n, 8))


def test_prefixes_and_marginals():
    orders = np.array([[2, 0, 1], [1, 2, 0]])
    masks = prefix_masks(np.argsort(orders, axis=1), np.array([1, 2]))
    assert masks.tolist() == [[False, False, True], [False, True, True]]
    utilities = np.array([[0.0, 1.0, 3.0, 6.0], [0.0, 5.0, 5.0, 6.0]])
    mean = prefix_marginals(orders, utilities, np.array([1.0, 2.0, 3.0]))
    # Player 0 joins second and third, and so on.
    np.testing.assert_allclose(mean, [(2 * 2 + 3 * 1) / 2, (3 * 3 + 5) / 2, (1 + 0) / 2])


def test_unknown_kind():
    with pytest.raises(ValueError, match="kind must be one of 'permutation'.* Got 'sobol'"):
        draw_orders(np.random.default_rng(0), 3, "sobol")
