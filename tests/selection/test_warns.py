"""Filters warn of ties, of nothing to drop, and of classes that lose most rows."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import DataOOBValuer
from skvalue.selection import (
    ValueFilter,
    ValueFilteredClassifier,
    ValueFilteredRegressor,
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
        assert message.startswith("drop=0.08 drops 8 of the 10 rows of class 1. s")

    def test_half_of_the_rows_of_a_class_is_silent(self, warned):
        values = np.r_[np.arange(90.0), -np.arange(1.0, 11.0)]
        assert warned(values, 0.05, self.y)[0] == []

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
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.set_params(stratify=True).fit(np.c_[values], self.y)


class TestStratify:
    @pytest.mark.parametrize(
        ("drop", "counts"),
        [(0.1, [8, 2]), (0.35, [29, 7]), (10, [8, 2]), (11, [9, 2]), (3, [2, 1])],
    )
    def test_a_quota_of_every_class_is_dropped(self, warned, drop, counts):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1], [83, 20])
        values = rng.normal(size=103) - 9 * y
        messages, dropped = warned(values, drop, y, stratify=True)
        assert messages == []
        assert np.bincount(y[dropped]).tolist() == counts
        for label in (0, 1):
            rows = np.flatnonzero(y == label)
            expected = rows[np.argsort(values[rows])[: counts[label]]]
            assert set(expected) == set(np.array(dropped)[y[dropped] == label])

    def test_a_rule_drops_at_most_its_fraction_of_every_class(self, warned):
        # 28 of 100 rows are negative: 8 of class 0, 20 of class 1.
        values = np.r_[np.arange(-8.0, 72.0), -np.arange(1.0, 21.0)]
        y = np.repeat([0, 1], [80, 20])
        messages, dropped = warned(values, "negative", y, stratify=True)
        assert messages == []
        assert dropped == [*range(8), *range(95, 100)]

    def test_a_count_that_empties_a_class_keeps_its_best_row(self, warned):
        values = [1.0, 2.0, 3.0, 4.0]
        labels = ["a", "a", "a", "b"]
        messages, dropped = warned(values, 3, labels, stratify=True)
        assert dropped == [0, 1]
        assert messages == [
            "drop=3 drops all rows of class 'b' but that of the highest value."
        ]

    def test_ties_are_those_of_a_class(self, warned):
        y = np.repeat([0, 1], 10)
        messages, _ = warned(np.repeat([0.0, 1.0], 10), 5, y)
        assert messages[0].startswith("drop=5 cuts through ties: 5")
        values = np.r_[np.zeros(10), np.arange(10.0)]
        assert "2 of 10 equal values" in warned(values, 0.2, y, stratify=True)[0][0]

    def test_reasons_name_the_class(self, first_column):
        X = np.c_[[3.0, 1.0, 2.0, 9.0, 8.0, 7.0]]
        y = np.array([*"aaabbb"])
        report = ValueFilter(first_column(), drop=2, stratify=True).fit(X, y).report_
        assert report.y.tolist() == ["a", "b"]
        reason = "rank 1 of 3 values of class '{}'; drop selects the lowest 1"
        assert report.reason.tolist() == [reason.format(name) for name in "ab"]

    def test_weights_rank_within_classes(self, first_column):
        class Keeper(LogisticRegression):
            def fit(self, X, y, sample_weight=None):
                self.weights_ = sample_weight
                return super().fit(X, y, sample_weight)

        values = np.r_[np.arange(4.0), np.arange(4.0) - 9]
        y = np.repeat([0, 1], 4)
        model = ValueFilteredClassifier(
            Keeper(), first_column(), 0.5, mode="weight", stratify=True
        )
        model.fit(np.c_[values], y)
        assert model.estimator_.weights_.tolist() == [0.25, 0.75, 1, 1] * 2

    def test_auto_drops_by_class(self):
        shape = {"n_informative": 4, "weights": [0.8], "class_sep": 2, "flip_y": 0.3}
        X, y = make_classification(300, 6, **shape, random_state=0)
        options = {"stratify": True, "scoring": "neg_log_loss"}
        model = ValueFilteredClassifier(GaussianNB(), drop="auto", **options).fit(X, y)
        dropped = np.bincount(y[model.dropped_indices_], minlength=2)
        assert dropped.tolist() == [int(model.drop_ * n) for n in np.bincount(y)]

    def test_groups_are_refused(self, warned):
        with pytest.raises(ValueError, match="stratify=True drops rows by class, but"):
            warned(np.arange(4), 1, [0, 0, 1, 1], [0, 1, 2, 2], stratify=True)

    def test_a_regression_is_refused(self, warned):
        with pytest.raises(ValueError, match="stratify=True needs classes"):
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
