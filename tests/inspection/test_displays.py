import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from skvalue import KNNShapleyValuer
from skvalue.inspection import (
    ValueDistributionDisplay,
    ValueRemovalDisplay,
    value_removal_curve,
)
from skvalue.selection import ValueFilter


@pytest.fixture(scope="module")
def rows():
    X, y = load_iris(return_X_y=True)
    valuer = KNNShapleyValuer().fit(X[::2], y[::2])
    return X[::2], y[::2], valuer.values_, X[1::2], y[1::2]


OPTIONS = {"fractions": [0.1, 0.5, 0.8], "n_repeats": 3, "random_state": 0}


class TestRemoval:
    def test_draws_the_curves(self, rows):
        display = ValueRemovalDisplay.from_estimator(GaussianNB(), *rows, **OPTIONS)
        lowest, highest = (
            value_removal_curve(GaussianNB(), *rows, first=first, **OPTIONS)
            for first in ("lowest", "highest")
        )
        labels = [line.get_label() for line in display.lines_]
        assert labels == ["lowest value first", "highest value first", "at random"]
        scores = [lowest.scores, highest.scores, lowest.random_scores]
        for line, band, score in zip(display.lines_, display.bands_, scores):
            np.testing.assert_array_equal(line.get_xdata(), [0.1, 0.5, 0.8])
            np.testing.assert_allclose(line.get_ydata(), score.mean(axis=0))
            heights = band.get_paths()[0].vertices[:, 1]
            assert heights.max() == pytest.approx(score.max())
            assert heights.min() == pytest.approx(score.min())
        assert display.ax_.get_xlabel() == "fraction of rows removed"
        assert display.ax_.get_ylabel() == "score"
        assert display.figure_ is display.ax_.figure

    def test_options_of_the_curves(self, rows):
        draw, nothing = (
            ValueRemovalDisplay.from_estimator,
            object(),
        )  # on which a fit would fail
        display = draw(GaussianNB(), *rows, baseline=False, **OPTIONS)
        labels = [line.get_label() for line in display.lines_]
        assert labels == ["lowest value first", "highest value first"]
        with pytest.raises(
            TypeError, match="multiple values for keyword argument 'first'"
        ):
            draw(nothing, *rows, first="lowest", **OPTIONS)

    def test_values_of_groups_on_given_axes(self, rows):
        X, y, _, X_test, y_test = rows
        groups = np.arange(len(y)) % 10
        valuer = KNNShapleyValuer().fit(X, y, groups=groups)
        _, ax = plt.subplots()
        display = ValueRemovalDisplay.from_estimator(
            GaussianNB(), X, y, valuer.values_, X_test, y_test, groups=groups,
            scoring="accuracy", ax=ax, **OPTIONS,
        )  # fmt: skip
        assert display.ax_ is ax
        assert ax.get_xlabel() == "fraction of groups removed"
        assert ax.get_ylabel() == "accuracy"
        display = ValueDistributionDisplay.from_estimator(valuer, by=np.arange(10) < 2)
        assert list(display.bars_) == [False, True]

    def test_curves_at_hand(self, rows):
        curve = value_removal_curve(GaussianNB(), *rows, **OPTIONS, baseline=False)
        display = ValueRemovalDisplay(curve, score_name="hits").plot()
        assert (
            display.ax_.get_xlabel() == "fraction of rows removed, lowest value first"
        )
        assert display.ax_.get_ylabel() == "hits"
        assert len(display.lines_) == 1
        both = ValueRemovalDisplay({"one": curve, "other": curve})
        assert [line.get_label() for line in both.plot().lines_] == ["one", "other"]


class TestDistribution:
    def test_counts_the_values(self):
        values = np.array([-0.2, 0.15, 0.16, 0.3])
        display = ValueDistributionDisplay.from_values(values, bins=5)
        assert [bar.get_height() for bar in display.bars_[None]] == [1, 0, 0, 2, 1]
        assert display.ax_.get_ylabel() == "count"
        assert set(display.zero_line_.get_xdata()) == {0}
        assert display.ax_.get_legend() is None

    def test_kinds_share_bins_and_area(self):
        values = np.linspace(-1, 1, 40)
        by = np.where(values < -0.5, "noisy", "clean")
        display = ValueDistributionDisplay.from_values(values, by=by, bins=8)
        assert list(display.bars_) == ["clean", "noisy"]
        for bars in display.bars_.values():
            assert sum(
                bar.get_height() * bar.get_width() for bar in bars
            ) == pytest.approx(1)
        edges = [[bar.get_x() for bar in bars] for bars in display.bars_.values()]
        np.testing.assert_allclose(*edges)
        legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert legend == ["clean", "noisy"]

    def test_a_filter_shows_what_it_dropped(self, rows):
        X, y, values, *_ = rows
        row_filter = ValueFilter(drop=5).fit(X, y)
        display = ValueDistributionDisplay.from_estimator(row_filter)
        assert list(display.bars_) == ["dropped", "kept"]
        np.testing.assert_array_equal(
            np.flatnonzero(display.by == "dropped"), row_filter.dropped_indices_
        )
        bare = ValueDistributionDisplay.from_estimator(KNNShapleyValuer().fit(X, y))
        assert list(bare.bars_) == [None]
        np.testing.assert_array_equal(bare.values, values)

    def test_values_that_differ_by_rounding(self):
        values = np.array([0.1, 0.1, np.nextafter(0.1, 1)])
        bars = ValueDistributionDisplay.from_values(values, bins=9).bars_[None]
        assert sorted(bar.get_height() for bar in bars)[-2:] == [0, 3]

    @pytest.mark.parametrize("n_kinds", [3, 10, 11, 20])
    def test_every_kind_has_a_colour(self, n_kinds):
        kinds = range(n_kinds)
        bars = ValueDistributionDisplay.from_values(kinds, by=kinds, bins=1).bars_
        assert len({bar[0].get_facecolor() for bar in bars.values()}) == n_kinds

    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
    @pytest.mark.parametrize("kinds", [("a", "b"), (1.0, 2.0)])
    def test_refuses_kinds_without_a_name(self, kinds, missing):
        by = pd.Series([*kinds, missing], dtype=object)
        with pytest.raises(ValueError, match="by must .*no"):
            ValueDistributionDisplay.from_values([1, 2, 3], by=by)

    def test_refuses(self):
        with pytest.raises(
            ValueError, match="by must name at most 20 kinds of rows.* Got 21"
        ):
            ValueDistributionDisplay.from_values(np.zeros(21), by=range(21))
        with pytest.raises(
            ValueError, match=r"by must have an entry per value \(3\)\. Got 2\."
        ):
            ValueDistributionDisplay.from_values([1, 2, 3], by=[0, 1])
        with pytest.raises(ValueError, match="values contains NaN"):
            ValueDistributionDisplay.from_values([1, np.nan])
        with pytest.raises(ValueError, match="not fitted"):
            ValueDistributionDisplay.from_estimator(KNNShapleyValuer())


def test_says_how_to_get_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'skvalue\[plot\]'"):
        ValueDistributionDisplay.from_values([1.0, 2.0])
