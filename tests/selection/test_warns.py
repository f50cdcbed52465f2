"""Filters warn of ties, of nothing to drop, and of classes that lose most rows."""

import re
import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skvalue import DataOOBValuer, KNNShapleyValuer, LabelErrorDetector
from skvalue.selection import (
    ValueFilter,
    ValueFilteredClassifier,
    ValueFilteredRegressor,
    label_caps,
)


@pytest.fixture
def warned(first_column):
    """Function: messages of a filter of rows of given values, and what it drops.

    Without y the targets are no classes.
    """

    def warned(values, drop, y=None, groups=None, **params):
        if y is None:
            y = np.linspace(0.1, 0.9, len(values))
        y = np.asarray(y)
        row_filter = ValueFilter(first_column(), drop=drop, **params)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            row_filter.fit(np.c_[np.asarray(values, float)], y, groups=groups)
        messages = [str(warning.message) for warning in caught]
        return messages, row_filter.dropped_indices_.tolist()

    return warned


class TestTies:
    def test_equal_values_are_dropped_by_their_order_alone(self, warned):
        (message,), dropped = warned(np.zeros(300), 0.1)
        assert dropped == list(range(30))
        start = "drop=0.1 cuts through ties: 30 of 300 equal values are selected"
        assert message.startswith(start)

    def test_rounding_errors_do_not_hide_ties(self, warned):
        values = np.repeat([0.1, np.nextafter(0.1, 1), 0.2], 10)
        assert "8 of 20 equal values" in warned(values, 8)[0][0]

    def test_a_cut_between_values_is_silent(self, warned):
        assert warned([0.0, 0.0, 1.0, 1.0], 2) == ([], [0, 1])
        assert warned([0.0, 0.0, 1.0, 1.0], "negative", [0, 1, 0, 1])[0] != []
        assert warned([-1.0, -1.0, 1.0, 1.0], "negative") == ([], [0, 1])

    def test_a_tie_of_one_row_of_many_is_silent(self, warned):
        values = np.r_[np.arange(99.0), 98.0, 200.0, 201.0]
        assert warned(values, 99)[0] == []
        assert len(warned(values[90:], 9)[0]) == 1

    def test_weights_of_equal_values_are_equal(self, first_column):
        model = ValueFilteredRegressor(Ridge(), first_column(), drop=0.5, mode="weight")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(np.zeros((8, 1)), np.linspace(0, 1, 8))


class TestNothing:
    @pytest.mark.parametrize(
        ("drop", "groups", "counted"),
        [(0.1, None, 6), (0.1, [0, 0, 1, 1, 2, 2], 3), ("negative", None, 6)],
    )
    def test_a_drop_that_drops_nothing_says_so(self, warned, drop, groups, counted):
        (message,), dropped = warned(np.arange(6) + 0.5, drop, groups=groups)
        assert message.startswith(f"drop={drop!r} selects nothing: the ")
        assert f"{counted} values" in message
        assert dropped == []

    def test_values_of_data_oob_are_not_negative(self):
        X, y = make_classification(60, random_state=0)
        valuer = DataOOBValuer(n_estimators=20, random_state=0)
        message = "drop='negative' selects nothing: the lowest of 60"
        with pytest.warns(UserWarning, match=message):
            ValueFilter(valuer, drop="negative").fit(X, y)

    def test_zero_is_silent(self, warned):
        assert warned(np.arange(6), 0) == ([], [])


class TestClasses:
    y = np.repeat([0, 1], [90, 10])

    def test_a_class_that_loses_most_of_its_rows_is_named(self, warned):
        values = np.r_[np.arange(90.0), -np.arange(1.0, 11.0)]
        messages, dropped = warned(values, 0.08, self.y)
        assert len(dropped) == 8
        (message,) = messages
        assert message.startswith(
            "drop=0.08 drops 8 of the 10 rows of class 1. Pass st"
        )

    def test_half_of_the_rows_of_a_class_is_silent(self, warned):
        values = np.r_[np.arange(90.0), -np.arange(1.0, 11.0)]
        assert warned(values, 0.05, self.y)[0] == []

    @pytest.mark.parametrize(
        ("n_classes", "named"),
        [
            (1, "of class 0, which is kept."),
            (3, "of class 0, and class 1, and class 2, which is kept."),
            (9, ", and class 4, and 4 more classes, which is kept."),
        ],
    )
    def test_classes_of_one_row_lose_nothing(self, warned, n_classes, named):
        y = np.r_[np.arange(n_classes), np.full(20, 99)]
        messages, dropped = warned(np.arange(len(y)), n_classes, y)
        assert dropped == []
        (message,) = messages
        assert message.startswith(f"drop={n_classes} selects the only row of class 0")
        assert message.endswith(named)

    def test_the_only_group_of_a_class_stays(self, warned):
        y = np.repeat(["a", "b", "c"], 2)
        groups = np.repeat([0, 1, 2], 2)
        messages, dropped = warned(groups, 1, y, groups=groups)
        assert dropped == []
        (message,) = messages
        assert message == "drop=1 selects the only group of class 'a', which is kept."

    def test_no_more_than_five_classes_are_named(self, warned):
        y = np.r_[np.repeat(np.arange(9), 3), np.full(60, 99)]
        (message,), dropped = warned(np.arange(len(y)), 27, y)
        assert len(dropped) == 18
        assert "class 4 but that of the highest value, and 4 more of other" in message

    def test_targets_have_no_classes_to_lose(self, warned):
        values = np.r_[np.arange(90.0), -np.arange(1.0, 11.0)]
        targets = self.y.astype(float) + values / 1e4
        assert warned(values, 0.08, targets)[0] == []

    def test_a_large_drop_from_all_classes_is_silent(self, warned):
        assert warned(np.tile(np.arange(10.0), 10), 0.6, self.y)[0] == []

    def test_weights_count_as_rows(self, first_column):
        values = np.r_[np.arange(90.0), -np.arange(1.0, 11.0)]
        model = ValueFilteredClassifier(
            LogisticRegression(), first_column(), 0.2, mode="weight"
        )
        message = "drop=0.2 lowers the total weight by 7.5 of the 10 rows of class 1"
        with pytest.warns(UserWarning, match=message):
            model.fit(np.c_[values], self.y)


class TestStratify:
    """Labels of which some are wrong in class 0 and none in class 1."""

    @pytest.fixture
    def half_wrong(self):
        rng = np.random.default_rng(0)
        truth = np.repeat([0, 1], 100)
        X = rng.normal(size=(200, 2)) + 6 * truth[:, None]
        y = truth.copy()
        wrong = np.arange(100, 120)
        y[wrong] = 0
        return X, y, wrong

    def filter(self, valuer, drop, **params):
        estimator = LogisticRegression()
        return ValueFilter(valuer, drop, stratify=True, estimator=estimator, **params)

    @pytest.mark.parametrize("drop", [0.2, 0.5, 30, 150, "negative"])
    def test_no_class_loses_more_than_can_be_wrong(self, half_wrong, drop):
        X, y, _ = half_wrong
        valuer = KNNShapleyValuer()
        dropped = self.filter(valuer, drop).fit(X, y).dropped_indices_
        probabilities = cross_val_predict(
            LogisticRegression(),
            X,
            y,
            cv=StratifiedKFold(5, shuffle=True, random_state=0),
            method="predict_proba",
        )
        caps = label_caps(y, probabilities)
        lost = np.bincount(y[dropped], minlength=2)
        assert (lost <= caps).all()
        assert lost[0] > 0

    def test_a_number_is_the_most_that_is_dropped(self, half_wrong):
        X, y, wrong = half_wrong
        dropped = self.filter(KNNShapleyValuer(), 7).fit(X, y).dropped_indices_
        assert len(dropped) == 7
        assert set(dropped) <= set(wrong)

    def test_a_number_alone_is_the_number_dropped(self, half_wrong):
        X, y, _ = half_wrong
        assert len(ValueFilter(drop=50).fit(X, y).dropped_indices_) == 50

    def test_reasons_say_how_many_labels_can_be_wrong(self, half_wrong):
        X, y, _ = half_wrong
        report = self.filter(KNNShapleyValuer(), 5).fit(X, y).report_
        end = r"of the 120 labels 0 can be wrong$"
        assert all(re.search(end, reason) for reason in report.reason)

    def test_the_cap_is_also_that_of_a_detector(self, half_wrong):
        X, y, _ = half_wrong
        detector = LabelErrorDetector(random_state=0)
        row_filter = ValueFilter(detector, 0.4, stratify=True).fit(X, y)
        caps = label_caps(y, row_filter.valuer_.label_scores_)
        lost = np.bincount(y[row_filter.dropped_indices_], minlength=2)
        assert lost.tolist() == np.minimum(caps, lost).tolist()

    def test_weights_of_rows_beyond_the_cap_are_one(self, half_wrong):
        X, y, wrong = half_wrong
        model = ValueFilteredClassifier(
            LogisticRegression(), KNNShapleyValuer(), 0.5, mode="weight", stratify=True
        ).fit(X, y)
        assert (y[model.report_.row] == 0).all()
        assert len(model.report_.row) <= len(wrong) + 1

    def test_auto_is_capped_in_each_fold(self, half_wrong):
        X, y, wrong = half_wrong
        model = ValueFilteredClassifier(
            KNeighborsClassifier(1), drop="auto", stratify=True
        ).fit(X, y)
        assert set(model.dropped_indices_) <= set(wrong)

    def test_a_valuer_without_probabilities_needs_an_estimator(self, half_wrong):
        X, y, _ = half_wrong
        message = "stratify must be False without prob.*Got KNNShapleyValuer and no"
        with pytest.raises(ValueError, match=message):
            ValueFilter(KNNShapleyValuer(), stratify=True).fit(X, y)
        message = "Got KNNShapleyValuer and LinearSVC"
        with pytest.raises(ValueError, match=message):
            ValueFilteredClassifier(LinearSVC(), stratify=True).fit(X, y)

    def test_groups_are_refused(self, warned):
        with pytest.raises(ValueError, match="stratify must be False with groups"):
            warned(np.arange(4), 1, [0, 0, 1, 1], [0, 1, 2, 2], stratify=True)

    def test_a_regression_is_refused(self, warned):
        with pytest.raises(ValueError, match="stratify must be False without classes"):
            warned(np.arange(4), 1, [0.1, 0.2, 0.3, 0.5], stratify=True)


def test_a_model_of_the_other_task_is_refused(rng):
    X = rng.normal(size=(20, 2))
    y = np.arange(20) % 2
    pipeline = make_pipeline(StandardScaler(), Ridge())
    message = "be a classifier: use ValueFilteredRegressor.*Pipeline"
    with pytest.raises(ValueError, match=message):
        ValueFilteredClassifier(pipeline).fit(X, y)
    message = "be a regressor: use ValueFilteredClassifier.*Logistic"
    with pytest.raises(ValueError, match=message):
        ValueFilteredRegressor(LogisticRegression()).fit(X, y)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_fraction_of_any_precision_is_exact(warned, dtype):
    _, dropped = warned(np.arange(100), dtype(0.29))
    assert len(dropped) == 29


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_fdr_of_any_precision_is_accepted(first_column, rng, dtype):
    X = rng.normal(size=(20, 1))
    row_filter = ValueFilter(first_column(), drop="significant", fdr=dtype(0.05))
    assert row_filter.fit(X, X[:, 0], X_val=X, y_val=X[:, 0]).drop_ == "significant"
