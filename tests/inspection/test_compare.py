"""One call that compares valuers."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.naive_bayes import GaussianNB

from skvalue import (
    DataOOBValuer,
    KNNShapleyValuer,
    LabelErrorDetector,
    LeaveOneOutValuer,
)
from skvalue.datasets import flip_labels
from skvalue.inspection import (
    ComparisonDisplay,
    compare,
    value_removal_curve,
    wrong_label_curve,
)

X, y = load_iris(return_X_y=True)
X_val, y_val = X[1::2], y[1::2]
X, (y, WRONG) = X[::2], flip_labels(y[::2], 0.1, random_state=0)
VALUERS = {
    "neighbours": KNNShapleyValuer(),
    "out of bag": DataOOBValuer(n_estimators=10, random_state=0),
    "detector": LabelErrorDetector(GaussianNB(), random_state=0),
}
FEW = {"fractions": [0, 0.2], "n_repeats": 1, "random_state": 0}


def test_ties_are_a_mean_over_orders(rng):
    values, wrong = rng.integers(0, 4, 12), rng.permutation(12) < 4
    curve = wrong_label_curve(values, wrong)
    orders = [np.lexsort((rng.permutation(12), values)) for _ in range(10_000)]
    found = np.cumsum(wrong[np.array(orders)], axis=1).mean(axis=0) / 4
    np.testing.assert_allclose(curve.found[1:], found, atol=0.02)
    assert (curve.found[0], curve.found[-1]) == (0, 1)
    np.testing.assert_array_equal(curve.inspected, np.arange(13) / 12)


X_TEST, Y_TEST = X_val[::3], y_val[::3]


@pytest.fixture(scope="module")
def comparison():
    given = {"X_val": X_val, "y_val": y_val, "X_test": X_TEST, "y_test": Y_TEST}
    return compare(VALUERS, X, y, wrong=WRONG, estimator=GaussianNB(), **given, **FEW)


def test_comparison_is_what_the_single_calls_give(comparison):
    assert list(comparison.valuers) == list(comparison.seconds) == list(VALUERS)
    knn = KNNShapleyValuer().fit(X, y, X_val=X_val, y_val=y_val).values_
    np.testing.assert_array_equal(comparison.valuers["neighbours"].values_, knn)
    detection = wrong_label_curve(knn, WRONG)
    np.testing.assert_array_equal(
        comparison.detection["neighbours"].found, detection.found
    )
    alone = value_removal_curve(GaussianNB(), X, y, knn, X_TEST, Y_TEST, **FEW)
    np.testing.assert_array_equal(comparison.removal["neighbours"].scores, alone.scores)
    assert [curve.random_scores is None for curve in comparison.removal.values()] == [
        0,
        1,
        1,
    ]
    assert comparison.correlations.shape == (3, 3)
    assert not hasattr(VALUERS["neighbours"], "values_")


def test_without_test_rows_every_other_validation_point_is_one():
    options = {"estimator": GaussianNB(), **FEW}
    whole = compare(
        {"a": KNNShapleyValuer()}, X, y, X_val=X_val, y_val=y_val, **options
    )
    kept = {
        "X_val": X_val[::2],
        "y_val": y_val[::2],
        "X_test": X_val[1::2],
        "y_test": y_val[1::2],
    }
    parts = compare({"a": KNNShapleyValuer()}, X, y, **kept, **options)
    np.testing.assert_array_equal(
        whole.valuers["a"].values_, parts.valuers["a"].values_
    )
    np.testing.assert_array_equal(whole.removal["a"].scores, parts.removal["a"].scores)
    assert whole.detection is None
    assert whole.correlations.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("target", "grouped"), [("strings", False), ("strings", True), ("numbers", False)]
)
def test_targets_and_groups(target, grouped):
    rows, points = X[::3], X_val[::3]
    labels, of_points = (np.array(["a", "b", "c"])[each[::3]] for each in (y, y_val))
    if target == "numbers":
        rows, labels = load_diabetes(return_X_y=True)
        labels = labels + 0.5
        rows, labels, points, of_points = (
            rows[:30],
            labels[:30],
            rows[60:90],
            labels[60:90],
        )
    groups = np.arange(len(labels)) % 6 if grouped else None
    valuers = {"a": KNNShapleyValuer(), "b": LeaveOneOutValuer()}
    if target == "numbers":
        valuers["a"] = KNNShapleyValuer(task="regression")
    comparison = compare(
        valuers, rows, labels, X_val=points, y_val=of_points, groups=groups, **FEW
    )
    n = 6 if grouped else len(labels)
    assert [len(valuer.values_) for valuer in comparison.valuers.values()] == [n, n]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"valuers": {}}, "valuers must name at least one valuer"),
        ({"X_val": None, "y_val": None}, "needs X_val and y_val, or X_test and y_test"),
        ({"groups": np.zeros(3)}, "groups"),
        ({"wrong": [True]}, "wrong"),
        ({"wrong": np.arange(len(y))}, "must be a mask"),
        ({"n_repeats": 0}, "n_repeats"),
    ],
)
def test_bad_input(given, message):
    arguments = {
        "valuers": {"a": KNNShapleyValuer()},
        "X_val": X_val,
        "y_val": y_val,
        **given,
    }
    with pytest.raises(ValueError, match=message):
        compare(arguments.pop("valuers"), X, y, **arguments)


def test_displays_have_a_line_for_each_method(comparison):
    pytest.importorskip("matplotlib")
    display = ComparisonDisplay(comparison).plot()
    assert list(display.lines_) == list(VALUERS)
    labels = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    assert labels == [*VALUERS, "at random"]
    line = display.lines_["detector"][1]
    np.testing.assert_array_equal(
        line.get_ydata(), comparison.detection["detector"].found
    )
    with pytest.raises(ValueError, match="axes must have 2 entries. Got 1."):
        ComparisonDisplay(comparison).plot(display.axes_[:1])
