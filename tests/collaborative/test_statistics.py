"""Statistics as vectors; their exact sensitivities, searched for rows farther apart."""

import numpy as np
import pytest
from scipy.optimize import minimize

from skvalue.collaborative.party import (
    gram_size,
    gram_vector,
    linear_sensitivity,
    logistic_sensitivity,
    logistic_vector,
    moment_sensitivity,
    moment_size,
    moment_vector,
    split_logistic,
    to_fourth,
    to_gram,
)
from skvalue.privacy.audit import search_sensitivity


def farthest(statistic, bounds, n_features=2, starts=4):
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


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("layout", ["svec", "cross"])
@pytest.mark.parametrize("intercept", [False, True])
def test_linear_sensitivity_is_exact(bounds, layout, intercept):
    found = farthest(lambda X, y: gram_vector(X, y, intercept, layout), bounds)
    claimed = linear_sensitivity(*bounds, intercept, layout)
    assert 0.999 * claimed < found < claimed * (1 + 1e-9)


def test_linear_sensitivity_covers_one_feature_and_small_bounds():
    for bounds in [(1, 1), (0.3, 2)]:
        for layout in ("svec", "cross"):
            for intercept, p in ((False, 1), (True, 1), (True, 2)):
                found = farthest(
                    lambda X, y, c=intercept, lay=layout: gram_vector(X, y, c, lay), bounds, p, 2
                )
                assert found <= linear_sensitivity(*bounds, intercept, layout) * (1 + 1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("bound", [0.3, 0.5**0.5, 1.0, 2.0])
def test_logistic_sensitivity_is_exact(bound, intercept):
    def statistic(X, signs):
        return logistic_vector(X, signs, intercept)

    # Signs in between are no labels, but lie between those: the distance is convex in each.
    found = farthest(statistic, (bound, 1.0))
    claimed = logistic_sensitivity(bound, intercept)
    assert 0.999 * claimed < found < claimed * (1 + 1e-9)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("bound", [0.5, 1.0, 1.5])
def test_sensitivity_of_fourth_moments_is_exact(bound, intercept):
    found = farthest(lambda X, y: moment_vector(X, intercept), (bound, 1.0))
    claimed = moment_sensitivity(bound, intercept)
    assert 0.999 * claimed < found < claimed * (1 + 1e-9)
    alone = farthest(lambda X, y: moment_vector(X, intercept), (bound, 1.0), 1, 2)
    assert alone <= claimed * (1 + 1e-9)


def test_known_sensitivities():
    assert linear_sensitivity(1, 1) == pytest.approx(8**0.5)
    assert linear_sensitivity(1, 1, layout="cross") == pytest.approx(4.5**0.5)
    assert linear_sensitivity(1, 3, layout="cross") == pytest.approx(92**0.5)
    assert [round(logistic_sensitivity(b), 3) for b in (0.5, 1, 2)] == [1.0, 2.121, 6.364]


def test_whole_data_sets_on_a_small_domain():
    records = [(a, b, y) for a in (-1.0, 0.0, 1.0) for b in (-1.0, 0.0, 1.0) for y in (-1.0, 1.0)]
    records = [r for r in records if np.hypot(r[0], r[1]) <= 1]

    def statistic(rows):
        table = np.array(rows)
        return gram_vector(table[:, :2], table[:, 2], False, "svec")

    report = search_sensitivity(
        statistic, records, 2, claimed=linear_sensitivity(1, 1), relation="replace"
    )
    assert report.passed
    assert report.tight


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", ["svec", "cross"])
def test_gram_there_and_back(rng, intercept, layout):
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    vector = gram_vector(X, y, intercept, layout)
    assert len(vector) == gram_size(3, intercept)
    U = np.column_stack([np.ones((20, int(intercept))), X, y])
    np.testing.assert_allclose(to_gram(vector, 20, 3, intercept, layout), U.T @ U)
    if layout == "svec" and not intercept:
        assert vector @ vector == pytest.approx(np.sum((U.T @ U) ** 2))


@pytest.mark.parametrize("intercept", [False, True])
def test_logistic_there_and_back(rng, intercept):
    X, signs = rng.normal(size=(20, 3)), rng.choice([-1.0, 1.0], 20)
    first, second = split_logistic(logistic_vector(X, signs, intercept), 3, intercept, 20)
    U = np.column_stack([np.ones((20, int(intercept))), X])
    np.testing.assert_allclose(first, signs @ U)
    np.testing.assert_allclose(second, U.T @ U)


@pytest.mark.parametrize("intercept", [False, True])
def test_fourth_moments_there_and_back(rng, intercept):
    X = rng.normal(size=(20, 2))
    vector = moment_vector(X, intercept)
    assert len(vector) == moment_size(2, intercept)
    a, b = X.T
    columns = [a * a, 2**0.5 * a * b, b * b]
    if intercept:
        columns = [2**0.5 * a, a * a, 2**0.5 * b, 2**0.5 * a * b, b * b]
    V = np.column_stack(columns)
    np.testing.assert_allclose(to_fourth(vector, 2, intercept), V.T @ V)
    assert vector @ vector == pytest.approx(np.sum((V.T @ V) ** 2))
