"""The neighbour methods for rows of which only distances are known."""

import numpy as np
import pytest
from oracles import grid_game
from problems import Problem
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.exceptions import SameRowsWarning

KNN = KNNShapleyValuer(3, metric="precomputed")
TKNN = TKNNShapleyValuer(1.5, metric="precomputed")
EACH_VALUER = pytest.mark.parametrize("valuer", [KNN, TKNN], ids=["knn", "tknn"])
EACH_TASK = pytest.mark.parametrize("n_classes", [0, 3])
pytestmark = pytest.mark.filterwarnings(
    "ignore:With radius=", "ignore:X_val holds the same rows"
)


def check_close(values, expected):
    np.testing.assert_allclose(values, expected, atol=1e-13)


def grid(rng, n_classes=3):
    """A problem with many equal distances."""
    return Problem(*grid_game(rng, 40, 12, n_classes, side=6))


def distances_of(problem):
    """The same problem, by the distances from its rows."""
    X, y, X_val, y_val = problem
    return Problem(cdist(X, X), y, cdist(X_val, X), y_val)


# Dense distances ----------------------------------------------------------------------


@pytest.fixture(params=["native", "torch"])
def engine(request):
    """The engines that take distances."""
    if request.param == "torch":
        pytest.importorskip("torch")
    return request.param


def both_fits(valuer, problem, engine):
    """The fits of the distances of a problem, and of its rows."""
    options = {"engine": engine, "device": "cpu"}
    by_distances = distances_of(problem).fit(clone(valuer).set_params(**options))
    by_rows = problem.fit(clone(valuer).set_params(metric="euclidean"))
    return by_distances, by_rows


@EACH_VALUER
@EACH_TASK
def test_distances_give_the_values_of_the_rows(rng, engine, valuer, n_classes):
    found, expected = both_fits(valuer, grid(rng, n_classes), engine)
    check_close(found.values_, expected.values_)
    assert found.utility_ == pytest.approx(expected.utility_)
    check_close(found.validation_error_, expected.validation_error_)
    contributions = expected.contributions(7).contributions
    check_close(found.contributions(7).contributions, contributions)
    if valuer is TKNN:
        np.testing.assert_array_equal(found.counts_, expected.counts_)


@EACH_VALUER
@EACH_TASK
def test_distances_of_points_are_added(rng, engine, valuer, n_classes):
    problem = grid(rng, n_classes)
    _, expected = both_fits(valuer, problem, engine)
    D, y, D_val, y_val = distances_of(problem)
    first = clone(valuer).set_params(engine=engine, device="cpu")
    first.fit(D, y, X_val=D_val[:5], y_val=y_val[:5])
    first.add_validation(D_val[5:], y_val[5:])
    check_close(first.values_, expected.values_)


@EACH_VALUER
@EACH_TASK
def test_new_rows_need_distances_from_the_points(rng, engine, valuer, n_classes):
    problem = grid(rng, n_classes)
    found, _ = both_fits(valuer, problem, engine)
    message = "need the distances of the rows from X_val"
    with pytest.raises(ValueError, match=message):
        found.score_samples(distances_of(problem).X[:2])


CVS = pytest.mark.parametrize("cv", ["leave-one-out", 4], ids=str)


def both_fits_of_held_out_rows(valuer, problem, engine, cv):
    """As `both_fits`, without the validation points."""
    X, y = problem.rows
    by_distances = clone(valuer).set_params(cv=cv, engine=engine, device="cpu")
    by_rows = clone(valuer).set_params(cv=cv, metric="euclidean")
    return by_distances.fit(cdist(X, X), y), by_rows.fit(X, y)


@EACH_VALUER
@CVS
@EACH_TASK
def test_distances_give_the_values_of_held_out_rows(rng, engine, valuer, cv, n_classes):
    problem = grid(rng, n_classes)
    found, expected = both_fits_of_held_out_rows(valuer, problem, engine, cv)
    check_close(found.values_, expected.values_)
    assert found.utility_ == pytest.approx(expected.utility_)
    contributions = expected.contributions(7).contributions
    check_close(found.contributions(7).contributions, contributions)
    if valuer is TKNN:
        np.testing.assert_array_equal(found.counts_, expected.counts_)


@EACH_VALUER
@CVS
@EACH_TASK
@pytest.mark.parametrize("has_labels", [True, False])
def test_new_distances_are_scored_as_new_rows(
    rng, engine, valuer, cv, n_classes, has_labels
):
    problem = grid(rng, n_classes)
    found, expected = both_fits_of_held_out_rows(valuer, problem, engine, cv)
    new = rng.integers(0, 6, (9, 2)) + 0.25
    labels = problem.y[:9] if has_labels else None
    scores = found.score_samples(cdist(new, problem.X), labels)
    check_close(scores, expected.score_samples(new, labels))


# Sparse distances ---------------------------------------------------------------------


def store(distances, kept):
    """The distances that are kept in a sparse array; and dense, the others at 1000.

    A zero that is stored is a distance.
    """
    entries = distances[kept], np.nonzero(kept)
    return csr_array(entries, distances.shape), np.where(kept, distances, 1e3)


def nearest(distances, m):
    """A mask of the m smallest distances of each line."""
    ranks = distances.argsort(axis=1, kind="stable").argsort(axis=1)
    return ranks < m


# With X_val, distances between rows are not needed.
NOTHING = csr_array((40, 40))


@EACH_TASK
@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf"])
@pytest.mark.parametrize("has_rows", [True, False])
def test_rows_that_are_not_stored_are_farthest(rng, n_classes, semivalue, has_rows):
    problem = distances_of(grid(rng, n_classes))
    stored, filled = store(problem.X_val, nearest(problem.X_val, 6))
    assert (stored.data == 0).any()
    valuer = clone(KNN).set_params(semivalue=semivalue)
    expected = problem._replace(X_val=filled).fit(clone(valuer)).values_
    X = problem.X if has_rows else NOTHING
    values = problem._replace(X=X, X_val=stored).fit(valuer).values_
    check_close(values, expected)


@EACH_TASK
def test_sparse_distances_of_points_are_added(rng, n_classes):
    problem = distances_of(grid(rng, n_classes))
    stored, filled = store(problem.X_val, nearest(problem.X_val, 6))
    expected = problem._replace(X_val=filled).fit(clone(KNN)).values_
    y_val = problem.y_val
    valuer = clone(KNN).fit(NOTHING, problem.y, X_val=stored[:5], y_val=y_val[:5])
    valuer.add_validation(stored[5:], y_val[5:])
    check_close(valuer.values_, expected)


@EACH_TASK
def test_dense_distances_are_not_added_to_sparse_ones(rng, n_classes):
    problem = distances_of(grid(rng, n_classes))
    stored, _ = store(problem.X_val, nearest(problem.X_val, 6))
    valuer = problem._replace(X=NOTHING, X_val=stored).fit(clone(KNN))
    with pytest.raises(ValueError, match="X_val must be sparse"):
        valuer.add_validation(problem.X_val, problem.y_val)


@EACH_TASK
@pytest.mark.parametrize("radius", [2.5, 1e6])
def test_rows_that_are_not_stored_are_in_no_ball(rng, n_classes, radius):
    problem = distances_of(grid(rng, n_classes))
    valuer = TKNNShapleyValuer(2.5, metric="precomputed")
    expected = problem.fit(clone(valuer)).values_
    stored, _ = store(problem.X_val, problem.X_val <= 2.5)
    thin = problem._replace(X=NOTHING, X_val=stored)
    check_close(thin.fit(valuer.set_params(radius=radius)).values_, expected)


@pytest.fixture
def thin_and_filled(rng):
    """Sparse distances between rows, the same filled up, and their labels."""
    D, y, *_ = distances_of(grid(rng))
    return *store(D, nearest(D, 8)), y


@CVS
def test_sparse_distances_between_rows_leave_the_others_farthest(thin_and_filled, cv):
    thin, filled, y = thin_and_filled
    valuer = clone(KNN).set_params(cv=cv)
    expected = clone(valuer).fit(filled, y).values_
    check_close(valuer.fit(thin, y).values_, expected)


@CVS
def test_new_sparse_distances_are_scored_as_filled_ones(thin_and_filled, cv, rng):
    thin, filled, y = thin_and_filled
    distances = cdist(rng.normal(size=(4, 2)), rng.normal(size=(40, 2)))
    new, new_filled = store(distances, nearest(distances, 5))
    valuer = clone(KNN).set_params(cv=cv)
    expected = clone(valuer).fit(filled, y).score_samples(new_filled, y[:4])
    check_close(valuer.fit(thin, y).score_samples(new, y[:4]), expected)


@CVS
def test_new_dense_distances_are_refused_after_sparse_ones(thin_and_filled, cv):
    thin, filled, y = thin_and_filled
    valuer = clone(KNN).set_params(cv=cv).fit(thin, y)
    with pytest.raises(ValueError, match="X must be sparse"):
        valuer.transform(filled)


# Searches -----------------------------------------------------------------------------


@EACH_VALUER
@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_a_pipeline_is_pairwise_if_its_valuer_takes_distances(valuer, metric):
    pipeline = make_pipeline(clone(valuer).set_params(metric=metric))
    assert get_tags(pipeline).input_tags.pairwise == (metric == "precomputed")


def utility_of(model, X, y):
    return float(model[-1].utility_)


@EACH_VALUER
def test_a_search_cuts_rows_and_columns(rng, valuer):
    problem = grid(rng, 2)
    if valuer is KNN:
        parameters = {"knnshapleyvaluer__n_neighbors": [1, 3]}
    else:
        parameters = {"tknnshapleyvaluer__radius": [1, 3]}
    scores = {}
    for metric, X in [
        ("euclidean", problem.X),
        ("precomputed", distances_of(problem).X),
    ]:
        pipeline = make_pipeline(clone(valuer).set_params(metric=metric))
        search = GridSearchCV(
            pipeline, parameters, cv=3, error_score="raise", scoring=utility_of
        )
        search.fit(X, problem.y)
        scores[metric] = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores["euclidean"]).all()
    np.testing.assert_allclose(scores["euclidean"], scores["precomputed"])


# What is refused ----------------------------------------------------------------------


@EACH_VALUER
def test_rows_that_are_no_distances_are_refused(rng, valuer):
    problem = grid(rng, 2)
    message = r"X .* must .* shape \(n_samples, n_samples\)|Got shape \(40, 2\)"
    with pytest.raises(ValueError, match=message):
        clone(valuer).fit(*problem.rows)


@EACH_VALUER
def test_negative_distances_are_refused(rng, valuer):
    D, y, *_ = distances_of(grid(rng, 2))
    with pytest.raises(ValueError, match="Negative values in data passed to X"):
        clone(valuer).fit(-D, y)


@EACH_VALUER
def test_distances_from_other_rows_are_refused(rng, valuer):
    problem = distances_of(grid(rng, 2))
    with pytest.raises(ValueError, match="X_val has 9 features"):
        problem._replace(X_val=problem.X_val[:, :9]).fit(clone(valuer))


@EACH_VALUER
def test_an_embedding_of_distances_is_refused(rng, valuer):
    with pytest.raises(ValueError, match="embedding must be None"):
        distances_of(grid(rng, 2)).fit(clone(valuer).set_params(embedding=np.sqrt))


@EACH_VALUER
def test_an_engine_that_takes_no_distances_is_refused(rng, valuer):
    pytest.importorskip("faiss")
    with pytest.raises(ValueError, match="metric"):
        distances_of(grid(rng, 2)).fit(clone(valuer).set_params(engine="faiss"))


def test_private_distances_are_refused(rng):
    message = "metric must not be 'precomputed' with epsilon"
    with pytest.raises(ValueError, match=message):
        distances_of(grid(rng, 2)).fit(clone(TKNN).set_params(epsilon=1.0))


def test_distances_from_points_choose_no_radius(rng):
    with pytest.raises(ValueError, match="radius must be a number"):
        distances_of(grid(rng, 2)).fit(clone(TKNN).set_params(radius="auto"))


def test_sparse_distances_choose_no_radius(rng):
    D, y, *_ = distances_of(grid(rng, 2))
    with pytest.raises(ValueError, match="radius must be a number"):
        clone(TKNN).set_params(radius="auto").fit(csr_array(D), y)


@EACH_VALUER
def test_distances_between_rows_as_points_are_warned_of(rng, valuer):
    problem = distances_of(grid(rng, 2))
    with pytest.warns(SameRowsWarning):
        problem._replace(X_val=problem.X, y_val=problem.y).fit(clone(valuer))
