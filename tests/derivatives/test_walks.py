"""Training along permutations: their weights, and compiled steps against plain ones."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import log_loss

from skvalue.derivatives import LinearGradientModel, walk_permutations
from skvalue.privacy import clip_and_noise
from skvalue.semivalues import enumerate_semivalue, size_weights

from ..valuers.gradient_semivalue.test_gradient_semivalue import (
    KINDS,
    SEMIVALUES,
    problem,
)
from .plain import PlainModel, plain_walk


class Bits(PlainModel):
    """A game as a model: a step writes a player down, and a table knows the
    utilities."""

    def __init__(self, n, utility):
        self.n_players = self.n_parameters = n
        self.utility, self.order, self.orders = utility, [], []

    def start(self, rng):
        self.order = []
        self.orders.append(self.order)
        return np.zeros(self.n_parameters)

    def gradients(self, thetas, players):
        self.order += players.tolist()
        return -np.eye(self.n_parameters)[players]

    def utilities(self, thetas):
        return np.array(
            [self.utility(tuple(np.flatnonzero(np.rint(t)))) for t in thetas]
        )


@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=str)
def test_weights_of_permutations_equal_enumeration(rng, semivalue):
    table = {}
    model = Bits(4, lambda players: table.setdefault(players, rng.normal()))
    walks = walk_permutations(
        model, 4 * size_weights(semivalue, 4), 200, 1.0, np.random.SeedSequence(0)
    )
    marginals = [walk.marginals for walk in walks]
    by_order = dict(zip(map(tuple, model.orders), marginals))
    assert set(by_order) == set(permutations(range(4)))
    expected = enumerate_semivalue(model.utility, 4, semivalue)
    np.testing.assert_allclose(
        np.mean(list(by_order.values()), axis=0), expected, atol=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", ["none", "iid", "correlated", "own"])
def test_compiled_walks_equal_plain_ones(rng, kind, noise):
    X, y, X_val, y_val = problem(rng, KINDS[kind])
    groups = rng.permutation(np.arange(24) % 5)
    model = LinearGradientModel(
        X, y, groups, X_val, y_val, np.full(15, 1 / 15), kind=kind, n_classes=KINDS[kind],
        clip=0.5, unit="example", utility="neg_loss",
    )  # fmt: skip
    past = np.zeros((5, model.n_parameters)) if noise in ("correlated", "own") else None
    pasts = [past, past if past is None else past.copy()]
    for t in (1, 2, 3):
        weight = 1 / t if noise == "correlated" else 0.6
        orders, stds = np.array([[3, 1, 0, 4, 2], [0, 1, 2, 3, 4]]), np.arange(1, 6) / 5
        orders = orders if past is None else orders[:1]
        z = stds[orders, None] * rng.normal(size=(*orders.shape, model.n_parameters))
        z = z[:, :0] if noise == "none" else z
        starts = rng.normal(size=(len(orders), model.n_parameters))
        results = [
            walk(orders, [0.4, 0.2], z, stds, starts, own, weight, t)
            for walk, own in zip((model.walk, lambda *a: plain_walk(model, *a)), pasts)
        ]
        for found, expected in zip(*results):
            np.testing.assert_allclose(found, expected, atol=1e-12)
        if past is not None:
            np.testing.assert_allclose(*pasts, atol=1e-12)


@pytest.mark.parametrize("equal", [True, False])
def test_losses_equal_those_of_scikit_learn(rng, equal):
    n_classes, m = 12, 700  # products of that many sums would overflow
    X_val, y_val = rng.normal(size=(m, 4)), rng.integers(0, n_classes, m)
    weights = np.full(m, 1 / m) if equal else rng.dirichlet(np.ones(m))
    model = LinearGradientModel(
        X_val, y_val, np.arange(m), X_val, y_val, weights, kind="softmax", n_classes=n_classes,
        clip=1.0, unit="party", utility="neg_loss",
    )  # fmt: skip
    thetas = rng.normal(size=(30, n_classes * 5)) * np.geomspace(0.01, 300, 30)[:, None]
    for theta, found in zip(thetas, model.utilities(thetas)):
        z = np.column_stack([X_val, np.ones(m)]) @ theta.reshape(n_classes, 5).T
        z -= z.max(axis=1, keepdims=True)
        losses = np.log(np.exp(z).sum(axis=1)) - z[np.arange(m), y_val]
        assert found == pytest.approx(-weights @ losses, rel=1e-12)
    z = thetas[5].reshape(n_classes, 5)
    z = np.column_stack([X_val, np.ones(m)]) @ z.T
    probabilities = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    expected = -log_loss(
        y_val, probabilities, sample_weight=weights, labels=np.arange(n_classes)
    )
    assert model.utilities(thetas)[5] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 20])
@pytest.mark.parametrize("equal", [True, False])
def test_losses_of_two_classes(rng, d, equal):
    m = 1100  # points in three blocks
    X_val, y_val = rng.normal(size=(m, d)), rng.integers(0, 2, m)
    weights = np.full(m, 1 / m) if equal else rng.dirichlet(np.ones(m))
    model = LinearGradientModel(
        X_val, y_val, np.arange(m), X_val, y_val, weights, kind="logistic", n_classes=2, clip=1.0,
        unit="party", utility="neg_loss",
    )  # fmt: skip
    thetas = rng.normal(size=(30, d + 1)) * np.geomspace(0.01, 1000, 30)[:, None]
    z = (
        np.column_stack([X_val, np.ones(m)])
        @ thetas.T
        * np.where(y_val, 1, -1)[:, None]
    )
    expected = -weights @ np.logaddexp(0, -z)
    np.testing.assert_allclose(model.utilities(thetas), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", ["party", "example"])
def test_compiled_walks_release_the_same_bits(rng, kind, unit):
    X, y, X_val, y_val = problem(rng, KINDS[kind], n=200)
    model = LinearGradientModel(
        X, y, np.arange(200) // 2, X_val, y_val, np.full(15, 1 / 15), kind=kind,
        n_classes=KINDS[kind], clip=0.5, unit=unit, utility="neg_loss",
    )  # fmt: skip
    p, players, noise_std = (
        model.n_parameters,
        np.arange(100)[:, None],
        7.3 / np.arange(1, 101),
    )
    noise = noise_std[players, None] * rng.normal(size=(100, 1, p))
    noise[0, 0, 0] *= 1e18  # beyond the grid
    start = np.zeros((100, p))
    _, ends, _ = model.walk(players, np.ones(100), noise, noise_std, start)
    gradients = model.gradients(start, players[:, 0])
    expected = clip_and_noise(gradients, None, noise[:, 0], noise_std[players])
    np.testing.assert_array_equal(-ends, expected)


def test_labels_that_no_validation_point_has(rng):
    X, _, X_val, y_val = problem(rng, 2, n=3)
    for kind, n_classes in (("logistic", 2), ("softmax", 2)):
        model = LinearGradientModel(
            X, np.array([0, 1, 2]), np.arange(3), X_val, y_val, np.full(15, 1 / 15), kind=kind,
            n_classes=n_classes, clip=9.0, unit="party", utility="neg_loss",
        )  # fmt: skip
        found = model.gradient(np.zeros(model.n_parameters), 2)
        # No gradient with one output; away from both classes with two.
        row = np.append(X[2], 1.0)
        expected = np.zeros(4) if kind == "logistic" else np.r_[row, row] / 2
        np.testing.assert_allclose(found, expected)


def test_a_row_without_a_finite_gradient_moves_no_other():
    # Else it would wipe out what the other rows of its party add, by more than 2 C.
    X_val, y_val = np.ones((2, 1)), np.array([0.0, 1.0])
    found = []
    for row in (1.0, 1e300):
        X, y = np.array([[3.0], [2.0], [row]]), np.array([9.0, 9.0, 1e300])
        model = LinearGradientModel(
            X, y, np.zeros(3, int), X_val, y_val, np.full(2, 0.5), kind="linear", n_classes=0,
            clip=0.7, unit="example", utility="neg_loss",
        )  # fmt: skip
        order, start, std = np.zeros((1, 1), int), np.zeros((1, 2)), 1e-9 * np.ones(1)
        _, ends, lost = model.walk(order, [1.0], np.zeros((1, 1, 2)), std, start)
        assert lost == -1
        found.append(-3 * ends[0])
        if row > 1:
            assert model.walk(order, [1.0], np.zeros((1, 0, 2)), std, start)[2] == 0
            assert np.isnan(model.gradient(start[0], 0)).all()
    assert np.linalg.norm(found[1]) > 1.3  # of two rows, nearly in one direction
    assert np.linalg.norm(found[0] - found[1]) <= 0.7 + 1e-12
