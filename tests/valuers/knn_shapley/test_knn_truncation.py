"""`max_rank="auto"`: the smallest number of ranks for values within `tol`."""

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
    {"utility": "original"},
    {"semivalue": "banzhaf"},
    {"semivalue": "leave-one-out"},
    {"semivalue": (4, 1)},
    {"semivalue": (1, 16)},
    {"min_coalition": 2},
]
EACH_GAME = pytest.mark.parametrize("parameters", GAMES, ids=str)


def weights_of(parameters, n):
    """Probability that a row joins a coalition of each size."""
    min_coalition = parameters.get("min_coalition")
    if min_coalition is None:
        return size_weights(parameters.get("semivalue", "shapley"), n)
    return np.where(np.arange(n) >= min_coalition, 1 / (n - min_coalition), 0)


@EACH_GAME
def test_values_are_within_tol_of_enumeration(rng, parameters):
    utility = parameters.get("utility", "soft")
    game = partial(knn_utility, k=1, utility=utility, n_classes=2, prior=0)
    semivalue = partial(weights_of, parameters)
    n_truncated = 0
    for tol in (0.0, 0.02, 0.1, 0.4):
        for side in (2, 30):
            X, y, X_val, _ = grid_game(rng, 7, 1, 2, side)
            order = np.argsort(np.abs(X - X_val[0]).sum(axis=1))
            # The worst case has one far match.
            y[order] = rng.permutation([0, 0, 0, 0, 0, 0, 1])
            exact = enumerate_game(
                game,
                X,
                y,
                X_val,
                np.ones(1),
                metric="sqeuclidean",
                semivalue=semivalue,
            )
            valuer = KNNShapleyValuer(1, max_rank="auto", tol=tol, **parameters)
            valuer.fit(X, y, X_val=X_val, y_val=[1])
            error = np.abs(valuer.values_ - exact).max()
            assert error <= valuer.truncation_error_ + 1e-12 <= tol + 2e-12
            n_truncated += error > 1e-9
    assert n_truncated or parameters.get("semivalue") == "leave-one-out"


@EACH_GAME
@pytest.mark.parametrize(("n", "n_neighbors"), [(50, 1), (50, 5), (1000, 20), (4, 7)])
def test_the_rank_is_the_smallest_and_decreases_with_tol(parameters, n, n_neighbors):
    game = {name: parameters[name] for name in parameters if name != "utility"}
    bound = partial(max_rank_bound, n, n_neighbors=n_neighbors, **game)
    smallest = min(n_neighbors, n)
    ranks = []
    for tol in (0.0, *np.geomspace(1e-7, 2, 40)):
        rank = smallest_max_rank(n, tol, n_neighbors, **game)
        assert bound(rank) <= tol
        assert rank == smallest or bound(rank - 1) > tol
        ranks.append(rank)
    assert (np.diff(ranks) <= 0).all()
    assert ranks[-1] == smallest


# Far rows that change sides -----------------------------------------------------------

# How rows are held out, and the numbers of players of the splits.
CVS = pytest.mark.parametrize(
    ("cv", "sizes"), [("leave-one-out", (300,)), (3, (200, 201))]
)


@pytest.fixture
def rows_on_a_line(rng):
    """Rows whose label changes twice along a line."""
    X = rng.normal(size=(301, 1))
    return X, (np.abs(X[:, 0]) < 0.7).astype(int)


@CVS
def test_the_bound_holds_for_far_rows_that_change_sides(
    rows_on_a_line, cv, sizes, engine
):
    exact = KNNShapleyValuer(3, cv=cv).fit(*rows_on_a_line)
    valuer = KNNShapleyValuer(3, cv=cv, max_rank="auto", tol=0.01, engine=engine)
    valuer.fit(*rows_on_a_line)
    error = np.abs(valuer.values_ - exact.values_).max()
    assert 0 < error <= valuer.truncation_error_ <= 0.01
    ranks = [smallest_max_rank(n, 0.01, 3) for n in sizes]
    assert valuer.max_rank_ == max(ranks) < 100


@CVS
def test_values_that_are_truncated_are_efficient(rows_on_a_line, cv, sizes, engine):
    valuer = KNNShapleyValuer(3, cv=cv, max_rank="auto", tol=0.01, engine=engine)
    valuer.fit(*rows_on_a_line)
    gain = valuer.utility_ - valuer.empty_utility_
    assert valuer.values_.sum() == pytest.approx(gain)
    contributions = valuer.contributions(7).contributions
    assert contributions.sum() == pytest.approx(valuer.values_[7])


@CVS
def test_exact_values_rank_all_players(rows_on_a_line, cv, sizes):
    exact = KNNShapleyValuer(3, cv=cv).fit(*rows_on_a_line)
    assert exact.max_rank_ == max(sizes)
    assert exact.truncation_error_ == 0


@CVS
def test_as_many_ranks_as_players_give_exact_values(rows_on_a_line, cv, sizes, engine):
    exact = KNNShapleyValuer(3, cv=cv).fit(*rows_on_a_line)
    valuer = KNNShapleyValuer(3, cv=cv, max_rank=max(sizes), engine=engine)
    valuer.fit(*rows_on_a_line)
    np.testing.assert_allclose(valuer.values_, exact.values_, atol=1e-14)


@CVS
def test_the_chosen_rank_can_be_given_as_a_number(rows_on_a_line, cv, sizes, engine):
    valuer = KNNShapleyValuer(3, cv=cv, max_rank="auto", tol=0.01, engine=engine)
    valuer.fit(*rows_on_a_line)
    by_number = KNNShapleyValuer(3, cv=cv, max_rank=valuer.max_rank_, engine=engine)
    by_number.fit(*rows_on_a_line)
    assert by_number.truncation_error_ == valuer.truncation_error_
    # With other splitters, numbers of players and so the chosen ranks differ.
    if cv == "leave-one-out":
        np.testing.assert_array_equal(valuer.values_, by_number.values_)


# How the rank is chosen ---------------------------------------------------------------


def test_the_rank_follows_the_number_of_rows(rng):
    X = rng.normal(size=(90, 2))
    y = rng.integers(0, 2, 90)
    points = {"X_val": X[:5] + 0.1, "y_val": y[:5]}
    valuer = KNNShapleyValuer(max_rank="auto", tol=0.05)
    rank_of_80 = valuer.fit(X[:80], y[:80], **points).max_rank_
    rank_of_90 = valuer.fit(X, y, **points).max_rank_
    assert rank_of_80 == smallest_max_rank(80, 0.05, 5)
    assert rank_of_90 == smallest_max_rank(90, 0.05, 5)
    assert rank_of_80 < rank_of_90


def test_a_grid_search_chooses_tol(rng):
    X = rng.normal(size=(60, 2))
    y = rng.integers(0, 2, 60)
    valuer = KNNShapleyValuer(max_rank="auto", tol=0.1)
    model = ValueFilteredClassifier(LogisticRegression(), valuer, drop=0.1)
    grid = {"valuefilteredclassifier__valuer__tol": [0.01, 0.1]}
    search = GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_inverted_files_take_the_chosen_rank(rng):
    pytest.importorskip("faiss")
    X = rng.normal(size=(300, 3))
    y = rng.integers(0, 2, 300)
    valuer = KNNShapleyValuer(max_rank="auto", tol=0.05, engine="faiss-ivf").fit(X, y)
    assert valuer.approximate_
    assert valuer.max_rank_ == smallest_max_rank(299, 0.05, 5)
    assert 0 < valuer.truncation_error_ <= 0.05
