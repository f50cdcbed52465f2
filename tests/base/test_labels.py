"""Labels of any kind, missing ones, and those that only validation points have."""

import numpy as np
import pandas as pd
import pytest

from skvalue import DataOOBValuer, KNNShapleyValuer, TKNNShapleyValuer
from skvalue.exceptions import UnseenLabelsWarning


@pytest.mark.parametrize(
    "labels", [["x", "y"], [3, 17], [True, False], [1.0, 2.0], ["1", "10"]]
)
def test_labels_of_any_kind_have_the_values_of_codes(labels, rng):
    X = rng.normal(size=(30, 2))
    codes = rng.integers(0, 2, 30)
    X_val = X[:9] + 0.1
    y = np.array(labels)[codes]
    of_codes = KNNShapleyValuer().fit(X, codes, X_val=X_val, y_val=codes[:9])
    valuer = KNNShapleyValuer().fit(X, pd.Series(y), X_val=X_val, y_val=list(y[:9]))
    assert valuer.classes_.tolist() == sorted(labels)
    np.testing.assert_allclose(valuer.values_, of_codes.values_)
    scores = valuer.score_samples(X, y)
    np.testing.assert_allclose(scores, of_codes.score_samples(X, codes))


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([1, 2], ValueError, "convert them, for example with y.astype"),
        ([1, "a"], ValueError, "convert them, for example with y.astype"),
        (np.array([b"a", b"b"]), TypeError, "Convert the labels to a string"),
    ],
    ids=["objects", "numbers and words", "bytes"],
)
def test_labels_of_no_type_are_refused(labels, error, message):
    if isinstance(labels, list):
        labels = np.array(labels, dtype=object)
    X = np.arange(20.0).reshape(10, 2)
    y = labels[np.arange(10) % 2]
    with pytest.raises(error, match=message):
        KNNShapleyValuer().fit(X, y)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("kind", ["object", "str", "string", "category"])
def test_missing_labels_are_refused(missing, kind, rng):
    X = rng.normal(size=(20, 2))
    y = pd.Series(["a", "b"] * 10, dtype=kind)
    y[3] = missing
    message = "y must hold no missing labels. Got .* at place 3."
    with pytest.raises(ValueError, match=message):
        KNNShapleyValuer().fit(X, y)


def dates(kind):
    """Labels that are dates or durations, and the same with NaT at place 3."""
    y = np.array([1, 2] * 10).astype(kind)
    missing = y.copy()
    missing[3] = "NaT"
    return y, missing


each_kind_of_dates = pytest.mark.parametrize("kind", ["M8[D]", "m8[s]"])
NO_DATE = "must hold no missing labels. Got .*NaT.* at place 3."


@each_kind_of_dates
def test_missing_dates_are_refused_as_labels(kind, rng):
    X = rng.normal(size=(20, 2))
    _, missing = dates(kind)
    for valuer in (KNNShapleyValuer(2), DataOOBValuer(n_estimators=2)):
        for labels in (missing, pd.Series(missing), pd.Series(missing).astype(object)):
            with pytest.raises(ValueError, match=f"y {NO_DATE}"):
                valuer.fit(X, labels)


@each_kind_of_dates
def test_missing_dates_are_refused_as_labels_of_later_rows(kind, rng):
    X = rng.normal(size=(20, 2))
    y, missing = dates(kind)
    valuer = KNNShapleyValuer(2).fit(X, y)
    with pytest.raises(ValueError, match=f"y {NO_DATE}"):
        valuer.score_samples(X, missing)


@each_kind_of_dates
def test_missing_dates_are_refused_as_labels_of_validation_points(kind, rng):
    X = rng.normal(size=(20, 2))
    y, missing = dates(kind)
    valuer = KNNShapleyValuer(2).fit(X, y, X_val=X, y_val=y)
    with pytest.raises(ValueError, match=f"y_val {NO_DATE}"):
        valuer.add_validation(X, missing)
    with pytest.raises(ValueError, match=f"y_val {NO_DATE}"):
        valuer.fit(X, y, X_val=X, y_val=missing)


each_neighbor_method = pytest.mark.parametrize(
    "cls", [KNNShapleyValuer, TKNNShapleyValuer]
)
each_pair_of_labels = pytest.mark.parametrize(
    ("old", "new"),
    [(["no", "yes"], ["No ", "YES"]), ([0, 1], [7, 8]), ([0.0, 1.0], [2.0, 3.0])],
    ids=["words", "integers", "floats"],
)


@each_neighbor_method
@each_pair_of_labels
def test_validation_labels_of_which_no_row_has_any_are_refused(cls, old, new, rng):
    X = rng.normal(size=(30, 3))
    codes = np.arange(30) % 2
    y_val = np.array(new)[codes[:8]]
    message = "y_val must hold only labels that y has.*Labels of y"
    with pytest.raises(ValueError, match=message):
        cls().fit(X, np.array(old)[codes], X_val=X[:8] + 0.1, y_val=y_val)


@each_neighbor_method
@each_pair_of_labels
def test_some_validation_labels_that_no_row_has_warn(cls, old, new, rng):
    X = rng.normal(size=(30, 3))
    codes = np.arange(30) % 2
    old = np.array(old)
    new = np.array(new)
    y_val = np.where(np.arange(8) < 4, old[codes[:8]], new[codes[:8]])
    hint = ""
    if new.dtype.kind == "U":
        hint = "Up to case and spaces y has 'no', 'yes'"
    with pytest.warns(UnseenLabelsWarning, match=f"labels that no row has.*{hint}"):
        cls().fit(X, old[codes], X_val=X[:8] + 0.1, y_val=y_val)
