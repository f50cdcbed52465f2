"""One call that compares valuers."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
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
X_val = X[1::2]
y_val = y[1::2]
X_TEST = X_val[::3]
Y_TEST = y_val[::3]
X = X[::2]
y, WRONG = flip_labels(y[::2], 0.1, random_state=0)
VALUERS = {
    "neighbours": KNNShapleyValuer(),
    "out of bag": DataOOBValuer(n_estimators=10, random_state=0),
    "detector": LabelErrorDetector(GaussianNB(), random_state=0),
}
FEW_FITS = {"fractions": [0, 0.2], "n_repeats": 1, "random_state": 0}


def test_ties_are_a_mean_over_orders(rng):
    values = rng.integers(0, 4, 12)
    wrong = rng.permutation(12) < 4
    curve = wrong_label_curve(values, wrong)
    orders = [np.lexsort((rng.permutation(12), values)) for _ in range(10_000)]
    n_found = np.cumsum(wrong[np.array(orders)], axis=1).mean(axis=0)
    np.testing.assert_allclose(curve.found[1:], n_found / 4, atol=0.02)
    assert (curve.found[0], curve.found[-1]) == (0, 1)
    np.testing.assert_array_equal(curve.inspected, np.arange(13) / 12)


@pytest.fixture(scope="module")
def comparison():
    return compare(
        VALUERS,
        X,
        y,
        X_val=X_val,
        y_val=y_val,
        X_test=X_TEST,
        y_test=Y_TEST,
        wrong=WRONG,
        estimator=GaussianNB(),
        **FEW_FITS,
    )


def test_values_and_curves_are_those_of_single_calls(comparison):
    assert list(comparison.valuers) == list(comparison.seconds) == list(VALUERS)
    values = KNNShapleyValuer().fit(X, y, X_val=X_val, y_val=y_val).values_
    np.testing.assert_array_equal(comparison.valuers["neighbours"].values_, values)
    detection = wrong_label_curve(values, WRONG)
    np.testing.assert_array_equal(
        comparison.detection["neighbours"].found, detection.found
    )
    removal = value_removal_curve(
        GaussianNB(), X, y, values, X_TEST, Y_TEST, **FEW_FITS
    )
    np.testing.assert_array_equal(
        comparison.removal["neighbours"].scores, removal.scores
    )
    assert comparison.correlations.shape == (3, 3)


def test_only_the_first_curve_has_a_random_baseline(comparison):
    first, *others = comparison.removal.values()
    assert first.random_scores is not None
    assert [curve.random_scores for curve in others] == [None, None]


def test_valuers_are_cloned(comparison):
    assert not hasattr(VALUERS["neighbours"], "values_")


def test_without_test_rows_every_other_validation_point_is_one():
    valuers = {"a": KNNShapleyValuer()}
    options = {"estimator": GaussianNB(), **FEW_FITS}
    comparison = compare(valuers, X, y, X_val=X_val, y_val=y_val, **options)
    explicit = compare(
        valuers,
        X,
        y,
        X_val=X_val[::2],
        y_val=y_val[::2],
        X_test=X_val[1::2],
        y_test=y_val[1::2],
        **options,
    )
    np.testing.assert_array_equal(
        comparison.valuers["a"].values_, explicit.valuers["a"].values_
    )
    np.testing.assert_array_equal(
        comparison.removal["a"].scores, explicit.removal["a"].scores
    )
    assert comparison.detection is None
    assert comparison.correlations.tolist() == [[1.0]]


@pytest.mark.parametrize("groups", [None, np.arange(25) % 6], ids=["rows", "groups"])
def test_labels_may_be_strings(groups):
    names = np.array(["a", "b", "c"])
    comparison = compare(
        {"a": KNNShapleyValuer(), "b": LeaveOneOutValuer()},
        X[::3],
        names[y[::3]],
        X_val=X_val[::3],
        y_val=names[y_val[::3]],
        groups=groups,
        **FEW_FITS,
    )
    n_values = 25 if groups is None else 6
    for valuer in comparison.valuers.values():
        assert len(valuer.values_) == n_values


def test_targets_may_be_numbers():
    X, y = load_diabetes(return_X_y=True)
    y = y + 0.5
    comparison = compare(
        {"a": KNNShapleyValuer(task="regression"), "b": LeaveOneOutValuer()},
        X[:30],
        y[:30],
        X_val=X[60:90],
        y_val=y[60:90],
        **FEW_FITS,
    )
    for valuer in comparison.valuers.values():
        assert len(valuer.values_) == 30


class EqualValues(BaseEstimator):
    """A valuer for which all rows are worth the same."""

    def fit(self, X, y):
        self.values_ = np.zeros(len(X))
        return self


def test_values_that_are_all_equal_have_no_correlation():
    valuers = {"equal": EqualValues(), "neighbours": KNNShapleyValuer()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comparison = compare(
            valuers, X, y, X_val=X_val, y_val=y_val, estimator=GaussianNB(), **FEW_FITS
        )
    expected = [[np.nan, np.nan], [np.nan, 1.0]]
    np.testing.assert_array_equal(comparison.correlations, expected)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"valuers": {}}, "valuers must name at least one valuer"),
        ({"X_val": None, "y_val": None}, "needs X_val and y_val, or X_test and y_test"),
        ({"groups": np.zeros(3)}, "groups"),
        ({"wrong": [True]}, "wrong"),
        ({"wrong": np.arange(len(y))}, "must be a mask"),
        ({"n_repeats": 0}, "n_repeats"),
    ],
)
def test_wrong_arguments_are_refused(changed, message):
    arguments = {
        "valuers": {"a": KNNShapleyValuer()},
        "X_val": X_val,
        "y_val": y_val,
        **changed,
    }
    with pytest.raises(ValueError, match=message):
        compare(X=X, y=y, **arguments)


def test_the_display_has_a_line_for_each_valuer(comparison):
    pytest.importorskip("matplotlib")
    display = ComparisonDisplay(comparison).plot()
    assert list(display.lines_) == list(VALUERS)
    labels = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    assert labels == [*VALUERS, "at random"]
    line = display.lines_["detector"][1]
    np.testing.assert_array_equal(
        line.get_ydata(), comparison.detection["detector"].found
    )


def test_too_few_axes_are_refused(comparison):
    pytest.importorskip("matplotlib")
    axes = ComparisonDisplay(comparison).plot().axes_
    with pytest.raises(ValueError, match="axes must have 2 entries. Got 1."):
        ComparisonDisplay(comparison).plot(axes[:1])
