"""Validation points that are added to a fit, and their weights."""

import numpy as np
import pytest
from exact_valuers import each_exact_and_engine, problem
from sklearn.base import clone

from skvalue import KNNShapleyValuer, TKNNShapleyValuer

X0 = np.arange(20.0).reshape(10, 2)
Y0 = np.array(["a", "b"] * 5)


@each_exact_and_engine
@pytest.mark.parametrize(("weighted", "grouped"), [(False, True), (True, False)])
def test_adding_validation_points_equals_a_refit(name, rng, weighted, grouped):
    valuer, (X, y, X_val, y_val) = problem(name, rng)
    options = {"groups": np.arange(80) % 4} if grouped else {}
    weights = first_weights = last_weights = None
    if weighted:
        weights = rng.random(30)
        first_weights = weights[:20]
        last_weights = weights[20:]
    whole = clone(valuer).fit(
        X, y, X_val=X_val, y_val=y_val, sample_weight_val=weights, **options
    )
    grown = clone(valuer).fit(
        X,
        y,
        X_val=X_val[:20],
        y_val=y_val[:20],
        sample_weight_val=first_weights,
        **options,
    )
    # Errors that were computed must not survive the change.
    assert grown.validation_error_.shape == grown.values_.shape
    grown.add_validation(X_val[20:], y_val[20:], sample_weight_val=last_weights)
    for attribute in ("values_", "utility_", "empty_utility_", "validation_error_"):
        np.testing.assert_allclose(
            getattr(grown, attribute),
            getattr(whole, attribute),
            atol=1e-13,
            err_msg=attribute,
        )
    X_new = X[:5] + 0.1
    np.testing.assert_allclose(grown.transform(X_new), whole.transform(X_new))
    if hasattr(whole, "counts_"):
        np.testing.assert_array_equal(grown.counts_, whole.counts_)


@pytest.mark.parametrize("valuer", [KNNShapleyValuer(), TKNNShapleyValuer()])
@pytest.mark.parametrize("first", [1e308, 1.0, 0.0])
def test_huge_weights_of_added_points_do_not_overflow(valuer, first, rng):
    X = rng.normal(size=(20, 2))
    y = np.arange(20) % 2
    points = rng.normal(size=(8, 2))
    labels = np.arange(8) % 2
    weights = np.r_[np.full(4, first), np.full(4, 1e308)]
    weights[0] = 1e308

    def fit(n):
        options = {"X_val": points[:n], "y_val": labels[:n]}
        return clone(valuer).fit(X, y, sample_weight_val=weights[:n], **options)

    whole = fit(8)
    grown = fit(4)
    for rows in (slice(4, 6), slice(6, 8)):
        grown.add_validation(
            points[rows], labels[rows], sample_weight_val=weights[rows]
        )
    # The radius of TKNN is that of the first points.
    if isinstance(valuer, KNNShapleyValuer):
        np.testing.assert_allclose(grown.values_, whole.values_, atol=1e-14)
        assert grown.utility_ == pytest.approx(whole.utility_)
    assert np.isfinite(grown.values_).all()
    assert np.isfinite(grown.validation_error_).all()


def test_weights_whose_sum_overflows_are_scaled(rng):
    X = rng.normal(size=(20, 2))
    y = np.arange(20) % 2
    weights = rng.random(20)

    def fit(weights):
        return KNNShapleyValuer().fit(X, y, X_val=X, y_val=y, sample_weight_val=weights)

    expected = fit(weights).values_
    for scale in (1e308, 1e-300):
        values = fit(weights * scale).values_
        np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_points_are_not_added_to_held_out_rows():
    valuer = KNNShapleyValuer().fit(X0, Y0)
    before = valuer.values_.copy()
    with pytest.raises(ValueError, match="add_validation needs a validation set"):
        valuer.add_validation(X0, Y0)
    np.testing.assert_array_equal(valuer.values_, before)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([np.nan], "sample_weight_val contains NaN"),
        ([-1.0], "must be non-negative"),
        ([[1.0, 1.0]], "must be one column"),
        ([1.0, 1.0], r"\(1\). Got 2"),
    ],
    ids=["NaN", "negative", "two columns", "length"],
)
def test_bad_weights_of_added_points_are_refused(weights, message):
    valuer = KNNShapleyValuer().fit(X0, Y0, X_val=X0, y_val=Y0)
    with pytest.raises(ValueError, match=message):
        valuer.add_validation(X0[:1], Y0[:1], sample_weight_val=weights)


def test_added_labels_of_another_type_are_refused():
    valuer = KNNShapleyValuer().fit(X0, Y0, X_val=X0, y_val=Y0)
    with pytest.raises(ValueError, match="y_val must have the same type as in fit"):
        valuer.add_validation(X0[:2], [1, 2])
