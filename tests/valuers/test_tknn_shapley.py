"""Threshold-KNN-Shapley against enumeration, exact rationals and the paper's binomials."""

import tracemalloc
from fractions import Fraction
from functools import partial
from math import comb

import numpy as np
import pytest
from oracles import enumerate_game, grid_game, tknn_utility
from sklearn import config_context
from sklearn.metrics import pairwise_distances

from skvalue import TKNNShapleyValuer
from skvalue.valuers.tknn_shapley import neighbour_values, suggest_radius


def a2_of_the_paper(n, c):
    """A2 of Theorem 13, a sum of ratios of binomials, in exact rationals; n is |D| with the row."""
    total = Fraction(-1)
    for k in range(n):
        total += Fraction(1, k + 1) * (1 - Fraction(comb(n - 1 - k, c), comb(n, c)))
    return total


def test_a2_is_a_harmonic_number_less_one():
    for n in (1, 2, 5, 17, 40):
        for c in range(1, n + 1):
            assert a2_of_the_paper(n, c) == sum(Fraction(1, j) for j in range(1, c + 1)) - 1


def test_neighbour_values_are_theorem_13():
    n = 30
    for same, other, n_classes in [
        (1, 0, 2),
        (0, 1, 2),
        (1, 1, 2),
        (5, 3, 3),
        (12, 17, 4),
        (2, 0, 5),
    ]:
        c = same + other
        expected = []
        for match in (1, 0):
            a1 = Fraction(match, c) - (Fraction(same - match, c * (c - 1)) if c > 1 else 0)
            value = (a1 * a2_of_the_paper(n, c) if c > 1 else 0) + (
                match - Fraction(1, n_classes)
            ) / c
            expected.append(float(value) if (same if match else other) else 0.0)
        got = neighbour_values([same], [other], n_classes)
        np.testing.assert_allclose(np.ravel(got), expected, rtol=1e-14)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1), (1, 9)])
def test_neighbour_values_are_the_semivalue_of_appendix_c2(semivalue):
    # The paper's sum over coalition sizes of all n players, most of them outside the ball.
    from skvalue.semivalues import coalition_weights

    n, n_classes = 20, 3
    p = coalition_weights(semivalue, n)
    for same, other in [(1, 0), (3, 2), (1, 6), (10, 10)]:
        c = same + other
        b = [comb(n, k + 1) - comb(n - c, k + 1) - c * comb(n - c, k) for k in range(n)]
        far = [comb(n - c, k) for k in range(n)]
        for match, got in zip((1, 0), neighbour_values([same], [other], n_classes, semivalue)):
            if (same if match else other) == 0:
                continue
            a1 = match / c - (same - match) / (c * (c - 1)) if c > 1 else 0.0
            expected = a1 * (p * b).sum() + (match - 1 / n_classes) * (p * far).sum()
            assert got[0] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (16, 1)])
def test_no_overflow_for_1_to_200_000_neighbours(semivalue):
    c = np.unique(np.geomspace(1, 200_000, 300).astype(int))
    for same in (c, c // 2, np.zeros_like(c), np.minimum(c, 1)):
        agree, differ = neighbour_values(same, c - same, 2, semivalue)
        assert np.isfinite(agree).all()
        assert np.isfinite(differ).all()
        if semivalue == "shapley":
            # Efficiency: the sum is the utility less that of the empty coalition.
            total = same * agree + (c - same) * differ
            np.testing.assert_allclose(total, same / c - 0.5, atol=1e-11)
        # A neighbour with the label never has a negative value, one without never a positive.
        assert (agree >= -1e-15).all()
        assert (differ <= 1e-15).all()


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1)])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_equals_enumeration(engines, rng, n_classes, semivalue):
    for n in (2, 4, 7, 9):
        X, y, X_val, y_val = grid_game(rng, n, 3, n_classes)
        for radius in (0.0, 1.0, np.sqrt(2), 10.0):
            game = partial(tknn_utility, radius=radius, n_classes=min(n, n_classes))
            expected = enumerate_game(game, X, y, X_val, y_val, semivalue=semivalue)
            for engine in engines:
                valuer = TKNNShapleyValuer(
                    radius, metric="euclidean", semivalue=semivalue, engine=engine
                )
                valuer.fit(X, y, X_val=X_val, y_val=y_val)
                np.testing.assert_allclose(
                    valuer.values_, expected, atol=1e-12, rtol=1e-12, err_msg=engine
                )


def test_cosine_and_weights(rng):
    X, y, X_val, y_val = (
        rng.normal(size=(8, 3)),
        np.arange(8) % 2,
        rng.normal(size=(4, 3)),
        [0, 1, 1, 0],
    )
    weights = np.array([3.0, 0.0, 1.0, 1.0])
    valuer = TKNNShapleyValuer(0.6).fit(X, y, X_val=X_val, y_val=y_val, sample_weight_val=weights)
    game = partial(tknn_utility, radius=0.6, n_classes=2)
    expected = enumerate_game(game, X, y, X_val, np.array(y_val), weights / 5, metric="cosine")
    np.testing.assert_allclose(valuer.values_, expected, atol=1e-12)


def test_counts(rng):
    X, y = rng.normal(size=(50, 2)), np.array(["b", "a"])[rng.integers(0, 2, 50)]
    X_val = rng.normal(size=(9, 2))
    valuer = TKNNShapleyValuer(1.0, metric="euclidean").fit(X, y, X_val=X_val, y_val=y[:9])
    inside = ((X_val[:, None] - X) ** 2).sum(axis=2) <= 1
    expected = [inside[:, y == label].sum(axis=1) for label in ("a", "b")]
    np.testing.assert_array_equal(valuer.counts_, expected)


def test_suggest_radius_is_the_best_of_its_candidates(rng):
    X = np.concatenate([rng.normal(0, 0.3, (40, 2)), rng.normal(3, 0.3, (40, 2))])
    y = np.repeat([0, 1], 40)
    radius = suggest_radius(X, y, metric="euclidean")
    assert 0.3 < radius < 3  # inside a cluster, not across
    valuer = TKNNShapleyValuer("auto", metric="euclidean").fit(X, y, X_val=X, y_val=y)
    assert valuer.radius_ == radius


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_suggest_radius_plays_as_the_valuer_does(metric, dtype):
    # Few distances with many points at each, which rounding must not tell apart.
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(-2, 3, (40, 2)), rng.integers(0, 2, 40)
        X = (np.float32(0.1) * X + (7.3 if metric == "euclidean" else 0)).astype(dtype)
        others = ~np.eye(len(X), dtype=bool)
        distances = pairwise_distances(X.astype(float), metric=metric)[others]
        valuer = TKNNShapleyValuer(metric=metric)
        best = max(
            valuer.set_params(radius=radius + 1e-5).fit(X, y).utility_
            for radius in np.unique(distances.round(6))
        )
        suggested = suggest_radius(X, y, metric=metric, n_candidates=10_000)
        found = valuer.set_params(radius=suggested).fit(X, y).utility_
        assert found >= best - 1e-12


def test_messages(rng):
    X, y = rng.normal(size=(10, 2)), np.arange(10) % 2
    cases = [
        (
            dict(radius=-1),
            y,
            "'radius' parameter of TKNNShapleyValuer must be a float in the range",
        ),
        (dict(semivalue="owen"), y, "semivalue must be 'shapley'.* Got 'owen'"),
        (dict(radius="auto"), y, "radius='auto' is chosen on a validation set alone. Pass X_val"),
        ({}, y + 0.5, "TKNNShapleyValuer needs classes. Got a continuous target"),
    ]
    for parameters, target, message in cases:
        with pytest.raises(ValueError, match=message):
            TKNNShapleyValuer(**parameters).fit(X, target)
    with pytest.raises(ValueError, match="y_val must have at least 2 classes. Got one: 0"):
        suggest_radius(X, np.zeros(10, dtype=int))


def test_errors_of_many_groups_keep_to_the_memory(rng):
    """Counts of 2,000 groups and two classes take more than the rows do."""
    X, y, groups = rng.normal(size=(4000, 3)), rng.integers(0, 2, 4000), np.arange(4000) // 2
    points = dict(X_val=X[:500] + 1, y_val=y[:500])
    valuer = TKNNShapleyValuer(1.0)
    expected = valuer.fit(X, y, groups=groups, **points).validation_error_
    with config_context(working_memory=1):
        valuer.fit(X, y, groups=groups, **points)
        tracemalloc.start()
        found = valuer.validation_error_
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert peak < 10 * 2**20
