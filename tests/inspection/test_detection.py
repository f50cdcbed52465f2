from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator

from skvalue.inspection import DetectionDisplay, detection_curve
from skvalue.privacy import detection_ceiling, mu_from_epsilon


class Recorder(BaseEstimator):
    """Values that know the parties as well as epsilon says; it records its fits."""

    fits: list = []

    def __init__(self, epsilon=None, random_state=None, unit="party"):
        self.epsilon = epsilon
        self.random_state = random_state
        self.unit = unit

    def fit(self, X, y, *, X_val, y_val, groups):
        self.fits.append((self.get_params(), np.bincount(groups).tolist()))
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
    X = np.arange(60.0)[:, None]
    y = (~wrong[groups]).astype(int)
    return {
        "X": X,
        "y": y,
        "groups": groups,
        "wrong": wrong,
        "X_val": X[:2],
        "y_val": y[:2],
    }


def test_scores_and_limits_by_size_and_epsilon(parties):
    curves = detection_curve(
        Recorder(unit="example"),
        sizes=[1, 5],
        epsilons=[0.01, 100.0],
        n_repeats=2,
        random_state=0,
        **parties,
    )
    assert curves.scores.shape == (2, 2, 2)
    np.testing.assert_array_equal(curves.clean_scores, np.ones((2, 2)))
    np.testing.assert_array_equal(curves.scores[:, 1], np.ones((2, 2)))
    np.testing.assert_array_equal(curves.scores[:, 0], np.zeros((2, 2)))
    np.testing.assert_allclose(curves.limits[0], 0.583, atol=5e-4)
    # Five rows are replaced: the distance is five times as large, as at the epsilon
    # whose mu is five times as large.
    mu = 5 * mu_from_epsilon(1.0, 5e-5)
    np.testing.assert_allclose(curves.limits[1], norm.cdf(mu / np.sqrt(2)))


def test_every_fit_has_the_rows_of_its_size_and_a_seed_of_its_own(parties):
    Recorder.fits.clear()
    detection_curve(
        Recorder(unit="example"),
        sizes=[1, 5],
        epsilons=[0.01, 100.0],
        n_repeats=2,
        random_state=0,
        **parties,
    )
    # Two repeats of two epsilons and of no noise.
    group_sizes = [sizes for _, sizes in Recorder.fits]
    assert group_sizes == [[1] * 6] * 6 + [[5] * 6] * 6
    seeds = {params["random_state"] for params, _ in Recorder.fits}
    assert len(seeds) == 12


def test_limit_of_whole_parties_does_not_grow_with_their_rows(parties):
    curves = detection_curve(
        Recorder(), epsilons=[1.0], n_repeats=1, random_state=0, **parties
    )
    assert curves.sizes.tolist() == [10]
    np.testing.assert_allclose(curves.limits, 0.583, atol=5e-4)


def test_sizes_that_a_party_does_not_have_are_refused(parties):
    message = r"sizes must be between 1 and .*smallest group \(10\)"
    with pytest.raises(ValueError, match=message):
        detection_curve(Recorder(), sizes=[1, 11], **parties)


@pytest.mark.parametrize("sizes", [[0], [-3], [2.5], [1, -1], [np.nan]])
def test_sizes_that_are_no_numbers_of_rows_are_refused(parties, sizes):
    with pytest.raises(ValueError, match="sizes (must be whole numbers|contains NaN)"):
        detection_curve(Recorder(), sizes=sizes, **parties)


@pytest.mark.parametrize("name", ["groups", "wrong", "epsilons", "sizes"])
def test_a_number_in_place_of_an_array_is_refused(parties, name):
    message = f"'{name}' parameter of detection_curve must be"
    with pytest.raises(ValueError, match=message):
        detection_curve(Recorder(), **{**parties, name: 1})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.arange(5) < 2, r"wrong must have one entry per group \(6\)"),
        (np.ones(6, dtype=bool), "wrong must have entries of both kinds"),
        (np.arange(6), "wrong must be a mask"),
    ],
)
def test_masks_that_mark_no_groups_are_refused_before_a_fit(parties, wrong, message):
    class Unfitted(Recorder):
        def fit(self, X, y, **parameters):
            raise AssertionError("a fit may charge a ledger")

    parties["wrong"] = wrong
    with pytest.raises(ValueError, match=message):
        detection_curve(Unfitted(), **parties)


class TestDisplay:
    @pytest.fixture
    def by_size(self, parties):
        return detection_curve(
            Recorder(unit="example"),
            sizes=[1, 5],
            epsilons=[1.0],
            random_state=0,
            **parties,
        )

    @pytest.fixture
    def by_epsilon(self, parties):
        return detection_curve(
            Recorder(), epsilons=[0.5, 2.0], random_state=0, **parties
        )

    def test_several_sizes_are_on_the_horizontal_axis(self, by_size):
        display = DetectionDisplay({"one": by_size, "two": by_size}).plot()
        assert [line.get_label() for line in display.lines_] == ["one", "two"]
        assert display.lines_[0].get_xdata().tolist() == [1, 5]
        limits = display.limit_line_.get_ydata()
        np.testing.assert_allclose(limits, by_size.limits[:, 0])
        assert display.clean_line_.get_ydata().tolist() == [1.0, 1.0]
        assert display.ax_.get_xlabel() == "rows of a party"

    def test_several_epsilons_are_on_the_horizontal_axis(self, by_epsilon):
        display = DetectionDisplay(by_epsilon).plot()
        assert display.lines_[0].get_xdata().tolist() == [0.5, 2.0]
        assert display.ax_.get_xlabel() == "epsilon"

    def test_several_sizes_and_epsilons_are_refused(self, by_size, by_epsilon):
        by_size.epsilons = by_epsilon.epsilons
        message = "curves must have one size or one epsilon"
        with pytest.raises(ValueError, match=message):
            DetectionDisplay(by_size).plot()
