import threading
import time
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

torch = pytest.importorskip("torch")

from skvalue import GradientSemivalueValuer
from skvalue.derivatives import (
    GradientModel,
    TorchGradientModel,
    public_learning_rate,
    warn_of_dropout,
)
from skvalue.privacy import clip_and_noise

from .plain import plain_walk

cross_entropy = torch.nn.functional.cross_entropy


DEVICES = ["cpu", "cuda"]


class Net(torch.nn.Module):
    """Small network over images, with a layer that normalises row by row."""

    def __init__(self, frozen=False):
        super().__init__()
        self.body = torch.nn.Conv2d(1, 3, 3, dtype=torch.float64)
        self.norm = torch.nn.GroupNorm(1, 3, dtype=torch.float64)
        self.head = torch.nn.Linear(3 * 4 * 4, 3, dtype=torch.float64)
        if frozen:
            for part in (self.body, self.norm):
                part.requires_grad_(False)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.body(x))).flatten(1))


@pytest.fixture
def images(rng):
    X, y = rng.normal(size=(12, 1, 6, 6)), rng.integers(0, 3, 12)
    players = np.array([2, 0, 1, 0, 0, 2, 1, 1, 0, 2, 2, 0])
    return X, y, players, rng.normal(size=(7, 1, 6, 6)), rng.integers(0, 3, 7)


@pytest.fixture
def table(rng):
    X, y = rng.normal(size=(10, 4)), rng.integers(0, 3, 10)
    return X, y, np.arange(10) % 4, rng.normal(size=(6, 4)), rng.integers(0, 3, 6)


def make(module, data, loss=None, **options):
    X, y, players, X_val, y_val = data
    return TorchGradientModel(
        module,
        loss,
        X,
        y,
        players,
        X_val,
        y_val,
        **{"clip": 0.5, "device": "cpu", **options},
    )


def memory_of(n_rows, unit):
    """MiB of working memory in which about that many rows of `images` are computed
    together."""
    row = 8 * (36 + 2 * 48 + 48 + 3)  # the input, three hidden layers and the outputs
    return 4 * n_rows * (2 * row + (unit == "example") * 24 * 183) / 2**20


def by_autograd(module, data, theta, player, clip, unit):
    """The clipped gradient by loops and `backward`."""
    X, y, players = (torch.tensor(part) for part in data[:3])
    trained = [p for p in module.parameters() if p.requires_grad]
    torch.nn.utils.vector_to_parameters(torch.tensor(theta), trained)

    def clipped(gradient):
        if clip is None:
            return gradient
        return gradient / max(1.0, float(gradient.norm()) / clip)

    gradients = []
    for row in torch.nonzero(players == player)[:, 0]:
        loss = cross_entropy(module(X[row][None]), y[row][None])
        parts = torch.autograd.grad(loss, trained)
        gradients.append(torch.cat([part.reshape(-1) for part in parts]))
    if unit == "example":
        return torch.stack([clipped(g) for g in gradients]).mean(0).numpy()
    return clipped(torch.stack(gradients).mean(0)).numpy()


@pytest.mark.parametrize(
    ("frozen", "unit", "clip"),
    [
        (False, "party", 0.3),
        (True, "party", None),
        (False, "example", None),
        (True, "example", 0.3),
    ],
)
def test_gradient_is_that_of_a_loop_over_rows(images, rng, frozen, unit, clip):
    module = Net(frozen)
    model = make(module, images, clip=clip, unit=unit)
    assert isinstance(model, GradientModel)
    assert (model.n_players, model.n_parameters) == (3, 147 + (0 if frozen else 36))
    for player in range(3):
        theta = 0.3 * rng.normal(size=model.n_parameters)
        found = model.gradient(theta, player)
        assert found.dtype == np.float64
        expected = by_autograd(module, images, theta, player, clip, unit)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        if clip is not None:
            assert np.linalg.norm(found) <= clip * (1 + 1e-12)


@pytest.mark.parametrize(
    ("unit", "clip", "blocked"),
    [
        ("party", 0.3, False),
        ("party", None, True),
        ("example", None, False),
        ("example", 0.3, True),
    ],
)
def test_gradients_of_many_players_at_once(
    images, rng, monkeypatch, unit, clip, blocked
):
    X, y, players, *points = images
    y = np.where(players == 1, 3, y)  # player 1 has no row of a known class
    y[3] = 3
    model = make(Net(), (X, y, players, *points), clip=clip, unit=unit, n_classes=3)
    some = np.array([2, 0, 1, 2])  # of four, five and no rows
    thetas = 0.3 * rng.normal(size=(4, 183))
    expected = [model.gradient(theta, player) for theta, player in zip(thetas, some)]
    assert np.abs(expected).max() > 0.05
    if blocked:  # two rows at a time
        monkeypatch.setattr(model, "batch_size", lambda n: (n, 1))
    with config_context(working_memory=memory_of(9, unit) if blocked else 1024):
        found = model.gradients(thetas, some)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    monkeypatch.setattr(model, "batch_size", lambda n: (1, 1))  # no room for two
    np.testing.assert_array_equal(model.gradients(thetas, some), expected)
    assert not found[2].any()


@pytest.mark.parametrize("utility", ["neg_loss", "accuracy"])
def test_utilities_are_those_of_a_loop(images, rng, utility):
    module, weights = Net(), np.arange(1, 8) / 28
    model = make(module, images, utility=utility, weights_val=weights)
    thetas = rng.normal(size=(5, model.n_parameters))
    X_val, y_val = (torch.tensor(part) for part in images[3:])
    expected = []
    for theta in thetas:
        torch.nn.utils.vector_to_parameters(torch.tensor(theta), module.parameters())
        with torch.no_grad():
            outputs = module(X_val)
        if utility == "accuracy":
            each = (outputs.argmax(1) == y_val).double()
        else:
            each = -cross_entropy(outputs, y_val, reduction="none")
        expected.append(float(each.numpy() @ weights))
    np.testing.assert_allclose(model.utilities(thetas), expected, rtol=1e-12)


@pytest.mark.parametrize("unit", ["party", "example"])
def test_blocks_change_nothing(images, rng, unit):
    thetas = rng.normal(size=(2, 183))
    whole = make(Net(), images, unit=unit)
    expected = whole.gradient(thetas[0], 0), whole.utilities(thetas)
    blocked = make(Net(), images, unit=unit)
    with config_context(working_memory=memory_of(2, unit)):
        np.testing.assert_allclose(
            blocked.gradient(thetas[0], 0), expected[0], rtol=1e-12
        )
        np.testing.assert_allclose(blocked.utilities(thetas), expected[1], rtol=1e-12)


@pytest.mark.parametrize("private", [False, True])
def test_blocks_of_columns_change_nothing(rng, private):
    # Gradients of 12 rows in 20,050 parameters: more numbers than are clipped at a
    # time.
    X, y = rng.normal(size=(13, 400)), rng.integers(0, 50, 13)
    X[3] *= 1e-3  # shorter than the bound
    X[5] = 1e200 if private else X[5]
    data = X, y, np.r_[np.zeros(12, int), 1], X[:4], y[:4]
    module = torch.nn.Linear(400, 50, dtype=torch.float64)
    model = make(module, data, unit="example", clip=2.0, private=private)
    theta = 0.1 * rng.normal(size=20_050)
    kept = np.delete(np.arange(12), 5) if private else np.arange(12)
    finite = X[kept], y[kept], np.zeros(len(kept), int)
    expected = by_autograd(module, finite, theta, 0, 2.0, "example") * len(kept) / 12
    np.testing.assert_allclose(
        model.gradient(theta, 0), expected, rtol=1e-11, atol=1e-14
    )


@pytest.mark.parametrize("unit", ["party", "example"])
def test_walks_together_release_the_same_bits(images, rng, unit):
    model = make(Net(), images, unit=unit)
    noise_std = 7.3 * np.array([1.0, 0.5, 0.2])
    orders, thetas = np.array([[2], [0], [1], [2]]), np.zeros((4, model.n_parameters))
    noise = noise_std[orders, None] * rng.normal(size=(4, 1, model.n_parameters))
    noise[0, 0, 0] *= 1e18  # beyond the grid
    path, found, _ = model.walk(orders, np.ones(4), noise, noise_std, thetas)
    np.testing.assert_array_equal(model.as_array(path[:, 1]), found)
    gradients = model.gradients(thetas, orders[:, 0])
    expected = clip_and_noise(gradients, None, noise[:, 0], noise_std[orders])
    np.testing.assert_array_equal(-found, expected)


def softmax_gradient(theta, x, label):
    """By hand, of a linear layer (weights, then biases) and cross-entropy."""
    weights, bias = theta[:12].reshape(3, 4), theta[12:]
    scores = weights @ x + bias
    probabilities = np.exp(scores - scores.max())
    residual = probabilities / probabilities.sum() - np.eye(3)[label]
    return np.concatenate([np.outer(residual, x).ravel(), residual])


@pytest.mark.parametrize("outputs", [(), (1,)])
def test_targets_and_two_classes_take_one_output(table, rng, outputs):
    X, y, players, X_val, y_val = table

    class One(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x).reshape(len(x), *outputs)

    def layer():
        return One(4, 1, dtype=torch.float64)

    theta = rng.normal(size=5)
    data = X, y.astype(float), players, X_val, y_val.astype(float)
    errors = X @ theta[:4] + theta[4] - y
    rows = players == 1
    expected = np.r_[2 * (errors[rows] @ X[rows]), 2 * errors[rows].sum()] / rows.sum()
    model = make(layer(), data, clip=None)
    np.testing.assert_allclose(model.gradient(theta, 1), expected, rtol=1e-12)
    binary = X, y % 2, players, X_val, y_val % 2
    loss = torch.nn.BCEWithLogitsLoss()
    residuals = 1 / (1 + np.exp(-(X @ theta[:4] + theta[4]))) - y % 2
    expected = np.r_[residuals[rows] @ X[rows], residuals[rows].sum()] / rows.sum()
    model = make(layer(), binary, loss, clip=None)
    np.testing.assert_allclose(model.gradient(theta, 1), expected, rtol=1e-12)


def test_random_start_is_a_function_of_the_generator(images):
    model = make(Net(), images)
    assert model.rows.start_kind == "random"
    before = torch.random.get_rng_state()
    first, again, other = (
        model.start(np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(first, again)
    assert not np.isin(other[first != 0], first).all()
    assert (
        np.abs(first[:27]).max() <= 1 / 3
    )  # as Conv2d draws its weights: 1 / sqrt(fan in)


def test_frozen_modules_start_as_given(images):
    module = Net(frozen=True)
    model = make(module, images)
    assert model.rows.start_kind == "given"
    head = torch.cat([p.detach().reshape(-1) for p in module.head.parameters()]).numpy()
    np.testing.assert_array_equal(model.start(np.random.default_rng(0)), head)
    fresh = make(module, images, start="random").start(np.random.default_rng(0))
    assert fresh.shape == head.shape
    assert not np.isin(fresh, head).any()


def test_the_module_itself_is_left_alone(images):
    module = Net().train()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    model = make(module, images)
    model.gradient(model.start(np.random.default_rng(0)), 0)
    assert module.training
    assert all(torch.equal(before[k], v) for k, v in module.state_dict().items())


class Renamed(torch.nn.Linear):
    """In a saved state its parameters have other names, as those of wrappers may
    have."""

    def _load_from_state_dict(self, state, prefix, *args):
        super()._load_from_state_dict(state, f"{prefix}old_", *args)


def test_a_trained_module_has_the_parameters(table):
    trained = make(Renamed(4, 3), table).rows.trained(np.arange(15.0))
    found = torch.nn.utils.parameters_to_vector(trained.parameters()).detach()
    np.testing.assert_array_equal(found, np.arange(15.0))


def test_rows_with_unknown_labels_have_no_gradient(table):
    X, y, players, X_val, y_val = table
    theta = np.linspace(-1, 1, 15)
    marked = np.where(np.arange(10) == 2, 3, y)  # row 2, one of three of player 2
    module = torch.nn.Linear(4, 3, dtype=torch.float64)
    model = make(module, (X, marked, players, X_val, y_val), clip=None, n_classes=3)
    assert model.n_players == 4
    rows = [i for i in np.flatnonzero(players == 2) if i != 2]
    expected = sum(softmax_gradient(theta, X[i], y[i]) for i in rows) / (len(rows) + 1)
    np.testing.assert_allclose(model.gradient(theta, 2), expected, rtol=1e-12)
    alone = make(module, (X, np.where(players == 2, 3, y), *table[2:]), n_classes=3)
    assert not alone.gradient(theta, 2).any()


@pytest.mark.parametrize("unit", ["party", "example"])
def test_gradients_that_are_not_finite(table, unit):
    X = table[0].copy()
    X[0] = 1e200
    data = X, *table[1:]

    def layer():
        return torch.nn.Linear(4, 3, dtype=torch.float64)

    theta = np.full(15, 1e200)
    assert not np.isfinite(make(layer(), data, unit=unit).gradient(theta, 0)).all()
    zeroed = make(layer(), data, unit=unit, private=True).gradient(theta, 0)
    assert np.isfinite(zeroed).all()
    # Such a row must not remove the gradients of the others: its effect would be larger
    # then.
    assert zeroed.any()


class Centred(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x - x.mean(0))


class Random(torch.nn.Linear):
    def forward(self, x):
        return super().forward(torch.nn.functional.dropout(x, training=True))


class Branching(torch.nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return y if float(self.weight.detach().sum()) > -1e9 else -y


def frozen_layer():
    return torch.nn.Linear(4, 3).requires_grad_(False)


@pytest.mark.parametrize(
    ("make_module", "message"),
    [
        (
            lambda: torch.nn.Flatten(),
            "must have a parameter to train. Got no parameter.",
        ),
        (
            frozen_layer,
            "must have a parameter to train. Got parameters that are all frozen.",
        ),
        (
            lambda: torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3)),
            "batch norm in training mode would mix those of all parties. Got BatchNorm1d",
        ),
        (
            lambda: torch.nn.Sequential(
                torch.nn.BatchNorm1d(4, track_running_stats=False),
                torch.nn.Linear(4, 3),
            ).eval(),
            "batch norm in training mode would mix",
        ),
        (lambda: Centred(4, 3), "must not mix rows nor be random"),
        (lambda: Random(4, 3), "must not mix rows nor be random"),
        (lambda: torch.nn.Linear(5, 3), r"must accept rows of shape \(4,\). Got: "),
        (lambda: torch.nn.Linear(4, 2), "Got 2 outputs and class number 2"),
        (
            lambda: torch.nn.Linear(4, 1),
            "one output is for two classes. Got one output and class",
        ),
        (
            lambda: torch.nn.LazyLinear(3),
            "must be initialised: run its lazy layers once",
        ),
        (
            lambda: torch.nn.Sequential(
                torch.nn.Linear(4, 4), torch.nn.Linear(4, 3, dtype=torch.float64)
            ),
            "must train parameters of one floating dtype. Got torch.float32, torch.float64",
        ),
        (
            lambda: Branching(4, 3),
            "operations that torch.func.vmap and torch.func.grad support",
        ),
    ],
)
def test_modules_refused(table, make_module, message):
    with pytest.raises(ValueError, match=message):
        make(make_module(), table)


def test_batch_norm_of_public_constants_is_taken(table):
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3)).eval()
    assert make(module, table).n_parameters == 8 + 15


def test_dropout_is_off_and_says_so(table):
    module = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(4, 3))
    with pytest.warns(UserWarning, match="Dropout is off"):
        warn_of_dropout(module)
    model = make(module, table)
    theta = np.linspace(-1, 1, 15)
    np.testing.assert_array_equal(model.gradient(theta, 0), model.gradient(theta, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_dropout(module.eval())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"device": "tpu"},
            ValueError,
            "device must be 'auto', 'cpu' or 'cuda'. Got 'tpu'.",
        ),
        (
            {"start": "zero"},
            ValueError,
            "start must be 'auto', 'given' or 'random'. Got 'zero'.",
        ),
        (
            {
                "loss": lambda outputs, y: cross_entropy(
                    outputs, y, reduction="none"
                ).repeat(2)
            },
            ValueError,
            "loss must return one number for a batch",
        ),
    ],
)
def test_parameters_refused(table, options, error, message):
    with pytest.raises(error, match=message):
        make(torch.nn.Linear(4, 3), table, **options)


def test_no_module():
    with pytest.raises(
        TypeError, match="model must be .* torch.nn.Module.* Got 'net'."
    ):
        TorchGradientModel("net", None, [[0.0]], [0], [0], [[0.0]], [0], clip=1.0)


def test_layers_without_a_reset(table):
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4, 3))

        def forward(self, x):
            return x @ self.weight

    assert make(Scale(), table).rows.start_kind == "given"
    with pytest.raises(
        ValueError, match="needs layers with reset_parameters. Got Scale"
    ):
        make(Scale(), table, start="random")


def test_accuracy_needs_an_output_a_class(table):
    X, y, *rest, y_val = table
    data = X, y % 2, *rest, y_val % 2
    with pytest.raises(
        ValueError, match="utility='accuracy' needs a module with an output for"
    ):
        make(
            torch.nn.Linear(4, 1),
            data,
            torch.nn.BCEWithLogitsLoss(),
            utility="accuracy",
        )


def test_cuda_where_there_is_none(table, no_gpu):
    with pytest.raises(
        ValueError, match="device='cuda' needs a CUDA GPU that torch sees"
    ):
        make(torch.nn.Linear(4, 3), table, device="cuda")
    assert make(torch.nn.Linear(4, 3), table, device="auto").device == "cpu"


@pytest.mark.parametrize("unit", ["party", "example"])
def test_gpu_agrees_with_the_cpu(gpu, images, rng, unit):
    on = {device: make(Net(), images, unit=unit, device=device) for device in DEVICES}
    thetas = rng.normal(size=(5, 183))
    for player in range(3):
        np.testing.assert_allclose(
            *(model.gradient(thetas[0], player) for model in on.values()), rtol=1e-9
        )
    np.testing.assert_allclose(
        *(model.utilities(thetas) for model in on.values()), rtol=1e-9
    )
    orders, noise = np.array([[0, 2, 1], [2, 1, 0]]), rng.normal(size=(2, 3, 183))
    args = orders, [0.1, 0.2], noise, np.ones(3), thetas[:2]
    walked = [model.as_array(model.walk(*args)[0]) for model in on.values()]
    np.testing.assert_allclose(*walked, rtol=1e-9)


def test_a_loss_with_tensors_of_its_own_on_a_gpu(gpu, images, rng):
    loss = torch.nn.CrossEntropyLoss(
        weight=torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    )
    thetas = rng.normal(size=(2, 183))
    found = [
        make(Net(), images, loss, device=device).utilities(thetas) for device in DEVICES
    ]
    np.testing.assert_allclose(*found, rtol=1e-9)
    assert loss.weight.device.type == "cpu"


def test_permutations_on_a_gpu_equal_those_on_the_cpu(gpu, images):
    X, y, players, X_val, y_val = images
    values = [
        GradientSemivalueValuer(
            Net(), n_permutations=20, learning_rate=0.3, clip=0.5, unit="example", random_state=0,
            device=device,
        ).fit(X, y, groups=players, X_val=X_val, y_val=y_val).values_
        for device in DEVICES
    ]  # fmt: skip
    np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-12)


# Through the valuer -------------------------------------------------------------------


class Zeros(torch.nn.Linear):
    """A layer that starts as the built-in models do."""

    def reset_parameters(self):
        for parameter in self.parameters():
            torch.nn.init.zeros_(parameter)


@pytest.mark.parametrize(
    ("unit", "public"),
    [
        ("party", {}), ("example", {"n_components": 2}),
        ("party", {"n_components": 1, "clip": "median"}),
    ],
)  # fmt: skip
def test_linear_layer_equals_the_built_in_model(table, unit, public):
    X, y, players, X_val, y_val = table
    # Coordinates are from the parameters that a module has, not from fresh ones.
    values = [
        GradientSemivalueValuer(
            model, n_permutations=5, learning_rate=0.3, unit=unit, standardize=False, device="cpu",
            random_state=0, **{"clip": 0.4, **public},
        ).fit(X, y, groups=players, X_val=X_val, y_val=y_val).values_
        for model in ("softmax", Zeros(4, 3, dtype=torch.float64))
    ]  # fmt: skip
    assert np.ptp(values[0]) > 0.01
    np.testing.assert_allclose(*values, atol=1e-12)


def test_linear_regression_equals_the_built_in_model(table, rng):
    X, _, players, X_val, _ = table
    y, y_val = X[:, 0] + rng.normal(size=10), X_val[:, 0]
    values = [
        GradientSemivalueValuer(
            model, n_permutations=5, learning_rate=0.1, clip=0.4, standardize=False, device="cpu",
            random_state=0,
        ).fit(X, y, groups=players, X_val=X_val, y_val=y_val).values_
        for model in ("linear", Zeros(4, 1, dtype=torch.float64))
    ]  # fmt: skip
    assert np.ptp(values[0]) > 0.01
    np.testing.assert_allclose(*values, atol=1e-12)


@pytest.mark.parametrize(
    ("width", "noise", "unit"),  # noise of all steps is drawn at once, or of one
    [
        (5, None, "party"), (5, "iid", "example"), (5, "correlated", "party"),
        (5, "correlated", "example"), (8200, "iid", "party"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
def test_permutations_at_once_equal_one_by_one(table, monkeypatch, noise, unit, width):
    X, y, players, X_val, y_val = table
    layers = (
        torch.nn.Linear(a, b, dtype=torch.float64) for a, b in ((4, width), (width, 3))
    )
    module = torch.nn.Sequential(*layers)
    fit = {"groups": players, "X_val": X_val, "y_val": y_val}
    private = (
        {}
        if noise is None
        else dict(noise_multiplier=0.1, noise=noise, noise_random_state=1)
    )
    valuer = GradientSemivalueValuer(
        module, (4, 1), n_permutations=7, burn_in=0.3, learning_rate=0.3, clip=0.5, unit=unit,
        device="cpu", random_state=0, **private,
    )  # fmt: skip
    walks, steps = [], []

    def watched(self, orders, *args, original=TorchGradientModel.walk, **options):
        walks.append(len(orders))
        steps.append(orders.shape[1])
        return original(self, orders, *args, **options)

    monkeypatch.setattr(TorchGradientModel, "walk", watched)
    if width == 8200:
        monkeypatch.setattr(
            TorchGradientModel, "batch_size", lambda self, n_walks: (2, 1)
        )
    values = valuer.fit(X, y, **fit).values_
    if noise == "correlated":
        # Averages of releases depend on the permutations before: those are walked one
        # by one.
        assert walks == [1] * 7
    elif width == 5:
        assert walks == [5]
    else:
        assert (max(walks), set(steps)) == (2, {1})
    monkeypatch.setattr(
        TorchGradientModel, "as_array", lambda self, thetas: np.asarray(thetas)
    )
    monkeypatch.setattr(TorchGradientModel, "walk", plain_walk)
    expected = clone(valuer).fit(X, y, **fit)
    assert expected.n_evaluations_ == 5 * 5
    assert np.ptp(expected.values_) > 1e-3
    np.testing.assert_allclose(values, expected.values_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("noise", ["iid", "correlated"])
@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
@pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning")
def test_threads_do_not_share_a_module(table, noise):
    """`torch.func.functional_call` changes the module: another thread would see its
    parameters."""
    X, y, players, X_val, y_val = table
    running, shared = {}, []

    class Slow(torch.nn.Linear):
        def forward(self, x):
            thread = threading.get_ident()
            first = running.setdefault(id(self), thread)
            time.sleep(1e-3)
            outputs = super().forward(x)
            shared.append(first != thread)
            if first == thread:
                running.pop(id(self))
            return outputs

    valuer = GradientSemivalueValuer(
        Slow(4, 3, dtype=torch.float64), n_permutations=3, learning_rate=0.3, clip=0.5,
        noise_multiplier=0.1, noise=noise, noise_random_state=1, device="cpu", random_state=0,
        n_jobs=2,
    ).fit(X, y, groups=players, X_val=X_val, y_val=y_val)  # fmt: skip
    assert np.isfinite(valuer.values_error_).all()
    assert len(shared) > 10
    assert not any(shared)


def test_a_bad_gradient_among_permutations_at_once(table):
    X, y, players, X_val, y_val = table
    X = np.where(np.arange(10)[:, None] == 1, 1e70, X)
    valuer = GradientSemivalueValuer(
        torch.nn.Linear(4, 3, dtype=torch.float64), n_permutations=3, learning_rate=1e250,
        clip=None, device="cpu", random_state=0,
    )  # fmt: skip
    with pytest.raises(
        ValueError, match="Got one that is not, of the party [0-2] at step [1-4] of"
    ):
        valuer.fit(X, y, groups=players, X_val=X_val, y_val=y_val)


def test_noise_relies_on_clipped_gradients(table, monkeypatch):
    monkeypatch.setattr(
        torch, "clamp", lambda x, min: torch.ones_like(x)
    )  # clips nothing
    X, y, players, X_val, y_val = table
    valuer = GradientSemivalueValuer(
        torch.nn.Linear(4, 3), n_permutations=2, noise_multiplier=1.0, noise="iid", clip=0.01,
        learning_rate=0.1, device="cpu",
    )  # fmt: skip
    with pytest.raises(
        RuntimeError, match="the model must clip gradients to norm 0.01"
    ):
        valuer.fit(X, y, groups=players, X_val=X_val, y_val=y_val)


@pytest.mark.parametrize("unit", ["party", "example"])
def test_coordinates_one_by_one_and_at_once(images, rng, unit):
    basis, module = np.linalg.qr(rng.normal(size=(183, 4)))[0], Net()
    model = make(module, images, clip=0.2, unit=unit, start="given", basis=basis)
    whole = make(module, images, clip=None, start="given")
    z = 0.2 * rng.normal(size=(3, 4))
    thetas = whole.start(None) + z @ basis.T
    assert (model.n_parameters, model.start(None).tolist()) == (4, [0] * 4)
    np.testing.assert_allclose(model.utilities(z), whole.utilities(thetas), rtol=1e-12)
    found = np.array([model.gradient(some, player) for player, some in enumerate(z)])
    np.testing.assert_allclose(model.gradients(z, np.arange(3)), found, rtol=1e-11)
    if unit == "party":
        for player, g in enumerate(found):
            projected = whole.gradient(thetas[player], player) @ basis
            projected /= max(1.0, np.linalg.norm(projected) / 0.2)
            np.testing.assert_allclose(g, projected, rtol=1e-11)


@pytest.mark.parametrize("noise_std", [0.0, 0.3])
def test_learning_rates_at_once_and_one_by_one(table, noise_std):
    X, y, *_ = table
    ends = {}
    for size in (8, 1):
        thetas = ends[size] = []

        class Watched(TorchGradientModel):
            def utilities(self, some, thetas=thetas):
                thetas.append(some)
                return super().utilities(some)

            def batch_size(self, n_walks, size=size):
                return size, 3

        def make_model(rows, players, points, cls=Watched):
            parts = X[rows], y[rows], players, X[points], y[points]
            return cls(torch.nn.Linear(4, 3, dtype=torch.float64), None, *parts, clip=0.5,
                       start="given", device="cpu")  # fmt: skip

        torch.manual_seed(0)
        rng = np.random.default_rng(0)
        rate = public_learning_rate(make_model, 10, 7, 2, rng, noise_std)
        assert 0.001 <= rate <= 3
    together, one_by_one = (np.array(found) for found in ends.values())
    assert together.shape == (3, 9, 15)  # the start, and the ends at eight rates
    assert np.ptp(together, axis=1).min() > 1e-3
    np.testing.assert_allclose(together, one_by_one, rtol=1e-10, atol=1e-13)


def test_images_through_the_valuer(images):
    X, y, players, X_val, y_val = images
    fit = {"groups": players, "X_val": X_val, "y_val": y_val}
    valuer = GradientSemivalueValuer(
        Net(), n_permutations=3, learning_rate=0.1, device="cpu", random_state=0
    )
    values = valuer.fit(X, y, **fit).values_
    np.testing.assert_array_equal(values, clone(valuer).fit(X, y, **fit).values_)
    assert values.sum() == pytest.approx(valuer.utility_ - valuer.empty_utility_)
    private = GradientSemivalueValuer(
        Net(frozen=True),
        n_permutations=3,
        learning_rate=0.1,
        device="cpu",
        epsilon=1.0,
        unit="example",
    ).fit(X, y, **fit)
    assert private.values_.shape == (3,)
    assert private.privacy_.guarantee == "(1, 1e-05)-local differential privacy"
    with pytest.raises(
        ValueError, match="X_val must be like X|must accept rows of shape"
    ):
        valuer.fit(X, y, groups=players, X_val=X_val[:, :, :5], y_val=y_val)
