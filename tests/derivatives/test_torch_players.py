"""Clipped gradients and utilities of torch modules, against loops over rows."""

import numpy as np
import pytest
from sklearn import config_context

torch = pytest.importorskip("torch")

from skvalue.derivatives import GradientModel, public_learning_rate
from skvalue.privacy import clip_and_noise

from .torch_models import (
    N_PARAMETERS,
    Net,
    TorchGradientModel,
    cross_entropy,
    gradient_by_autograd,
    image_data,
    layer,
    make,
    table_data,
)

DEVICES = ["cpu", "cuda"]
each_unit = pytest.mark.parametrize("unit", ["party", "example"])


@pytest.fixture
def images(rng):
    return image_data(rng)


@pytest.fixture
def table(rng):
    return table_data(rng)


def memory_of(n_rows, unit):
    """MiB of working memory in which about that many rows of `images` are computed
    together."""
    n_numbers = 36 + 2 * 48 + 48 + 3  # the input, three hidden layers and the outputs
    n_bytes = 2 * 8 * n_numbers
    if unit == "example":
        n_bytes += 24 * N_PARAMETERS
    return 4 * n_rows * n_bytes / 2**20


# Gradients ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frozen", "unit", "clip"),
    [
        (False, "party", 0.3),
        (True, "party", None),
        (False, "example", None),
        (True, "example", 0.3),
    ],
)
def test_a_gradient_is_that_of_a_loop_over_rows(images, rng, frozen, unit, clip):
    module = Net(frozen)
    model = make(module, images, clip=clip, unit=unit)
    assert isinstance(model, GradientModel)
    n_trained = N_PARAMETERS - 36 if frozen else N_PARAMETERS
    assert (model.n_players, model.n_parameters) == (3, n_trained)
    for player in range(3):
        theta = 0.3 * rng.normal(size=n_trained)
        gradient = model.gradient(theta, player)
        assert gradient.dtype == np.float64
        expected = gradient_by_autograd(module, images, theta, player, clip, unit)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-13)
        if clip is not None:
            assert np.linalg.norm(gradient) <= clip * (1 + 1e-12)


@pytest.fixture
def images_without_labels(images):
    """Images, of which player 1 has none of a known class."""
    X, y, players, *points = images
    y = np.where(players == 1, 3, y)
    y[3] = 3
    return X, y, players, *points


@pytest.mark.parametrize(
    ("unit", "clip", "blocked"),
    [
        ("party", 0.3, False),
        ("party", None, True),
        ("example", None, False),
        ("example", 0.3, True),
    ],
)
def test_gradients_of_many_players_at_once_are_those_of_each(
    images_without_labels, rng, monkeypatch, unit, clip, blocked
):
    model = make(Net(), images_without_labels, clip=clip, unit=unit, n_classes=3)
    players = np.array([2, 0, 1, 2])  # of four, five and no rows
    thetas = 0.3 * rng.normal(size=(4, N_PARAMETERS))
    expected = [model.gradient(theta, player) for theta, player in zip(thetas, players)]
    assert np.abs(expected).max() > 0.05
    if blocked:  # two rows at a time
        monkeypatch.setattr(model, "batch_size", lambda n: (n, 1))
    with config_context(working_memory=memory_of(9, unit) if blocked else 1024):
        gradients = model.gradients(thetas, players)
    np.testing.assert_allclose(gradients, expected, rtol=1e-11, atol=1e-13)
    assert not gradients[2].any()

    monkeypatch.setattr(model, "batch_size", lambda n: (1, 1))  # no room for two
    np.testing.assert_array_equal(model.gradients(thetas, players), expected)


@each_unit
def test_blocks_of_rows_change_nothing(images, rng, unit):
    thetas = rng.normal(size=(2, N_PARAMETERS))
    model = make(Net(), images, unit=unit)
    gradient = model.gradient(thetas[0], 0)
    utilities = model.utilities(thetas)
    blocked = make(Net(), images, unit=unit)
    with config_context(working_memory=memory_of(2, unit)):
        np.testing.assert_allclose(blocked.gradient(thetas[0], 0), gradient, rtol=1e-12)
        np.testing.assert_allclose(blocked.utilities(thetas), utilities, rtol=1e-12)


@pytest.mark.parametrize("private", [False, True])
def test_blocks_of_columns_change_nothing(rng, private):
    # Gradients of 12 rows in 20,050 parameters: more numbers than are clipped at a
    # time.
    X = rng.normal(size=(13, 400))
    y = rng.integers(0, 50, 13)
    X[3] *= 1e-3  # shorter than the bound
    rows = np.arange(12)
    if private:
        X[5] = 1e200  # has no finite gradient
        rows = np.delete(rows, 5)
    data = X, y, np.r_[np.zeros(12, int), 1], X[:4], y[:4]
    module = torch.nn.Linear(400, 50, dtype=torch.float64)
    model = make(module, data, unit="example", clip=2.0, private=private)
    theta = 0.1 * rng.normal(size=20_050)
    kept = X[rows], y[rows], np.zeros(len(rows), int)
    mean = gradient_by_autograd(module, kept, theta, 0, 2.0, "example")
    expected = mean * len(rows) / 12
    np.testing.assert_allclose(
        model.gradient(theta, 0), expected, rtol=1e-11, atol=1e-14
    )


@each_unit
def test_walks_release_the_bits_of_clip_and_noise(images, rng, unit):
    model = make(Net(), images, unit=unit)
    noise_std = 7.3 * np.array([1.0, 0.5, 0.2])
    orders = np.array([[2], [0], [1], [2]])
    thetas = np.zeros((4, N_PARAMETERS))
    noise = noise_std[orders, None] * rng.normal(size=(4, 1, N_PARAMETERS))
    noise[0, 0, 0] *= 1e18  # beyond the grid
    path, ends, _ = model.walk(orders, np.ones(4), noise, noise_std, thetas)
    np.testing.assert_array_equal(model.as_array(path[:, 1]), ends)
    gradients = model.gradients(thetas, orders[:, 0])
    expected = clip_and_noise(gradients, None, noise[:, 0], noise_std[orders])
    np.testing.assert_array_equal(-ends, expected)


@each_unit
def test_coordinates_are_those_of_the_projected_gradient(images, rng, unit):
    basis, _ = np.linalg.qr(rng.normal(size=(N_PARAMETERS, 4)))
    module = Net()
    model = make(module, images, clip=0.2, unit=unit, start="given", basis=basis)
    full = make(module, images, clip=None, start="given")
    assert (model.n_parameters, model.start(None).tolist()) == (4, [0] * 4)
    z = 0.2 * rng.normal(size=(3, 4))
    thetas = full.start(None) + z @ basis.T
    np.testing.assert_allclose(model.utilities(z), full.utilities(thetas), rtol=1e-12)
    gradients = np.array([model.gradient(z[player], player) for player in range(3)])
    at_once = model.gradients(z, np.arange(3))
    np.testing.assert_allclose(at_once, gradients, rtol=1e-11)
    if unit == "party":
        for player, gradient in enumerate(gradients):
            projected = full.gradient(thetas[player], player) @ basis
            projected /= max(1.0, np.linalg.norm(projected) / 0.2)
            np.testing.assert_allclose(gradient, projected, rtol=1e-11)


# Outputs and labels -------------------------------------------------------------------


def one_output(shape):
    """A linear layer of one output per row, of a shape."""

    class One(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x).reshape(len(x), *shape)

    return One(4, 1, dtype=torch.float64)


def mean_gradient(residuals, X):
    """Of a linear layer: weights, then the bias."""
    return np.r_[residuals @ X, residuals.sum()] / len(X)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_target_takes_one_output(table, rng, shape):
    X, y, players, X_val, y_val = table
    data = X, y.astype(float), players, X_val, y_val.astype(float)
    theta = rng.normal(size=5)
    rows = players == 1
    errors = X @ theta[:4] + theta[4] - y
    expected = mean_gradient(2 * errors[rows], X[rows])
    model = make(one_output(shape), data, clip=None)
    np.testing.assert_allclose(model.gradient(theta, 1), expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_two_classes_may_take_one_output(table, rng, shape):
    X, y, players, X_val, y_val = table
    data = X, y % 2, players, X_val, y_val % 2
    theta = rng.normal(size=5)
    rows = players == 1
    residuals = 1 / (1 + np.exp(-(X @ theta[:4] + theta[4]))) - y % 2
    expected = mean_gradient(residuals[rows], X[rows])
    model = make(one_output(shape), data, torch.nn.BCEWithLogitsLoss(), clip=None)
    np.testing.assert_allclose(model.gradient(theta, 1), expected, rtol=1e-12)


def softmax_gradient(theta, x, label):
    """By hand, of a linear layer (weights, then biases) and cross-entropy."""
    weights = theta[:12].reshape(3, 4)
    scores = weights @ x + theta[12:]
    odds = np.exp(scores - scores.max())
    residual = odds / odds.sum() - np.eye(3)[label]
    return np.concatenate([np.outer(residual, x).ravel(), residual])


def test_rows_of_unknown_labels_count_and_have_no_gradient(table):
    X, y, players, *points = table
    theta = np.linspace(-1, 1, 15)
    y = np.where(np.arange(10) == 2, 3, y)  # row 2, one of three of player 2
    model = make(layer(), (X, y, players, *points), clip=None, n_classes=3)
    assert model.n_players == 4
    rows = [row for row in np.flatnonzero(players == 2) if row != 2]
    total = sum(softmax_gradient(theta, X[row], y[row]) for row in rows)
    expected = total / (len(rows) + 1)
    np.testing.assert_allclose(model.gradient(theta, 2), expected, rtol=1e-12)


def test_a_player_of_unknown_labels_alone_has_no_gradient(table):
    X, y, players, *points = table
    y = np.where(players == 2, 3, y)
    model = make(layer(), (X, y, players, *points), n_classes=3)
    assert not model.gradient(np.linspace(-1, 1, 15), 2).any()


@each_unit
def test_gradients_that_are_not_finite_are_zero_in_private(table, unit):
    X, *others = table
    X = X.copy()
    X[0] = 1e200
    data = X, *others
    theta = np.full(15, 1e200)
    gradient = make(layer(), data, unit=unit).gradient(theta, 0)
    assert not np.isfinite(gradient).all()
    private = make(layer(), data, unit=unit, private=True).gradient(theta, 0)
    assert np.isfinite(private).all()
    # Such a row must not remove the gradients of the others: its effect would be larger
    # then.
    assert private.any()


# Utilities ----------------------------------------------------------------------------


@pytest.mark.parametrize("utility", ["neg_loss", "accuracy"])
def test_utilities_are_those_of_a_loop(images, rng, utility):
    module = Net()
    weights = np.arange(1, 8) / 28
    model = make(module, images, utility=utility, weights_val=weights)
    thetas = rng.normal(size=(5, N_PARAMETERS))
    X_val = torch.tensor(images[3])
    y_val = torch.tensor(images[4])
    expected = []
    for theta in thetas:
        torch.nn.utils.vector_to_parameters(torch.tensor(theta), module.parameters())
        with torch.no_grad():
            outputs = module(X_val)
        if utility == "accuracy":
            scores = (outputs.argmax(1) == y_val).double()
        else:
            scores = -cross_entropy(outputs, y_val, reduction="none")
        expected.append(float(scores.numpy() @ weights))
    np.testing.assert_allclose(model.utilities(thetas), expected, rtol=1e-12)


def ends_of_rates(table, n_together, noise_std):
    """Parameters whose utilities choose a learning rate, (3, n_rates + 1, p)."""
    X, y, *_ = table
    thetas_of_calls = []

    class Recorded(TorchGradientModel):
        def utilities(self, thetas):
            thetas_of_calls.append(thetas)
            return super().utilities(thetas)

        def batch_size(self, n_walks):
            return n_together, 3

    def make_model(rows, players, points):
        data = X[rows], y[rows], players, X[points], y[points]
        return Recorded(layer(), None, *data, clip=0.5, start="given", device="cpu")

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    rate = public_learning_rate(make_model, 10, 7, 2, rng, noise_std)
    assert 0.001 <= rate <= 3
    return np.array(thetas_of_calls)


@pytest.mark.parametrize("noise_std", [0.0, 0.3])
def test_learning_rates_at_once_and_one_by_one_are_the_same(table, noise_std):
    at_once = ends_of_rates(table, 8, noise_std)
    one_by_one = ends_of_rates(table, 1, noise_std)
    assert at_once.shape == (3, 9, 15)  # the start, and the ends at eight rates
    assert np.ptp(at_once, axis=1).min() > 1e-3
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-10, atol=1e-13)


# GPUs ---------------------------------------------------------------------------------


@each_unit
def test_gradients_on_a_gpu_are_those_of_the_cpu(gpu, images, rng, unit):
    cpu, cuda = (make(Net(), images, unit=unit, device=device) for device in DEVICES)
    thetas = rng.normal(size=(5, N_PARAMETERS))
    for player in range(3):
        np.testing.assert_allclose(
            cuda.gradient(thetas[0], player),
            cpu.gradient(thetas[0], player),
            rtol=1e-9,
        )
    np.testing.assert_allclose(cuda.utilities(thetas), cpu.utilities(thetas), rtol=1e-9)
    orders = np.array([[0, 2, 1], [2, 1, 0]])
    noise = rng.normal(size=(2, 3, N_PARAMETERS))
    steps = orders, [0.1, 0.2], noise, np.ones(3), thetas[:2]
    path, *_ = cuda.walk(*steps)
    expected, *_ = cpu.walk(*steps)
    np.testing.assert_allclose(cuda.as_array(path), cpu.as_array(expected), rtol=1e-9)


def test_a_loss_with_tensors_of_its_own_runs_on_a_gpu(gpu, images, rng):
    weight = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    loss = torch.nn.CrossEntropyLoss(weight=weight)
    thetas = rng.normal(size=(2, N_PARAMETERS))
    cpu, cuda = (
        make(Net(), images, loss, device=device).utilities(thetas) for device in DEVICES
    )
    np.testing.assert_allclose(cuda, cpu, rtol=1e-9)
    assert loss.weight.device.type == "cpu"
