"""Threshold-KNN-Shapley of continuous targets, and of rows of which only distances are known."""

from functools import partial

import numpy as np
import pytest
from oracles import enumerate_game, grid_game
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from skvalue import TKNNShapleyValuer
from skvalue.exceptions import SameRowsWarning
from skvalue.valuers import suggest_radius

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1)]
pytestmark = pytest.mark.filterwarnings("ignore:With radius=", "ignore:X_val holds the same rows")


def ball_utility(players, distances, y, target, radius, prior):
    inside = [i for i in players if distances[i] <= radius * (1 + 1e-12)]
    return -(((np.mean(y[inside]) if inside else prior) - target) ** 2)


@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=str)
def test_equals_enumeration(engines, rng, semivalue):
    for n in (2, 3, 5, 7):
        X, y, X_val, y_val = grid_game(rng, n, 3, 0)
        weights = rng.uniform(size=3)
        weights /= weights.sum()
        for radius in (0.0, 1.0, 2.0, 9.0):
            game = partial(ball_utility, radius=radius, prior=y_val @ weights)
            expected = enumerate_game(game, X, y, X_val, y_val, weights, semivalue=semivalue)
            for engine in engines:
                valuer = TKNNShapleyValuer(
                    radius, metric="euclidean", semivalue=semivalue, engine=engine
                )
                valuer.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weights)
                np.testing.assert_allclose(valuer.values_, expected, atol=1e-12, err_msg=engine)
                if semivalue == "shapley":
                    gain = valuer.utility_ - valuer.empty_utility_
                    assert valuer.values_.sum() == pytest.approx(gain)
    inside = cdist(X_val, X) <= radius
    np.testing.assert_array_equal(valuer.counts_, inside.sum(axis=1)[None])


def check_after_the_fit(rng, valuer, X, y, X_val, y_val):
    """What a fitted valuer of a regression says equals fits of other games."""
    game = dict(X_val=X_val, y_val=y_val)
    whole = clone(valuer).fit(X, y, **game)
    part = clone(valuer).fit(X[:-1], y[:-1], **game)
    for new in (X[-1:], X[-1:] + 0.01):  # in other balls than its neighbours, or in the same
        joined = clone(valuer).fit(np.r_[X[:-1], new], y, **game)
        assert part.score_samples(new, y[-1:])[0] == pytest.approx(joined.values_[-1], abs=1e-13)
    inside = cdist(new, X[:-1])[0] <= valuer.radius
    assert inside.sum() > 1
    labels = y[:-1][inside]
    means = np.mean([part.score_samples(new, [label])[0] for label in labels])
    assert part.transform(new)[0, 0] == pytest.approx(means)
    far = part.score_samples(X[:1] + 99)
    assert far[0] == 0.0
    later = clone(valuer).fit(X, y, X_val=X_val[:4], y_val=y_val[:4])
    later.add_validation(X_val[4:], y_val[4:])
    np.testing.assert_allclose(later.values_, whole.values_, atol=1e-13)
    split = whole.contributions(2).contributions
    assert split.sum() == pytest.approx(whole.values_[2])
    groups = np.arange(len(y)) % 4
    by_group = clone(valuer).fit(X, y, groups=groups, **game)
    np.testing.assert_allclose(by_group.values_, np.bincount(groups, weights=whole.values_))
    m = len(y_val)
    for fitted in (whole, by_group):
        at_points = [m * fitted.contributions(i).contributions for i in range(len(fitted.values_))]
        expected = np.std(at_points, axis=1, ddof=1) / np.sqrt(m)
        np.testing.assert_allclose(fitted.validation_error_, expected, atol=1e-12)


def test_after_the_fit(rng):
    X, y, X_val, y_val = grid_game(rng, 40, 10, 0, side=5)
    valuer = TKNNShapleyValuer(1.5, metric="euclidean", semivalue=(2, 1))
    check_after_the_fit(rng, valuer, X, y, X_val, y_val)


@pytest.mark.parametrize("cv", ["leave-one-out", 5], ids=str)
def test_without_a_validation_set(rng, cv):
    X, y, *_ = grid_game(rng, 10, 1, 0, side=3)
    valuer = TKNNShapleyValuer(1.5, metric="euclidean", cv=cv).fit(X, y)
    assert valuer.values_.sum() == pytest.approx(valuer.utility_ - valuer.empty_utility_)
    if cv == "leave-one-out":
        expected = np.zeros(10)
        game = partial(ball_utility, radius=1.5, prior=y.mean())
        for i in range(10):
            rest = np.delete(np.arange(10), i)
            expected[rest] += enumerate_game(game, X[rest], y[rest], X[[i]], y[[i]]) / 10
        np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


def test_rows_in_a_file_and_sparse_rows(rng, tmp_path):
    X, y, X_val, y_val = grid_game(rng, 300, 70, 0, side=6)
    valuer = TKNNShapleyValuer(1.5, metric="euclidean").fit(X, y, X_val=X_val, y_val=y_val)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for rows, points in ((mapped, X_val), (csr_array(X), csr_array(X_val))):
        found = clone(valuer).fit(rows, y, X_val=points, y_val=y_val).values_
        np.testing.assert_allclose(found, valuer.values_, atol=1e-12)


def test_the_radius_follows_the_utility(rng):
    X, noise = rng.uniform(size=(200, 1)), rng.normal(size=200) / 2
    valuers = [
        TKNNShapleyValuer(metric="euclidean").fit(X, np.sin(scale * X[:, 0]) + 3.5 + noise)
        for scale in (2.0, 40.0)
    ]
    assert valuers[1].radius_ < valuers[0].radius_ / 3
    distances = TKNNShapleyValuer(metric="precomputed")
    distances.fit(cdist(X, X), np.sin(2 * X[:, 0]) + 3.5 + noise)
    assert distances.radius_ == pytest.approx(valuers[0].radius_, rel=1e-6)
    y = (X[:, 0] > 0.5).astype(int)
    labels = TKNNShapleyValuer(metric="precomputed").fit(cdist(X, X), y)
    assert labels.radius_ == pytest.approx(suggest_radius(X, y, "euclidean"), rel=1e-6)


# Distances in place of features -----------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("cv", [None, "leave-one-out", 4], ids=str)
def test_distances_replace_features(rng, cv, n_classes):
    X, y, X_val, y_val = grid_game(rng, 40, 12, n_classes, side=6)
    base = TKNNShapleyValuer(1.5, metric="euclidean", cv=cv or "leave-one-out")
    known = clone(base).set_params(metric="precomputed")
    features, points = {}, {}
    if cv is None:
        features = dict(X_val=X_val, y_val=y_val)
        points = dict(X_val=cdist(X_val, X), y_val=y_val)
    expected = base.fit(X, y, **features)
    known.fit(cdist(X, X), y, **points)
    np.testing.assert_allclose(known.values_, expected.values_, atol=1e-13)
    np.testing.assert_array_equal(known.counts_, expected.counts_)
    np.testing.assert_allclose(
        known.contributions(3).contributions, expected.contributions(3).contributions, atol=1e-13
    )
    if cv is None:
        np.testing.assert_allclose(known.validation_error_, expected.validation_error_, atol=1e-13)
        with pytest.raises(ValueError, match="need the distances of the rows from X_val"):
            known.score_samples(cdist(X[:2], X))
        return
    new = X[:5] + 0.25
    for target in (None, y[:5]):
        np.testing.assert_allclose(
            known.score_samples(cdist(new, X), target), expected.score_samples(new, target),
            atol=1e-13,
        )  # fmt: skip


@pytest.mark.parametrize("n_classes", [0, 3])
def test_rows_that_were_not_retrieved_are_in_no_ball(rng, n_classes):
    X, y, X_val, y_val = grid_game(rng, 40, 12, n_classes, side=6)
    D = cdist(X_val, X)
    kept = D <= 2.5
    lines, columns = np.nonzero(kept)  # zeros are stored
    sparse = csr_array((D[kept], (lines, columns)), shape=D.shape)
    valuer = TKNNShapleyValuer(2.5, metric="precomputed")
    valuer.fit(cdist(X, X), y, X_val=D, y_val=y_val)
    for radius in (2.5, 1e6):
        corpus = clone(valuer).set_params(radius=radius)
        corpus.fit(csr_array((40, 40)), y, X_val=sparse, y_val=y_val)
        np.testing.assert_allclose(corpus.values_, valuer.values_, atol=1e-13)


def test_searches_cut_rows_and_columns(rng):
    X, y, *_ = grid_game(rng, 30, 1, 2, side=6)
    valuer = TKNNShapleyValuer(metric="precomputed")
    assert get_tags(valuer).input_tags.pairwise
    assert not get_tags(TKNNShapleyValuer()).input_tags.pairwise
    search = GridSearchCV(
        make_pipeline(valuer), {"tknnshapleyvaluer__radius": [1.0, 2.0]}, cv=3,
        scoring=lambda model, X, y: float(model[-1].utility_), error_score="raise",
    )  # fmt: skip
    search.fit(cdist(X, X), y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_refused_combinations(rng):
    X, y, X_val, y_val = grid_game(rng, 12, 5, 2, side=6)
    D, D_val = cdist(X, X), cdist(X_val, X)
    known = TKNNShapleyValuer(1.0, metric="precomputed")
    game = dict(X_val=D_val, y_val=y_val)
    for parameters, keywords, message in [
        (dict(epsilon=1.0), game, "metric='precomputed' needs epsilon=None.* Got epsilon=1.0"),
        (dict(radius="auto"), game, "radius must be a number with metric='precomputed'"),
        (dict(embedding=np.sqrt), game, "embedding must be None with metric='precomputed'"),
    ]:
        with pytest.raises(ValueError, match=message):
            clone(known).set_params(**parameters).fit(D, y, **keywords)
    with pytest.raises(ValueError, match="radius must be a number with metric='precomputed'"):
        clone(known).set_params(radius="auto").fit(csr_array(D), y)
    with pytest.raises(ValueError, match="y_val must hold classes. Got continuous"):
        TKNNShapleyValuer(1.0, epsilon=1.0).fit(X, y + 0.5, X_val=X_val, y_val=y_val + 0.5)
    private = TKNNShapleyValuer(1.0, epsilon=1.0, task="regression")
    with pytest.raises(ValueError, match="task must not be 'regression' with epsilon"):
        private.fit(X, y, X_val=X_val, y_val=np.arange(5) % 2)
    with pytest.raises(ValueError, match="at least 3 targets in y_val. Got 2"):
        TKNNShapleyValuer().fit(X, y + 0.5, X_val=X_val[:2], y_val=[0.5, 1.5])
    with pytest.raises(ValueError, match="y must hold classes when task='classification'"):
        TKNNShapleyValuer(task="classification").fit(X, y + 0.5)
    with pytest.raises(ValueError, match="class_weight must be None for a regression"):
        TKNNShapleyValuer(class_weight="balanced").fit(X, y + 0.5)
    with pytest.warns(SameRowsWarning):
        TKNNShapleyValuer(1.0, task="regression").fit(X, y, X_val=X, y_val=y)


@pytest.mark.parametrize("engine", ["torch", "faiss"])
def test_other_engines_refuse_distances(rng, engine):
    pytest.importorskip(engine)
    X, y, *_ = grid_game(rng, 12, 1, 2, side=6)
    valuer = TKNNShapleyValuer(1.0, metric="precomputed", engine=engine)
    with pytest.raises(ValueError, match="metric='precomputed' needs engine='numba'"):
        valuer.fit(cdist(X, X), y)
