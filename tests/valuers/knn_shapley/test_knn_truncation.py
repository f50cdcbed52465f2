"""`max_rank="auto"`: the smallest number of ranks for values within `tol` of the exact
ones."""

from functools import partial

import numpy as np
import pytest
from oracles import enumerate_game, grid_game, knn_utility
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import KNNShapleyValuer, ValueFilteredClassifier
from skvalue.semivalues import size_weights
from skvalue.valuers.knn_shapley import max_rank_bound, smallest_max_rank

GAMES = [
    {},
    dict(utility="original"),
    dict(semivalue="banzhaf"),
    dict(semivalue="leave-one-out"),
    dict(semivalue=(4, 1)),
    dict(semivalue=(1, 16)),
    dict(min_coalition=2),
]
each_game = pytest.mark.parametrize("parameters", GAMES, ids=str)


def weights_of(parameters, n):
    """Probability that a row joins a coalition of each size."""
    least = parameters.get("min_coalition")
    if least is None:
        return size_weights(parameters.get("semivalue", "shapley"), n)
    return np.where(np.arange(n) >= least, 1 / (n - least), 0)


@each_game
def test_values_are_within_tol_of_enumeration(rng, parameters):
    n, k, truncated = 7, 1, 0
    for tol in (0.0, 0.02, 0.1, 0.4):
        for side in (2, 30):
            X, y, X_val, _ = grid_game(rng, n, 1, 2, side)
            near = np.argsort(np.abs(X - X_val[0]).sum(axis=1))
            y[near] = rng.permutation(
                [0, 0, 0, 0, 0, 0, 1]
            )  # the worst case has one far match
            game = partial(
                knn_utility,
                k=k,
                utility=parameters.get("utility", "soft"),
                n_classes=2,
                prior=0,
            )
            exact = enumerate_game(
                game, X, y, X_val, np.ones(1), None, "sqeuclidean",
                partial(weights_of, parameters),
            )  # fmt: skip
            valuer = KNNShapleyValuer(k, max_rank="auto", tol=tol, **parameters)
            valuer.fit(X, y, X_val=X_val, y_val=[1])
            error = np.abs(valuer.values_ - exact).max()
            assert error <= valuer.truncation_error_ + 1e-12 <= tol + 2e-12
            truncated += error > 1e-9
    assert truncated or parameters.get("semivalue") == "leave-one-out"


@each_game
@pytest.mark.parametrize(("n", "n_neighbors"), [(50, 1), (50, 5), (1000, 20), (4, 7)])
def test_the_rank_is_the_smallest_and_decreases_with_tol(parameters, n, n_neighbors):
    game = {name: parameters[name] for name in parameters if name != "utility"}
    bound = partial(max_rank_bound, n, n_neighbors=n_neighbors, **game)
    ranks = []
    for tol in (0.0, *np.geomspace(1e-7, 2, 40)):
        rank = smallest_max_rank(n, tol, n_neighbors, **game)
        assert bound(rank) <= tol
        assert rank == min(n_neighbors, n) or bound(rank - 1) > tol
        ranks.append(rank)
    assert (np.diff(ranks) <= 0).all()
    assert ranks[-1] == min(n, n_neighbors)


@pytest.mark.parametrize(("cv", "sizes"), [("leave-one-out", (300,)), (3, (200, 201))])
def test_the_bound_holds_for_far_rows_that_change_sides(rng, cv, sizes, engine):
    X = rng.normal(size=(301, 1))
    y = (np.abs(X[:, 0]) < 0.7).astype(int)
    exact = KNNShapleyValuer(3, cv=cv).fit(X, y)
    valuer = KNNShapleyValuer(3, cv=cv, max_rank="auto", tol=0.01, engine=engine).fit(
        X, y
    )
    assert (
        0
        < np.abs(valuer.values_ - exact.values_).max()
        <= valuer.truncation_error_
        <= 0.01
    )
    assert valuer.max_rank_ == max(smallest_max_rank(n, 0.01, 3) for n in sizes) < 100
    assert valuer.values_.sum() == pytest.approx(
        valuer.utility_ - valuer.empty_utility_
    )
    assert valuer.contributions(7).contributions.sum() == pytest.approx(
        valuer.values_[7]
    )
    assert (exact.max_rank_, exact.truncation_error_) == (max(sizes), 0)
    by_number = KNNShapleyValuer(
        3, cv=cv, max_rank=valuer.max_rank_, engine=engine
    ).fit(X, y)
    assert by_number.truncation_error_ == valuer.truncation_error_
    every = KNNShapleyValuer(3, cv=cv, max_rank=max(sizes), engine=engine).fit(X, y)
    np.testing.assert_allclose(every.values_, exact.values_, atol=1e-14)
    if cv == "leave-one-out":
        np.testing.assert_array_equal(valuer.values_, by_number.values_)


def test_ranks_follow_the_number_of_rows(rng):
    X, y = rng.normal(size=(90, 2)), rng.integers(0, 2, 90)
    points = dict(X_val=X[:5] + 0.1, y_val=y[:5])
    valuer = KNNShapleyValuer(max_rank="auto", tol=0.05)
    some, all_rows = (
        valuer.fit(X[:80], y[:80], **points).max_rank_,
        smallest_max_rank(90, 0.05, 5),
    )
    assert some == smallest_max_rank(80, 0.05, 5) < all_rows
    assert valuer.fit(X, y, **points).max_rank_ == all_rows


def test_a_grid_search_chooses_tol(rng):
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    model = ValueFilteredClassifier(
        LogisticRegression(), KNNShapleyValuer(max_rank="auto", tol=0.1), drop=0.1
    )
    grid = {"valuefilteredclassifier__valuer__tol": [0.01, 0.1]}
    search = GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_inverted_files_take_the_chosen_rank(rng):
    pytest.importorskip("faiss")
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    valuer = KNNShapleyValuer(max_rank="auto", tol=0.05, engine="faiss-ivf").fit(X, y)
    assert valuer.approximate_
    assert valuer.max_rank_ == smallest_max_rank(299, 0.05, 5)
    assert 0 < valuer.truncation_error_ <= 0.05
