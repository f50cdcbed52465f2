import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import KNNShapleyValuer
from skvalue.inspection import (
    ValueDistributionDisplay,
    ValueRemovalDisplay,
    value_removal_curve,
)
from skvalue.selection import ValueFilter, ValueFilteredClassifier


@pytest.fixture(scope="module")
def rows():
    X, y = load_iris(return_X_y=True)
    valuer = KNNShapleyValuer().fit(X[::2], y[::2])
    return X[::2], y[::2], valuer.values_, X[1::2], y[1::2]


OPTIONS = {"fractions": [0.1, 0.5, 0.8], "n_repeats": 3, "random_state": 0}


class TestRemoval:
    def test_draws_means_and_ranges_of_both_orders(self, rows):
        display = ValueRemovalDisplay.from_estimator(GaussianNB(), *rows, **OPTIONS)
        lowest = value_removal_curve(GaussianNB(), *rows, **OPTIONS)
        highest = value_removal_curve(GaussianNB(), *rows, first="highest", **OPTIONS)
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

    def test_without_a_baseline_there_are_two_lines(self, rows):
        display = ValueRemovalDisplay.from_estimator(
            GaussianNB(), *rows, baseline=False, **OPTIONS
        )
        labels = [line.get_label() for line in display.lines_]
        assert labels == ["lowest value first", "highest value first"]

    def test_an_order_is_refused_before_any_fit(self, rows):
        # A fit of this would fail.
        estimator = object()
        message = "multiple values for keyword argument 'first'"
        with pytest.raises(TypeError, match=message):
            ValueRemovalDisplay.from_estimator(
                estimator, *rows, first="lowest", **OPTIONS
            )

    def test_values_of_groups_are_drawn_on_the_axes(self, rows):
        X, y, _, X_test, y_test = rows
        groups = np.arange(len(y)) % 10
        valuer = KNNShapleyValuer().fit(X, y, groups=groups)
        _, ax = plt.subplots()
        display = ValueRemovalDisplay.from_estimator(
            GaussianNB(),
            X,
            y,
            valuer.values_,
            X_test,
            y_test,
            groups=groups,
            scoring="accuracy",
            ax=ax,
            **OPTIONS,
        )
        assert display.ax_ is ax
        assert ax.get_xlabel() == "fraction of groups removed"
        assert ax.get_ylabel() == "accuracy"

    def test_one_curve_is_drawn(self, rows):
        curve = value_removal_curve(GaussianNB(), *rows, **OPTIONS, baseline=False)
        display = ValueRemovalDisplay(curve, score_name="hits").plot()
        xlabel = "fraction of rows removed, lowest value first"
        assert display.ax_.get_xlabel() == xlabel
        assert display.ax_.get_ylabel() == "hits"
        assert len(display.lines_) == 1

    def test_several_curves_are_drawn_by_name(self, rows):
        curve = value_removal_curve(GaussianNB(), *rows, **OPTIONS, baseline=False)
        display = ValueRemovalDisplay({"one": curve, "other": curve}).plot()
        assert [line.get_label() for line in display.lines_] == ["one", "other"]


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
            area = sum(bar.get_height() * bar.get_width() for bar in bars)
            assert area == pytest.approx(1)
        edges = [[bar.get_x() for bar in bars] for bars in display.bars_.values()]
        np.testing.assert_allclose(*edges)
        legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert legend == ["clean", "noisy"]

    def test_a_filter_shows_dropped_and_kept_rows(self, rows):
        X, y, *_ = rows
        row_filter = ValueFilter(drop=5).fit(X, y)
        display = ValueDistributionDisplay.from_estimator(row_filter)
        assert list(display.bars_) == ["dropped", "kept"]
        np.testing.assert_array_equal(
            np.flatnonzero(display.by == "dropped"), row_filter.dropped_indices_
        )

    @pytest.mark.parametrize(
        "within",
        [
            lambda model: make_pipeline(StandardScaler(), model),
            lambda model: make_pipeline(make_pipeline(model)),
            lambda model: GridSearchCV(model, {"drop": [5]}, cv=2),
            lambda model: make_pipeline(GridSearchCV(model, {"drop": [5]}, cv=2)),
        ],
    )
    def test_a_filter_at_the_end_of_a_pipeline_or_search_is_shown(self, rows, within):
        X, y, *_ = rows
        model = within(ValueFilteredClassifier(GaussianNB(), drop=5)).fit(X, y)
        display = ValueDistributionDisplay.from_estimator(model)
        assert (display.by == "dropped").sum() == 5

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (GaussianNB(), "must have values_, .* Got GaussianNB"),
            (
                ValueFilteredClassifier(GaussianNB(), drop=0),
                "not available with drop=0",
            ),
        ],
    )
    def test_an_estimator_without_values_is_refused(self, rows, model, message):
        X, y, *_ = rows
        for estimator in (model, make_pipeline(model)):
            with pytest.raises((ValueError, AttributeError), match=message):
                ValueDistributionDisplay.from_estimator(estimator.fit(X, y))

    def test_a_valuer_shows_its_values(self, rows):
        X, y, values, *_ = rows
        display = ValueDistributionDisplay.from_estimator(KNNShapleyValuer().fit(X, y))
        assert list(display.bars_) == [None]
        np.testing.assert_array_equal(display.values, values)

    def test_a_valuer_of_groups_shows_one_value_for_each(self, rows):
        X, y, *_ = rows
        valuer = KNNShapleyValuer().fit(X, y, groups=np.arange(len(y)) % 10)
        display = ValueDistributionDisplay.from_estimator(valuer, by=np.arange(10) < 2)
        assert list(display.bars_) == [False, True]

    def test_values_that_differ_by_rounding_share_a_bin(self):
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
    def test_kinds_without_a_name_are_refused(self, kinds, missing):
        by = pd.Series([*kinds, missing], dtype=object)
        with pytest.raises(ValueError, match="by must .*no"):
            ValueDistributionDisplay.from_values([1, 2, 3], by=by)

    def test_too_many_kinds_are_refused(self):
        message = "by must name at most 20 kinds of rows.* Got 21"
        with pytest.raises(ValueError, match=message):
            ValueDistributionDisplay.from_values(np.zeros(21), by=range(21))

    def test_too_few_kinds_are_refused(self):
        message = r"by must have an entry per value \(3\)\. Got 2\."
        with pytest.raises(ValueError, match=message):
            ValueDistributionDisplay.from_values([1, 2, 3], by=[0, 1])

    def test_missing_values_are_refused(self):
        with pytest.raises(ValueError, match="values contains NaN"):
            ValueDistributionDisplay.from_values([1, np.nan])

    def test_an_unfitted_valuer_is_refused(self):
        with pytest.raises(ValueError, match="not fitted"):
            ValueDistributionDisplay.from_estimator(KNNShapleyValuer())


def test_the_error_says_how_to_get_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'skvalue\[plot\]'"):
        ValueDistributionDisplay.from_values([1.0, 2.0])
