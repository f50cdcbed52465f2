"""The rows dropped with a detector of wrong labels, and how many of a class."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge

from skvalue import KNNShapleyValuer, LabelErrorDetector
from skvalue.datasets import flip_labels
from skvalue.selection import (
    ValueFilter,
    ValueFilteredClassifier,
    capped_rows,
    label_caps,
)


def probabilities_of(rng, y, n_classes, certainty):
    """Probabilities, of which those of the label are higher."""
    weights = rng.exponential(size=(len(y), n_classes))
    weights[np.arange(len(y)), y] += certainty
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("certainty", [0.0, 0.5, 2.0])
class TestAnyProbabilities:
    @pytest.fixture
    def labels(self, seed, n_classes, certainty):
        rng = np.random.default_rng(seed)
        y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=100)]
        return y, probabilities_of(rng, y, n_classes, certainty)

    def test_no_class_loses_more_than_its_cap(self, labels):
        y, probabilities = labels
        caps = label_caps(y, probabilities)
        lost = np.bincount(y[capped_rows(y, probabilities)], minlength=len(caps))
        assert (lost <= caps).all()

    def test_every_class_keeps_a_row(self, labels):
        y, probabilities = labels
        assert (label_caps(y, probabilities) < np.bincount(y)).all()

    def test_each_row_has_a_more_probable_label(self, labels):
        y, probabilities = labels
        rows = capped_rows(y, probabilities)
        assert (probabilities[rows].argmax(axis=1) != y[rows]).all()

    def test_the_least_probable_labels_of_a_class_are_dropped(self, labels):
        y, probabilities = labels
        rows = capped_rows(y, probabilities)
        given = probabilities[np.arange(len(y)), y]
        is_other = probabilities.argmax(axis=1) != y
        for label in np.unique(y[rows]):
            candidates = np.flatnonzero(is_other & (y == label))
            dropped = rows[y[rows] == label]
            kept = np.setdiff1d(candidates, dropped)
            if len(kept):
                assert given[dropped].max() <= given[kept].min()


def test_certain_labels_are_kept():
    y = np.repeat([0, 1], 50)
    probabilities = np.where(np.eye(2)[y] > 0, 0.9, 0.1)
    assert capped_rows(y, probabilities).tolist() == []


def test_names_of_classes_do_not_matter():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    probabilities = probabilities_of(rng, y, 3, 0.5)
    names = np.array(["a", "b", "c"])
    expected = capped_rows(y, probabilities)
    np.testing.assert_array_equal(capped_rows(names[y], probabilities), expected)


HALVES = np.full((4, 2), 0.5)


@pytest.mark.parametrize(
    ("pred_probs", "message"),
    [
        (np.full((4, 3), 1 / 3), "must have .* a column for each of 2 classes"),
        (HALVES[:3], "must have a row for each of 4 labels"),
        (-HALVES, "must be probabilities"),
        (np.log(HALVES), "must be probabilities"),
        (100 * HALVES, "must be probabilities"),
        (np.nan * HALVES, "contains NaN"),
    ],
    ids=["classes", "rows", "negative", "logarithms", "percent", "nan"],
)
@pytest.mark.parametrize("function", [label_caps, capped_rows])
def test_what_is_no_probability_of_a_label_is_refused(function, pred_probs, message):
    with pytest.raises(ValueError, match=f"pred_probs {message}"):
        function([0, 1, 0, 1], pred_probs)


def test_columns_of_a_frame_are_matched_by_name():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    probabilities = probabilities_of(rng, y, 3, 0.5)
    frame = pd.DataFrame(probabilities, columns=["a", "b", "c"])[["c", "a", "b"]]
    names = np.array(["a", "b", "c"])[y]
    expected = capped_rows(names, probabilities)
    assert len(expected)
    np.testing.assert_array_equal(capped_rows(names, frame), expected)
    np.testing.assert_array_equal(
        label_caps(names, frame), label_caps(names, probabilities)
    )


class TestAuto:
    @pytest.fixture
    def noisy(self):
        X, y = make_classification(
            300, 6, n_informative=4, class_sep=2, flip_y=0, random_state=0
        )
        y, flipped = flip_labels(y, 0.2, random_state=0)
        return X, y, flipped

    def test_a_detector_needs_no_estimator(self, noisy):
        X, y, flipped = noisy
        row_filter = ValueFilter(LabelErrorDetector(random_state=0), drop="auto")
        X_kept, y_kept = row_filter.fit_resample(X, y)
        dropped = row_filter.dropped_indices_
        expected = capped_rows(y, row_filter.valuer_.label_scores_)
        np.testing.assert_array_equal(dropped, expected)
        assert len(X_kept) == len(y_kept) == len(y) - len(dropped)
        assert flipped[dropped].mean() > 0.8
        assert row_filter.drop_ == len(dropped) / len(y)

    def test_reasons_name_the_label_and_the_cap(self, noisy):
        X, y, _ = noisy
        row_filter = ValueFilter(LabelErrorDetector(random_state=0), drop="auto")
        report = row_filter.fit(X, y).report_
        caps = label_caps(y, row_filter.valuer_.label_scores_)
        for label, reason in zip(report.y, report.reason):
            assert reason.startswith(f"{1 - label} has probability 0.")
            end = f"at most {caps[label]} of the {(y == label).sum()} labels {label}"
            assert f"{end} can be wrong" in reason

    def test_a_model_is_fitted_without_them(self, noisy):
        X, y, _ = noisy
        detector = LabelErrorDetector(random_state=0)
        model = ValueFilteredClassifier(LogisticRegression(), detector, drop="auto")
        model.fit(X, y)
        row_filter = ValueFilter(detector, drop="auto").fit(X, y)
        np.testing.assert_array_equal(
            model.dropped_indices_, row_filter.dropped_indices_
        )

    def test_weights_of_them_are_lowered(self, noisy):
        X, y, _ = noisy
        detector = LabelErrorDetector(random_state=0)
        model = ValueFilteredClassifier(
            RandomForestClassifier(10), detector, drop="auto", mode="weight"
        ).fit(X, y)
        expected = capped_rows(y, model.valuer_.label_scores_)
        np.testing.assert_array_equal(np.sort(model.report_.row), expected)

    @pytest.mark.filterwarnings("ignore")
    def test_a_frame_with_names_keeps_its_index(self, noisy):
        X, y, _ = noisy
        frame = pd.DataFrame(X, index=np.arange(len(X)) + 7).add_prefix("x")
        row_filter = ValueFilter(LabelErrorDetector(random_state=0), drop="auto")
        X_kept, _ = row_filter.fit_resample(frame, y)
        assert (X_kept.index == row_filter.sample_indices_ + 7).all()

    def test_groups_are_held_out_together(self, noisy):
        X, y, _ = noisy
        row_filter = ValueFilter(LabelErrorDetector(random_state=0), drop="auto")
        row_filter.fit(X, y, groups=np.arange(len(y)) // 3)
        expected = capped_rows(y, row_filter.valuer_.label_scores_)
        np.testing.assert_array_equal(row_filter.dropped_indices_, expected)

    @pytest.mark.parametrize(
        "valuer",
        [None, KNNShapleyValuer(), LabelErrorDetector(KNNShapleyValuer())],
        ids=["default", "KNN", "detector by values"],
    )
    def test_without_probabilities_an_estimator_is_needed(self, noisy, valuer):
        X, y, _ = noisy
        with pytest.raises(
            ValueError, match="drop must not be 'auto' without an estimator"
        ):
            ValueFilter(valuer, drop="auto").fit(X, y)

    def test_targets_are_cross_validated(self):
        X, y = load_diabetes(return_X_y=True)
        detector = LabelErrorDetector(Ridge(), random_state=0, cv=2)
        with pytest.raises(
            ValueError, match="drop must not be 'auto' without an estimator"
        ):
            ValueFilter(detector, drop="auto").fit(X[:100], y[:100])
        row_filter = ValueFilter(detector, drop="auto", estimator=Ridge(), cv=2)
        assert row_filter.fit(X[:100], y[:100]).drop_scores_.shape == (6, 2)
