"""Bad input is refused, with a message, before work starts, and changes no fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from skvalue import KNNShapleyValuer, TKNNShapleyValuer

from ..watch import Watch

X0 = np.arange(20.0).reshape(10, 2)
Y0 = np.array(["a", "b"] * 5)
NAN = np.where(X0 == 4, np.nan, X0)
TEN = {"X_val": X0, "y_val": Y0}
TWO_COLUMNS = np.ones((10, 2))
TOGETHER = "X_val and y_val must be passed together. Got"
OF_ONE_KIND = "groups must hold names of one kind, and no None, NaN or NA"


def objects(name, *others):
    return np.array([name, *others], dtype=object)


# Case -> what is passed to fit, and the message.
BAD = {
    "NaN in X": ({"X": NAN}, "Input X contains NaN"),
    "one row": ({"X": X0[:1], "y": Y0[:1]}, "minimum of 2 is required"),
    # Labels.
    "no y": ({"y": None}, "requires y to be passed, but the target y is None"),
    "one class": (
        {"y": ["a"] * 10}, "y must have at least 2 classes. Got one class: 'a'",
    ),
    "one class, of numpy": (
        {"y": objects(*[np.str_("a")] * 10)}, "Got one class: 'a' ",
    ),
    "labels of no type": (
        {"y": np.arange(10).astype(object)}, r"objects .* y\.astype\(int\)\.",
    ),
    # Validation points.
    "NaN in X_val": (TEN | {"X_val": NAN}, "X_val must be like X: Input.*NaN"),
    "X_val alone": ({"X_val": X0}, f"{TOGETHER} X_val"),
    "y_val alone": ({"y_val": Y0}, f"{TOGETHER} y_val"),
    "empty": ({"X_val": X0[:0], "y_val": Y0[:0]}, "Got an empty validation set"),
    "a number for X_val": (
        TEN | {"X_val": 3}, "X_val must be like X: X_val must have two dimensions",
    ),
    "columns": (
        TEN | {"X_val": X0[:, :1]}, "X_val must be like X: X_val has 1 features",
    ),
    "lengths": (TEN | {"y_val": Y0[:3]}, "must have the same length. Got 10 and 3"),
    "y_val of two columns": (
        TEN | {"y_val": np.c_[Y0, Y0]}, "y_val must be one column",
    ),
    "other kind": (
        {"X_val": X0[:2], "y_val": [1, 2]}, "labels that y has. Got unseen",
    ),
    "other labels, of numpy": (
        TEN | {"y_val": objects(*[np.str_("c")] * 10)}, "labels: 'c'. Labels of y: ",
    ),
    # Groups.
    "groups": (
        {"groups": [1, 2]}, r"groups must have one entry per row of X \(10\). Got 2",
    ),
    "one group": (
        {"groups": [1] * 10}, "groups must name at least 2 groups. Got one: 1",
    ),
    "one named group": (
        {"groups": ["a"] * 10}, "groups must name at least 2 groups. Got one: 'a'",
    ),
    "groups of two columns": (
        {"groups": np.c_[Y0, Y0]}, "groups must be one column",
    ),
    "groups with None": ({"groups": objects(None, *"a" * 9)}, OF_ONE_KIND),
    "groups with NaT": (
        {"groups": np.array(["NaT", *["2026-01-02"] * 9], dtype="M8[D]")}, OF_ONE_KIND,
    ),
    "groups with NaN": ({"groups": objects(np.nan, *range(9))}, OF_ONE_KIND),
    "groups with NA": ({"groups": objects(pd.NA, *"a" * 9)}, OF_ONE_KIND),
    "groups of numbers and words": ({"groups": objects(1, *"a" * 9)}, OF_ONE_KIND),
    # Weights.
    "weights": (TEN | {"sample_weight_val": [1.0]}, r"\(10\). Got 1"),
    "weights of two columns": (
        TEN | {"sample_weight_val": TWO_COLUMNS},
        "sample_weight_val must be one column",
    ),
    "negative weight": (
        TEN | {"sample_weight_val": [-1.0] * 10},
        "sample_weight_val must be non-negative and not all zero",
    ),
    "weights without points": (
        {"sample_weight_val": [1] * 10}, "sample_weight_val needs X_val",
    ),
}  # fmt: skip


@pytest.mark.parametrize("cls", [KNNShapleyValuer, TKNNShapleyValuer])
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_before_work_starts(cls, case):
    given, message = BAD[case]
    watch = Watch()
    with pytest.raises(ValueError, match=message):
        cls().set_callbacks(watch).fit(**{"X": X0, "y": Y0, **given})
    assert watch.begun == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_one_bad_number_among_many_is_refused(bad):
    X = np.zeros((1050, 1000), dtype=np.float32)
    X[-1, -1] = bad
    with pytest.raises(ValueError, match="Input X contains (NaN|infinity)"):
        KNNShapleyValuer().fit(X, np.arange(1050) % 2)


def test_a_number_whose_square_is_not_finite_is_refused():
    X = np.zeros((1050, 1000), dtype=np.float32)
    X[-1, -1] = 1e30
    with pytest.raises(ValueError, match="squared norms that fit its precision"):
        KNNShapleyValuer().fit(X, np.arange(1050) % 2)


@pytest.mark.parametrize("name", ["transform", "score_samples", "contributions"])
def test_an_unfitted_valuer_says_so(name):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(KNNShapleyValuer(), name)(X0)


BAD_NEW_ROWS = {
    "columns": ("transform", (X0[:, :1],), "X has 1 features, but .* expecting 2"),
    "length": (
        "score_samples", (X0, Y0[:3]), r"y must have one entry .* \(10\). Got 3",
    ),
    "label": (
        "score_samples", (X0[:1], ["q"]), "y must hold only .* the y of fit has. Got",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_NEW_ROWS)
def test_bad_new_rows_are_refused_and_nothing_is_lost(case):
    method, arguments, message = BAD_NEW_ROWS[case]
    valuer = KNNShapleyValuer().fit(X0, Y0)
    before = valuer.values_.copy()
    with pytest.raises(ValueError, match=message):
        getattr(valuer, method)(*arguments)
    np.testing.assert_array_equal(valuer.values_, before)


TWELVE = np.arange(12)
BAD_REFITS = {
    "one class": ({"y": np.zeros(12)}, "2 classes"),
    "too few groups for four folds": (
        {"y": TWELVE % 3, "groups": TWELVE // 3 % 2}, "number of groups",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_REFITS)
def test_a_refused_fit_leaves_all_attributes_of_the_former(case, rng):
    X = rng.normal(size=(12, 2))
    y = TWELVE % 3
    valuer = KNNShapleyValuer(2, cv=4).fit(X, y, groups=TWELVE // 3)
    scores = valuer.score_samples(X[:2] + 9, y[:2])
    given, message = BAD_REFITS[case]
    with pytest.raises(ValueError, match=message):
        valuer.fit(X, **given)
    assert valuer.classes_.tolist() == [0, 1, 2]
    assert valuer.groups_.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(valuer.score_samples(X[:2] + 9, y[:2]), scores)
