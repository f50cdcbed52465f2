from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator

from skvalue.inspection import DetectionDisplay, detection_curve
from skvalue.privacy import detection_ceiling, mu_from_epsilon


class Recorder(BaseEstimator):
    """Values that know the parties as well as epsilon says, and what was asked of
    it."""

    calls: list = []

    def __init__(self, epsilon=None, random_state=None, unit="party"):
        self.epsilon = epsilon
        self.random_state = random_state
        self.unit = unit

    def fit(self, X, y, *, X_val, y_val, groups):
        self.calls.append((self.get_params(), len(X), np.bincount(groups).tolist()))
        parties = np.unique(groups)
        good = np.array([y[groups == party].mean() for party in parties])
        weight = 1.0 if self.epsilon is None else self.epsilon
        self.values_ = weight * good + (weight < 1) * np.linspace(1, 0, len(good))
        self.privacy_ = SimpleNamespace(detection_ceiling=detection_ceiling(1.0, 5e-5))
        return self


@pytest.fixture
def parties():
    """Ten rows of each of six parties; the first two have label 0, and are bad."""
    groups = np.tile(np.arange(6), 10)
    wrong = np.arange(6) < 2
    X, y = np.arange(60.0)[:, None], (~wrong[groups]).astype(int)
    return {
        "X": X,
        "y": y,
        "groups": groups,
        "wrong": wrong,
        "X_val": X[:2],
        "y_val": y[:2],
    }


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
    np.testing.assert_allclose(curves.limits[0], 0.583, atol=5e-4)
    # Five rows replaced: five times the distance, as at the epsilon whose mu is five
    # times it.
    mu = 5 * mu_from_epsilon(1.0, 5e-5)
    np.testing.assert_allclose(curves.limits[1], norm.cdf(mu / np.sqrt(2)))
    assert [call[1] for call in Recorder.calls] == [6] * 6 + [30] * 6
    assert all(call[2] == [5] * 6 for call in Recorder.calls[6:])
    assert len({call[0]["random_state"] for call in Recorder.calls}) == 12


def test_limit_of_whole_parties_does_not_grow_with_their_rows(parties):
    curves = detection_curve(
        Recorder(), epsilons=[1.0], n_repeats=1, random_state=0, **parties
    )
    assert curves.sizes.tolist() == [10]
    np.testing.assert_allclose(curves.limits, 0.583, atol=5e-4)


def test_detection_errors(parties):
    with pytest.raises(
        ValueError, match=r"sizes must be between 1 and .*smallest group \(10\)"
    ):
        detection_curve(Recorder(), sizes=[1, 11], **parties)
    for name in ("groups", "wrong", "epsilons", "sizes"):
        with pytest.raises(
            ValueError, match=f"'{name}' parameter of detection_curve must be"
        ):
            detection_curve(Recorder(), **{**parties, name: 1})
    parties["wrong"] = np.ones(5, dtype=bool)
    with pytest.raises(ValueError, match=r"wrong must have one entry per group \(6\)"):
        detection_curve(Recorder(), **parties)


def test_detection_display(parties):
    curves = detection_curve(
        Recorder(unit="example"),
        sizes=[1, 5],
        epsilons=[1.0],
        random_state=0,
        **parties,
    )
    display = DetectionDisplay({"one": curves, "two": curves}).plot()
    assert [line.get_label() for line in display.lines_] == ["one", "two"]
    assert display.lines_[0].get_xdata().tolist() == [1, 5]
    np.testing.assert_allclose(display.limit_line_.get_ydata(), curves.limits[:, 0])
    assert display.clean_line_.get_ydata().tolist() == [1.0, 1.0]
    assert display.ax_.get_xlabel() == "rows of a party"
    one = detection_curve(Recorder(), epsilons=[0.5, 2.0], random_state=0, **parties)
    display = DetectionDisplay(one).plot()
    assert display.lines_[0].get_xdata().tolist() == [0.5, 2.0]
    assert display.ax_.get_xlabel() == "epsilon"
    curves.epsilons = one.epsilons
    with pytest.raises(ValueError, match="curves must have one size or one epsilon"):
        DetectionDisplay(curves).plot()
