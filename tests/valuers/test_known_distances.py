"""The neighbour methods for rows of which only distances are known."""

import numpy as np
import pytest
from oracles import grid_game
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.exceptions import SameRowsWarning

KNN = KNNShapleyValuer(3, metric="precomputed")
TKNN = TKNNShapleyValuer(1.5, metric="precomputed")
each_valuer = pytest.mark.parametrize("valuer", [KNN, TKNN], ids=["knn", "tknn"])
pytestmark = pytest.mark.filterwarnings(
    "ignore:With radius=", "ignore:X_val holds the same rows"
)


def close(found, expected):
    np.testing.assert_allclose(found, expected, atol=1e-13)


def games(rng, n_classes, n=40, n_points=12):
    """Features and distances of the same rows and points."""
    X, y, X_val, y_val = grid_game(rng, n, n_points, n_classes, side=6)
    return X, cdist(X, X), y, X_val, cdist(X_val, X), y_val


def stored(distances, m=None, radius=None):
    """The m nearest rows, or those within a radius, in a sparse array; the others 1000
    away."""
    order = distances.argsort(axis=1, kind="stable").argsort(axis=1)
    kept = distances <= radius if m is None else order < m
    some = csr_array(
        (distances[kept], np.nonzero(kept)), distances.shape
    )  # zeros are stored
    return some, np.where(kept, distances, 1e3)


@each_valuer
@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("cv", [None, "leave-one-out", 4], ids=str)
def test_distances_replace_features(rng, engines, valuer, cv, n_classes):
    X, D, y, X_val, D_val, y_val = games(rng, n_classes)
    points, distances = {}, {}
    if cv is None:
        points, distances = (
            dict(X_val=X_val, y_val=y_val),
            dict(X_val=D_val, y_val=y_val),
        )
    known = clone(valuer).set_params(cv=cv or "leave-one-out")
    expected = clone(known).set_params(metric="euclidean").fit(X, y, **points)
    for engine in {"numba", "torch"} & {*engines}:
        known.set_params(engine=engine, device="cpu")
        close(known.fit_transform(D, y, **distances)[:, 0], expected.values_)
        assert known.utility_ == pytest.approx(expected.utility_)
        close(
            known.contributions(7).contributions,
            expected.contributions(7).contributions,
        )
        if valuer is TKNN:
            np.testing.assert_array_equal(known.counts_, expected.counts_)
        if cv is None:
            close(known.validation_error_, expected.validation_error_)
            first = clone(known).fit(D, y, X_val=D_val[:5], y_val=y_val[:5])
            close(first.add_validation(D_val[5:], y_val[5:]).values_, expected.values_)
            with pytest.raises(
                ValueError, match="need the distances of the rows from X_val"
            ):
                known.score_samples(D[:2])
            continue
        new = rng.integers(0, 6, (9, 2)) + 0.25
        for labels in (y[:9], None):
            found = known.score_samples(cdist(new, X), labels)
            close(found, expected.score_samples(new, labels))


@pytest.mark.parametrize("n_classes", [0, 3])
def test_rows_that_are_not_retrieved_are_farthest(rng, n_classes):
    _, D, y, _, D_val, y_val = games(rng, n_classes)
    some, dense = stored(D_val, 6)
    assert (some.data == 0).any()  # a stored zero is a distance
    nothing = csr_array(D.shape)  # distances between rows are not needed with X_val
    for semivalue in ("shapley", "banzhaf"):
        valuer = clone(KNN).set_params(semivalue=semivalue)
        expected = clone(valuer).fit(D, y, X_val=dense, y_val=y_val).values_
        for X in (nothing, D):
            close(valuer.fit(X, y, X_val=some, y_val=y_val).values_, expected)
    later = clone(valuer).fit(nothing, y, X_val=some[:5], y_val=y_val[:5])
    close(later.add_validation(some[5:], y_val[5:]).values_, expected)
    with pytest.raises(ValueError, match="X_val must be sparse"):
        later.add_validation(D_val, y_val)
    some, _ = stored(D_val, radius=2.5)
    expected = TKNNShapleyValuer(2.5, metric="precomputed").fit(
        D, y, X_val=D_val, y_val=y_val
    )
    for radius in (2.5, 1e6):
        found = (
            clone(expected)
            .set_params(radius=radius)
            .fit(nothing, y, X_val=some, y_val=y_val)
        )
        close(found.values_, expected.values_)


def test_sparse_distances_between_rows(rng):
    _, D, y, *_ = games(rng, 3)
    near, dense = stored(D, 8)
    for cv in ("leave-one-out", 4):
        expected = clone(KNN).set_params(cv=cv).fit(dense, y)
        valuer = clone(expected).fit(near, y)
        close(valuer.values_, expected.values_)
        new, filled = stored(
            cdist(rng.normal(size=(4, 2)), rng.normal(size=(40, 2))), 5
        )
        close(valuer.score_samples(new, y[:4]), expected.score_samples(filled, y[:4]))
        with pytest.raises(ValueError, match="X must be sparse"):
            valuer.transform(D)


@each_valuer
def test_searches_cut_rows_and_columns(rng, valuer):
    X, D, y, *_ = games(rng, 2)
    found = []
    for metric, data in [("euclidean", X), ("precomputed", D)]:
        pipeline = make_pipeline(clone(valuer).set_params(metric=metric))
        assert get_tags(pipeline).input_tags.pairwise == (metric == "precomputed")
        name = (
            "knnshapleyvaluer__n_neighbors"
            if valuer is KNN
            else "tknnshapleyvaluer__radius"
        )
        search = GridSearchCV(
            pipeline, {name: [1, 3]}, cv=3, error_score="raise",
            scoring=lambda model, X, y: float(model[-1].utility_),
        )  # fmt: skip
        found.append(search.fit(data, y).cv_results_["mean_test_score"])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(*found)


@each_valuer
def test_refused(rng, valuer):
    X, D, y, _, D_val, y_val = games(rng, 2)
    game, nothing = dict(X_val=D_val, y_val=y_val), {}
    cases = [
        (
            {},
            X,
            nothing,
            r"X .* must .* shape \(n_samples, n_samples\)|Got shape \(40, 2\)",
        ),
        ({}, -D, nothing, "Negative values in data passed to X"),
        ({}, D, dict(X_val=D_val[:, :9], y_val=y_val), "X_val has 9 features"),
        (dict(embedding=np.sqrt), D, game, "embedding must be None"),
        (dict(engine="faiss"), D, game, "metric"),
    ]
    if valuer is TKNN:
        cases += [
            (
                dict(epsilon=1.0),
                D,
                game,
                "metric must not be 'precomputed' with epsilon",
            ),
            (dict(radius="auto"), D, game, "radius must be a number"),
            (dict(radius="auto"), csr_array(D), nothing, "radius must be a number"),
        ]
    for parameters, rows, keywords, message in cases:
        if parameters.get("engine"):
            pytest.importorskip(parameters["engine"])
        with pytest.raises(ValueError, match=message):
            clone(valuer).set_params(**parameters).fit(rows, y, **keywords)
    with pytest.warns(SameRowsWarning):
        clone(valuer).fit(D, y, X_val=D, y_val=y)
