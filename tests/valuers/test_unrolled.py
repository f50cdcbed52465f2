import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from skvalue import InfluenceValuer, UnrolledValuer, ValueFilter
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
    # A row that is there twice has two equal terms: its value is half of that of both together.
    twice = clone(valuer).fit(np.r_[X, X], np.r_[y, y], **points)
    np.testing.assert_allclose(twice.values_, np.tile(valuer.values_ / 2, 2), rtol=1e-8, atol=1e-12)
    assert twice.utility_ == pytest.approx(valuer.utility_, rel=1e-9)


def test_values_of_a_model_at_its_optimum_are_influences():
    X, y, points = problem(regression=True)
    X = (X - X.mean(0)) / X.std(0)
    y = (y - y.mean()) / y.std()
    valuer = UnrolledValuer(batch_size=None, learning_rate=0.5, n_epochs=400).fit(X, y, **points)
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
    np.testing.assert_allclose(other.values_, one.values_, atol=1e-4 * np.abs(one.values_).max())


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
    np.testing.assert_allclose(sums.values_, np.bincount(np.arange(60) % 3, rows), atol=1e-15)
    assert sums.groups_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("kind", ["softmax", "network"])
def test_runs_are_averaged_and_have_errors(kind):
    regression, options = KINDS[kind]
    X, y, points = problem(regression)
    valuer = UnrolledValuer(n_epochs=2, batch_size=10, random_state=0, **options())
    one = clone(valuer).fit(X, y, **points)
    assert not hasattr(one, "values_error_")
    few, many = (clone(valuer).set_params(n_runs=n).fit(X, y, **points) for n in (4, 16))
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
        part = UnrolledValuer(n_epochs=5, batch_size=None).fit(X[i::2], y[i::2], **points)
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
    with pytest.warns(UserWarning, match="Dropout is off"):
        again = clone(valuer).set_params(model=net.train()).fit(X, y, **points)
    np.testing.assert_array_equal(again.values_, values)


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
        ({"learning_rate": 1e9, "task": "regression"}, "learning_rate must be smaller: the train"),
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
    with pytest.raises(TypeError, match="model must be the name of a built-in model or a torch"):
        UnrolledValuer(nn.Linear).fit(X, y, **points)
    with pytest.raises(ValueError, match="model must have an output for every class. Got 2 out"):
        UnrolledValuer(nn.Linear(4, 2)).fit(X, y, **points)
    with pytest.raises(ValueError, match="model must not mix rows: batch norm"):
        UnrolledValuer(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))).fit(X, y, **points)
