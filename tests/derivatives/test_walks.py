"""Training along permutations: their weights, and compiled steps against plain ones."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import log_loss

from skvalue.derivatives import (
    LinearGradientModel,
    walk_permutations,
    without_tails,
)
from skvalue.privacy import clip_and_noise
from skvalue.semivalues import enumerate_semivalue, size_weights

from ..valuers.gradient_semivalue.test_gradient_semivalue import (
    KINDS,
    SEMIVALUES,
    problem,
)
from .plain import PlainModel, plain_walk

each_kind = pytest.mark.parametrize("kind", KINDS)


def linear_model(X, y, players, X_val, y_val, kind, weights=None, **options):
    """A model with compiled walks; validation points have equal weights by default."""
    if weights is None:
        weights = np.full(len(X_val), 1 / len(X_val))
    return LinearGradientModel(
        X,
        y,
        players,
        X_val,
        y_val,
        weights,
        kind=kind,
        **{"n_classes": KINDS[kind], "utility": "neg_loss", "unit": "party", **options},
    )


def with_constant(X):
    return np.column_stack([X, np.ones(len(X))])


# Weights of permutations --------------------------------------------------------------


class CoalitionModel(PlainModel):
    """A game as a model: a step records a player, and a table knows the utilities."""

    def __init__(self, n, utility):
        self.n_players = n
        self.n_parameters = n
        self.utility = utility
        self.orders = []

    def start(self, rng):
        self.orders.append([])
        return np.zeros(self.n_parameters)

    def gradients(self, thetas, players):
        self.orders[-1].extend(players.tolist())
        return -np.eye(self.n_parameters)[players]

    def utilities(self, thetas):
        coalitions = [tuple(np.flatnonzero(np.rint(theta))) for theta in thetas]
        return np.array([self.utility(coalition) for coalition in coalitions])


@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=str)
def test_weighted_marginals_of_all_orders_are_the_semivalue(rng, semivalue):
    utilities = {}
    model = CoalitionModel(
        4, lambda players: utilities.setdefault(players, rng.normal())
    )
    weights = 4 * size_weights(semivalue, 4)
    walks = walk_permutations(model, weights, 200, 1.0, np.random.SeedSequence(0))
    marginals = [walk.marginals for walk in walks]
    by_order = dict(zip(map(tuple, model.orders), marginals))
    assert set(by_order) == set(permutations(range(4)))
    expected = enumerate_semivalue(model.utility, 4, semivalue)
    mean = np.mean(list(by_order.values()), axis=0)
    np.testing.assert_allclose(mean, expected, atol=1e-12)


@pytest.mark.parametrize(
    "semivalue", ["banzhaf", "leave-one-out", (16, 1), (1, 16)], ids=str
)
def test_the_rarest_sizes_have_no_weight(semivalue):
    q = size_weights(semivalue, 500)
    kept = without_tails(q)
    is_dropped = kept == 0
    assert is_dropped.mean() > 0.3
    assert q[is_dropped].sum() <= 1e-6
    np.testing.assert_allclose(kept[~is_dropped], q[~is_dropped], rtol=2e-6)
    assert kept.sum() == pytest.approx(1, abs=1e-12)


def test_equal_weights_have_no_tails():
    q = size_weights("shapley", 500)
    assert without_tails(q) is q


# Compiled walks -----------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("noise", ["none", "iid", "correlated", "own"])
def test_compiled_walks_equal_plain_ones(rng, kind, noise):
    X, y, X_val, y_val = problem(rng, KINDS[kind])
    players = rng.permutation(np.arange(24) % 5)
    model = linear_model(X, y, players, X_val, y_val, kind, clip=0.5, unit="example")
    p = model.n_parameters
    stds = np.arange(1, 6) / 5
    orders = np.array([[3, 1, 0, 4, 2], [0, 1, 2, 3, 4]])
    past = None
    plain_past = None
    if noise in ("correlated", "own"):
        orders = orders[:1]
        past = np.zeros((5, p))
        plain_past = np.zeros((5, p))
    for t in (1, 2, 3):
        weight = 1 / t if noise == "correlated" else 0.6
        drawn = stds[orders, None] * rng.normal(size=(*orders.shape, p))
        if noise == "none":
            drawn = drawn[:, :0]
        starts = rng.normal(size=(len(orders), p))
        steps = (orders, [0.4, 0.2], drawn, stds, starts)
        compiled = model.walk(*steps, past, weight, t)
        plain = plain_walk(model, *steps, plain_past, weight, t)
        for result, expected in zip(compiled, plain):
            np.testing.assert_allclose(result, expected, atol=1e-12)
        if past is not None:
            np.testing.assert_allclose(past, plain_past, atol=1e-12)


@each_kind
@pytest.mark.parametrize("unit", ["party", "example"])
def test_compiled_walks_release_the_bits_of_clip_and_noise(rng, kind, unit):
    X, y, X_val, y_val = problem(rng, KINDS[kind], n=200)
    parties = np.arange(200) // 2
    model = linear_model(X, y, parties, X_val, y_val, kind, clip=0.5, unit=unit)
    p = model.n_parameters
    orders = np.arange(100)[:, None]
    noise_std = 7.3 / np.arange(1, 101)
    noise = noise_std[orders, None] * rng.normal(size=(100, 1, p))
    noise[0, 0, 0] *= 1e18  # beyond the grid
    start = np.zeros((100, p))
    _, ends, _ = model.walk(orders, np.ones(100), noise, noise_std, start)
    gradients = model.gradients(start, orders[:, 0])
    expected = clip_and_noise(gradients, None, noise[:, 0], noise_std[orders])
    np.testing.assert_array_equal(-ends, expected)


# Losses -------------------------------------------------------------------------------


def point_weights(rng, n_points, are_equal):
    if are_equal:
        return np.full(n_points, 1 / n_points)
    return rng.dirichlet(np.ones(n_points))


@pytest.fixture
def many_classes(rng):
    """Validation points of 12 classes: the product of their sums would overflow."""
    return rng.normal(size=(700, 4)), rng.integers(0, 12, 700)


def many_class_model(X_val, y_val, weights):
    parties = np.arange(len(y_val))
    return linear_model(
        X_val, y_val, parties, X_val, y_val, "softmax", weights, n_classes=12, clip=1.0
    )


@pytest.mark.parametrize("equal", [True, False])
def test_losses_of_many_classes_are_exact(rng, many_classes, equal):
    X_val, y_val = many_classes
    weights = point_weights(rng, 700, equal)
    model = many_class_model(X_val, y_val, weights)
    thetas = rng.normal(size=(30, 12 * 5)) * np.geomspace(0.01, 300, 30)[:, None]
    for theta, utility in zip(thetas, model.utilities(thetas)):
        z = with_constant(X_val) @ theta.reshape(12, 5).T
        z -= z.max(axis=1, keepdims=True)
        losses = np.log(np.exp(z).sum(axis=1)) - z[np.arange(700), y_val]
        assert utility == pytest.approx(-weights @ losses, rel=1e-12)


@pytest.mark.parametrize("equal", [True, False])
def test_losses_of_many_classes_are_those_of_scikit_learn(rng, many_classes, equal):
    X_val, y_val = many_classes
    weights = point_weights(rng, 700, equal)
    theta = 0.06 * rng.normal(size=12 * 5)
    z = with_constant(X_val) @ theta.reshape(12, 5).T
    probabilities = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    expected = -log_loss(
        y_val, probabilities, sample_weight=weights, labels=np.arange(12)
    )
    (utility,) = many_class_model(X_val, y_val, weights).utilities(theta[None])
    assert utility == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 20])
@pytest.mark.parametrize("equal", [True, False])
def test_losses_of_two_classes_are_exact(rng, d, equal):
    n_points = 1100  # in three blocks
    X_val = rng.normal(size=(n_points, d))
    y_val = rng.integers(0, 2, n_points)
    weights = point_weights(rng, n_points, equal)
    parties = np.arange(n_points)
    model = linear_model(
        X_val, y_val, parties, X_val, y_val, "logistic", weights, clip=1.0
    )
    thetas = rng.normal(size=(30, d + 1)) * np.geomspace(0.01, 1000, 30)[:, None]
    signs = np.where(y_val, 1, -1)[:, None]
    margins = with_constant(X_val) @ thetas.T * signs
    expected = -weights @ np.logaddexp(0, -margins)
    np.testing.assert_allclose(model.utilities(thetas), expected, rtol=1e-12)


@each_kind
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "weighted"])
def test_parameters_that_are_no_numbers_have_no_utility(rng, kind, equal):
    """They are not the best ones."""
    X, y, X_val, y_val = problem(rng, KINDS[kind])
    players = np.arange(len(X))
    weights = None if equal else np.full(len(X_val), 1 / len(X_val))
    if weights is not None:
        weights[:2] *= 0.5, 1.5
    model = linear_model(X, y, players, X_val, y_val, kind, weights, clip=None)
    thetas = np.zeros((2, model.n_parameters))
    thetas[1, 0] = np.nan
    utilities = model.utilities(thetas)
    assert np.isfinite(utilities).tolist() == [True, False]


# Rows without a gradient --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["logistic", "softmax"])
def test_gradients_of_labels_that_no_validation_point_has(rng, kind):
    X, _, X_val, y_val = problem(rng, 2, n=3)
    y = np.array([0, 1, 2])
    model = linear_model(X, y, np.arange(3), X_val, y_val, kind, n_classes=2, clip=9.0)
    gradient = model.gradient(np.zeros(model.n_parameters), 2)
    # None with one output; away from both classes with two.
    row = np.append(X[2], 1.0)
    expected = np.zeros(4) if kind == "logistic" else np.r_[row, row] / 2
    np.testing.assert_allclose(gradient, expected)


def party_with(row):
    """A party of three rows, the last of which is given."""
    X = np.array([[3.0], [2.0], [row]])
    y = np.array([9.0, 9.0, 1e300])
    X_val = np.ones((2, 1))
    y_val = np.array([0.0, 1.0])
    party = np.zeros(3, int)
    return linear_model(X, y, party, X_val, y_val, "linear", clip=0.7, unit="example")


START = np.zeros((1, 2))


def walk_of_one_step(model, n_noisy):
    noise = np.zeros((1, n_noisy, 2))
    return model.walk(np.zeros((1, 1), int), [1.0], noise, 1e-9 * np.ones(1), START)


def test_a_row_without_a_finite_gradient_moves_no_other():
    # Else it would wipe out what the other rows of its party add, by more than 2 C.
    releases = []
    for row in (1.0, 1e300):
        _, ends, lost = walk_of_one_step(party_with(row), n_noisy=1)
        assert lost == -1
        releases.append(-3 * ends[0])
    assert np.linalg.norm(releases[1]) > 1.3  # of two rows, nearly in one direction
    assert np.linalg.norm(releases[0] - releases[1]) <= 0.7 + 1e-12


def test_a_gradient_that_is_not_finite_ends_a_walk_without_noise():
    model = party_with(1e300)
    _, _, lost = walk_of_one_step(model, n_noisy=0)
    assert lost == 0
    assert np.isnan(model.gradient(START[0], 0)).all()
