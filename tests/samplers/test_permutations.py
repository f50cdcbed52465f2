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


@pytest.mark.parametrize("n", [2, 3, 5, 40])
def test_orthogonal_orders_are_those_of_vectors_at_right_angles(n):
    count = min(n - 1, 4)
    vectors = np.random.default_rng(2).standard_normal((count, n))
    before = np.ones((1, n))
    for i, vector in enumerate(vectors):  # what is left without the ones before
        vectors[i] -= np.linalg.lstsq(before.T, vector)[0] @ before
        before = np.vstack([before, vectors[i]])
    orders = draw_orders(np.random.default_rng(2), n, "orthogonal")
    np.testing.assert_array_equal(orders[:count], np.argsort(vectors, axis=1))
    np.testing.assert_array_equal(orders[count:], orders[:count, ::-1])


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


def test_orders_that_go_together_have_less_variance_than_as_many_alone():
    # A game of pairs: what an order says of it, its reverse says again; right angles do not.
    n, rng = 12, np.random.default_rng(3)
    pairs = rng.normal(size=(n, n))
    pairs[:, 0] += 5

    def variance(kind, count):
        means = []
        for _ in range(count):
            orders = draw_orders(rng, n, kind)
            positions = np.argsort(orders, axis=1)
            masks = [prefix_masks(np.tile(p, (n + 1, 1)), np.arange(n + 1)) for p in positions]
            utilities = np.array([((m @ pairs) * m).sum(axis=1) for m in np.array(masks)])
            means.append(prefix_marginals(orders, utilities, np.ones(n)))
        return np.var(means, axis=0).mean() * len(orders)

    alone = variance("permutation", 1500)
    assert variance("orthogonal", 300) < 0.3 * alone


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
