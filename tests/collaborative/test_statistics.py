"""Statistics as vectors; their exact sensitivities, searched for rows farther apart."""

import numpy as np
import pytest
from scipy.optimize import minimize

from skvalue.collaborative import GramRelease, LogisticRelease
from skvalue.collaborative.party import (
    gram_vector,
    linear_sensitivity,
    linear_size,
    logistic_sensitivity,
    logistic_vector,
    unpack_gram,
)
from skvalue.privacy.audit import search_sensitivity


def farthest(statistic, bounds, n_features=2, starts=2):
    """Largest distance of the terms of two rows, by local search from random starts."""
    x_bound, y_bound = bounds
    rng = np.random.default_rng(0)

    def rows(z):
        X = z[: 2 * n_features].reshape(2, n_features)
        X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
        sizes = np.sin(z[2 * n_features :]).reshape(2, 2)
        return X * x_bound * sizes[:, :1] ** 2, y_bound * sizes[:, 1]

    def minus_square(z):
        X, y = rows(z)
        change = statistic(X[:1], y[:1]) - statistic(X[1:], y[1:])
        return -(change @ change)

    starts = rng.normal(size=(starts, 2 * n_features + 4)) * 1.5
    return np.sqrt(-min(minimize(minus_square, z, method="BFGS").fun for z in starts))


BOUNDS = [(1, 1), (1, 0.5), (1, 1.8), (1, 4), (0.5, 0.3), (2, 1)]


@pytest.mark.parametrize(
    ("bounds", "intercept"),
    [
        *((bounds, False) for bounds in BOUNDS),
        *((bounds, True) for bounds in BOUNDS[1::2]),
    ],
)
def test_linear_sensitivity_is_exact(bounds, intercept):
    found = farthest(lambda X, y: gram_vector(X, y, intercept), bounds)
    claimed = linear_sensitivity(bounds, intercept)
    assert 0.999 * claimed < found < claimed * (1 + 1e-9)


@pytest.mark.parametrize("bounds", [(1, 1), (0.3, 2)])
@pytest.mark.parametrize(("intercept", "p"), [(False, 1), (True, 1), (True, 2)])
def test_linear_sensitivity_covers_one_feature_and_small_bounds(bounds, intercept, p):
    found = farthest(lambda X, y: gram_vector(X, y, intercept), bounds, p, 2)
    assert found <= linear_sensitivity(bounds, intercept) * (1 + 1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("bound", [0.3, 0.5**0.5, 1.0, 2.0])
def test_logistic_sensitivity_is_exact(bound, intercept):
    def statistic(X, signs):
        return logistic_vector(X, signs, intercept)

    # Signs in between are no labels, but lie between those: the distance is convex in
    # each.
    found = farthest(statistic, (bound, 1.0))
    claimed = logistic_sensitivity((bound,), intercept)
    assert 0.999 * claimed < found < claimed * (1 + 1e-9)


def test_known_sensitivities():
    assert linear_sensitivity((1, 1)) == pytest.approx(8**0.5)
    assert linear_sensitivity((1, 3)) == pytest.approx(10.0633249888)
    assert [round(logistic_sensitivity((b,)), 3) for b in (0.5, 1, 2)] == [
        1.0,
        2.121,
        6.364,
    ]


def test_whole_data_sets_on_a_small_domain():
    records = [
        (a, b, y)
        for a in (-1.0, 0.0, 1.0)
        for b in (-1.0, 0.0, 1.0)
        for y in (-1.0, 1.0)
    ]
    records = [r for r in records if np.hypot(r[0], r[1]) <= 1]

    def statistic(rows):
        table = np.array(rows)
        return gram_vector(table[:, :2], table[:, 2], False)

    report = search_sensitivity(
        statistic, records, 2, claimed=linear_sensitivity((1, 1)), relation="replace"
    )
    assert report.passed
    assert report.tight


@pytest.mark.parametrize("intercept", [False, True])
def test_there_and_back(rng, intercept):
    X, signs = rng.normal(size=(60, 3)) / 4, rng.choice([-1.0, 1.0], 60)
    U = np.column_stack([np.ones((60, int(intercept))), X])
    release = (
        GramRelease(None, fit_intercept=intercept, x_bound=9).fit(X, signs).release_
    )
    assert len(release.vector) == linear_size(3, intercept)
    V = np.column_stack([U, signs])
    np.testing.assert_allclose(
        unpack_gram(release.vector, 4 + intercept, release), V.T @ V
    )
    if not intercept:
        assert release.vector @ release.vector == pytest.approx(np.sum((V.T @ V) ** 2))
    party = LogisticRelease(None, fit_intercept=intercept, x_bound=9, classes=(-1, 1))
    release, size = party.fit(X, signs).release_, 3 + intercept
    np.testing.assert_allclose(release.vector[:size], signs @ U)
    np.testing.assert_allclose(
        unpack_gram(release.vector[size:], size, release), U.T @ U
    )
