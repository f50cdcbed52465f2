"""Centroids, naive Bayes and neighbours in batches give what the loop gives."""

import tracemalloc

import numpy as np
import pytest
from sklearn import config_context
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid

from skvalue.games import ModelGame

from .batched import check_equal, classes, coalitions, each_kind, spread, targets

CLASSIFIERS = [
    NearestCentroid(),
    GaussianNB(),
    GaussianNB(var_smoothing=1e-2),
    KNeighborsClassifier(1),
    KNeighborsClassifier(4),
    KNeighborsClassifier(3, weights="distance"),
    KNeighborsClassifier(3, metric="manhattan", algorithm="brute"),
]


@each_kind
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
@pytest.mark.filterwarnings(
    "ignore:divide by zero|invalid value|self.within_class_std_dev_"
)
def test_coalitions_of_any_kind_are_those_of_the_loop(estimator, kind, rng):
    masks = spread(coalitions(rng, 50, kind), 10 if kind == "leave-one-out" else 5)
    has_probabilities = not isinstance(estimator, NearestCentroid)
    scoring = "neg_log_loss" if has_probabilities else None
    check_equal(estimator, classes(2), masks, scoring=scoring)
    check_equal(estimator, classes(3), masks, scoring="balanced_accuracy")


def test_weights_of_naive_bayes_are_those_of_the_loop(rng):
    weights = rng.random(50)
    weights[::4] = 0
    masks = coalitions(rng, 50, "random")
    check_equal(
        GaussianNB(), classes(3), masks, scoring="neg_log_loss", sample_weight=weights
    )


def test_priors_of_naive_bayes_are_those_of_the_loop(rng):
    model = GaussianNB(priors=[0.7, 0.3])
    masks = coalitions(rng, 50, "random")
    check_equal(model, classes(2), masks, scoring="neg_log_loss")


@pytest.fixture
def two_rows():
    """A coalition of two rows of two classes."""
    y = classes(2)[1]
    mask = np.zeros((1, 50), dtype=bool)
    mask[0, [np.argmax(y == "a"), np.argmax(y == "b")]] = True
    return mask


@pytest.mark.parametrize("batch", ["auto", "never"])
def test_fewer_rows_than_neighbours_fail(two_rows, batch):
    model = KNeighborsClassifier(3, weights="distance")
    game = ModelGame(model, *classes(2), batch=batch, error_score=-1)
    assert game.utility(two_rows).tolist() == [-1]
    assert game.n_failed == 1


def error_of(estimator, masks, **options):
    """Text and notes of the error of a game."""
    with pytest.raises(ValueError) as caught:
        ModelGame(estimator, *classes(2), **options).utility(masks)
    return [str(caught.value), *getattr(caught.value, "__notes__", ())]


def test_the_error_of_too_few_rows_is_that_of_the_loop(two_rows):
    model = KNeighborsClassifier(3, weights="distance")
    batched = error_of(model, two_rows, error_score="raise")
    assert batched[0].startswith("Expected n_neighbors <= n_samples_fit")
    assert batched == error_of(model, two_rows, error_score="raise", batch="never")


def test_the_error_of_more_neighbours_than_rows_is_that_of_the_loop(two_rows):
    model = KNeighborsClassifier(60)
    batched = error_of(model, two_rows | True)
    assert "estimator must train on all 50 rows" in batched[0]
    assert batched == error_of(model, two_rows | True, batch="never")


@pytest.mark.parametrize(
    "error_score", [-1.0, pytest.param("empty", marks=pytest.mark.slow)], ids=str
)
@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(),
        KNeighborsClassifier(metric="manhattan"),  # predicts from any number of rows
        pytest.param(KNeighborsClassifier(p=1), marks=pytest.mark.slow),
        pytest.param(KNeighborsClassifier(2), marks=pytest.mark.slow),
        KNeighborsRegressor(),
        KNeighborsRegressor(1, weights="distance"),
    ],
    ids=str,
)
def test_neighbours_of_few_rows_are_those_of_the_loop(model, error_score, rng):
    is_classifier = isinstance(model, KNeighborsClassifier)
    data = classes(3) if is_classifier else targets()
    n = len(data[0])
    masks = np.argsort(rng.random((15, n)), axis=1) < rng.integers(1, 7, 15)[:, None]
    masks = np.unique(masks, axis=0)  # the loop counts those that are the same once
    other_scoring = "neg_log_loss" if is_classifier else "neg_mean_absolute_error"
    for scoring in (None, other_scoring):
        options = {
            "scoring": scoring,
            "error_score": error_score,
            "empty_utility": 0,
        }
        game = ModelGame(model, *data, **options)
        loop = ModelGame(model, *data, **options, batch="never")
        np.testing.assert_allclose(game.utility(masks), loop.utility(masks), atol=1e-12)
        assert game.n_failed == loop.n_failed
        assert game.n_one_class == loop.n_one_class


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_neighbours_of_targets_are_those_of_the_loop(weights, rng):
    model = KNeighborsRegressor(3, weights=weights)
    masks = coalitions(rng, 40, "random")
    for scoring in (None, "neg_mean_absolute_error"):
        check_equal(model, targets(), masks, scoring=scoring, empty_utility=0)


@pytest.mark.parametrize("model", [KNeighborsClassifier, KNeighborsRegressor])
def test_neighbours_at_distance_zero_count_alone(model, rng):
    X, y, _, _ = classes(2) if model is KNeighborsClassifier else targets()
    masks = coalitions(rng, len(X), "random")
    n_copies = 1 + np.arange(len(X)) % 2  # every second row is there twice
    rows = np.repeat(np.arange(len(X)), n_copies)
    data = X[rows], y[rows], X, y
    check_equal(model(4, weights="distance"), data, masks[:, rows])


@pytest.mark.parametrize(
    "estimator",
    [
        NearestCentroid(shrink_threshold=0.1),
        NearestCentroid(metric="manhattan"),
        NearestCentroid(priors="empirical"),
        KNeighborsClassifier(weights=lambda distances: distances),
    ],
    ids=["shrinkage", "metric", "priors", "weights"],
)
def test_parameters_without_a_batched_solver_are_left_to_the_loop(estimator):
    assert ModelGame(estimator, *classes(2)).solver == "loop"


def peak_of_neighbours(estimator, working_memory):
    """Utilities of two coalitions of 2,000 rows at 500 points, and the peak memory."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 2))
    y = rng.integers(2, size=2500)
    game = ModelGame(estimator, X[:2000], y[:2000], X[2000:], y[2000:])
    masks = rng.random((2, 2000)) < 0.5
    tracemalloc.start()
    try:
        with config_context(working_memory=working_memory):
            utilities = game.utility(masks)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return utilities, peak


@pytest.mark.parametrize(
    ("weights", "bytes_of_a_pair"), [("uniform", 8), ("distance", 16)]
)
def test_the_search_of_neighbours_needs_the_working_memory(weights, bytes_of_a_pair):
    estimator = KNeighborsClassifier(3, weights=weights, algorithm="kd_tree")
    utilities, peak = peak_of_neighbours(estimator, working_memory=1)
    # A million pairs, and what one search at a time needs.
    assert peak < bytes_of_a_pair * 1_000_000 + 4 * 2**20
    np.testing.assert_array_equal(utilities, peak_of_neighbours(estimator, 1024)[0])
