import warnings
from itertools import product
from typing import NamedTuple

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
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skvalue import InfluenceValuer, UnrolledValuer, ValueFilter
from skvalue.derivatives import LinearRowModel, Utility
from skvalue.derivatives.optimizers import Optimizer
from skvalue.derivatives.unrolled import draw_batches, train
from skvalue.exceptions import ImpreciseValuesWarning
from skvalue.inspection import noisy_label_auc


def problem(regression=False, n=60):
    """X, y, and the validation points as keywords."""
    rng = np.random.default_rng(0)
    X = rng.normal(2.0, 3.0, size=(n, 4))
    X_val = rng.normal(2.0, 3.0, size=(40, 4))
    y = X[:, 0] + rng.normal(size=n)
    y_val = X_val[:, 0] + rng.normal(size=40)
    if not regression:
        names = np.array(["low", "mid", "top"])
        y = names[np.digitize(y, [0, 4])]
        y_val = names[np.digitize(y_val, [0, 4])]
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
def test_the_value_of_a_row_is_halved_by_a_copy(kind):
    regression, options = KINDS[kind]
    X, y, points = problem(regression)
    valuer = UnrolledValuer(batch_size=None, n_epochs=30, random_state=0, **options())
    valuer.fit(X, y, **points)
    assert valuer.utility_ > valuer.empty_utility_
    assert valuer.values_.shape == (60,)
    # A row that is there twice has two equal terms: its value is half of that of both
    # together.
    twice = clone(valuer).fit(np.r_[X, X], np.r_[y, y], **points)
    expected = np.tile(valuer.values_ / 2, 2)
    np.testing.assert_allclose(twice.values_, expected, rtol=1e-8, atol=1e-12)
    assert twice.utility_ == pytest.approx(valuer.utility_, rel=1e-9)


def test_values_of_a_model_at_its_optimum_are_influences():
    X, y, points = problem(regression=True)
    X = (X - X.mean(0)) / X.std(0)
    y = (y - y.mean()) / y.std()
    valuer = UnrolledValuer(batch_size=None, learning_rate=0.5, n_epochs=400)
    valuer.fit(X, y, **points)
    influence = InfluenceValuer(LinearRegression()).fit(X, y, **points)
    np.testing.assert_allclose(valuer.values_, influence.values_, rtol=1e-6, atol=1e-9)
    assert valuer.utility_ == pytest.approx(influence.utility_, rel=1e-9)


def test_a_float_module_agrees_with_a_double_one():
    X, y, points = problem()
    module = network()
    options = {"start": "given", "random_state": 0, "n_epochs": 5}
    of_double = UnrolledValuer(module, **options).fit(X, y, **points).values_
    of_float = UnrolledValuer(module.float(), **options).fit(X, y, **points).values_
    tolerance = 1e-4 * np.abs(of_double).max()
    np.testing.assert_allclose(of_float, of_double, atol=tolerance)


@each_kind
def test_the_value_of_a_group_is_the_sum_of_its_rows(kind):
    regression, options = KINDS[kind]
    X, y, points = problem(regression)
    groups = np.array(["a", "b", "c"])[np.arange(60) % 3]
    valuer = UnrolledValuer(n_epochs=3, batch_size=16, random_state=0, **options())
    grouped = clone(valuer).fit(X, y, groups=groups, **points)
    row_values = valuer.fit(X, y, **points).values_
    sums = np.bincount(np.arange(60) % 3, row_values)
    np.testing.assert_allclose(grouped.values_, sums, atol=1e-15)
    assert grouped.groups_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["softmax", "network"])
def test_runs_are_averaged_and_have_errors(kind):
    regression, options = KINDS[kind]
    X, y, points = problem(regression)
    valuer = UnrolledValuer(n_epochs=2, batch_size=10, random_state=0, **options())
    one_run = clone(valuer).fit(X, y, **points)
    assert not hasattr(one_run, "values_error_")
    few, many = (
        clone(valuer).set_params(n_runs=n_runs).fit(X, y, **points)
        for n_runs in (4, 16)
    )
    assert few.values_error_.shape == (60,)
    ratio = np.mean(many.values_error_) / np.mean(few.values_error_)
    assert 0.35 < ratio < 0.7
    z = (few.values_ - many.values_) / np.hypot(few.values_error_, many.values_error_)
    assert np.mean(np.abs(z) < 3) > 0.8
    np.testing.assert_array_equal(clone(few).fit(X, y, **points).values_, few.values_)


def test_values_of_held_out_rows_are_means_over_splits():
    X, y, _ = problem()
    even = np.arange(0, 60, 2)
    odd = np.arange(1, 60, 2)
    valuer = UnrolledValuer(n_epochs=5, cv=[(even, odd), (odd, even)], batch_size=None)
    valuer.fit(X, y)
    for train_rows, test_rows in ((even, odd), (odd, even)):
        split = UnrolledValuer(n_epochs=5, batch_size=None).fit(
            X[train_rows], y[train_rows], X_val=X[test_rows], y_val=y[test_rows]
        )
        np.testing.assert_allclose(
            valuer.values_[train_rows], split.values_ / 2, rtol=1e-9
        )
    assert not hasattr(valuer, "transform")


def test_a_weight_is_a_number_of_copies_of_a_point():
    X, y, points = problem()
    weights = np.arange(40)
    valuer = UnrolledValuer(n_epochs=5, random_state=0)
    weighted = clone(valuer)
    weighted.fit(X, y, sample_weight_val=weights.astype(float), **points)
    copies = {name: np.repeat(values, weights, 0) for name, values in points.items()}
    repeated = clone(valuer).fit(X, y, **copies)
    np.testing.assert_allclose(repeated.values_, weighted.values_, atol=1e-15)


@pytest.fixture
def wrong_labels(rng):
    """Rows, labels of which one in ten is wrong, points, and which are wrong."""
    X, _, _ = problem(n=200)
    y = np.where(X[:, 0] > 2, "yes", "no")
    points = {"X_val": X[100:], "y_val": y[100:]}
    is_wrong = rng.random(100) < 0.1
    flipped = np.where(y[:100] == "yes", "no", "yes")
    return X[:100], np.where(is_wrong, flipped, y[:100]), points, is_wrong


def test_wrong_labels_have_low_values(wrong_labels):
    X, y, points, is_wrong = wrong_labels
    values = UnrolledValuer(random_state=0).fit(X, y, **points).values_
    assert noisy_label_auc(values, is_wrong) > 0.9


def test_the_valuer_of_a_filter(wrong_labels):
    X, y, points, _ = wrong_labels
    value_filter = ValueFilter(UnrolledValuer(random_state=0), drop=10)
    X_kept, _ = value_filter.fit_resample(X, y, **points)
    assert len(X_kept) == 90


class Images(NamedTuple):
    """Rows, labels, points, and a valuer with a partly frozen network with dropout."""

    X: np.ndarray
    y: np.ndarray
    points: dict
    valuer: UnrolledValuer


@pytest.fixture
def images(rng):
    nn = pytest.importorskip("torch").nn
    X = rng.normal(size=(12, 1, 6, 6))
    y = np.arange(12) % 2
    network = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.Tanh(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(32, 1)
    )
    network[0].requires_grad_(False)
    valuer = UnrolledValuer(
        network.eval(), n_epochs=2, random_state=0, loss=nn.BCEWithLogitsLoss()
    )
    return Images(X, y, {"X_val": X[:5] + 1, "y_val": y[:5]}, valuer)


def test_values_of_images_do_not_depend_on_the_working_memory(images):
    X, y, points, valuer = images
    with config_context(working_memory=0):
        lean = clone(valuer).fit(X, y, **points).values_
    values = clone(valuer).fit(X, y, **points).values_
    np.testing.assert_allclose(lean, values, rtol=1e-4, atol=1e-7)


def test_dropout_is_off_with_a_warning(images):
    X, y, points, valuer = images
    values = clone(valuer).fit(X, y, **points).values_
    training = clone(valuer).set_params(model=valuer.model.train())
    with pytest.warns(UserWarning, match="Dropout is off") as issued:
        training.fit(X, y, **points)
    np.testing.assert_array_equal(training.values_, values)
    assert issued[0].filename == __file__


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
def test_wrong_parameters_are_refused(options, message):
    X, y, points = problem(regression="task" in options)
    with pytest.raises(ValueError, match=message), np.errstate(all="ignore"):
        UnrolledValuer(**options).fit(X, y, **points)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda nn: nn.Linear,
            TypeError,
            "model must be the name of a built-in model or a torch",
        ),
        (
            lambda nn: nn.Linear(4, 2),
            ValueError,
            "model must have an output for every class. Got 2 out",
        ),
        (
            lambda nn: nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)),
            ValueError,
            "model must not mix rows: batch norm",
        ),
    ],
    ids=["class", "outputs", "batch norm"],
)
def test_modules_that_cannot_be_valued_are_refused(make, error, message):
    nn = pytest.importorskip("torch").nn
    X, y, points = problem()
    with pytest.raises(error, match=message):
        UnrolledValuer(make(nn)).fit(X, y, **points)


# Removals -----------------------------------------------------------------------------

SETS = {
    "diabetes": load_diabetes,
    "iris": load_iris,
    "cancer": load_breast_cancer,
    "wine": load_wine,
    "digits": load_digits,
}

# Data sets, and numbers of rows.
LARGER = [
    ("diabetes", 40),
    ("diabetes", 80),
    ("diabetes", 200),
    ("iris", 39),
    ("iris", 78),
    ("cancer", 40),
    ("cancer", 80),
    ("cancer", 200),
    ("wine", 39),
    ("wine", 78),
    ("digits", 100),
    ("digits", 200),
]


def rows_of(name, n):
    """Rows and validation points; of classes, equally many rows of each."""
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
    n_per_class = n // len(classes)
    rows = [np.flatnonzero(y == label)[:n_per_class] for label in classes]
    rows = np.concatenate(rows)
    return X[rows], y[rows], X_val, y_val


class Fitted(NamedTuple):
    """A fitted valuer, its warnings, and what the removals of single rows do.

    ``effects`` are the decreases of the utility in a training without each row.
    """

    valuer: UnrolledValuer
    effects: np.ndarray
    warnings: list


def fitted(name, n, **options):
    """The `Fitted` valuer of a data set."""
    X, y, X_val, y_val = rows_of(name, n)
    is_regression = name == "diabetes"
    task = "regression" if is_regression else "classification"
    batches = []

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

    # The same training, by hand.
    scale = 1.0
    if is_regression:
        mean = y.mean()
        scale = y.std()
        y = (y - mean) / scale
        y_val = (y_val - mean) / scale
    columns = StandardScaler().fit(X)
    X = columns.transform(X) / np.sqrt(X.shape[1])
    X_val = columns.transform(X_val) / np.sqrt(X.shape[1])
    model = LinearRowModel(X.shape[1], 0 if is_regression else len(np.unique(y)))
    rows = model.rows(X, y)
    weights = np.full(len(y_val), 1 / len(y_val))
    utility = Utility(model, model.rows(X_val, y_val), weights, scale**2)
    eps = 0.01 if valuer.eps == "auto" else valuer.eps
    optimizer = Optimizer(valuer.optimizer, valuer.learning_rate, 0.9, eps=eps)

    def utility_without(*removed):
        counted = np.ones(len(y))
        counted[list(removed)] = 0
        theta = train(model, rows, model.start(None), batches, optimizer, counted)
        return utility.value(theta)

    full_utility = utility_without()
    assert full_utility == pytest.approx(valuer.utility_, rel=1e-9)
    without = np.array([utility_without(i) for i in range(len(y))])
    return Fitted(valuer, full_utility - without, issued)


def cases(quick, slow):
    return quick + [pytest.param(*case, marks=pytest.mark.slow) for case in slow]


@pytest.mark.parametrize(
    ("name", "n", "optimizer", "batch_size"),
    cases(
        [
            ("diabetes", 80, "adamw", 100),
            ("iris", 39, "sgd", 100),
            ("cancer", 40, "adamw", 16),
        ],
        [
            (*rows, optimizer, batch_size)
            for rows, optimizer, batch_size in product(
                LARGER, ("adamw", "sgd"), (100, 16)
            )
        ],
    ),
)
def test_values_order_rows_as_their_removals_do(name, n, optimizer, batch_size):
    """All rows in a step, where mean gradients of balanced columns are 0, or some."""
    valuer, effects, issued = fitted(
        name, n, optimizer=optimizer, batch_size=batch_size
    )
    assert spearmanr(valuer.values_, effects)[0] > 0.9
    ratio = np.abs(valuer.values_).max() / np.abs(effects).max()
    assert 0.4 < ratio < 1.5
    assert not issued


@pytest.mark.parametrize(
    ("name", "n", "eps", "learning_rate"),
    cases(
        [
            ("diabetes", 80, 1e-8, 0.05),
            ("iris", 39, 1e-8, 0.05),
            ("cancer", 40, 1e-8, 0.05),
        ],
        list(
            product(
                ("diabetes", "iris", "cancer", "wine"),
                (39, 78),
                (1e-8, 1e-6, 1e-4),
                (0.01, 0.05, 0.2),
            )
        ),
    ),
)
def test_values_far_from_what_removals_do_are_reported(name, n, eps, learning_rate):
    options = {"optimizer": "adamw", "eps": eps, "learning_rate": learning_rate}
    valuer, effects, issued = fitted(name, n, **options)
    is_far = np.abs(valuer.values_).max() > 10 * np.abs(effects).max()
    messages = [
        str(warning.message)
        for warning in issued
        if warning.category is ImpreciseValuesWarning
    ]
    if is_far:
        row = np.abs(valuer.values_).argmax()
        beginning = f"The value of row {row} is {valuer.values_[row]:.3g}, but"
        assert messages[0].startswith(beginning)
        assert f"a larger eps than {eps:g}" in messages[0]
    assert is_far <= bool(messages)
    assert is_far or eps > 1e-8 or name not in ("diabetes", "iris")


def test_the_report_comes_after_the_values():
    X, y, X_val, y_val = rows_of("iris", 39)
    valuer = UnrolledValuer(
        optimizer="adamw", eps=1e-8, learning_rate=0.05, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", ImpreciseValuesWarning)
        with pytest.raises(ImpreciseValuesWarning):
            valuer.fit(X, y, X_val=X_val, y_val=y_val)
    assert valuer.values_.shape == (39,)
