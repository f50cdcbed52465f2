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
from scipy.stats import hypergeom
from sklearn.base import clone

from skvalue import KNNShapleyValuer
from skvalue.semivalues import size_weights
from skvalue.valuers.knn_shapley import class_game

SEMIVALUES = ["banzhaf", "leave-one-out", (4, 1), (1, 16), (0.5, 0.5)]


def sizes_from(least):
    """The semivalue whose coalitions have at least that many players."""
    return lambda n: np.where(np.arange(n) >= least, 1 / (n - least), 0)


def check_random_game(rng, engine):
    """A random game with a random semivalue, or with calibrated values, equals
    enumeration."""
    n, n_classes = int(rng.integers(2, 8)), int(rng.choice([0, 2, 3]))
    k, utility = int(rng.integers(1, n + 3)), rng.choice(["soft", "original"])
    X, y, X_val, y_val = grid_game(
        rng, n, 2, n_classes, side=int(rng.choice([2, 3, 9]))
    )
    choice = int(rng.integers(0, len(SEMIVALUES) + 2))
    if choice < len(SEMIVALUES):
        parameters = dict(semivalue=SEMIVALUES[choice])
        semivalue = SEMIVALUES[choice]
    else:
        least = int(rng.integers(1, n))
        parameters, semivalue = dict(min_coalition=least), sizes_from(least)
    valuer = KNNShapleyValuer(k, utility=utility, engine=engine, **parameters)
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    game = partial(
        knn_utility,
        k=k,
        utility=utility,
        n_classes=min(n, n_classes),
        prior=y_val.mean(),
    )
    expected = enumerate_game(game, X, y, X_val, y_val, None, "sqeuclidean", semivalue)
    np.testing.assert_allclose(
        valuer.values_, expected, atol=1e-12, rtol=1e-12, err_msg=f"{valuer}, n={n}"
    )


@pytest.mark.parametrize("n_games", [42, pytest.param(1000, marks=pytest.mark.slow)])
def test_equals_enumeration(engines, rng, n_games):
    for game in range(n_games):
        check_random_game(rng, engines[game % len(engines)])


@pytest.mark.parametrize("n_neighbors", [1, 7, 60])
@pytest.mark.parametrize("n", [50, 150])
def test_tables_are_sums_over_sizes(n, n_neighbors):
    # P(fewer than K of the r - 1 nearer rows join) / K, size by size.
    r = np.arange(1, n + 1)[:, None]
    for parameters, q in [
        *((dict(semivalue=s), size_weights(s, n)) for s in SEMIVALUES),
        *((dict(min_coalition=t), sizes_from(t)(n)) for t in (1, 7, n // 2, n - 1)),
    ]:
        expected = (
            hypergeom.cdf(n_neighbors - 1, n - 1, r - 1, np.arange(n)) @ q / n_neighbors
        )
        found = class_game(n, n_neighbors, 2, "original", **parameters).inv[1:]
        np.testing.assert_allclose(found, expected, atol=1e-12, err_msg=str(parameters))


@pytest.mark.parametrize("utility", ["soft", "original"])
@pytest.mark.parametrize("n_classes", [0, 3])
def test_beta_one_one_is_the_shapley_value(rng, n_classes, utility):
    X, y, X_val, y_val = grid_game(rng, 2000, 20, n_classes, side=40)
    valuer = KNNShapleyValuer(50, utility=utility).fit(X, y, X_val=X_val, y_val=y_val)
    beta = (
        clone(valuer).set_params(semivalue=(1, 1)).fit(X, y, X_val=X_val, y_val=y_val)
    )
    np.testing.assert_allclose(beta.values_, valuer.values_, atol=1e-13)


@pytest.mark.parametrize("n_classes", [0, 2])
@pytest.mark.parametrize(
    "parameters",
    [dict(semivalue="banzhaf"), dict(semivalue=(4, 1)), dict(min_coalition=3)],
    ids=str,
)
def test_changes_joining_rows_and_contributions(rng, parameters, n_classes):
    X, y, X_val, y_val = grid_game(rng, 16, 8, n_classes)
    valuer = KNNShapleyValuer(3, **parameters)
    check_after_the_fit(valuer, X, y, X_val, y_val, [[0.5, 0.5]], y[:1])
    if n_classes:
        check_leave_one_out(valuer, X, y)


def test_calibrated_values_do_not_depend_on_the_utility(rng):
    # The games differ in coalitions of fewer than K rows, which no row joins; the
    # farthest row is never among the K nearest.
    X, y, X_val, y_val = grid_game(rng, 40, 10, 3)
    soft, original = (
        KNNShapleyValuer(5, utility=utility, min_coalition=5).fit(
            X, y, X_val=X_val, y_val=y_val
        )
        for utility in ("soft", "original")
    )
    np.testing.assert_allclose(soft.values_, original.values_, atol=1e-15)
    far = KNNShapleyValuer(2, min_coalition=2).fit(
        [[0], [1], [9]], [0, 1, 0], X_val=[[0]], y_val=[0]
    )
    assert far.values_[2] == 0
