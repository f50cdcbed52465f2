"""Threshold-KNN-Shapley against enumeration, exact rationals and the paper's
binomials."""

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
from skvalue.valuers.tknn_shapley import neighbour_values, suggest_radius


def a2_of_the_paper(n, c):
    """A2 of Theorem 13, a sum of ratios of binomials, in exact rationals; n is |D| with
    the row."""
    total = Fraction(-1)
    for k in range(n):
        total += Fraction(1, k + 1) * (1 - Fraction(comb(n - 1 - k, c), comb(n, c)))
    return total


def test_a2_is_a_harmonic_number_less_one():
    for n in (1, 2, 5, 17, 40):
        for c in range(1, n + 1):
            assert (
                a2_of_the_paper(n, c)
                == sum(Fraction(1, j) for j in range(1, c + 1)) - 1
            )


def test_neighbour_values_are_theorem_13():
    n = 30
    games = [(1, 0, 2), (0, 1, 2), (1, 1, 2), (5, 3, 3), (12, 17, 4), (2, 0, 5)]
    for same, other, n_classes in games:
        c = same + other
        expected = []
        for match in (1, 0):
            a1 = Fraction(match, c) - (
                Fraction(same - match, c * (c - 1)) if c > 1 else 0
            )
            value = (a1 * a2_of_the_paper(n, c) if c > 1 else 0) + (
                match - Fraction(1, n_classes)
            ) / c
            expected.append(float(value) if (same if match else other) else 0.0)
        got = neighbour_values([same], [other], n_classes)
        np.testing.assert_allclose(np.ravel(got), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1), (1, 9)]
)
def test_neighbour_values_are_the_semivalue_of_appendix_c2(semivalue):
    # The paper's sum over coalition sizes of all n players, most of them outside the
    # ball.
    from skvalue.semivalues import coalition_weights

    n, n_classes = 20, 3
    p = coalition_weights(semivalue, n)
    for same, other in [(1, 0), (3, 2), (1, 6), (10, 10)]:
        c = same + other
        b = [comb(n, k + 1) - comb(n - c, k + 1) - c * comb(n - c, k) for k in range(n)]
        far = [comb(n - c, k) for k in range(n)]
        for match, got in zip(
            (1, 0), neighbour_values([same], [other], n_classes, semivalue)
        ):
            if (same if match else other) == 0:
                continue
            a1 = match / c - (same - match) / (c * (c - 1)) if c > 1 else 0.0
            expected = a1 * (p * b).sum() + (match - 1 / n_classes) * (p * far).sum()
            assert got[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (16, 1)])
def test_no_overflow_for_1_to_200_000_neighbours(semivalue):
    c = np.unique(np.geomspace(1, 200_000, 100).astype(int))
    for same in (c, c // 2, np.zeros_like(c), np.minimum(c, 1)):
        agree, differ = neighbour_values(same, c - same, 2, semivalue)
        assert np.isfinite(agree).all()
        assert np.isfinite(differ).all()
        if semivalue == "shapley":
            # Efficiency: the sum is the utility less that of the empty coalition.
            total = same * agree + (c - same) * differ
            np.testing.assert_allclose(total, same / c - 0.5, atol=1e-11)
        # A neighbour with the label never has a negative value, one without never a
        # positive.
        assert (agree >= -1e-15).all()
        assert (differ <= 1e-15).all()


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1)])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_equals_enumeration(engines, rng, n_classes, semivalue):
    for turn, n in enumerate((2, 4, 7)):
        X, y, X_val, y_val = grid_game(rng, n, 3, n_classes)
        for radius in (0.0, 1.0, np.sqrt(2), 10.0):
            game = partial(tknn_utility, radius=radius, n_classes=min(n, n_classes))
            expected = enumerate_game(game, X, y, X_val, y_val, semivalue=semivalue)
            engine = engines[(turn + n_classes) % len(engines)]
            valuer = TKNNShapleyValuer(
                radius, metric="euclidean", semivalue=semivalue, engine=engine
            )
            valuer.fit(X, y, X_val=X_val, y_val=y_val)
            np.testing.assert_allclose(
                valuer.values_, expected, 1e-12, 1e-12, err_msg=engine
            )


def test_cosine_and_weights(rng):
    X, X_val = rng.normal(size=(8, 3)), rng.normal(size=(4, 3))
    y, y_val = np.arange(8) % 2, np.array([0, 1, 1, 0])
    weights = np.array([3.0, 0.0, 1.0, 1.0])
    valuer = TKNNShapleyValuer(0.6).fit(
        X, y, X_val=X_val, y_val=y_val, sample_weight_val=weights
    )
    game = partial(tknn_utility, radius=0.6, n_classes=2)
    expected = enumerate_game(game, X, y, X_val, y_val, weights / 5, metric="cosine")
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


def test_counts(rng):
    X, y = rng.normal(size=(50, 2)), np.array(["b", "a"])[rng.integers(0, 2, 50)]
    X_val = rng.normal(size=(9, 2))
    valuer = TKNNShapleyValuer(1.0, metric="euclidean").fit(
        X, y, X_val=X_val, y_val=y[:9]
    )
    inside = ((X_val[:, None] - X) ** 2).sum(axis=2) <= 1
    expected = [inside[:, y == label].sum(axis=1) for label in ("a", "b")]
    np.testing.assert_array_equal(valuer.counts_, expected)


def largest_good_radius(X, y, metric):
    """The largest radius within two standard errors of the best, and its counts."""
    others = ~np.eye(len(X), dtype=bool)
    distances = pairwise_distances(X.astype(float), metric=metric)[others]
    radii, utilities, counts = np.unique(distances.round(6)) + 1e-5, [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RadiusWarning)
        for radius in radii:
            counts.append(TKNNShapleyValuer(radius, metric=metric).fit(X, y).counts_)
            same, c = counts[-1][y, np.arange(len(y))], counts[-1].sum(axis=0)
            utilities.append(
                np.where(c > 0, same / np.maximum(c, 1), 1 / len(counts[-1]))
            )
    means = np.mean(utilities, axis=1)
    error = np.std(utilities[means.argmax()], ddof=1) / len(y) ** 0.5
    largest = np.flatnonzero(means >= means.max() - 2 * error)[-1]
    return radii[largest], counts[largest]


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_suggest_radius_is_the_largest_within_two_errors_of_the_best(metric, dtype):
    # Few distances with many points at each, which rounding must not tell apart.
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.integers(-2, 3, (40, 2))
        y = (X @ [2, 1] + rng.normal(size=40) > 0).astype(int)
        X = (np.float32(0.125) * X + (7.25 if metric == "euclidean" else 0)).astype(
            dtype
        )
        suggested = suggest_radius(X, y, metric=metric, n_candidates=10_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RadiusWarning)
            found = TKNNShapleyValuer(suggested, metric=metric).fit(X, y)
        np.testing.assert_array_equal(
            found.counts_, largest_good_radius(X, y, metric)[1]
        )


def blobs(n, seed=0):
    """Two overlapping classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 3)) + y[:, None], y


def test_the_default_radius_is_that_of_the_validation_points_or_of_the_rows():
    X, y = blobs(90)
    points = dict(X_val=X[60:], y_val=y[60:])
    valuer = TKNNShapleyValuer(metric="euclidean").fit(X[:60], y[:60], **points)
    assert valuer.radius_ == suggest_radius(X[60:], y[60:], metric="euclidean")
    by_rows = suggest_radius(X, y, metric="euclidean")
    for cv in ("leave-one-out", 3):
        assert valuer.set_params(cv=cv).fit(X, y).radius_ == by_rows
    assert valuer.fit(csr_array(X), y).radius_ == pytest.approx(by_rows, rel=0.05)


@pytest.mark.parametrize("n", [300, pytest.param(5400, marks=pytest.mark.slow)])
def test_the_radius_does_not_depend_on_the_order_of_the_rows(n):
    X, y = blobs(n)
    order = np.random.default_rng(1).permutation(n)
    radius = suggest_radius(X, y)
    assert radius == suggest_radius(X[order], y[order])
    if n > 5000:  # that of a subset
        assert radius == pytest.approx(suggest_radius(X[:5000], y[:5000]), rel=0.2)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_the_radius_of_fit_is_kept(class_weight):
    X, y = blobs(150)
    points = dict(X_val=X[:40], y_val=y[:40])
    valuer = TKNNShapleyValuer(metric="euclidean", class_weight=class_weight)
    radius = valuer.fit(X[40:100], y[40:100], **points).radius_
    assert valuer.add_validation(X[100:], y[100:]).radius_ == radius
    fixed = TKNNShapleyValuer(radius, metric="euclidean", class_weight=class_weight)
    all_points = dict(X_val=np.r_[X[:40], X[100:]], y_val=np.r_[y[:40], y[100:]])
    fixed.fit(X[40:100], y[40:100], **all_points)
    np.testing.assert_allclose(valuer.values_, fixed.values_, atol=1e-15)
    assert valuer.fit(X[:20], y[:20]).radius_ != radius


def test_choosing_a_radius_keeps_to_the_memory():
    X, y = blobs(800)
    radius = suggest_radius(X, y)
    with config_context(working_memory=1):
        tracemalloc.start()
        assert suggest_radius(X, y) == pytest.approx(radius, rel=1e-12)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (
        peak < 6 * 2**20
    )  # that of all distances, and what is computed of them, is 16 MB


def test_refused(rng):
    X, y = rng.normal(size=(10, 2)), np.arange(10) % 2
    for parameters, target, message in [
        (dict(radius=-1), y, "'radius' parameter"),
        (
            dict(radius=1e155),
            y,
            r"'radius' parameter .* range \[0.0, 1e\+150\].* Got 1e\+155",
        ),
        (dict(semivalue="owen"), y, "semivalue must be 'shapley'.* Got 'owen'"),
        (dict(task="classification"), y + 0.5, "y must hold classes when task="),
    ]:
        with pytest.raises(ValueError, match=message):
            TKNNShapleyValuer(**parameters).fit(X, target)
    for points, found in ((X[:2], "Got 2, 2 of"), (X[::2], "Got 5, 1 of")):
        labels = y[:2] if len(points) == 2 else y[::2]
        with pytest.raises(
            ValueError, match=f"radius='auto' needs at least 3 labels.* {found}"
        ):
            TKNNShapleyValuer().fit(X, y, X_val=points, y_val=labels)
    with pytest.raises(
        ValueError, match="y_val must have at least 2 classes. Got one: 0"
    ):
        suggest_radius(X, np.zeros(10, dtype=int))


def test_errors_of_many_groups_keep_to_the_memory(rng):
    """Counts of 100 groups and two classes take 4.6 MB."""
    X, y, groups = (
        rng.normal(size=(300, 3)),
        rng.integers(0, 2, 300),
        np.arange(300) // 3,
    )
    points = dict(X_val=rng.normal(size=(3000, 3)), y_val=rng.integers(0, 2, 3000))
    valuer = TKNNShapleyValuer(1.0)
    expected = valuer.fit(X, y, groups=groups, **points).validation_error_
    with config_context(working_memory=1):
        valuer.fit(X, y, groups=groups, **points)
        tracemalloc.start()
        found = valuer.validation_error_
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert peak < 4 * 2**20
