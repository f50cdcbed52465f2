"""In-Run Shapley values, exact and private."""

import pickle
import warnings

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from problems import noisy_line
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import InRunShapleyValuer, ValueFilter
from skvalue.exceptions import FewValidationPointsWarning, NoiseExceedsSignalWarning
from skvalue.privacy import Ledger, SeededNoiseWarning

SEEDED = pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")


def problem(n_classes=3, n=120, n_points=80):
    """X, y, and the validation points as keywords."""
    X, y, X_val, y_val = noisy_line(
        0, n, n_points, n_classes=n_classes, noise=0.5, names="abc"[:n_classes]
    )
    if not n_classes:
        y = 100 * y + 7
        y_val = 100 * y_val + 7
    return X, y, {"X_val": X_val, "y_val": y_val}


def small_noise(**parameters):
    """A private fit with almost no noise."""
    return InRunShapleyValuer(
        epsilon=1e5, learning_rate=1.0, noise_random_state=0, **parameters
    )


# Without privacy ----------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_values_sum_to_the_gain_up_to_their_order(n_classes):
    X, y, points = problem(n_classes)
    errors = []
    for order in (1, 2):
        valuer = InRunShapleyValuer(order=order, learning_rate=0.3, n_steps=20).fit(
            X, y, **points
        )
        gain = valuer.utility_ - valuer.empty_utility_
        assert gain > 0
        errors.append(abs(valuer.values_.sum() - gain) / gain)
    assert errors[0] < 0.1
    assert errors[1] < errors[0] / 5


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_the_model_predicts_in_the_units_of_the_rows(n_classes):
    X, y, points = problem(n_classes)
    X = 50 * X + 3
    X_val = 50 * points["X_val"] + 3
    y_val = points["y_val"]
    valuer = InRunShapleyValuer(learning_rate=0.5, n_steps=300)
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    predicted = valuer.model_.predict(X_val)
    if n_classes:
        loss = log_loss(y_val, valuer.model_.predict_proba(X_val))
        assert predicted.shape == (80,)
    else:
        loss = mean_squared_error(y_val, predicted)
        expected = Ridge(1e-3).fit(X, y).predict(X_val)
        np.testing.assert_allclose(predicted, expected, atol=5)
    assert valuer.utility_ == pytest.approx(-loss, rel=1e-9)
    assert valuer.trajectory_.shape == (301, 5 * max(1, n_classes))


@pytest.mark.parametrize(
    "parameters", [{}, {"order": 2}, {"batch_size": 30}, {"clip": 0.2}]
)
def test_contributions_sum_to_values(parameters):
    X, y, points = problem()
    valuer = InRunShapleyValuer(learning_rate=1.0, random_state=0, **parameters)
    valuer.fit(X, y, **points)
    contributions = np.array(
        [valuer.contributions(i).contributions for i in range(0, 120, 7)]
    )
    sums = contributions.sum(axis=1)
    np.testing.assert_allclose(sums, valuer.values_[::7], atol=1e-12)
    error = (80 * contributions).std(axis=1, ddof=1) / np.sqrt(80)
    np.testing.assert_allclose(
        valuer.validation_error_[::7], error, rtol=1e-6, atol=1e-14
    )
    with pytest.warns(FewValidationPointsWarning):
        is_harmful = valuer.harmful(0.1)
    assert not is_harmful[valuer.values_ > 0].any()


@pytest.mark.parametrize("n_classes", [0, 3])
def test_the_value_of_a_group_is_the_sum_of_its_rows(n_classes):
    X, y, points = problem(n_classes)
    groups = np.arange(120) % 7
    rows = InRunShapleyValuer(random_state=0).fit(X, y, **points)
    grouped = InRunShapleyValuer(random_state=0).fit(X, y, groups=groups, **points)
    sums = np.bincount(groups, rows.values_)
    np.testing.assert_allclose(grouped.values_, sums, atol=1e-12)


@pytest.mark.parametrize("n_classes", [0, 3])
def test_fits_of_held_out_groups_have_no_model(n_classes):
    X, y, _ = problem(n_classes)
    valuer = InRunShapleyValuer(cv=GroupKFold(7), random_state=0)
    valuer.fit(X, y, groups=np.arange(120) % 7)
    assert valuer.values_.shape == (7,)
    assert not hasattr(valuer, "model_")


@pytest.mark.parametrize("n_classes", [0, 3])
def test_unseen_rows_are_valued_along_the_run(n_classes):
    X, y, points = problem(n_classes)
    valuer = InRunShapleyValuer(random_state=0).fit(X, y, **points)
    np.testing.assert_allclose(valuer.score_samples(X, y), valuer.values_, atol=1e-12)
    # A row that differs in one digit is unseen, and has almost the value of the row.
    near = valuer.score_samples(X * (1 + 1e-9), y)
    np.testing.assert_allclose(near, valuer.values_, rtol=1e-5, atol=1e-9)
    new = np.random.default_rng(1).normal(size=(9, 4))
    expected = valuer.transform(new)[:, 0]
    if n_classes:
        probabilities = valuer.model_.predict_proba(new)
        by_label = [valuer.score_samples(new, [label] * 9) for label in valuer.classes_]
        means = (probabilities * np.array(by_label).T).sum(axis=1)
        np.testing.assert_allclose(expected, means, atol=1e-12)
    else:
        of_predicted = valuer.score_samples(new, valuer.model_.predict(new))
        tolerance = 1e-9 * np.abs(of_predicted).max()
        np.testing.assert_allclose(expected, of_predicted, atol=tolerance)


def test_a_step_of_a_pipeline():
    X, y, _ = problem(2)
    pipeline = make_pipeline(StandardScaler(), InRunShapleyValuer(random_state=0))
    assert pipeline.fit_transform(X, y).shape == (120, 1)


def test_the_valuer_of_a_filter():
    X, y, _ = problem(2)
    value_filter = ValueFilter(InRunShapleyValuer(random_state=0), drop=0.1)
    X_kept, _ = value_filter.fit_resample(X, y)
    assert len(X_kept) == 108


def test_batches_value_the_rows_in_them():
    X, y, points = problem()
    valuer = InRunShapleyValuer(
        batch_size=20, n_steps=3, random_state=0, learning_rate=0.5
    )
    values = valuer.fit(X, y, **points).values_
    assert np.count_nonzero(values) == 60
    np.testing.assert_array_equal(clone(valuer).fit(X, y, **points).values_, values)


def test_values_of_many_batches_order_rows_as_those_of_all_rows():
    X, y, points = problem()
    all_rows = InRunShapleyValuer(n_steps=600, learning_rate=0.005, random_state=0)
    batches = clone(all_rows).set_params(batch_size=20)
    values = batches.fit(X, y, **points).values_
    expected = all_rows.fit(X, y, **points).values_
    assert spearmanr(values, expected)[0] > 0.99


@pytest.fixture
def network():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)
    )


def test_values_of_a_torch_module_sum_to_the_gain(network):
    X, y, points = problem()
    valuer = InRunShapleyValuer(network, learning_rate=0.5, n_steps=4, random_state=0)
    valuer.fit(X, y, **points)
    gain = valuer.utility_ - valuer.empty_utility_
    assert gain > 0.01
    assert valuer.values_.sum() == pytest.approx(gain, rel=0.2)
    near = valuer.score_samples(X * (1 + 1e-6), y)
    np.testing.assert_allclose(near, valuer.values_, rtol=1e-2, atol=1e-5)
    contributions = valuer.contributions(3).contributions
    assert contributions.sum() == pytest.approx(valuer.values_[3], abs=1e-6)


def test_the_utility_of_a_torch_module_is_that_of_the_trained_model(network):
    torch = pytest.importorskip("torch")
    X, y, points = problem()
    valuer = InRunShapleyValuer(network, learning_rate=0.5, n_steps=4, random_state=0)
    valuer.fit(X, y, **points)
    with torch.no_grad():
        outputs = valuer.model_(torch.tensor(points["X_val"], dtype=torch.float32))
    codes = torch.tensor(np.unique(points["y_val"], return_inverse=True)[1])
    loss = torch.nn.functional.cross_entropy(outputs, codes)
    assert valuer.utility_ == pytest.approx(-float(loss), rel=1e-5)


def test_private_values_of_a_torch_module(network):
    X, y, points = problem()
    valuer = InRunShapleyValuer(network, learning_rate=0.5, n_steps=4, random_state=0)
    private = clone(valuer).set_params(epsilon=1e5, clip=5.0, noise_random_state=0)
    values = valuer.fit(X, y, **points).values_
    with pytest.warns(SeededNoiseWarning):
        private_values = private.fit(X, y, **points).values_
    assert np.corrcoef(private_values, values)[0, 1] > 0.99


# With privacy -------------------------------------------------------------------------


@SEEDED
@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("order", [1, 2])
def test_little_noise_gives_the_exact_values(n_classes, order):
    X, y, points = problem(n_classes)
    exact = InRunShapleyValuer(clip=1.0, learning_rate=1.0, order=order)
    exact.fit(X, y, **points)
    private = small_noise(order=order).fit(X, y, **points)
    size = np.abs(exact.values_).max()
    np.testing.assert_allclose(private.values_, exact.values_, atol=1e-2 * size)
    scores = private.score_samples(X, y)
    np.testing.assert_allclose(scores, private.values_, atol=1e-12 * size)
    assert (private.values_error_ < 1e-2 * size).all()


@SEEDED
@pytest.mark.parametrize("n_classes", [0, 3])
def test_the_baseline_has_the_first_step_of_the_values(n_classes):
    X, y, points = problem(n_classes)
    valuer = small_noise(order=1, n_steps=1).fit(X, y, **points)
    tolerance = 1e-12 * np.abs(valuer.values_).max()
    np.testing.assert_allclose(valuer.baseline_, valuer.values_, atol=tolerance)


def test_the_noise_is_that_of_dp_accounting_and_charged():
    X, y, points = problem(2)
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = InRunShapleyValuer(
        epsilon=1.0, clip=0.7, n_steps=12, learning_rate=0.1, ledger=ledger
    )
    valuer.fit(X, y, **points)
    event = ledger.charges[0].event
    assert event.count == 12
    assert event.event.sensitivity == 1.4
    multiplier = event.event.scale / event.event.sensitivity
    one = pld.from_gaussian_mechanism(multiplier, value_discretization_interval=1e-3)
    epsilon = one.self_compose(12).get_epsilon_for_delta(1e-5)
    assert 0.99 < epsilon < 1.01
    assert valuer.privacy_.epsilon == pytest.approx(1.0, abs=1e-6)
    assert "joint differential privacy" in str(valuer.privacy_)
    with pytest.raises(ValueError, match="budget|ledger"):
        valuer.fit(X, y, **points)


@pytest.mark.slow
def test_private_batches_are_poisson_samples():
    X, y, points = problem(2)
    valuer = InRunShapleyValuer(epsilon=1.0, batch_size=12, learning_rate=0.1)
    valuer.fit(X, y, **points)
    assert valuer.privacy_.epsilon <= 1.0
    np.testing.assert_allclose(valuer.score_samples(X, y), valuer.values_, atol=1e-12)
    all_rows = InRunShapleyValuer(epsilon=1.0, learning_rate=0.1).fit(X, y, **points)
    assert f"probability {0.1:g}" in valuer.privacy_.noise
    assert "probability" not in all_rows.privacy_.noise


@pytest.mark.slow
@SEEDED
def test_stated_errors_are_those_of_redrawn_noise():
    X, y, points = problem(3, n=400, n_points=150)
    setting = {"learning_rate": 1.0, "epsilon": 1.0, "delta": 1e-4}
    exact = InRunShapleyValuer(clip=1.0, learning_rate=1.0).fit(X, y, **points).values_
    fits = [
        InRunShapleyValuer(noise_random_state=seed, **setting).fit(X, y, **points)
        for seed in range(40)
    ]
    squares = np.mean([(fit.values_ - exact) ** 2 for fit in fits])
    stated = np.mean([fit.values_error_**2 for fit in fits])
    assert 0.5 < stated / squares < 2
    baseline_error = np.abs(fits[0].baseline_ - exact).sum()
    errors = [np.abs(fit.values_ - exact).sum() for fit in fits]
    assert np.mean(errors) < baseline_error


@SEEDED
@pytest.mark.parametrize("batch_size", [None, 30])
def test_the_report_says_that_groups_are_not_the_unit(batch_size, monkeypatch):
    X, y, points = problem(2)
    # Calibration for samples takes seconds: `test_private_batches_are_poisson_samples`
    # has it.
    monkeypatch.setattr(
        "skvalue.valuers.in_run_shapley.calibrate", lambda event, *_: event(9.0)
    )
    valuer = small_noise(batch_size=batch_size, n_steps=3).set_params(epsilon=7.0)
    of_rows = valuer.fit(X, y, **points).privacy_
    np.testing.assert_allclose(valuer.score_samples(X, y), valuer.values_, atol=1e-12)
    assert ("probability 0.25" in of_rows.noise) == (batch_size is not None)
    of_groups = valuer.fit(X, y, groups=np.arange(120) % 5, **points).privacy_
    sentence = "groups as wholes: the unit is one row of a group"
    assert sentence in of_groups.not_protected
    assert sentence in " ".join(str(of_groups).split())
    assert sentence not in of_rows.not_protected
    assert of_groups.unit == of_rows.unit == "row"


@SEEDED
def test_an_owner_sees_value_baseline_and_error_of_a_group():
    X, y, points = problem(2)
    valuer = small_noise().fit(X, y, groups=np.arange(120) % 5, **points)
    seen = valuer.values_for(3, return_baseline=True, return_error=True)
    assert seen == (valuer.values_[3], valuer.baseline_[3], valuer.values_error_[3])


@SEEDED
def test_private_values_are_not_pickled():
    X, y, points = problem(2)
    valuer = small_noise().fit(X, y, groups=np.arange(120) % 5, **points)
    copy = pickle.loads(pickle.dumps(valuer))
    for name in ("values_", "baseline_", "values_error_"):
        assert not hasattr(copy, name)
        assert name not in dir(valuer)
    np.testing.assert_array_equal(copy.trajectory_, valuer.trajectory_)
    np.testing.assert_array_equal(copy.score_samples(X, y), valuer.score_samples(X, y))
    assert X.tobytes() not in pickle.dumps(valuer)


@SEEDED
def test_fit_transform_of_a_private_fit_is_for_the_curator():
    X, y, points = problem(2)
    with pytest.raises(ValueError, match="reader must be 'curator'"):
        small_noise().fit_transform(X, y, **points)
    values = small_noise(reader="curator").fit_transform(X, y, **points)
    assert values.shape == (120, 1)


@SEEDED
def test_rows_of_labels_that_no_point_has_are_worth_nothing():
    X, y, points = problem(3)
    is_used = points["y_val"] != "c"
    points = {name: values[is_used] for name, values in points.items()}
    valuer = small_noise().fit(X, y, **points)
    assert valuer.classes_.tolist() == ["a", "b"]
    assert (valuer.values_[y == "c"] == 0).all()
    assert (valuer.values_[y != "c"] != 0).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"model": "logistic"},
            "model must be 'auto', 'softmax', 'linear' or a torch module",
        ),
        (
            {"model": "linear", "task": "classification"},
            "task must be 'auto' or 'regression'",
        ),
        ({"batch_size": 121}, "batch_size must be at most the number of rows"),
        ({"epsilon": 1.0, "clip": None}, "clip must be a number with epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"device": "cuda"}, "device must be 'auto' or 'cpu'"),
        ({"loss": min}, "loss must be None"),
        (
            {"learning_rate": 1e300, "n_steps": 40, "task": "regression"},
            "learning_rate must be",
        ),
        ({"order": 3}, "order"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_wrong_parameters_are_refused(parameters, message):
    X, y, points = problem(0 if "task" in parameters else 2)
    with pytest.raises(ValueError, match=message):
        InRunShapleyValuer(**parameters).fit(X, y, **points)


def test_the_rate_does_not_depend_on_the_rows():
    X, y = make_classification(300, 6, random_state=0)
    points = {"X_val": X[200:], "y_val": y[200:]}
    valuer = InRunShapleyValuer(random_state=0).fit(X[:100], y[:100], **points)
    other = clone(valuer).fit(X[100:200], 1 - y[100:200], **points)
    assert other.learning_rate_ == valuer.learning_rate_
    assert valuer.utility_ > valuer.empty_utility_


@pytest.mark.parametrize(
    ("epsilon", "batch_size", "is_noise"),
    [
        (0.02, None, True),
        (100.0, None, False),
        pytest.param(100.0, 40, False, marks=pytest.mark.slow),
    ],
)
def test_noise_that_exceeds_the_signal_is_warned_of(epsilon, is_noise, batch_size):
    X, y, points = problem()
    valuer = InRunShapleyValuer(
        epsilon=epsilon, noise_random_state=0, learning_rate=1.0, batch_size=batch_size
    )
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        valuer.fit(X, y, **points)
    issued = [w for w in record if w.category is NoiseExceedsSignalWarning]
    assert len(issued) == is_noise
