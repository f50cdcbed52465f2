"""KNN-Shapley of rows of which only distances are known."""

import numpy as np
import pytest
from oracles import grid_game
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from skvalue import KNNShapleyValuer
from skvalue.exceptions import SameRowsWarning


def games(rng, n_classes, n=40, n_points=12):
    """Features and distances of the same rows and points."""
    X, y, X_val, y_val = grid_game(rng, n, n_points, n_classes, side=6)
    return X, cdist(X, X), y, X_val, cdist(X_val, X), y_val


def retrieved(distances, m):
    """The distances of the m nearest rows of each point; zeros are stored."""
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :m]
    data = np.take_along_axis(distances, nearest, axis=1)
    pointers = np.arange(0, len(distances) * m + 1, m)
    return csr_array((data.ravel(), nearest.ravel(), pointers), shape=distances.shape)


@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("cv", [None, "leave-one-out", 4], ids=str)
def test_distances_replace_features(rng, cv, n_classes):
    X, D, y, X_val, D_val, y_val = games(rng, n_classes)
    points, distances = {}, {}
    if cv is None:
        points, distances = dict(X_val=X_val, y_val=y_val), dict(X_val=D_val, y_val=y_val)
    parameters = {} if cv is None else dict(cv=cv)
    expected = KNNShapleyValuer(3, **parameters).fit(X, y, **points)
    for engine in ("numba", "torch"):
        if engine == "torch":
            pytest.importorskip("torch")
        valuer = KNNShapleyValuer(
            3, metric="precomputed", engine=engine, device="cpu", **parameters
        )
        values = valuer.fit_transform(D, y, **distances)
        np.testing.assert_allclose(values[:, 0], expected.values_, atol=1e-13, err_msg=engine)
        assert valuer.utility_ == pytest.approx(expected.utility_)
        split = valuer.contributions(7).contributions
        np.testing.assert_allclose(split, expected.contributions(7).contributions, atol=1e-13)
        if cv is None:
            first = clone(valuer).fit(D, y, X_val=D_val[:5], y_val=y_val[:5])
            first.add_validation(D_val[5:], y_val[5:])
            np.testing.assert_allclose(first.values_, expected.values_, atol=1e-13)
            np.testing.assert_allclose(valuer.validation_error_, expected.validation_error_)
            continue
        new = rng.integers(0, 6, (9, 2)) + 0.25
        for labels in (y[:9], None):
            np.testing.assert_allclose(
                valuer.score_samples(cdist(new, X), labels),
                expected.score_samples(new, labels),
                atol=1e-13,
            )


@pytest.mark.parametrize("n_classes", [0, 3])
def test_rows_that_are_not_retrieved_are_farthest(rng, n_classes):
    _, D, y, _, D_val, y_val = games(rng, n_classes)
    some = retrieved(D_val, 6)
    assert (some.data == 0).any()  # a stored zero is a distance
    dense = np.full(D_val.shape, 1e3)
    dense[np.repeat(np.arange(12), 6), some.indices] = some.data
    nothing = csr_array(D.shape)  # distances between rows are not needed with X_val
    for semivalue in ("shapley", "banzhaf"):
        valuer = KNNShapleyValuer(3, metric="precomputed", semivalue=semivalue)
        expected = clone(valuer).fit(D, y, X_val=dense, y_val=y_val).values_
        for X in (nothing, D):
            valuer.fit(X, y, X_val=some, y_val=y_val)
            np.testing.assert_allclose(valuer.values_, expected, atol=1e-14)
    later = clone(valuer).fit(nothing, y, X_val=some[:5], y_val=y_val[:5])
    later.add_validation(some[5:], y_val[5:])
    np.testing.assert_allclose(later.values_, expected, atol=1e-13)
    with pytest.raises(ValueError, match="X_val must be sparse if that of fit is"):
        later.add_validation(D_val, y_val)


def test_sparse_distances_between_rows(rng):
    _, D, y, *_ = games(rng, 3)
    near = retrieved(D, 8)
    dense = np.full(D.shape, 1e3)
    dense[np.repeat(np.arange(40), 8), near.indices] = near.data
    for cv in ("leave-one-out", 4):
        valuer = KNNShapleyValuer(3, metric="precomputed", cv=cv)
        expected = clone(valuer).fit(dense, y)
        valuer.fit(near, y)
        np.testing.assert_allclose(valuer.values_, expected.values_, atol=1e-14)
        new = retrieved(cdist(rng.normal(size=(4, 2)), rng.normal(size=(40, 2))), 5)
        filled = np.full(new.shape, 1e3)
        filled[np.repeat(np.arange(4), 5), new.indices] = new.data
        np.testing.assert_allclose(
            valuer.score_samples(new, y[:4]), expected.score_samples(filled, y[:4]), atol=1e-14
        )
        with pytest.raises(ValueError, match="X must be sparse, as in fit"):
            valuer.transform(D)


def test_searches_cut_rows_and_columns(rng):
    X, D, y, *_ = games(rng, 2)

    def utility(valuer, X, y):
        return valuer[-1].utility_

    found = []
    for metric, data in [("euclidean", X), ("precomputed", D)]:
        pipeline = make_pipeline(KNNShapleyValuer(metric=metric))
        assert get_tags(pipeline).input_tags.pairwise == (metric == "precomputed")
        search = GridSearchCV(
            pipeline, {"knnshapleyvaluer__n_neighbors": [1, 3]}, scoring=utility, cv=3
        )
        found.append(search.fit(data, y).cv_results_["mean_test_score"])
    np.testing.assert_allclose(found[0], found[1])


def test_messages(rng):
    X, D, y, _, D_val, y_val = games(rng, 2)
    valuer = KNNShapleyValuer(metric="precomputed")
    for arguments, keywords, message in [
        ((X, y), {}, r"of shape \(n_samples, n_samples\), .* Got shape \(40, 2\)"),
        ((-D, y), {}, "Negative values in data passed to X, which holds distances"),
        ((D, y), dict(X_val=D_val[:, :9], y_val=y_val), "X_val has 9 features, but .* 40"),
    ]:
        with pytest.raises(ValueError, match=message):
            valuer.fit(*arguments, **keywords)
    with pytest.raises(ValueError, match="embedding must be None with metric='precomputed'"):
        clone(valuer).set_params(embedding=np.sqrt).fit(D, y)
    with pytest.raises(ValueError, match="metric must be 'cosine' or 'euclidean' for engine"):
        clone(valuer).set_params(engine="faiss").fit(D, y)
    with pytest.warns(SameRowsWarning):
        valuer.fit(D, y, X_val=D, y_val=y)
    with pytest.raises(ValueError, match="need the distances of the rows from X_val"):
        valuer.transform(D)
