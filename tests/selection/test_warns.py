"""What filters warn about: ties, nothing to drop, and classes that lose most of their
rows."""

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
def told(first_column):
    """Messages of a filter of rows of given values, and what it drops."""

    def of(values, drop, y=None, groups=None, **params):
        y = np.linspace(0.1, 0.9, len(values)) if y is None else np.asarray(y)
        row_filter = ValueFilter(first_column(), drop=drop, **params)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            row_filter.fit(np.c_[np.asarray(values, float)], y, groups=groups)
        return [str(w.message) for w in caught], row_filter.dropped_indices_.tolist()

    return of


class TestTies:
    def test_equal_values_are_dropped_by_their_order_alone(self, told):
        (message,), dropped = told(np.zeros(300), 0.1)
        assert dropped == list(range(30))
        assert message.startswith(
            "drop=0.1 cuts through ties: 30 of 300 equal values are sel"
        )

    def test_rounding_errors_do_not_hide_ties(self, told):
        values = np.repeat([0.1, np.nextafter(0.1, 1), 0.2], 10)
        assert "8 of 20 equal values" in told(values, 8)[0][0]

    def test_a_cut_between_values_is_silent(self, told):
        assert told([0.0, 0.0, 1.0, 1.0], 2) == ([], [0, 1])
        assert told([0.0, 0.0, 1.0, 1.0], "negative", [0, 1, 0, 1])[0] != []
        assert told([-1.0, -1.0, 1.0, 1.0], "negative") == ([], [0, 1])

    def test_one_of_many_rows_is_no_matter(self, told):
        values = np.r_[np.arange(99.0), 98.0, 200.0, 201.0]
        assert told(values, 99)[0] == []
        assert len(told(values[90:], 9)[0]) == 1

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
    def test_a_drop_that_drops_nothing_says_so(self, told, drop, groups, counted):
        (message,), dropped = told(np.arange(6) + 0.5, drop, groups=groups)
        assert message.startswith(f"drop={drop!r} selects nothing: the ")
        assert f"{counted} values" in message
        assert dropped == []

    def test_values_of_data_oob_are_not_negative(self):
        X, y = make_classification(60, random_state=0)
        valuer = DataOOBValuer(n_estimators=20, random_state=0)
        with pytest.warns(
            UserWarning, match="drop='negative' selects nothing: the lowest of 60"
        ):
            ValueFilter(valuer, drop="negative").fit(X, y)

    def test_zero_is_meant(self, told):
        assert told(np.arange(6), 0) == ([], [])


class TestClasses:
    y = np.repeat([0, 1], [90, 10])

    def test_a_class_that_loses_most_of_its_rows(self, told):
        values = np.r_[np.arange(90.0), -np.arange(1.0, 11.0)]
        messages, dropped = told(values, 0.08, self.y)
        assert len(dropped) == 8
        assert [message[:46] for message in messages] == [
            "drop=0.08 drops 8 of the 10 rows of class 1. s"
        ]
        assert told(values, 0.05, self.y)[0] == []  # half of them
        assert (
            told(values, 0.08, self.y.astype(float) + values / 1e4)[0] == []
        )  # no classes

    def test_all_classes_lose_most_of_a_large_drop(self, told):
        assert told(np.tile(np.arange(10.0), 10), 0.6, self.y)[0] == []

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
    def test_a_quota_of_every_class(self, told):
        rng = np.random.default_rng(0)
        values, y = (
            rng.normal(size=103) - np.repeat([0, 9], [83, 20]),
            np.repeat([0, 1], [83, 20]),
        )
        quotas = {0.1: [8, 2], 0.35: [29, 7], 10: [8, 2], 11: [9, 2], 3: [2, 1]}
        for drop, counts in quotas.items():
            messages, dropped = told(values, drop, y, stratify=True)
            assert messages == []
            assert np.bincount(y[dropped]).tolist() == counts
            for label in (0, 1):
                rows = np.flatnonzero(y == label)
                expected = rows[np.argsort(values[rows])[: counts[label]]]
                assert set(expected) == set(np.array(dropped)[y[dropped] == label])

    def test_a_rule_drops_at_most_its_fraction_of_every_class(self, told):
        values, y = (
            np.r_[np.arange(-8.0, 72.0), -np.arange(1.0, 21.0)],
            np.repeat([0, 1], [80, 20]),
        )
        messages, dropped = told(values, "negative", y, stratify=True)
        assert (
            messages == []
        )  # 28 of 100 rows are negative: 8 of class 0, 20 of class 1
        assert dropped == [*range(8), *range(95, 100)]

    def test_an_unlikely_count_keeps_every_class(self, told):
        messages, dropped = told(
            [1.0, 2.0, 3.0, 4.0], 3, ["a", "a", "a", "b"], stratify=True
        )
        assert dropped == [0, 1]
        assert messages == [
            "drop=3 drops all rows of class 'b' but that of the highest value."
        ]

    def test_ties_are_those_of_a_class(self, told):
        y = np.repeat([0, 1], 10)
        assert told(np.repeat([0.0, 1.0], 10), 5, y)[0][0].startswith(
            "drop=5 cuts through ties: 5"
        )
        values = np.r_[np.zeros(10), np.arange(10.0)]
        assert "2 of 10 equal values" in told(values, 0.2, y, stratify=True)[0][0]

    def test_reasons_name_the_class(self, first_column):
        X, y = np.c_[[3.0, 1.0, 2.0, 9.0, 8.0, 7.0]], np.array([*"aaabbb"])
        report = ValueFilter(first_column(), drop=2, stratify=True).fit(X, y).report_
        assert report.y.tolist() == ["a", "b"]
        reason = "rank 1 of 3 values of class '{}'; drop selects the lowest 1"
        assert report.reason.tolist() == [reason.format(name) for name in "ab"]

    def test_weights_rank_within_classes(self, first_column):
        class Keeper(LogisticRegression):
            def fit(self, X, y, sample_weight=None):
                self.weights_ = sample_weight
                return super().fit(X, y, sample_weight)

        values, y = np.r_[np.arange(4.0), np.arange(4.0) - 9], np.repeat([0, 1], 4)
        weigh = {"mode": "weight", "stratify": True}
        model = ValueFilteredClassifier(Keeper(), first_column(), 0.5, **weigh)
        model.fit(np.c_[values], y)
        assert model.estimator_.weights_.tolist() == [0.25, 0.75, 1, 1] * 2

    def test_auto_drops_by_class(self):
        shape = {"n_informative": 4, "weights": [0.8], "class_sep": 2, "flip_y": 0.3}
        X, y = make_classification(300, 6, **shape, random_state=0)
        options = {"stratify": True, "scoring": "neg_log_loss"}
        model = ValueFilteredClassifier(GaussianNB(), drop="auto", **options).fit(X, y)
        dropped = np.bincount(y[model.dropped_indices_], minlength=2)
        assert dropped.tolist() == [int(model.drop_ * n) for n in np.bincount(y)]

    def test_refuses(self, told):
        with pytest.raises(
            ValueError, match="stratify=True drops rows by class, but groups"
        ):
            told(np.arange(4), 1, [0, 0, 1, 1], [0, 1, 2, 2], stratify=True)
        with pytest.raises(ValueError, match="stratify=True needs classes"):
            told(np.arange(4), 1, [0.1, 0.2, 0.3, 0.5], stratify=True)


def test_a_model_of_the_other_task_is_refused(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    pipe = make_pipeline(StandardScaler(), Ridge())
    with pytest.raises(
        ValueError, match="be a classifier: use ValueFilteredRegressor.*Pipel"
    ):
        ValueFilteredClassifier(pipe).fit(X, y)
    with pytest.raises(
        ValueError, match=r"be a regressor: use ValueFilteredClassifier.*Logistic"
    ):
        ValueFilteredRegressor(LogisticRegression()).fit(X, y)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_numbers_of_any_precision(told, first_column, rng, kind):
    assert len(told(np.arange(100), kind(0.29))[1]) == 29
    X = rng.normal(size=(20, 1))
    row_filter = ValueFilter(first_column(), drop="significant", fdr=kind(0.05))
    assert row_filter.fit(X, X[:, 0], X_val=X, y_val=X[:, 0]).drop_ == "significant"
