"""KNN-Shapley of a majority vote, with and without weights of the neighbours."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from oracles import (
    check_after_the_fit,
    check_leave_one_out,
    enumerate_game,
    grid_game,
    nearest_sets,
)
from scipy.spatial.distance import cdist
from sklearn.base import clone

from skvalue import KNNShapleyValuer
from skvalue.exceptions import UnseenLabelsWarning

SEMIVALUES = ["shapley", "banzhaf", "leave-one-out", (4, 1)]

# Against enumeration ------------------------------------------------------------------


def neighbour_weights(distances, n_bits):
    """Weights of all rows at one point; ``n_bits`` is None without weights."""
    if n_bits is None:
        return np.ones(len(distances))
    nearest = distances.min()
    ratios = [1.0 if d == nearest else nearest / d for d in distances]
    return np.rint(2**n_bits * np.array(ratios))


def vote_utility(players, distances, y, label, k, n_bits, n_classes):
    """Utility of one coalition at one point, averaged over the orders of ties."""
    players = np.array(players, dtype=int)
    weights = neighbour_weights(distances, n_bits)
    votes = np.where(y == label, weights, -weights)
    probabilities = []
    for other in range(n_classes):
        if other == label:
            continue
        pair = players[(y[players] == label) | (y[players] == other)]
        if not len(pair):
            probabilities.append(1 / n_classes)
            continue
        sets = nearest_sets(distances[pair], min(k, len(pair)))
        is_right = [votes[pair[nearest]].sum() >= 0 for nearest in sets]
        probabilities.append(np.mean(is_right))
    return np.mean(probabilities)


def check_random_game(rng, n_classes):
    """Values and utility of a random game are those of enumeration."""
    n = int(rng.integers(2, 7))
    n_classes = int(rng.choice(n_classes))
    side = int(rng.choice([1, 2, 3, 5, 40]))
    X, y, X_val, y_val = grid_game(rng, n, 2, n_classes, side=side)
    X_val += rng.choice([0.0, 0.25])
    k = int(rng.integers(1, n + 3))
    n_bits = rng.choice([None, 1, 3, 5])
    semivalue = SEMIVALUES[rng.integers(4)]
    valuer = KNNShapleyValuer(k, utility="hard", semivalue=semivalue)
    if n_bits is not None:
        valuer.set_params(weights="distance", n_bits=int(n_bits))
    valuer.fit(X, y, X_val=X_val, y_val=y_val)

    game = partial(vote_utility, k=k, n_bits=n_bits, n_classes=min(n, n_classes))
    expected = enumerate_game(game, X, y, X_val, y_val, semivalue=semivalue)
    message = f"{valuer}, n={n}"
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12, err_msg=message)
    utilities = [
        game(range(n), d, y, label) for d, label in zip(cdist(X_val, X), y_val)
    ]
    assert valuer.utility_ == pytest.approx(np.mean(utilities))
    if semivalue == "shapley":
        gain = valuer.utility_ - valuer.empty_utility_
        assert valuer.values_.sum() == pytest.approx(gain)


@pytest.mark.filterwarnings("ignore:X_val holds the same rows")
@pytest.mark.parametrize("n_games", [25, pytest.param(1000, marks=pytest.mark.slow)])
def test_values_are_those_of_enumeration(rng, n_games):
    n_classes = (2, 3) if n_games == 25 else (2, 3, 4)
    for _ in range(n_games):
        check_random_game(rng, n_classes)


# Axioms -------------------------------------------------------------------------------

EACH_SIZE = pytest.mark.parametrize(
    ("n_neighbors", "n_bits"), [(1, 4), (7, 1), (20, 3)]
)


@pytest.fixture
def weighted_vote(rng, n_neighbors, n_bits):
    """A fitted valuer and its rows; 20 rows are there twice, and one class has none."""
    X = rng.normal(size=(150, 2))
    X_val = rng.normal(size=(5, 2))
    y = rng.integers(0, 3, 150)
    X[100:120] = X[:20]
    y[100:120] = y[:20]
    valuer = KNNShapleyValuer(
        n_neighbors, utility="hard", weights="distance", n_bits=n_bits
    )
    points = {"X_val": X_val, "y_val": np.array([0, 1, 2, 3, 0])}
    return valuer.fit(X, y, **points), X, y, points


@EACH_SIZE
def test_values_are_efficient(weighted_vote):
    valuer = weighted_vote[0]
    # A class that no row has counts.
    assert valuer.empty_utility_ == 1 / 4
    assert valuer.values_.sum() == pytest.approx(valuer.utility_ - 1 / 4, abs=1e-12)


@EACH_SIZE
def test_identical_rows_have_equal_values(weighted_vote):
    values = weighted_vote[0].values_
    np.testing.assert_allclose(values[100:120], values[:20], atol=1e-13)


@EACH_SIZE
def test_values_do_not_depend_on_the_order_of_the_rows(weighted_vote, rng):
    valuer, X, y, points = weighted_vote
    order = rng.permutation(150)
    permuted = clone(valuer).set_params(n_jobs=1).fit(X[order], y[order], **points)
    np.testing.assert_allclose(permuted.values_, valuer.values_[order], atol=1e-13)


# After the fit ------------------------------------------------------------------------

WEIGHTS = pytest.mark.parametrize("weights", ["uniform", "distance"])


@pytest.fixture
def grid_and_new_rows(rng):
    """Rows, points, and new rows with labels, of which the first is the nearest one."""
    X, y, X_val, y_val = grid_game(rng, 20, 9, 3, side=6)
    X_val += 0.2
    # It changes the weights of all others.
    new = np.r_[X_val[:1] + 0.01, X[:2] + 0.1]
    return (X, y, X_val, y_val), new, np.array([y_val[0], 1, 2])


@WEIGHTS
def test_new_rows_and_contributions_are_those_of_other_fits(grid_and_new_rows, weights):
    rows, new, labels = grid_and_new_rows
    valuer = KNNShapleyValuer(3, utility="hard", weights=weights, semivalue=(4, 1))
    check_after_the_fit(valuer, *rows, new, labels)


@WEIGHTS
def test_rows_without_labels_have_means_over_labels(grid_and_new_rows, weights):
    (X, y, X_val, y_val), new, _ = grid_and_new_rows
    valuer = KNNShapleyValuer(3, utility="hard", weights=weights, semivalue=(4, 1))
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    by_label = [valuer.score_samples(new, np.full(3, c)) for c in range(3)]
    means = valuer.transform(new)[:, 0]
    assert (np.min(by_label, axis=0) <= means).all()
    assert (means <= np.max(by_label, axis=0)).all()


@WEIGHTS
def test_held_out_rows_are_points_of_the_game_of_the_others(
    grid_and_new_rows, weights, rng
):
    X, y, *_ = grid_and_new_rows[0]
    valuer = KNNShapleyValuer(3, utility="hard", weights=weights, semivalue=(4, 1))
    check_leave_one_out(valuer, X + rng.uniform(0, 0.1, X.shape), y)


@pytest.mark.parametrize(
    ("x", "weights"),
    [
        # Distances 2, 1, 1, 1, so that the three nearest have labels 1, 0, 1.
        (2.0, [1, 2]),
        # 0.9, 0.1 and two at 2.1, of which one counts: 8 * (1/9, 1, 1/21) rounds to
        # 1, 8, 0.
        (0.9, [1, 8]),
    ],
)
def test_labels_have_the_weighted_fractions_of_the_nearest_rows(x, weights):
    X = np.array([[0.0], [1.0], [3.0], [3.0]])
    valuer = KNNShapleyValuer(3, utility="hard", weights="distance", n_bits=3)
    valuer.fit(X, np.array([0, 1, 0, 1]), X_val=[[0.4]], y_val=[0])
    by_label = [valuer.score_samples([[x]], [c])[0] for c in (0, 1)]
    expected = np.average(by_label, weights=weights)
    assert valuer.transform([[x]])[0, 0] == pytest.approx(expected)


# Distances ----------------------------------------------------------------------------


@pytest.fixture
def positive_grid(rng):
    X, y, X_val, y_val = grid_game(rng, 40, 9, 2, side=7)
    return X + 1, y, X_val + 1.25, y_val


@WEIGHTS
@pytest.mark.parametrize(
    ("metric", "name"), [("cosine", "cosine"), ("manhattan", "cityblock")]
)
def test_values_in_float32_are_those_of_the_distances(
    positive_grid, metric, name, weights
):
    X, y, X_val, y_val = positive_grid
    valuer = KNNShapleyValuer(3, utility="hard", weights=weights, metric="precomputed")
    points = {"X_val": cdist(X_val, X, name), "y_val": y_val}
    expected = valuer.fit(cdist(X, X, name), y, **points).values_
    points = {"X_val": X_val.astype(np.float32), "y_val": y_val}
    valuer.set_params(metric=metric).fit(X.astype(np.float32), y, **points)
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-13)


@WEIGHTS
def test_new_distances_are_scored_as_new_rows(positive_grid, weights):
    X, y, *_ = positive_grid
    new = X[:3] + 0.3
    valuer = KNNShapleyValuer(3, utility="hard", weights=weights, metric="manhattan")
    expected = valuer.fit(X, y).score_samples(new, y[:3])
    valuer.set_params(metric="precomputed").fit(cdist(X, X, "cityblock"), y)
    scores = valuer.score_samples(cdist(new, X, "cityblock"), y[:3])
    np.testing.assert_allclose(scores, expected, atol=1e-13)


def test_parallel_rows_have_the_distance_zero():
    X = np.array([[1.0, 2.0], [1 / 3, 2 / 3], [0.7, 1.4], [2.0, 1.0]])
    valuer = KNNShapleyValuer(2, utility="hard", weights="distance", metric="cosine")
    valuer.fit(X, np.array([0, 1, 1, 0]), X_val=[[0.1, 0.2]], y_val=[1])
    assert valuer.values_[1] == pytest.approx(valuer.values_[2], abs=1e-15)
    assert valuer.utility_ == 1.0


def test_a_vote_of_two_classes_without_rows_counts_as_that_of_the_empty_coalition():
    X = np.arange(4.0)[:, None]
    y = np.array(["c", "c", "d", "d"])
    valuer = KNNShapleyValuer(utility="hard")
    with pytest.warns(UnseenLabelsWarning):
        valuer.fit(X, y, X_val=X, y_val=np.array(["a", "b", "c", "d"]))
    # At the point of class a the votes against b, c and d count 1/4, 0 and 0; ties are
    # right.
    assert valuer.utility_ == pytest.approx((1 / 12 + 1 / 12 + 1 + 1) / 4)


@pytest.mark.parametrize("n_tied", [1, 3])
def test_memory_for_many_neighbors_is_that_of_the_ties(rng, n_tied):
    """Tables for 200 neighbours that may all be tied would take 0.6 GB."""
    X = np.repeat(rng.normal(size=(210 // n_tied, 2)), n_tied, axis=0)
    y = rng.integers(0, 2, len(X))
    valuer = KNNShapleyValuer(200, utility="hard", weights="distance", n_bits=2)
    tracemalloc.start()
    valuer.fit(X, y, X_val=rng.normal(size=(1, 2)), y_val=[1])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**28
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain)
