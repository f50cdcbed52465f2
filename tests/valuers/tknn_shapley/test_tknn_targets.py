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

# The values ---------------------------------------------------------------------------


def ball_utility(players, distances, y, target, radius, prior):
    """Minus the squared error of the mean target in the ball, or of the prior."""
    inside = [i for i in players if distances[i] <= radius * (1 + 1e-12)]
    prediction = np.mean(y[inside]) if inside else prior
    return -((prediction - target) ** 2)


@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=str)
@pytest.mark.parametrize("n", [2, 3, 5, 6])
def test_values_are_those_of_enumeration(engines, rng, n, semivalue):
    engine = engines[(n // 2) % len(engines)]
    X, y, X_val, y_val = grid_game(rng, n, 3, 0)
    weights = rng.uniform(size=3)
    weights /= weights.sum()
    for radius in (0.0, 1.0, 2.0, 9.0):
        game = partial(ball_utility, radius=radius, prior=y_val @ weights)
        expected = enumerate_game(
            game, X, y, X_val, y_val, weights, semivalue=semivalue
        )
        valuer = TKNNShapleyValuer(
            radius, metric="euclidean", semivalue=semivalue, engine=engine
        )
        valuer.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weights)
        np.testing.assert_allclose(valuer.values_, expected, atol=1e-12, err_msg=engine)
        if semivalue == "shapley":
            gain = valuer.utility_ - valuer.empty_utility_
            assert valuer.values_.sum() == pytest.approx(gain)


@pytest.mark.parametrize("radius", [0.0, 1.0, 9.0])
def test_counts_are_the_numbers_of_rows_in_the_balls(rng, radius):
    X, y, X_val, y_val = grid_game(rng, 6, 3, 0)
    valuer = TKNNShapleyValuer(radius, metric="euclidean")
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    inside = cdist(X_val, X) <= radius
    np.testing.assert_array_equal(valuer.counts_, inside.sum(axis=1)[None])


@pytest.mark.parametrize("cv", ["leave-one-out", 5], ids=str)
def test_values_of_held_out_rows_are_efficient(rng, cv):
    X, y, *_ = grid_game(rng, 10, 1, 0, side=3)
    valuer = TKNNShapleyValuer(1.5, metric="euclidean", cv=cv).fit(X, y)
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain)


def test_held_out_targets_have_the_prior_of_all_rows(rng):
    X, y, *_ = grid_game(rng, 10, 1, 0, side=3)
    game = partial(ball_utility, radius=1.5, prior=y.mean())
    expected = np.zeros(10)
    for i in range(10):
        others = np.delete(np.arange(10), i)
        values = enumerate_game(game, X[others], y[others], X[[i]], y[[i]])
        expected[others] += values / 10
    valuer = TKNNShapleyValuer(1.5, metric="euclidean").fit(X, y)
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


@pytest.mark.parametrize("place", ["file", "sparse"])
def test_values_are_those_of_rows_in_memory(place, rng, tmp_path):
    X, y, X_val, y_val = grid_game(rng, 300, 70, 0, side=6)
    valuer = TKNNShapleyValuer(1.5, metric="euclidean")
    expected = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val).values_
    if place == "file":
        np.save(tmp_path / "rows.npy", X)
        X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    else:
        X = csr_array(X)
        X_val = csr_array(X_val)
    values = valuer.fit(X, y, X_val=X_val, y_val=y_val).values_
    np.testing.assert_allclose(values, expected, atol=1e-12)


# After the fit ------------------------------------------------------------------------


@pytest.fixture
def grid(rng):
    """Rows and points, and two new rows: one like a row, and one next to it.

    The first is in other balls than its neighbours, the second in the same.
    """
    X, y, X_val, y_val = grid_game(rng, 40, 10, 0, side=5)
    new = np.r_[X[-1:], X[-1:] + 0.01]
    return (X[:-1], y[:-1], X_val, y_val), new, y[[-1, -1]]


VALUER = TKNNShapleyValuer(1.5, metric="euclidean", semivalue=(2, 1))


def test_new_rows_and_contributions_are_those_of_other_fits(grid):
    rows, new, targets = grid
    check_after_the_fit(clone(VALUER), *rows, new, targets)


def test_a_row_without_a_target_has_the_mean_over_those_in_its_ball(grid):
    (X, y, X_val, y_val), new, _ = grid
    valuer = clone(VALUER).fit(X, y, X_val=X_val, y_val=y_val)
    row = new[1:]
    targets = y[cdist(row, X)[0] <= 1.5]
    assert len(targets) > 1
    values = [valuer.score_samples(row, [target])[0] for target in targets]
    assert valuer.transform(new)[1, 0] == pytest.approx(np.mean(values))


def test_a_row_far_from_all_points_has_no_value(grid):
    (X, y, X_val, y_val), *_ = grid
    valuer = clone(VALUER).fit(X, y, X_val=X_val, y_val=y_val)
    assert valuer.score_samples(X[:1] + 99)[0] == 0.0


# The radius ---------------------------------------------------------------------------


@pytest.fixture
def waves(rng):
    """Rows on a line, and noisy targets that oscillate slowly, or fast."""
    X = rng.uniform(size=(200, 1))
    noise = rng.normal(size=200) / 2
    slow = np.sin(2.0 * X[:, 0]) + 3.5 + noise
    return X, slow, np.sin(40.0 * X[:, 0]) + 3.5 + noise


def test_targets_that_oscillate_fast_have_a_small_radius(waves):
    X, slow, fast = waves
    valuer = TKNNShapleyValuer(metric="euclidean")
    slow_radius = valuer.fit(X, slow).radius_
    assert valuer.fit(X, fast).radius_ < slow_radius / 3


def test_the_radius_of_distances_is_that_of_the_rows(waves):
    X, slow, _ = waves
    expected = TKNNShapleyValuer(metric="euclidean").fit(X, slow).radius_
    valuer = TKNNShapleyValuer(metric="precomputed").fit(cdist(X, X), slow)
    assert valuer.radius_ == pytest.approx(expected, rel=1e-6)


def test_the_radius_of_distances_with_classes_is_that_of_the_rows(waves):
    X, *_ = waves
    y = (X[:, 0] > 0.5).astype(int)
    valuer = TKNNShapleyValuer(metric="precomputed").fit(cdist(X, X), y)
    assert valuer.radius_ == pytest.approx(suggest_radius(X, y, "euclidean"), rel=1e-6)


# What is refused ----------------------------------------------------------------------


@pytest.fixture
def labelled(rng):
    return grid_game(rng, 12, 5, 2, side=6)


def test_targets_of_private_rows_are_refused(labelled):
    X, y, X_val, y_val = labelled
    valuer = TKNNShapleyValuer(1.0, epsilon=1.0)
    with pytest.raises(ValueError, match="y_val must hold classes"):
        valuer.fit(X, y + 0.5, X_val=X_val, y_val=y_val + 0.5)


def test_a_private_regression_is_refused(labelled):
    X, y, X_val, y_val = labelled
    valuer = TKNNShapleyValuer(1.0, epsilon=1.0, task="regression")
    with pytest.raises(ValueError, match="task must not be"):
        valuer.fit(X, y, X_val=X_val, y_val=y_val)


def test_two_targets_are_too_few_to_choose_a_radius(labelled):
    X, y, X_val, _ = labelled
    with pytest.raises(ValueError, match="at least 3 targets in y_val. Got 2"):
        TKNNShapleyValuer().fit(X, y + 0.5, X_val=X_val[:2], y_val=[0.5, 1.5])


def test_class_weights_of_targets_are_refused(labelled):
    X, y, *_ = labelled
    with pytest.raises(ValueError, match="class_weight must be None"):
        TKNNShapleyValuer(class_weight="balanced").fit(X, y + 0.5)
