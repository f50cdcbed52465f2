"""Semivalues and calibrated values of the K-nearest-neighbour games."""

from functools import partial

import numpy as np
import pytest
from oracles import (
    check_after_the_fit,
    check_leave_one_out,
    enumerate_game,
    grid_game,
    knn_utility,
)
from scipy.stats import hypergeom, wasserstein_distance
from sklearn.base import clone

from skvalue import KNNShapleyValuer
from skvalue.semivalues import size_weights
from skvalue.valuers.knn_shapley import class_game

SEMIVALUES = ["banzhaf", "leave-one-out", (4, 1), (1, 16), (0.5, 0.5)]


def sizes_from(min_coalition):
    """The semivalue whose coalitions have at least that many players."""
    return lambda n: np.where(np.arange(n) >= min_coalition, 1 / (n - min_coalition), 0)


def check_random_game(rng, engine):
    """Values of a random game are those of enumeration.

    With a random semivalue, or with a random smallest coalition.
    """
    n = int(rng.integers(2, 8))
    n_classes = int(rng.choice([0, 2, 3]))
    k = int(rng.integers(1, n + 3))
    utility = rng.choice(["soft", "original"])
    side = int(rng.choice([2, 3, 9]))
    X, y, X_val, y_val = grid_game(rng, n, 2, n_classes, side=side)
    choice = int(rng.integers(0, len(SEMIVALUES) + 2))
    if choice < len(SEMIVALUES):
        semivalue = SEMIVALUES[choice]
        parameters = {"semivalue": semivalue}
    else:
        min_coalition = int(rng.integers(1, n))
        semivalue = sizes_from(min_coalition)
        parameters = {"min_coalition": min_coalition}

    valuer = KNNShapleyValuer(k, utility=utility, engine=engine, **parameters)
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    game = partial(
        knn_utility,
        k=k,
        utility=utility,
        n_classes=min(n, n_classes),
        prior=y_val.mean(),
    )
    expected = enumerate_game(
        game, X, y, X_val, y_val, metric="sqeuclidean", semivalue=semivalue
    )
    np.testing.assert_allclose(
        valuer.values_, expected, atol=1e-12, rtol=1e-12, err_msg=f"{valuer}, n={n}"
    )


@pytest.mark.parametrize("n_games", [42, pytest.param(1000, marks=pytest.mark.slow)])
def test_values_are_those_of_enumeration(engines, rng, n_games):
    for number in range(n_games):
        check_random_game(rng, engines[number % len(engines)])


def check_table(n, n_neighbors, size_probabilities, **parameters):
    """P(fewer than K of the r - 1 nearer rows join) / K, summed size by size."""
    r = np.arange(1, n + 1)[:, None]
    of_size = hypergeom.cdf(n_neighbors - 1, n - 1, r - 1, np.arange(n))
    expected = of_size @ size_probabilities / n_neighbors
    table = class_game(n, n_neighbors, 2, "original", **parameters).inv[1:]
    np.testing.assert_allclose(table, expected, atol=1e-12)


EACH_SIZE = pytest.mark.parametrize("n", [50, 150])
EACH_K = pytest.mark.parametrize("n_neighbors", [1, 7, 60])


@EACH_SIZE
@EACH_K
@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=str)
def test_tables_of_a_semivalue_are_sums_over_sizes(n, n_neighbors, semivalue):
    check_table(n, n_neighbors, size_weights(semivalue, n), semivalue=semivalue)


@EACH_SIZE
@EACH_K
def test_tables_of_calibrated_values_are_sums_over_sizes(n, n_neighbors):
    for min_coalition in (1, 7, n // 2, n - 1):
        probabilities = sizes_from(min_coalition)(n)
        check_table(n, n_neighbors, probabilities, min_coalition=min_coalition)


@pytest.mark.parametrize("utility", ["soft", "original"])
@pytest.mark.parametrize("n_classes", [0, 3])
def test_beta_one_one_is_the_shapley_value(rng, n_classes, utility):
    X, y, X_val, y_val = grid_game(rng, 2000, 20, n_classes, side=40)
    points = {"X_val": X_val, "y_val": y_val}
    shapley = KNNShapleyValuer(50, utility=utility)
    beta = clone(shapley).set_params(semivalue=(1, 1))
    expected = shapley.fit(X, y, **points).values_
    np.testing.assert_allclose(beta.fit(X, y, **points).values_, expected, atol=1e-13)


CHANGED_GAMES = pytest.mark.parametrize(
    "parameters",
    [{"semivalue": "banzhaf"}, {"semivalue": (4, 1)}, {"min_coalition": 3}],
    ids=str,
)


@CHANGED_GAMES
@pytest.mark.parametrize("n_classes", [0, 2])
def test_new_rows_and_contributions_are_those_of_other_fits(rng, parameters, n_classes):
    X, y, X_val, y_val = grid_game(rng, 16, 8, n_classes)
    valuer = KNNShapleyValuer(3, **parameters)
    check_after_the_fit(valuer, X, y, X_val, y_val, [[0.5, 0.5]], y[:1])


@CHANGED_GAMES
def test_held_out_rows_are_points_of_the_game_of_the_others(rng, parameters):
    X, y, *_ = grid_game(rng, 16, 8, 2)
    check_leave_one_out(KNNShapleyValuer(3, **parameters), X, y)


def test_calibrated_values_do_not_depend_on_the_utility(rng):
    # The games differ in coalitions of fewer than K rows, which no row joins.
    X, y, X_val, y_val = grid_game(rng, 40, 10, 3)
    soft = KNNShapleyValuer(5, min_coalition=5, utility="soft")
    soft.fit(X, y, X_val=X_val, y_val=y_val)
    original = KNNShapleyValuer(5, min_coalition=5, utility="original")
    original.fit(X, y, X_val=X_val, y_val=y_val)
    np.testing.assert_allclose(soft.values_, original.values_, atol=1e-15)


def test_the_farthest_row_has_no_calibrated_value():
    # It is never among the K nearest of a coalition of at least K rows.
    X = [[0], [1], [9]]
    valuer = KNNShapleyValuer(2, min_coalition=2)
    valuer.fit(X, [0, 1, 0], X_val=[[0]], y_val=[0])
    assert valuer.values_[2] == 0


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_banzhaf_values_at_a_point_are_wasserstein_distances_of_losses(rng, k):
    """WaKA (Mesana et al., 2025): of losses of all models with a row, and without."""
    n = 7
    X = rng.normal(size=(n, 2))
    y = rng.integers(0, 2, size=n)
    x = rng.normal(size=(1, 2))
    y_point = np.array([1])
    distances = ((X - x) ** 2).sum(axis=1)

    def loss(players):
        return 1 - knn_utility(players, distances, y, 1, k, "original", 2, None)

    valuer = KNNShapleyValuer(k, utility="original", semivalue="banzhaf")
    valuer.fit(X, y, X_val=x, y_val=y_point)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        subsets = [
            [j for bit, j in enumerate(others) if number >> bit & 1]
            for number in range(2 ** (n - 1))
        ]
        without = [loss(players) for players in subsets]
        joined = [loss([*players, i]) for players in subsets]
        distance = wasserstein_distance(without, joined)
        assert distance == pytest.approx(abs(valuer.values_[i]), abs=1e-12)
