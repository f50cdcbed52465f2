"""Threshold-KNN-Shapley of continuous targets."""

from functools import partial

import numpy as np
import pytest
from oracles import check_after_the_fit, enumerate_game, grid_game
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import clone

from skvalue import TKNNShapleyValuer
from skvalue.valuers import suggest_radius

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1)]
pytestmark = pytest.mark.filterwarnings(
    "ignore:With radius=", "ignore:X_val holds the same rows"
)


def ball_utility(players, distances, y, target, radius, prior):
    inside = [i for i in players if distances[i] <= radius * (1 + 1e-12)]
    return -(((np.mean(y[inside]) if inside else prior) - target) ** 2)


@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=str)
def test_equals_enumeration(engines, rng, semivalue):
    for turn, n in enumerate((2, 3, 5, 6)):
        X, y, X_val, y_val = grid_game(rng, n, 3, 0)
        weights = rng.uniform(size=3)
        weights /= weights.sum()
        for radius in (0.0, 1.0, 2.0, 9.0):
            game = partial(ball_utility, radius=radius, prior=y_val @ weights)
            expected = enumerate_game(
                game, X, y, X_val, y_val, weights, semivalue=semivalue
            )
            engine = engines[turn % len(engines)]
            valuer = TKNNShapleyValuer(
                radius, metric="euclidean", semivalue=semivalue, engine=engine
            )
            valuer.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weights)
            np.testing.assert_allclose(
                valuer.values_, expected, atol=1e-12, err_msg=engine
            )
            if semivalue == "shapley":
                gain = valuer.utility_ - valuer.empty_utility_
                assert valuer.values_.sum() == pytest.approx(gain)
    inside = cdist(X_val, X) <= radius
    np.testing.assert_array_equal(valuer.counts_, inside.sum(axis=1)[None])


def test_after_the_fit(rng):
    X, y, X_val, y_val = grid_game(rng, 40, 10, 0, side=5)
    valuer = TKNNShapleyValuer(1.5, metric="euclidean", semivalue=(2, 1))
    new = np.r_[
        X[-1:], X[-1:] + 0.01
    ]  # in other balls than its neighbours, or in the same
    check_after_the_fit(valuer, X[:-1], y[:-1], X_val, y_val, new, y[[-1, -1]])
    valuer.fit(X[:-1], y[:-1], X_val=X_val, y_val=y_val)
    labels = y[:-1][cdist(new[1:], X[:-1])[0] <= 1.5]
    assert len(labels) > 1
    means = np.mean([valuer.score_samples(new[1:], [label])[0] for label in labels])
    assert valuer.transform(new)[1, 0] == pytest.approx(means)
    assert valuer.score_samples(X[:1] + 99)[0] == 0.0


@pytest.mark.parametrize("cv", ["leave-one-out", 5], ids=str)
def test_without_a_validation_set(rng, cv):
    X, y, *_ = grid_game(rng, 10, 1, 0, side=3)
    valuer = TKNNShapleyValuer(1.5, metric="euclidean", cv=cv).fit(X, y)
    assert valuer.values_.sum() == pytest.approx(
        valuer.utility_ - valuer.empty_utility_
    )
    if cv == "leave-one-out":
        expected = np.zeros(10)
        game = partial(ball_utility, radius=1.5, prior=y.mean())
        for i in range(10):
            rest = np.delete(np.arange(10), i)
            expected[rest] += (
                enumerate_game(game, X[rest], y[rest], X[[i]], y[[i]]) / 10
            )
        np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


def test_rows_in_a_file_and_sparse_rows(rng, tmp_path):
    X, y, X_val, y_val = grid_game(rng, 300, 70, 0, side=6)
    valuer = TKNNShapleyValuer(1.5, metric="euclidean").fit(
        X, y, X_val=X_val, y_val=y_val
    )
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for rows, points in ((mapped, X_val), (csr_array(X), csr_array(X_val))):
        found = clone(valuer).fit(rows, y, X_val=points, y_val=y_val).values_
        np.testing.assert_allclose(found, valuer.values_, atol=1e-12)


def test_the_radius_follows_the_utility(rng):
    X, noise = rng.uniform(size=(200, 1)), rng.normal(size=200) / 2
    valuers = [
        TKNNShapleyValuer(metric="euclidean").fit(
            X, np.sin(scale * X[:, 0]) + 3.5 + noise
        )
        for scale in (2.0, 40.0)
    ]
    assert valuers[1].radius_ < valuers[0].radius_ / 3
    distances = TKNNShapleyValuer(metric="precomputed")
    distances.fit(cdist(X, X), np.sin(2 * X[:, 0]) + 3.5 + noise)
    assert distances.radius_ == pytest.approx(valuers[0].radius_, rel=1e-6)
    y = (X[:, 0] > 0.5).astype(int)
    labels = TKNNShapleyValuer(metric="precomputed").fit(cdist(X, X), y)
    assert labels.radius_ == pytest.approx(suggest_radius(X, y, "euclidean"), rel=1e-6)


def test_refused_combinations(rng):
    X, y, X_val, y_val = grid_game(rng, 12, 5, 2, side=6)
    real, real_val, few = y + 0.5, y_val + 0.5, dict(X_val=X_val[:2], y_val=[0.5, 1.5])
    private = dict(epsilon=1.0, radius=1.0)
    for parameters, target, points, message in [
        (private, real, dict(X_val=X_val, y_val=real_val), "y_val must hold classes"),
        (
            private | dict(task="regression"),
            y,
            dict(X_val=X_val, y_val=y_val),
            "task must not be",
        ),
        ({}, real, few, "at least 3 targets in y_val. Got 2"),
        (dict(class_weight="balanced"), real, {}, "class_weight must be None"),
    ]:
        with pytest.raises(ValueError, match=message):
            TKNNShapleyValuer(**parameters).fit(X, target, **points)
