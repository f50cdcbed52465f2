"""What every exact valuer keeps, over one table of them."""

import numpy as np
import pytest
from exact_valuers import EXACT, each_exact, each_exact_and_engine, problem
from problems import on_a_grid
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    StratifiedKFold,
)

from skvalue import TKNNShapleyValuer

REPEATED = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
SPLITTERS = ["leave-one-out", 5, KFold(3), StratifiedKFold(4), REPEATED]


def fit(name, rng, **sizes):
    valuer, given = problem(name, rng, **sizes)
    return given.fit(valuer), given


@each_exact_and_engine
def test_efficiency(name, rng):
    valuer, _ = fit(name, rng)
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain, abs=1e-12)


@each_exact
@pytest.mark.parametrize("cv", [None, *SPLITTERS], ids=str)
def test_efficiency_of_many_rows(name, rng, cv):
    valuer, n_classes = EXACT[name]
    if n_classes == 0 and isinstance(cv, StratifiedKFold):
        cv = KFold(4)  # scikit-learn stratifies classes only
    n = 5000 if cv is None else 600
    if valuer.metric == "manhattan":
        n = 500
    X = rng.normal(size=(n, 4))
    y = rng.integers(0, max(n_classes, 2), n)
    if n_classes == 0:
        y = rng.normal(size=n)
    fitted = clone(valuer)
    if cv is None:
        fitted.fit(X, y, X_val=X[:40] + 0.01, y_val=y[:40])
    else:
        fitted.set_params(cv=cv).fit(X, y)
    gap = fitted.values_.sum() - (fitted.utility_ - fitted.empty_utility_)
    assert abs(gap) < 1e-10


@each_exact
@pytest.mark.parametrize(
    "cv", ["leave-one-out", 4, GroupKFold(3), LeaveOneGroupOut()], ids=str
)
def test_efficiency_of_groups(name, rng, cv):
    valuer, (X, y, *_) = problem(name, rng)
    fitted = valuer.set_params(cv=cv).fit(X, y, groups=np.arange(80) % 7)
    assert fitted.values_.shape == (7,)
    gain = fitted.utility_ - fitted.empty_utility_
    assert fitted.values_.sum() == pytest.approx(gain, abs=1e-12)


@each_exact_and_engine
def test_equal_rows_with_equal_labels_have_equal_values(name, rng):
    valuer, given = problem(name, rng)
    X = np.r_[given.X, given.X[:20]]
    y = np.r_[given.y, given.y[:20]]
    values = valuer.fit(X, y, **given.points).values_
    np.testing.assert_allclose(values[:20], values[80:], atol=1e-14)


def test_a_row_in_no_ball_has_the_value_zero(rng):
    # It adds nothing to any coalition.
    given = on_a_grid(rng)
    given.X[7] = 100
    values = given.fit(TKNNShapleyValuer(1.0, metric="euclidean")).values_
    assert values[7] == 0
    assert np.count_nonzero(values) > 40


@each_exact_and_engine
def test_a_validation_point_of_weight_two_counts_as_two_points(name, rng):
    valuer, given = problem(name, rng)
    times = rng.integers(0, 3, len(given.y_val))
    weighted = given.fit(clone(valuer), sample_weight_val=times.astype(float))
    repeated = valuer.fit(
        *given.rows,
        X_val=np.repeat(given.X_val, times, axis=0),
        y_val=np.repeat(given.y_val, times),
    )
    np.testing.assert_allclose(weighted.values_, repeated.values_, atol=1e-13)
    assert weighted.utility_ == pytest.approx(repeated.utility_)


@each_exact_and_engine
@pytest.mark.parametrize("points_of", ["validation", "leave-one-out"])
def test_the_order_of_rows_does_not_matter(name, rng, points_of):
    valuer, given = problem(name, rng)
    points = given.points if points_of == "validation" else {}
    order = rng.permutation(len(given.X))
    straight = valuer.fit(*given.rows, **points).values_
    shuffled = clone(valuer).fit(given.X[order], given.y[order], **points).values_
    np.testing.assert_allclose(straight[order], shuffled, atol=1e-13)


@each_exact_and_engine
def test_the_order_of_points_tiles_and_jobs_do_not_matter(name, rng):
    valuer, (X, y, X_val, y_val) = fit(name, rng, n_val=300)
    order = rng.permutation(300)
    for n_jobs, memory in [(1, 1024), (3, 1)]:
        with config_context(working_memory=memory):
            other = clone(valuer).set_params(n_jobs=n_jobs)
            other.fit(X, y, X_val=X_val[order], y_val=y_val[order])
        np.testing.assert_allclose(valuer.values_, other.values_, atol=1e-13)


@each_exact_and_engine
@pytest.mark.parametrize("scale", [2.0**-10, 2.0**10])  # powers of two keep ties exact
def test_units_of_length_do_not_matter(name, rng, scale):
    valuer, (X, y, X_val, y_val) = fit(name, rng)
    other = clone(valuer)
    if valuer.metric == "euclidean" and "radius" in valuer.get_params():
        other.set_params(radius=valuer.radius * scale)
    other.fit(X * scale, y, X_val=X_val * scale, y_val=y_val)
    np.testing.assert_allclose(valuer.values_, other.values_, atol=1e-13)


@each_exact_and_engine
def test_rows_in_float32_have_the_same_values(name, rng):
    valuer, given = fit(name, rng)
    other = clone(valuer).fit(
        given.X.astype(np.float32),
        given.y,
        X_val=given.X_val.astype(np.float32),
        y_val=given.y_val,
    )
    # The grid is exact in float32.
    np.testing.assert_allclose(valuer.values_, other.values_, atol=1e-12)
