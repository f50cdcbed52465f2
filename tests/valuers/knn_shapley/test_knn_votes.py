"""KNN-Shapley of a majority vote, with and without weights of the neighbours."""

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


def vote_utility(players, distances, y, label, k, n_bits, n_classes):
    """Utility of one coalition at one point, averaged over the orders of ties.

    ``n_bits`` is None without weights.
    """
    players = np.array(players, dtype=int)
    weights = np.ones(len(y))
    if n_bits is not None:
        nearest = distances.min()
        for i, d in enumerate(distances):
            weights[i] = np.rint(2**n_bits * (1.0 if d == nearest else nearest / d))
    votes = np.where(y == label, weights, -weights)
    right = []
    for other in range(n_classes):
        both = players[(y[players] == label) | (y[players] == other)]
        if other != label and len(both):
            sets = nearest_sets(distances[both], min(k, len(both)))
            right.append(np.mean([votes[both[chosen]].sum() >= 0 for chosen in sets]))
        elif other != label:
            right.append(1 / n_classes)
    return np.mean(right)


def check_random_game(rng, n_classes):
    n, n_classes = int(rng.integers(2, 7)), int(rng.choice(n_classes))
    X, y, X_val, y_val = grid_game(
        rng, n, 2, n_classes, side=int(rng.choice([1, 2, 3, 5, 40]))
    )
    X_val += rng.choice([0.0, 0.25])
    k, n_bits = int(rng.integers(1, n + 3)), rng.choice([None, 1, 3, 5])
    semivalue = SEMIVALUES[rng.integers(4)]
    weights = {} if n_bits is None else dict(weights="distance", n_bits=int(n_bits))
    valuer = KNNShapleyValuer(k, utility="hard", semivalue=semivalue, **weights)
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    game = partial(vote_utility, k=k, n_bits=n_bits, n_classes=min(n, n_classes))
    expected = enumerate_game(game, X, y, X_val, y_val, semivalue=semivalue)
    np.testing.assert_allclose(
        valuer.values_, expected, atol=1e-12, err_msg=f"{valuer}, n={n}"
    )
    whole = [game(range(n), d, y, label) for d, label in zip(cdist(X_val, X), y_val)]
    assert valuer.utility_ == pytest.approx(np.mean(whole))
    if semivalue == "shapley":
        assert valuer.values_.sum() == pytest.approx(
            valuer.utility_ - valuer.empty_utility_
        )


@pytest.mark.filterwarnings("ignore:X_val holds the same rows")
@pytest.mark.parametrize("n_games", [25, pytest.param(1000, marks=pytest.mark.slow)])
def test_equals_enumeration(rng, n_games):
    for _ in range(n_games):
        check_random_game(rng, (2, 3) if n_games == 25 else (2, 3, 4))


@pytest.mark.parametrize(("n_neighbors", "n_bits"), [(1, 4), (7, 1), (20, 3)])
def test_efficiency_and_symmetry(rng, n_neighbors, n_bits):
    X, X_val = rng.normal(size=(150, 2)), rng.normal(size=(5, 2))
    y, y_val = rng.integers(0, 3, 150), np.array([0, 1, 2, 3, 0])
    X[100:120], y[100:120] = X[:20], y[:20]  # identical rows
    valuer = KNNShapleyValuer(
        n_neighbors, utility="hard", weights="distance", n_bits=n_bits
    )
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    assert valuer.empty_utility_ == 1 / 4  # of a class that no row has
    assert valuer.values_.sum() == pytest.approx(valuer.utility_ - 1 / 4, abs=1e-12)
    np.testing.assert_allclose(valuer.values_[100:120], valuer.values_[:20], atol=1e-13)
    order = rng.permutation(150)
    again = (
        clone(valuer)
        .set_params(n_jobs=1)
        .fit(X[order], y[order], X_val=X_val, y_val=y_val)
    )
    np.testing.assert_allclose(again.values_, valuer.values_[order], atol=1e-13)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_changes_joining_rows_and_contributions(rng, weights):
    X, y, X_val, y_val = grid_game(rng, 20, 9, 3, side=6)
    X_val += 0.2
    whole = KNNShapleyValuer(3, utility="hard", weights=weights, semivalue=(4, 1))
    whole.fit(X, y, X_val=X_val, y_val=y_val)
    # A new row that is the nearest one changes the weights of all others.
    new = np.r_[X_val[:1] + 0.01, X[:2] + 0.1]
    labels = np.array([y_val[0], 1, 2])
    check_after_the_fit(whole, X, y, X_val, y_val, new, labels)
    by_label = [whole.score_samples(new, np.full(3, c)) for c in range(3)]
    assert (np.min(by_label, 0) <= whole.transform(new)[:, 0]).all()
    assert (whole.transform(new)[:, 0] <= np.max(by_label, 0)).all()
    check_leave_one_out(whole, X + rng.uniform(0, 0.1, X.shape), y)


def test_probabilities_of_the_labels(rng):
    """Without labels, values are means by the weighted fractions of the nearest
    rows."""
    X, y = np.array([[0.0], [1.0], [3.0], [3.0]]), np.array([0, 1, 0, 1])
    valuer = KNNShapleyValuer(3, utility="hard", weights="distance", n_bits=3)
    valuer.fit(X, y, X_val=[[0.4]], y_val=[0])
    # At 2: distances 2, 1, 1, 1, so that the three nearest have labels 1, 0, 1.
    by_label = [valuer.score_samples([[2.0]], [c])[0] for c in (0, 1)]
    assert valuer.transform([[2.0]])[0, 0] == pytest.approx(
        (by_label[0] + 2 * by_label[1]) / 3
    )
    # At 0.9: 0.9, 0.1 and two at 2.1, of which one counts: 8 * (1/9, 1, 1/21) rounds to
    # 1, 8, 0.
    by_label = [valuer.score_samples([[0.9]], [c])[0] for c in (0, 1)]
    assert valuer.transform([[0.9]])[0, 0] == pytest.approx(
        (by_label[0] + 8 * by_label[1]) / 9
    )


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("metric", ["cosine", "manhattan", "precomputed"])
def test_metrics(rng, metric, weights):
    X, y, X_val, y_val = grid_game(rng, 40, 9, 2, side=7)
    X, X_val = X + 1, X_val + 1.25
    name = "cosine" if metric == "cosine" else "cityblock"
    expected = KNNShapleyValuer(
        3, utility="hard", weights=weights, metric="precomputed"
    )
    expected.fit(cdist(X, X, name), y, X_val=cdist(X_val, X, name), y_val=y_val)
    valuer = clone(expected).set_params(metric=metric)
    if metric == "precomputed":
        found = valuer.fit(cdist(X, X, name), y).score_samples(
            cdist(X[:3] + 0.3, X, name), y[:3]
        )
        valuer.set_params(metric="manhattan").fit(X, y)
        np.testing.assert_allclose(
            found, valuer.score_samples(X[:3] + 0.3, y[:3]), atol=1e-13
        )
    else:
        valuer.fit(X.astype(np.float32), y, X_val=X_val.astype(np.float32), y_val=y_val)
        np.testing.assert_allclose(valuer.values_, expected.values_, atol=1e-13)


def test_parallel_rows_have_the_distance_zero():
    X, y = (
        np.array([[1.0, 2.0], [1 / 3, 2 / 3], [0.7, 1.4], [2.0, 1.0]]),
        np.array([0, 1, 1, 0]),
    )
    valuer = KNNShapleyValuer(2, utility="hard", weights="distance", metric="cosine")
    valuer.fit(X, y, X_val=[[0.1, 0.2]], y_val=[1])
    assert valuer.values_[1] == pytest.approx(valuer.values_[2], abs=1e-15)
    assert valuer.utility_ == 1.0


def test_a_vote_of_two_classes_without_rows_counts_as_that_of_the_empty_coalition():
    X, y = np.arange(4.0)[:, None], np.array(["c", "c", "d", "d"])
    valuer = KNNShapleyValuer(utility="hard")
    with pytest.warns(UnseenLabelsWarning):
        valuer.fit(X, y, X_val=X, y_val=np.array(["a", "b", "c", "d"]))
    # At the point of class a the votes against b, c and d count 1/4, 0 and 0; ties are
    # right.
    assert valuer.utility_ == pytest.approx((1 / 12 + 1 / 12 + 1 + 1) / 4)
