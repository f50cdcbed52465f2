"""What every exact valuer keeps, over one table of them."""

import numpy as np
import pytest
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

from skvalue import KNNShapleyValuer, TKNNShapleyValuer

TORCH, FAISS = (dict(engine=engine, device="cpu") for engine in ("torch", "faiss"))
# Name -> (valuer, number of classes; 0 is a regression).
EXACT = {
    "knn": (KNNShapleyValuer(5), 3),
    "knn-original": (KNNShapleyValuer(3, utility="original", metric="cosine"), 2),
    "knn-manhattan": (KNNShapleyValuer(2, metric="manhattan"), 4),
    "knn-regression": (KNNShapleyValuer(4), 0),
    "knn-regression-original": (KNNShapleyValuer(4, utility="original"), 0),
    "tknn": (TKNNShapleyValuer(0.3), 2),
    "tknn-euclidean": (TKNNShapleyValuer(1.5, metric="euclidean"), 3),
}
OTHERS = {
    "knn-torch": (KNNShapleyValuer(5, **TORCH), 3),
    "knn-regression-torch": (KNNShapleyValuer(4, metric="manhattan", **TORCH), 0),
    "tknn-torch": (TKNNShapleyValuer(0.3, **TORCH), 2),
    "knn-faiss": (KNNShapleyValuer(5, metric="cosine", **FAISS), 3),
    "tknn-faiss": (TKNNShapleyValuer(1.5, metric="euclidean", **FAISS), 3),
}
REPEATED = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
SPLITTERS = ["leave-one-out", 5, KFold(3), StratifiedKFold(4), REPEATED]
by_name = pytest.mark.parametrize("name", [*EXACT, *OTHERS])


def problem(name, rng, **sizes):
    """An unfitted valuer and rows for it."""
    valuer, n_classes = (EXACT | OTHERS)[name]
    if valuer.engine != "auto":
        pytest.importorskip(valuer.engine)
    return clone(valuer), on_a_grid(rng, n_classes=n_classes, **sizes)


def fit(name, rng, **sizes):
    valuer, given = problem(name, rng, **sizes)
    return given.fit(valuer), given


@by_name
def test_efficiency(name, rng):
    valuer, _ = fit(name, rng)
    assert valuer.values_.sum() == pytest.approx(
        valuer.utility_ - valuer.empty_utility_, abs=1e-12
    )


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("cv", [None, *SPLITTERS], ids=str)
def test_efficiency_of_many_rows(name, rng, cv):
    valuer, n_classes = EXACT[name]
    if n_classes == 0 and isinstance(cv, StratifiedKFold):
        cv = KFold(4)  # scikit-learn stratifies classes only
    n = 5000 if cv is None else 600
    n = n if valuer.metric != "manhattan" else 500
    X, y = rng.normal(size=(n, 4)), rng.integers(0, max(n_classes, 2), n)
    y = y if n_classes else rng.normal(size=n)
    fitted = clone(valuer).set_params(**({} if cv is None else {"cv": cv}))
    fitted.fit(X, y, **(dict(X_val=X[:40] + 0.01, y_val=y[:40]) if cv is None else {}))
    gap = fitted.values_.sum() - (fitted.utility_ - fitted.empty_utility_)
    assert abs(gap) < 1e-10


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(
    "cv", ["leave-one-out", 4, GroupKFold(3), LeaveOneGroupOut()], ids=str
)
def test_efficiency_of_groups(name, rng, cv):
    valuer, (X, y, *_) = problem(name, rng)
    fitted = valuer.set_params(cv=cv).fit(X, y, groups=np.arange(80) % 7)
    assert fitted.values_.shape == (7,)
    assert fitted.values_.sum() == pytest.approx(
        fitted.utility_ - fitted.empty_utility_, abs=1e-12
    )


@by_name
def test_symmetry(name, rng):
    # Equal rows with equal labels have equal values.
    valuer, given = problem(name, rng)
    X, y = (np.r_[part, part[:20]] for part in given.rows)
    values = valuer.fit(X, y, **given.points).values_
    np.testing.assert_allclose(values[:20], values[80:], atol=1e-14)


def test_null_player(rng):
    # A row in no ball adds nothing to any coalition.
    given = on_a_grid(rng)
    given.X[7] = 100
    values = given.fit(TKNNShapleyValuer(1.0, metric="euclidean")).values_
    assert values[7] == 0
    assert np.count_nonzero(values) > 40


@by_name
def test_linearity_in_the_validation_points(name, rng):
    # A validation point of weight two counts as two points.
    valuer, given = problem(name, rng)
    times = rng.integers(0, 3, len(given.y_val))
    weighted = given.fit(clone(valuer), sample_weight_val=times.astype(float))
    points = {name: np.repeat(part, times, 0) for name, part in given.points.items()}
    repeated = valuer.fit(*given.rows, **points)
    np.testing.assert_allclose(weighted.values_, repeated.values_, atol=1e-13)
    assert weighted.utility_ == pytest.approx(repeated.utility_)


@by_name
@pytest.mark.parametrize("points", ["validation", "leave-one-out"])
def test_row_order_does_not_matter(name, rng, points):
    valuer, given = problem(name, rng)
    extra = given.points if points == "validation" else {}
    order = rng.permutation(len(given.X))
    straight = valuer.fit(*given.rows, **extra).values_
    shuffled = clone(valuer).fit(given.X[order], given.y[order], **extra).values_
    np.testing.assert_allclose(straight[order], shuffled, atol=1e-13)


@by_name
def test_order_of_points_tiles_and_jobs_do_not_matter(name, rng):
    valuer, (X, y, X_val, y_val) = fit(name, rng, n_val=300)
    order = rng.permutation(300)
    for n_jobs, memory in [(1, 1024), (3, 1)]:
        with config_context(working_memory=memory):
            other = clone(valuer).set_params(n_jobs=n_jobs)
            other.fit(X, y, X_val=X_val[order], y_val=y_val[order])
        np.testing.assert_allclose(valuer.values_, other.values_, atol=1e-13)


@by_name
@pytest.mark.parametrize("scale", [2.0**-10, 2.0**10])  # powers of two keep ties exact
def test_units_of_length_do_not_matter(name, rng, scale):
    valuer, (X, y, X_val, y_val) = fit(name, rng)
    other = clone(valuer)
    if getattr(valuer, "metric", "") == "euclidean" and "radius" in valuer.get_params():
        other.set_params(radius=valuer.radius * scale)
    other.fit(X * scale, y, X_val=X_val * scale, y_val=y_val)
    np.testing.assert_allclose(valuer.values_, other.values_, atol=1e-13)


@by_name
def test_float32_is_close(name, rng):
    valuer, given = fit(name, rng)
    X, X_val = given.X.astype(np.float32), given.X_val.astype(np.float32)
    other = clone(valuer).fit(X, given.y, X_val=X_val, y_val=given.y_val)
    np.testing.assert_allclose(
        valuer.values_, other.values_, atol=1e-12
    )  # the grid is exact
