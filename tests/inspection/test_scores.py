import numpy as np
import pandas as pd
import pytest

from skvalue.inspection import (
    mean_adjusted_variance,
    noisy_label_auc,
    wrong_label_curve,
)


def pairwise_auc(values, is_noisy):
    """The definition: over all pairs of a noisy and a clean row, ties half."""
    noisy = values[is_noisy]
    clean = values[~is_noisy][:, None]
    return np.mean((noisy < clean) + 0.5 * (noisy == clean))


@pytest.mark.parametrize("n_levels", [2, 5, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_equals_the_mean_over_pairs(seed, n_levels):
    rng = np.random.default_rng(seed)
    values = rng.integers(n_levels, size=60) / 7 - 0.5
    is_noisy = rng.permutation(60) < rng.integers(1, 60)
    expected = pytest.approx(pairwise_auc(values, is_noisy), abs=1e-12)
    assert noisy_label_auc(values, is_noisy) == expected


def test_low_values_point_at_noise():
    is_noisy = [True, True, False, False, False]
    assert noisy_label_auc([-2, -1, 0, 1, 2], is_noisy) == 1
    assert noisy_label_auc([2, 1, 0, -1, -2], is_noisy) == 0
    assert noisy_label_auc([3, 3, 3, 3, 3], is_noisy) == 0.5


VALUES = [-1.0, 0.0, -0.5, 1.0]
MASK = [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("values", "is_noisy"),
    [
        (VALUES, MASK),
        (np.array(VALUES, dtype=np.float32), np.array(MASK, dtype=bool)),
        (pd.Series(VALUES, index=list("abcd")), pd.Series(MASK, index=[9, 8, 7, 6])),
        (np.array([0, 2, 1, 4], dtype=np.uint8), np.array(MASK, dtype=float)),
    ],
    ids=["lists", "arrays", "series", "integers"],
)
def test_values_and_mask_may_be_of_any_kind(values, is_noisy):
    auc = noisy_label_auc(values, is_noisy)
    assert type(auc) is float
    assert auc == 0.5


def test_areas_of_classes_show_values_that_find_the_minority_alone():
    y = np.repeat(["major", "minor", "rare"], [100, 12, 2])
    is_noisy = np.r_[np.arange(100) < 2, np.arange(12) < 5, [False, False]]
    values = np.where(y == "minor", -1.0, 1.0)
    values += np.r_[np.zeros(102), np.linspace(0, 1, 12)]
    areas = noisy_label_auc(values, is_noisy, y=y)
    assert noisy_label_auc(values, is_noisy) > 0.8
    assert list(areas) == ["major", "minor", "rare"]
    assert areas["major"] == 0.5
    for label in ("major", "minor"):
        rows = y == label
        expected = pairwise_auc(values[rows], is_noisy[rows])
        assert areas[label] == pytest.approx(expected)
    assert np.isnan(areas["rare"])


def test_labels_of_another_length_are_refused():
    with pytest.raises(ValueError, match="y must have one entry per row of values"):
        noisy_label_auc(VALUES, MASK, y=[0, 1, 2])


@pytest.mark.parametrize(
    ("values", "mask", "message"),
    [
        ([0, 1, 2], [True, False], r"must have one entry per value \(3\)\. Got 2\."),
        ([0, 1], [False, False], r"both kinds, .*\. Got False for all 2\."),
        ([0, 1, 2], [1, 1, 1], r"both kinds, .*\. Got 1 for all 3\."),
        ([0, 1, 2], [0, 2, 5], r"must be a mask .* Got the entries 0, 2, 5\."),
        (range(9), range(9), r"Got the entries 0, 1, 2, 3, 4, \.\.\."),
        ([0, 1], ["yes", "no"], "must be a mask .* Got the entries 'no', 'yes'"),
    ],
)
@pytest.mark.parametrize(
    ("function", "name"),
    [(noisy_label_auc, "is_noisy"), (wrong_label_curve, "is_wrong")],
)
def test_masks_of_one_kind_or_none_are_refused(function, name, values, mask, message):
    with pytest.raises(ValueError, match=f"^{name} .*{message}"):
        function(values, mask)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.0, np.nan], "values contains NaN"),
        ([0.0, -np.inf], "values contains infinity"),
        ([[0, 1], [2, 3]], "must be one column"),
    ],
)
@pytest.mark.parametrize("function", [noisy_label_auc, wrong_label_curve])
def test_values_that_are_no_column_of_numbers_are_refused(function, values, message):
    with pytest.raises(ValueError, match=message):
        function(values, [True, False])


def test_mean_adjusted_variance_is_squared_error_over_size():
    assert mean_adjusted_variance([0.5, -1.0], [0.1, 0.2]) == pytest.approx(0.03)
    assert mean_adjusted_variance([0.0, 1.0], [0.0, 0.1]) == pytest.approx(0.005)
    assert mean_adjusted_variance([0.0, 1.0], [0.1, 0.1]) == np.inf
    assert mean_adjusted_variance([0.5, 1.0], [np.inf, 0.1]) == np.inf


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([0.1], r"errors must have one entry per row of values \(2\)\. Got 1\."),
        ([0.1, -0.2], r"none of them negative or NaN\. Got -0\.2\."),
        ([0.1, np.nan], r"none of them negative or NaN\. Got nan\."),
    ],
)
def test_wrong_errors_are_refused(errors, message):
    with pytest.raises(ValueError, match=message):
        mean_adjusted_variance([1.0, 2.0], errors)
