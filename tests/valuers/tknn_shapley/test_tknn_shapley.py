"""Threshold-KNN-Shapley against enumeration, exact rationals and the paper."""

import tracemalloc
import warnings
from fractions import Fraction
from functools import partial
from math import comb

import numpy as np
import pytest
from oracles import enumerate_game, grid_game, tknn_utility
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.metrics import pairwise_distances

from skvalue import TKNNShapleyValuer
from skvalue.exceptions import RadiusWarning
from skvalue.semivalues import coalition_weights
from skvalue.valuers.tknn_shapley import neighbour_values, suggest_radius

# The formula of the paper -------------------------------------------------------------


def a2_of_the_paper(n, c):
    """A2 of Theorem 13, a sum of ratios of binomials; n is |D| with the row."""
    total = Fraction(-1)
    for k in range(n):
        total += Fraction(1, k + 1) * (1 - Fraction(comb(n - 1 - k, c), comb(n, c)))
    return total


def value_of_the_paper(n, same, other, n_classes, match):
    """Theorem 13, for a neighbour with (1) or without (0) the label of the point."""
    c = same + other
    alone = (match - Fraction(1, n_classes)) / c
    if c == 1:
        return alone
    a1 = Fraction(match, c) - Fraction(same - match, c * (c - 1))
    return a1 * a2_of_the_paper(n, c) + alone


@pytest.mark.parametrize("n", [1, 2, 5, 17, 40])
def test_a2_is_a_harmonic_number_less_one(n):
    for c in range(1, n + 1):
        harmonic = sum(Fraction(1, j) for j in range(1, c + 1))
        assert a2_of_the_paper(n, c) == harmonic - 1


@pytest.mark.parametrize(
    ("same", "other", "n_classes"),
    [(1, 0, 2), (0, 1, 2), (1, 1, 2), (5, 3, 3), (12, 17, 4), (2, 0, 5)],
)
def test_neighbour_values_are_theorem_13(same, other, n_classes):
    value_same, value_other = neighbour_values([same], [other], n_classes)
    expected_same = 0.0
    if same:
        expected_same = value_of_the_paper(30, same, other, n_classes, match=1)
    expected_other = 0.0
    if other:
        expected_other = value_of_the_paper(30, same, other, n_classes, match=0)
    np.testing.assert_allclose(value_same, float(expected_same), rtol=1e-14)
    np.testing.assert_allclose(value_other, float(expected_other), rtol=1e-14)


@pytest.mark.parametrize(
    "semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1), (1, 9)]
)
@pytest.mark.parametrize(("same", "other"), [(1, 0), (3, 2), (1, 6), (10, 10)])
def test_neighbour_values_are_the_semivalue_of_appendix_c2(semivalue, same, other):
    # The paper's sum over coalition sizes of all n players, most of them outside the
    # ball.
    n = 20
    n_classes = 3
    p = coalition_weights(semivalue, n)
    c = same + other
    b = [comb(n, k + 1) - comb(n - c, k + 1) - c * comb(n - c, k) for k in range(n)]
    n_outside = [comb(n - c, k) for k in range(n)]
    values = neighbour_values([same], [other], n_classes, semivalue)
    for match, n_kind, value in zip((1, 0), (same, other), values):
        if n_kind == 0:
            continue
        a1 = match / c - (same - match) / (c * (c - 1)) if c > 1 else 0.0
        alone = (match - 1 / n_classes) * (p * n_outside).sum()
        assert value[0] == pytest.approx(a1 * (p * b).sum() + alone, rel=1e-11)


# Numbers of neighbours, from all with the label to at most one with it.
MANY = np.unique(np.geomspace(1, 200_000, 100).astype(int))
MANY_WITH_LABEL = pytest.mark.parametrize(
    "same",
    [MANY, MANY // 2, np.zeros_like(MANY), np.minimum(MANY, 1)],
    ids=["all", "half", "none", "one"],
)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (16, 1)])
@MANY_WITH_LABEL
def test_values_of_up_to_200_000_neighbours_are_finite_and_signed(semivalue, same):
    value_same, value_other = neighbour_values(same, MANY - same, 2, semivalue)
    assert np.isfinite(value_same).all()
    assert np.isfinite(value_other).all()
    # A neighbour with the label never has a negative value, one without never a
    # positive.
    assert (value_same >= -1e-15).all()
    assert (value_other <= 1e-15).all()


@MANY_WITH_LABEL
def test_values_of_up_to_200_000_neighbours_are_efficient(same):
    value_same, value_other = neighbour_values(same, MANY - same, 2)
    total = same * value_same + (MANY - same) * value_other
    np.testing.assert_allclose(total, same / MANY - 0.5, atol=1e-11)


# The valuer ---------------------------------------------------------------------------


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1)])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("n", [2, 4, 7])
def test_values_are_those_of_enumeration(engines, rng, n, n_classes, semivalue):
    engine = engines[(n // 2 + n_classes) % len(engines)]
    X, y, X_val, y_val = grid_game(rng, n, 3, n_classes)
    for radius in (0.0, 1.0, np.sqrt(2), 10.0):
        game = partial(tknn_utility, radius=radius, n_classes=min(n, n_classes))
        expected = enumerate_game(game, X, y, X_val, y_val, semivalue=semivalue)
        valuer = TKNNShapleyValuer(
            radius, metric="euclidean", semivalue=semivalue, engine=engine
        )
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
        np.testing.assert_allclose(
            valuer.values_, expected, 1e-12, 1e-12, err_msg=engine
        )


def test_weighted_values_for_cosine_are_those_of_enumeration(rng):
    X = rng.normal(size=(8, 3))
    X_val = rng.normal(size=(4, 3))
    y = np.arange(8) % 2
    y_val = np.array([0, 1, 1, 0])
    weights = np.array([3.0, 0.0, 1.0, 1.0])
    valuer = TKNNShapleyValuer(0.6)
    valuer.fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weights)
    game = partial(tknn_utility, radius=0.6, n_classes=2)
    expected = enumerate_game(game, X, y, X_val, y_val, weights / 5, metric="cosine")
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


def test_counts_are_of_each_class_in_each_ball(rng):
    X = rng.normal(size=(50, 2))
    y = np.array(["b", "a"])[rng.integers(0, 2, 50)]
    X_val = rng.normal(size=(9, 2))
    valuer = TKNNShapleyValuer(1.0, metric="euclidean")
    valuer.fit(X, y, X_val=X_val, y_val=y[:9])
    inside = ((X_val[:, None] - X) ** 2).sum(axis=2) <= 1
    expected = [inside[:, y == label].sum(axis=1) for label in ("a", "b")]
    np.testing.assert_array_equal(valuer.counts_, expected)


def test_errors_of_many_groups_keep_to_the_memory(rng):
    """Counts of 100 groups and two classes take 4.6 MB."""
    X = rng.normal(size=(300, 3))
    y = rng.integers(0, 2, 300)
    options = {
        "groups": np.arange(300) // 3,
        "X_val": rng.normal(size=(3000, 3)),
        "y_val": rng.integers(0, 2, 3000),
    }
    valuer = TKNNShapleyValuer(1.0)
    expected = valuer.fit(X, y, **options).validation_error_
    with config_context(working_memory=1):
        valuer.fit(X, y, **options)
        tracemalloc.start()
        errors = valuer.validation_error_
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    np.testing.assert_allclose(errors, expected, rtol=1e-9)
    assert peak < 4 * 2**20


# The radius ---------------------------------------------------------------------------


def counts_of_the_best_radius(X, y, metric):
    """Counts of the largest radius whose utility is within two errors of the best."""
    others = ~np.eye(len(X), dtype=bool)
    distances = pairwise_distances(X.astype(float), metric=metric)[others]
    counts = []
    utilities = []
    for radius in np.unique(distances.round(6)) + 1e-5:
        valuer = TKNNShapleyValuer(radius, metric=metric).fit(X, y)
        same = valuer.counts_[y, np.arange(len(y))]
        total = valuer.counts_.sum(axis=0)
        fractions = same / np.maximum(total, 1)
        counts.append(valuer.counts_)
        utilities.append(np.where(total > 0, fractions, 1 / len(valuer.counts_)))
    means = np.mean(utilities, axis=1)
    error = np.std(utilities[means.argmax()], ddof=1) / len(y) ** 0.5
    return counts[np.flatnonzero(means >= means.max() - 2 * error)[-1]]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_suggested_radius_is_the_largest_within_two_errors(metric, dtype, seed):
    # Few distances with many points at each, which rounding must not tell apart.
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (40, 2))
    y = (X @ [2, 1] + rng.normal(size=40) > 0).astype(int)
    X = np.float32(0.125) * X
    if metric == "euclidean":
        X = X + 7.25
    X = X.astype(dtype)
    radius = suggest_radius(X, y, metric=metric, n_candidates=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RadiusWarning)
        valuer = TKNNShapleyValuer(radius, metric=metric).fit(X, y)
        expected = counts_of_the_best_radius(X, y, metric)
    np.testing.assert_array_equal(valuer.counts_, expected)


def blobs(n, seed=0):
    """Two overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 3)) + y[:, None], y


def test_the_default_radius_is_that_of_the_validation_points():
    X, y = blobs(90)
    points = {"X_val": X[60:], "y_val": y[60:]}
    valuer = TKNNShapleyValuer(metric="euclidean").fit(X[:60], y[:60], **points)
    assert valuer.radius_ == suggest_radius(X[60:], y[60:], metric="euclidean")


@pytest.mark.parametrize("cv", ["leave-one-out", 3])
def test_without_points_the_default_radius_is_that_of_the_rows(cv):
    X, y = blobs(90)
    valuer = TKNNShapleyValuer(metric="euclidean", cv=cv).fit(X, y)
    assert valuer.radius_ == suggest_radius(X, y, metric="euclidean")


def test_the_default_radius_of_sparse_rows_is_nearly_that_of_dense_ones():
    X, y = blobs(90)
    valuer = TKNNShapleyValuer(metric="euclidean", cv=3).fit(csr_array(X), y)
    expected = suggest_radius(X, y, metric="euclidean")
    assert valuer.radius_ == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("n", [300, pytest.param(5400, marks=pytest.mark.slow)])
def test_the_radius_does_not_depend_on_the_order_of_the_rows(n):
    X, y = blobs(n)
    order = np.random.default_rng(1).permutation(n)
    assert suggest_radius(X, y) == suggest_radius(X[order], y[order])


@pytest.mark.slow
def test_the_radius_of_many_points_is_nearly_that_of_a_subset():
    X, y = blobs(5400)
    expected = suggest_radius(X[:5000], y[:5000])
    assert suggest_radius(X, y) == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_points_that_are_added_keep_the_radius(class_weight):
    X, y = blobs(150)
    rows = X[40:100], y[40:100]
    valuer = TKNNShapleyValuer(metric="euclidean", class_weight=class_weight)
    radius = valuer.fit(*rows, X_val=X[:40], y_val=y[:40]).radius_
    assert valuer.add_validation(X[100:], y[100:]).radius_ == radius
    fixed = TKNNShapleyValuer(radius, metric="euclidean", class_weight=class_weight)
    fixed.fit(*rows, X_val=np.r_[X[:40], X[100:]], y_val=np.r_[y[:40], y[100:]])
    np.testing.assert_allclose(valuer.values_, fixed.values_, atol=1e-15)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_another_fit_chooses_the_radius_again(class_weight):
    X, y = blobs(150)
    valuer = TKNNShapleyValuer(metric="euclidean", class_weight=class_weight)
    radius = valuer.fit(X[40:100], y[40:100], X_val=X[:40], y_val=y[:40]).radius_
    assert valuer.fit(X[:20], y[:20]).radius_ != radius


def test_choosing_a_radius_keeps_to_the_memory():
    X, y = blobs(800)
    radius = suggest_radius(X, y)
    with config_context(working_memory=1):
        tracemalloc.start()
        assert suggest_radius(X, y) == pytest.approx(radius, rel=1e-12)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    # That of all distances, and what is computed of them, is 16 MB.
    assert peak < 6 * 2**20


# What is refused ----------------------------------------------------------------------


@pytest.fixture
def ten_rows(rng):
    return rng.normal(size=(10, 2)), np.arange(10) % 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"radius": -1}, "'radius' parameter"),
        (
            {"radius": 1e155},
            r"'radius' parameter .* range \[0.0, 1e\+150\].* Got 1e\+155",
        ),
        ({"semivalue": "owen"}, "semivalue must be 'shapley'.* Got 'owen'"),
    ],
    ids=str,
)
def test_parameters_that_do_not_fit_are_refused(ten_rows, parameters, message):
    with pytest.raises(ValueError, match=message):
        TKNNShapleyValuer(**parameters).fit(*ten_rows)


def test_targets_are_refused_as_classes(ten_rows):
    X, y = ten_rows
    with pytest.raises(ValueError, match="y must hold classes when task="):
        TKNNShapleyValuer(task="classification").fit(X, y + 0.5)


@pytest.mark.parametrize(
    ("points", "count"),
    [(slice(2), "Got 2, 2 of"), (slice(None, None, 2), "Got 5, 1 of")],
    ids=["two points", "one class"],
)
def test_points_that_are_too_few_to_choose_a_radius_are_refused(
    ten_rows, points, count
):
    X, y = ten_rows
    message = f"radius='auto' needs at least 3 labels.* {count}"
    with pytest.raises(ValueError, match=message):
        TKNNShapleyValuer().fit(X, y, X_val=X[points], y_val=y[points])


def test_a_radius_for_one_class_is_refused(ten_rows):
    X, _ = ten_rows
    message = "y_val must have at least 2 classes. Got one: 0"
    with pytest.raises(ValueError, match=message):
        suggest_radius(X, np.zeros(10, dtype=int))
