import numpy as np
import pandas as pd
import pytest

from skvalue.inspection import mean_adjusted_variance, noisy_label_auc


def pairwise_auc(values, is_noisy):
    """The definition: over all pairs of a noisy and a clean row, ties half."""
    noisy, clean = values[is_noisy], values[~is_noisy][:, None]
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


def test_takes_what_holds_numbers_and_marks():
    values, marks = [-1.0, 0.0, -0.5, 1.0], [1, 0, 0, 1]
    score = noisy_label_auc(values, marks)
    assert type(score) is float
    assert score == 0.5
    for values_, marks_ in [
        (np.array(values, dtype=np.float32), np.array(marks, dtype=bool)),
        (pd.Series(values, index=list("abcd")), pd.Series(marks, index=[9, 8, 7, 6])),
        (np.array([0, 2, 1, 4], dtype=np.uint8), np.array(marks, dtype=float)),
    ]:
        assert noisy_label_auc(values_, marks_) == score


def test_by_class_it_sees_values_that_find_the_minority_alone():
    y = np.repeat(["major", "minor", "rare"], [100, 12, 2])
    is_noisy = np.r_[np.arange(100) < 2, np.arange(12) < 5, [False, False]]
    values = (
        np.where(y == "minor", -1.0, 1.0) + np.r_[np.zeros(102), np.linspace(0, 1, 12)]
    )
    areas = noisy_label_auc(values, is_noisy, y=y)
    assert noisy_label_auc(values, is_noisy) > 0.8
    assert list(areas) == ["major", "minor", "rare"]
    assert areas["major"] == 0.5
    for label in ("major", "minor"):
        of = y == label
        assert areas[label] == pytest.approx(pairwise_auc(values[of], is_noisy[of]))
    assert np.isnan(areas["rare"])
    with pytest.raises(ValueError, match="y must have one entry per row of values"):
        noisy_label_auc(values, is_noisy, y=[0, 1, 2])


@pytest.mark.parametrize(
    ("values", "is_noisy", "message"),
    [
        (
            [0, 1, 2],
            [True, False],
            r"values and is_noisy .* same length\. Got 3 and 2\.",
        ),
        ([0.0, np.nan], [True, False], "values contains NaN"),
        ([0.0, -np.inf], [True, False], "values contains infinity"),
        ([0, 1], [False, False], r"both noisy and clean rows\. Got False for all 2\."),
        ([0, 1, 2], [1, 1, 1], r"both noisy and clean rows\. Got 1 for all 3\."),
        ([0, 1, 2], [0, 2, 5], r"is_noisy must be a mask .* Got the entries 0, 2, 5\."),
        (range(9), range(9), r"Got the entries 0, 1, 2, 3, 4, \.\.\."),
        (
            [0, 1],
            ["yes", "no"],
            "is_noisy must be a mask .* Got the entries 'no', 'yes'",
        ),
        ([[0, 1], [2, 3]], [True, False], "must be one column"),
    ],
)
def test_refuses(values, is_noisy, message):
    with pytest.raises(ValueError, match=message):
        noisy_label_auc(values, is_noisy)


def test_variance_over_size():
    assert mean_adjusted_variance([0.5, -1.0], [0.1, 0.2]) == pytest.approx(0.03)
    assert mean_adjusted_variance([0.0, 1.0], [0.0, 0.1]) == pytest.approx(0.005)
    assert mean_adjusted_variance([0.0, 1.0], [0.1, 0.1]) == np.inf
    assert mean_adjusted_variance([0.5, 1.0], [np.inf, 0.1]) == np.inf


@pytest.mark.parametrize(
    ("values", "errors"),
    [([1.0, 2.0], [0.1]), ([1.0, 2.0], [0.1, -0.1]), ([1.0, 2.0], [0.1, np.nan])],
)
def test_errors_that_are_none(values, errors):
    with pytest.raises(
        ValueError, match="errors must have one entry per value, none of them neg"
    ):
        mean_adjusted_variance(values, errors)
