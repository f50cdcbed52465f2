from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from skvalue import GradientSemivalueValuer
from skvalue.inspection import (
    ClosenessDisplay,
    DetectionDisplay,
    UncertaintyDisplay,
    detection_curve,
    detection_limit,
    mean_adjusted_variance,
    release_closeness,
    uncertainty_curve,
)
from skvalue.privacy import detection_ceiling, mu_from_epsilon


@pytest.fixture(autouse=True)
def _no_window():
    backend = matplotlib.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(backend)


class Recorder(BaseEstimator):
    """Values that know the parties as well as epsilon says, and what was asked of it."""

    calls: list = []

    def __init__(self, epsilon=None, random_state=None, n_permutations=1, unit="party", noise=""):
        self.epsilon = epsilon
        self.random_state = random_state
        self.n_permutations = n_permutations
        self.unit = unit
        self.noise = noise

    def fit(self, X, y, *, X_val, y_val, groups):
        self.calls.append((self.get_params(), len(X), np.bincount(groups).tolist()))
        parties = np.unique(groups)
        good = np.array([y[groups == party].mean() for party in parties])
        weight = 1.0 if self.epsilon is None else self.epsilon
        self.values_ = weight * good + (weight < 1) * np.linspace(1, 0, len(good))
        self.values_error_ = np.full(len(good), 0.1 * self.n_permutations)
        self.privacy_ = SimpleNamespace(detection_ceiling=0.6)
        return self


@pytest.fixture
def parties():
    """Ten rows of each of six parties; the first two have label 0, and are bad."""
    groups = np.tile(np.arange(6), 10)
    wrong = np.arange(6) < 2
    X, y = np.arange(60.0)[:, None], (~wrong[groups]).astype(int)
    return {"X": X, "y": y, "groups": groups, "wrong": wrong, "X_val": X[:2], "y_val": y[:2]}


# Uncertainty -------------------------------------------------------------------------------------


def test_variance_over_size():
    assert mean_adjusted_variance([0.5, -1.0], [0.1, 0.2]) == pytest.approx(0.03)
    assert mean_adjusted_variance([0.0, 1.0], [0.0, 0.1]) == pytest.approx(0.005)
    assert mean_adjusted_variance([0.0, 1.0], [0.1, 0.1]) == np.inf
    assert mean_adjusted_variance([0.5, 1.0], [np.inf, 0.1]) == np.inf


@pytest.mark.parametrize(
    ("values", "errors"),
    [([1.0, 2.0], [0.1]), ([1.0, 2.0], [0.1, -0.1]), ([1.0, 2.0], [0.1, np.nan])],
)
def test_errors_that_are_none(values, errors):
    with pytest.raises(ValueError, match="errors must have one entry a value, none of them neg"):
        mean_adjusted_variance(values, errors)


def test_uncertainty_fits_every_point(parties):
    Recorder.calls.clear()
    wrong = parties.pop("wrong")
    curves = uncertainty_curve(
        Recorder(), n_permutations=[2, 4], noises={"a": {"noise": "x"}, "b": {}}, n_repeats=3,
        random_state=0, **parties,
    )  # fmt: skip
    assert len(Recorder.calls) == 12
    assert {call[0]["noise"] for call in Recorder.calls} == {"x", ""}
    seeds = [call[0]["random_state"] for call in Recorder.calls if call[0]["noise"] == "x"]
    assert len(set(seeds)) == 3  # one a repeat, the same for all points
    assert curves.uncertainty["a"].shape == (3, 2)
    good = ~wrong
    expected = np.mean(np.where(good, (0.1 * 4) ** 2, np.inf))
    assert curves.uncertainty["a"][0, 1] == expected
    np.testing.assert_allclose(curves.mean_value["b"], 4 / 6)


def test_noise_makes_values_worse_with_more_permutations_unless_averaged(rng):
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] > 0).astype(int)
    curves = uncertainty_curve(
        GradientSemivalueValuer("logistic", learning_rate=0.05, noise_multiplier=2.0),
        X[:40], y[:40], X_val=X[40:], y_val=y[40:], n_permutations=[20, 320], random_state=0,
        noises={"iid": {"noise": "iid"}, "averaged": {"noise": "correlated"}},
    )  # fmt: skip
    iid, averaged = (curves.mean_value[name][0] for name in ("iid", "averaged"))
    assert iid[1] < 4 * iid[0] < 0
    assert abs(averaged[1]) < abs(iid[1]) / 10


def test_uncertainty_display():
    numbers = {"one": np.array([[1.0, 4.0], [3.0, 8.0]]), "two": np.array([[1.0, 0.5]])}
    curves = Bunch(n_permutations=np.array([10, 20]), uncertainty=numbers, mean_value=numbers)
    display = UncertaintyDisplay(curves).plot()
    assert [line.get_label() for line in display.lines_] == ["one", "two"]
    np.testing.assert_allclose(display.lines_[0].get_ydata(), [2.0, 6.0])
    assert display.ax_.get_yscale() == "log"
    _, ax = plt.subplots()
    display.plot(ax, what="mean_value", line_kw={"linewidth": 5})
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.lines_[0].get_linewidth() == 5
    assert ax.get_ylabel() == "mean value"
    with pytest.raises(ValueError, match="what must be 'uncertainty' or 'mean_value'. Got 'k'."):
        display.plot(what="k")


# Closeness ---------------------------------------------------------------------------------------


def test_noise_alone_sets_the_distance():
    # Clean gradients do not vary: what is left is the noise, of variance k sigma^2 p / t.
    k, p = 64, 50
    found = release_closeness(
        k, n_parties=400, n_parameters=p, noise_multiplier=2.0, gradient_sd=0.0, random_state=0
    )
    expected = 2.0 * np.sqrt(k / np.arange(1, k + 1)) * np.sqrt(p)
    np.testing.assert_allclose(found.distance, expected, rtol=0.03)
    iid = release_closeness(
        k, noise="iid", n_parties=400, n_parameters=p, noise_multiplier=2.0, gradient_sd=0.0,
        random_state=0,
    )  # fmt: skip
    np.testing.assert_allclose(iid.distance, 2.0 * np.sqrt(k * p), rtol=0.03)
    assert found.cosine[-1] > 3 * np.abs(iid.cosine).mean()


def test_the_best_mean_is_best_where_gradients_vary():
    options = {"noise_multiplier": 0.02, "gradient_sd": 0.2, "n_parties": 400, "random_state": 0}
    last = {
        name: release_closeness(100, noise=name, **options).distance[-30:].mean()
        for name in ("iid", "correlated", "optimal")
    }
    assert last["optimal"] < min(last["iid"], last["correlated"])


def test_closeness_display():
    curves = {name: release_closeness(10, noise=name) for name in ("iid", "correlated")}
    display = ClosenessDisplay(curves).plot()
    np.testing.assert_array_equal(display.lines_[1].get_ydata(), curves["correlated"].cosine)
    assert display.lines_[0].get_xdata().tolist() == list(range(1, 11))
    assert display.plot(what="distance").ax_.get_yscale() == "log"
    with pytest.raises(ValueError, match="what must be 'cosine' or 'distance'. Got 'angle'."):
        display.plot(what="angle")


# Detection ---------------------------------------------------------------------------------------


def test_limit_of_one_row_is_the_ceiling():
    report = SimpleNamespace(detection_ceiling=detection_ceiling(1.0, 5e-5))
    assert detection_limit(report) == pytest.approx(0.583, abs=5e-4)
    # Eight rows replaced: eight times the distance, as at the epsilon whose mu is eight times it.
    mu = 8 * mu_from_epsilon(1.0, 5e-5)
    from scipy.stats import norm

    assert detection_limit(report, 8) == pytest.approx(norm.cdf(mu / np.sqrt(2)))


def test_detection_by_size_and_epsilon(parties):
    Recorder.calls.clear()
    curves = detection_curve(
        Recorder(unit="example"), sizes=[1, 5], epsilons=[0.01, 100.0], n_repeats=2,
        random_state=0, **parties,
    )  # fmt: skip
    assert curves.scores.shape == (2, 2, 2)
    np.testing.assert_array_equal(curves.clean_scores, np.ones((2, 2)))
    np.testing.assert_array_equal(curves.scores[:, 1], np.ones((2, 2)))
    np.testing.assert_array_equal(curves.scores[:, 0], np.zeros((2, 2)))
    np.testing.assert_allclose(curves.limits[0], 0.6)
    np.testing.assert_allclose(
        curves.limits[1], detection_limit(SimpleNamespace(detection_ceiling=0.6), 5)
    )
    assert [call[1] for call in Recorder.calls] == [6] * 6 + [30] * 6
    assert all(call[2] == [5] * 6 for call in Recorder.calls[6:])
    assert len({call[0]["random_state"] for call in Recorder.calls}) == 12


def test_limit_of_whole_parties_does_not_grow_with_their_rows(parties):
    curves = detection_curve(Recorder(), epsilons=[1.0], n_repeats=1, random_state=0, **parties)
    assert curves.sizes.tolist() == [10]
    np.testing.assert_allclose(curves.limits, 0.6)


def test_detection_errors(parties):
    with pytest.raises(ValueError, match=r"sizes must be between 1 and .*smallest group \(10\)"):
        detection_curve(Recorder(), sizes=[1, 11], **parties)
    parties["wrong"] = np.ones(5, dtype=bool)
    with pytest.raises(ValueError, match=r"wrong must have one entry a group \(6\)"):
        detection_curve(Recorder(), **parties)


def test_detection_display(parties):
    curves = detection_curve(
        Recorder(unit="example"), sizes=[1, 5], epsilons=[1.0], random_state=0, **parties
    )
    display = DetectionDisplay({"one": curves, "two": curves}).plot()
    assert [line.get_label() for line in display.lines_] == ["one", "two"]
    assert display.lines_[0].get_xdata().tolist() == [1, 5]
    np.testing.assert_allclose(display.limit_line_.get_ydata(), curves.limits[:, 0])
    assert display.clean_line_.get_ydata().tolist() == [1.0, 1.0]
    assert display.ax_.get_xlabel() == "rows of a party"
    with pytest.raises(ValueError, match="must have one of sizes to be drawn against epsilons"):
        display.plot(against="epsilons")
    with pytest.raises(ValueError, match="against must be 'sizes' or 'epsilons'. Got 'k'."):
        display.plot(against="k")
    one = detection_curve(Recorder(), epsilons=[0.5, 2.0], random_state=0, **parties)
    display = DetectionDisplay(one).plot()
    assert display.lines_[0].get_xdata().tolist() == [0.5, 2.0]
    assert display.ax_.get_xlabel() == "epsilon"
