import warnings

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
)
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skvalue import InfluenceValuer, UnrolledValuer, ValueFilter
from skvalue.derivatives import LinearRowModel, Utility
from skvalue.derivatives.optimizers import Optimizer
from skvalue.derivatives.unrolled import draw_batches, train
from skvalue.exceptions import ImpreciseValuesWarning
from skvalue.inspection import noisy_label_auc


def problem(regression=False, n=60):
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(2.0, 3.0, size=(n, 4)), rng.normal(2.0, 3.0, size=(40, 4))
    y, y_val = (part[:, 0] + rng.normal(size=len(part)) for part in (X, X_val))
    if not regression:
        names = np.array(["low", "mid", "top"])
        y, y_val = names[np.digitize(y, [0, 4])], names[np.digitize(y_val, [0, 4])]
    return X, y, {"X_val": X_val, "y_val": y_val}


def network(n_outputs=3):
    nn = pytest.importorskip("torch").nn
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, n_outputs)).double()


KINDS = {
    "softmax": (False, dict),
    "linear": (True, dict),
    "network": (False, lambda: {"model": network()}),
    "network-regression": (True, lambda: {"model": network(1), "learning_rate": 0.002}),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
def test_values_are_the_decrease_of_the_utility_to_first_order(kind):
    regression, options = KINDS[kind]
    X, y, points = problem(regression)
    valuer = UnrolledValuer(batch_size=None, n_epochs=30, random_state=0, **options())
    valuer.fit(X, y, **points)
    assert valuer.utility_ > valuer.empty_utility_
    assert valuer.values_.shape == (60,)
    # A row that is there twice has two equal terms: its value is half of that of both
    # together.
    twice = clone(valuer).fit(np.r_[X, X], np.r_[y, y], **points)
    np.testing.assert_allclose(
        twice.values_, np.tile(valuer.values_ / 2, 2), rtol=1e-8, atol=1e-12
    )
    assert twice.utility_ == pytest.approx(valuer.utility_, rel=1e-9)


def test_values_of_a_model_at_its_optimum_are_influences():
    X, y, points = problem(regression=True)
    X = (X - X.mean(0)) / X.std(0)
    y = (y - y.mean()) / y.std()
    valuer = UnrolledValuer(batch_size=None, learning_rate=0.5, n_epochs=400).fit(
        X, y, **points
    )
    from sklearn.linear_model import LinearRegression

    influence = InfluenceValuer(LinearRegression()).fit(X, y, **points)
    np.testing.assert_allclose(valuer.values_, influence.values_, rtol=1e-6, atol=1e-9)
    assert valuer.utility_ == pytest.approx(influence.utility_, rel=1e-9)


def test_a_float_module_agrees_with_a_double_one():
    X, y, points = problem()
    module = network()
    options = {"start": "given", "random_state": 0, "n_epochs": 5}
    one = UnrolledValuer(module, **options).fit(X, y, **points)
    other = UnrolledValuer(module.float(), **options).fit(X, y, **points)
    np.testing.assert_allclose(
        other.values_, one.values_, atol=1e-4 * np.abs(one.values_).max()
    )


@each_kind
def test_groups_are_sums(kind):
    regression, options = KINDS[kind]
    X, y, points = problem(regression)
    groups = np.array(["a", "b", "c"])[np.arange(60) % 3]
    valuer = UnrolledValuer(n_epochs=3, batch_size=16, random_state=0, **options())
    rows, sums = (
        valuer.fit(X, y, **points).values_,
        clone(valuer).fit(X, y, groups=groups, **points),
    )
    np.testing.assert_allclose(
        sums.values_, np.bincount(np.arange(60) % 3, rows), atol=1e-15
    )
    assert sums.groups_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["softmax", "network"])
def test_runs_are_averaged_and_have_errors(kind):
    regression, options = KINDS[kind]
    X, y, points = problem(regression)
    valuer = UnrolledValuer(n_epochs=2, batch_size=10, random_state=0, **options())
    one = clone(valuer).fit(X, y, **points)
    assert not hasattr(one, "values_error_")
    few, many = (
        clone(valuer).set_params(n_runs=n).fit(X, y, **points) for n in (4, 16)
    )
    assert few.values_error_.shape == (60,)
    ratio = np.mean(many.values_error_) / np.mean(few.values_error_)
    assert 0.35 < ratio < 0.7
    z = (few.values_ - many.values_) / np.hypot(few.values_error_, many.values_error_)
    assert np.mean(np.abs(z) < 3) > 0.8
    np.testing.assert_array_equal(clone(few).fit(X, y, **points).values_, few.values_)


def test_held_out_rows():
    X, y, _ = problem()
    even, odd = np.arange(0, 60, 2), np.arange(1, 60, 2)
    valuer = UnrolledValuer(n_epochs=5, cv=[(even, odd), (odd, even)], batch_size=None)
    held = valuer.fit(X, y)
    for i in (0, 1):
        points = {"X_val": X[1 - i :: 2], "y_val": y[1 - i :: 2]}
        part = UnrolledValuer(n_epochs=5, batch_size=None).fit(
            X[i::2], y[i::2], **points
        )
        np.testing.assert_allclose(held.values_[i::2], part.values_ / 2, rtol=1e-9)
    assert not hasattr(held, "transform")


def test_weights_of_points():
    X, y, points = problem()
    weights = np.arange(40.0)
    valuer = UnrolledValuer(n_epochs=5, random_state=0)
    weighted = clone(valuer).fit(X, y, sample_weight_val=weights, **points)
    repeat = np.repeat(np.arange(40), weights.astype(int))
    repeated = {name: part[repeat] for name, part in points.items()}
    np.testing.assert_allclose(
        clone(valuer).fit(X, y, **repeated).values_, weighted.values_, atol=1e-15
    )


def test_wrong_labels_have_low_values_and_are_dropped(rng):
    X, y, points = problem(n=200)
    y = np.where(X[:, 0] > 2, "yes", "no")
    points = {"X_val": X[100:], "y_val": y[100:]}
    wrong = rng.random(100) < 0.1
    y = np.where(wrong, np.where(y[:100] == "yes", "no", "yes"), y[:100])
    valuer = UnrolledValuer(random_state=0)
    assert noisy_label_auc(clone(valuer).fit(X[:100], y, **points).values_, wrong) > 0.9
    assert len(ValueFilter(valuer, drop=10).fit_resample(X[:100], y, **points)[0]) == 90


def test_images_dropout_and_frozen_layers(rng):
    nn = pytest.importorskip("torch").nn
    X, y = rng.normal(size=(12, 1, 6, 6)), np.arange(12) % 2
    net = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(32, 1)
    ).eval()
    net[0].requires_grad_(False)
    options = {"n_epochs": 2, "random_state": 0, "loss": nn.BCEWithLogitsLoss()}
    valuer = UnrolledValuer(net, **options)
    points = {"X_val": X[:5] + 1, "y_val": y[:5]}
    with config_context(working_memory=0):
        lean = clone(valuer).fit(X, y, **points)
    values = clone(valuer).fit(X, y, **points).values_
    np.testing.assert_allclose(lean.values_, values, rtol=1e-4, atol=1e-7)
    with pytest.warns(UserWarning, match="Dropout is off") as found:
        again = clone(valuer).set_params(model=net.train()).fit(X, y, **points)
    np.testing.assert_array_equal(again.values_, values)
    assert found[0].filename == __file__


class Skorch:
    module = None

    def get_params(self, deep=True):
        return {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "mlp"}, "model must be 'auto' or a torch module. Got 'mlp'"),
        ({"model": Skorch()}, "Got a skorch estimator: pass its module"),
        ({"loss": np.abs}, "loss must be None"),
        ({"start": "given"}, "start must be 'auto'"),
        ({"device": "cuda"}, "device must be 'auto'"),
        ({"momentum": 1.0}, "The 'momentum' parameter"),
        ({"schedule": "steps"}, "The 'schedule' parameter"),
        (
            {"learning_rate": 1e9, "task": "regression"},
            "learning_rate must be smaller: the train",
        ),
    ],
    ids=lambda part: next(iter(part)) if isinstance(part, dict) else "",
)
def test_wrong_arguments(options, message):
    X, y, points = problem(regression="task" in options)
    with pytest.raises(ValueError, match=message), np.errstate(all="ignore"):
        UnrolledValuer(**options).fit(X, y, **points)


def test_modules_refused():
    nn = pytest.importorskip("torch").nn
    X, y, points = problem()
    with pytest.raises(
        TypeError, match="model must be the name of a built-in model or a torch"
    ):
        UnrolledValuer(nn.Linear).fit(X, y, **points)
    with pytest.raises(
        ValueError, match="model must have an output for every class. Got 2 out"
    ):
        UnrolledValuer(nn.Linear(4, 2)).fit(X, y, **points)
    with pytest.raises(ValueError, match="model must not mix rows: batch norm"):
        UnrolledValuer(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))).fit(
            X, y, **points
        )


SETS = {
    "diabetes": load_diabetes, "iris": load_iris, "cancer": load_breast_cancer, "wine": load_wine,
    "digits": load_digits,
}  # fmt: skip


LARGER = [
    ("diabetes", 40), ("diabetes", 80), ("diabetes", 200), ("iris", 39), ("iris", 78),
    ("cancer", 40), ("cancer", 80), ("cancer", 200), ("wine", 39), ("wine", 78),
    ("digits", 100), ("digits", 200),
]  # fmt: skip


def rows_of(name, n):
    """Rows and validation points; with the same number of rows of each class if there
    are some."""
    X, y = SETS[name](return_X_y=True)
    if name == "diabetes":
        X, X_val, y, y_val = train_test_split(
            X, y, train_size=n, test_size=100, random_state=0
        )
        return X, y, X_val, y_val
    X, X_val, y, y_val = train_test_split(
        X, y, test_size=45, stratify=y, random_state=0
    )
    classes = np.unique(y)
    rows = np.concatenate(
        [np.flatnonzero(y == c)[: n // len(classes)] for c in classes]
    )
    return X[rows], y[rows], X_val, y_val


def fitted(name, n, **options):
    """A valuer, the decreases of the utility without single rows, and the valuer's
    warnings."""
    X, y, X_val, y_val = rows_of(name, n)
    batches, task = [], "regression" if name == "diabetes" else "classification"

    def recorded(*args):
        batches.extend(draw_batches(*args))
        return batches

    with (
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(record=True) as issued,
    ):
        warnings.simplefilter("always")
        patch.setattr("skvalue.valuers.unrolled.draw_batches", recorded)
        valuer = UnrolledValuer(task=task, random_state=0, **options)
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
    units, scale = StandardScaler().fit(X), 1.0
    if task == "regression":
        scale, mean = y.std(), y.mean()
        y, y_val = (y - mean) / scale, (y_val - mean) / scale
    model = LinearRowModel(X.shape[1], 0 if task == "regression" else len(np.unique(y)))
    X, X_val = (units.transform(part) / np.sqrt(X.shape[1]) for part in (X, X_val))
    weights = np.full(len(y_val), 1 / len(y_val))
    rows, utility = (
        model.rows(X, y),
        Utility(model, model.rows(X_val, y_val), weights, scale**2),
    )
    eps = 0.01 if valuer.eps == "auto" else valuer.eps
    how = Optimizer(valuer.optimizer, valuer.learning_rate, 0.9, eps=eps)

    def without(*removed):
        counted = np.ones(len(y))
        counted[list(removed)] = 0
        return utility.value(
            train(model, rows, model.start(None), batches, how, counted)
        )

    assert without() == pytest.approx(valuer.utility_, rel=1e-9)
    return valuer, without() - np.array([without(i) for i in range(len(y))]), issued


def cases(default, slow):
    return default + [pytest.param(*case, marks=pytest.mark.slow) for case in slow]


@pytest.mark.parametrize(
    ("name", "n", "optimizer", "batch_size"),
    cases(
        [("diabetes", 80, "adamw", 100), ("iris", 39, "sgd", 100), ("cancer", 40, "adamw", 16)],
        [
            (*rows, optimizer, batch_size)
            for rows in LARGER for optimizer in ("adamw", "sgd") for batch_size in (100, 16)
        ],
    ),
)  # fmt: skip
def test_values_order_rows_as_their_removals_do(name, n, optimizer, batch_size):
    """All rows in each step, where mean gradients of balanced columns are zero, or
    some."""
    valuer, removals, issued = fitted(
        name, n, optimizer=optimizer, batch_size=batch_size
    )
    assert spearmanr(valuer.values_, removals)[0] > 0.9
    ratio = np.abs(valuer.values_).max() / np.abs(removals).max()
    assert 0.4 < ratio < 1.5
    assert not issued


@pytest.mark.parametrize(
    ("name", "n", "eps", "learning_rate"),
    cases(
        [("diabetes", 80, 1e-8, 0.05), ("iris", 39, 1e-8, 0.05), ("cancer", 40, 1e-8, 0.05)],
        [
            (name, n, eps, rate)
            for name in ("diabetes", "iris", "cancer", "wine") for n in (39, 78)
            for eps in (1e-8, 1e-6, 1e-4) for rate in (0.01, 0.05, 0.2)
        ],
    ),
)  # fmt: skip
def test_values_far_from_what_removals_do_are_reported(name, n, eps, learning_rate):
    options = {"optimizer": "adamw", "eps": eps, "learning_rate": learning_rate}
    valuer, removals, issued = fitted(name, n, **options)
    far = np.abs(valuer.values_).max() > 10 * np.abs(removals).max()
    texts = [
        str(one.message) for one in issued if one.category is ImpreciseValuesWarning
    ]
    if far:
        top = np.abs(valuer.values_).argmax()
        assert texts[0].startswith(
            f"The value of row {top} is {valuer.values_[top]:.3g}, but"
        )
        assert f"a larger eps than {eps:g}" in texts[0]
    assert far <= bool(texts)
    assert far or eps > 1e-8 or name not in ("diabetes", "iris")
