"""Statistics as vectors, and their sensitivities against a search for distant rows."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from skvalue.collaborative import GramRelease, LogisticRelease, MeanRelease
from skvalue.collaborative.party import (
    gram_vector,
    linear_sensitivity,
    linear_size,
    logistic_sensitivity,
    logistic_vector,
    unpack_gram,
)
from skvalue.privacy.audit import search_sensitivity

SENSITIVITIES = {"linear": linear_sensitivity, "logistic": logistic_sensitivity}
BOUNDS = [(1, 1), (1, 0.5), (1, 1.8), (1, 4), (0.5, 0.3), (2, 1)]


def largest_distance(statistic, bounds, n_features=2, n_starts=2):
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

    starts = rng.normal(size=(n_starts, 2 * n_features + 4)) * 1.5
    searches = [minimize(minus_square, start, method="BFGS") for start in starts]
    return np.sqrt(-min(search.fun for search in searches))


class TestLinearSensitivity:
    @pytest.mark.parametrize(
        ("bounds", "intercept"),
        [
            *((bounds, False) for bounds in BOUNDS),
            *((bounds, True) for bounds in BOUNDS[1::2]),
        ],
    )
    def test_is_attained(self, bounds, intercept):
        distance = largest_distance(lambda X, y: gram_vector(X, y, intercept), bounds)
        sensitivity = linear_sensitivity(bounds, intercept)
        assert 0.999 * sensitivity < distance < sensitivity * (1 + 1e-9)

    @pytest.mark.parametrize("bounds", [(1, 1), (0.3, 2)])
    @pytest.mark.parametrize(
        ("intercept", "n_features"), [(False, 1), (True, 1), (True, 2)]
    )
    def test_covers_one_feature_and_small_bounds(self, bounds, intercept, n_features):
        distance = largest_distance(
            lambda X, y: gram_vector(X, y, intercept), bounds, n_features
        )
        assert distance <= linear_sensitivity(bounds, intercept) * (1 + 1e-9)

    def test_has_known_values(self):
        assert linear_sensitivity((1, 1)) == pytest.approx(8**0.5)
        assert linear_sensitivity((1, 3)) == pytest.approx(10.0633249888)

    def test_holds_and_is_tight_for_whole_data_sets_on_a_small_domain(self):
        levels = (-1.0, 0.0, 1.0)
        points = [(a, b) for a in levels for b in levels if np.hypot(a, b) <= 1]
        records = [(*point, y) for point in points for y in (-1.0, 1.0)]

        def statistic(rows):
            table = np.array(rows)
            return gram_vector(table[:, :2], table[:, 2], False)

        report = search_sensitivity(
            statistic,
            records,
            2,
            claimed=linear_sensitivity((1, 1)),
            relation="replace",
        )
        assert report.passed
        assert report.tight


class TestLogisticSensitivity:
    @pytest.mark.parametrize("intercept", [False, True])
    @pytest.mark.parametrize("bound", [0.3, 0.5**0.5, 1.0, 2.0])
    def test_is_attained(self, bound, intercept):
        def statistic(X, signs):
            return logistic_vector(X, signs, intercept)

        # Signs in between are no labels, but lie between those: the distance is convex
        # in each.
        distance = largest_distance(statistic, (bound, 1.0))
        sensitivity = logistic_sensitivity((bound,), intercept)
        assert 0.999 * sensitivity < distance < sensitivity * (1 + 1e-9)

    def test_has_known_values(self):
        sensitivities = [logistic_sensitivity((bound,)) for bound in (0.5, 1, 2)]
        np.testing.assert_allclose(sensitivities, [1.0, 2.121, 6.364], atol=5e-4)


def exact(terms):
    """Exact sums of terms (n, ...) of fractions."""
    return sum(terms[1:], start=terms[0])


class TestRoundingOfSums:
    """One row may change how a sum is rounded; the stated sensitivity allows for it."""

    @pytest.mark.parametrize("intercept", [False, True])
    @pytest.mark.parametrize("x_bound", [1e-3, 0.3, 1.0, 3.0, 1e3])
    @pytest.mark.parametrize("y_bound", [1e-3, 0.3, 1.0, 3.0, 1e3])
    def test_no_row_is_larger_than_the_sensitivity(self, x_bound, y_bound, intercept):
        squares = x_bound**2 + y_bound**2
        largest = np.sqrt((squares + intercept) ** 2 - intercept)
        assert largest <= linear_sensitivity((x_bound, y_bound), intercept)
        # Sums of labels are whole numbers, and exact.
        squares = x_bound**2
        largest = np.sqrt(squares + (squares + intercept) ** 2 - intercept)
        assert largest <= logistic_sensitivity((x_bound,), intercept)

    @pytest.mark.parametrize("n_samples", [1, 100, 2048, 2049, 10_000])
    @pytest.mark.parametrize("kind", ["linear", "logistic"])
    def test_is_less_than_half_of_the_margin(self, kind, n_samples):
        rng = np.random.default_rng(n_samples)
        X = rng.uniform(-0.5, 1, size=(n_samples, 2)) / np.sqrt(2)
        signs = rng.choice([-1.0, 1.0], n_samples)
        columns = [[Fraction(x) for x in column] for column in X.T]
        targets = [Fraction(sign) for sign in signs]
        if kind == "linear":
            release = GramRelease(None).fit(X, signs).release_
            computed = unpack_gram(release.vector, 3, release)
            columns = [*columns, targets]
            expected = computed_exactly(columns, columns)
        else:
            release = LogisticRelease(None, classes=(-1, 1)).fit(X, signs).release_
            computed = release.vector[:2]
            expected = computed_exactly(columns, [targets])[:, 0]
        rounding = np.linalg.norm(computed - expected)
        bounds = release.bounds
        margin = release.sensitivity - SENSITIVITIES[kind](bounds)
        assert rounding <= margin / 2
        assert margin <= 1e-8 * release.sensitivity

    @pytest.mark.parametrize(
        ("family", "upper", "margin"),
        [("gaussian", 60.0, 1e-10), ("bernoulli", 1.0, 0.0), ("poisson", 60.0, 0.0)],
    )
    def test_of_numbers_is_that_of_one_rounding(self, family, upper, margin):
        numbers = np.random.default_rng(0).uniform(50, 60, size=10_000)
        if family != "gaussian":
            numbers = np.minimum(np.round(numbers), upper)
        lower = 50.0 if family == "gaussian" else 0.0
        party = MeanRelease(None, family=family, lower=lower, upper=upper)
        release = party.fit(numbers).release_
        expected = exact([Fraction(x) for x in numbers])
        rounding = abs(Fraction(release.statistic[0]) - expected)
        stated = Fraction(release.sensitivity) - Fraction(upper - lower)
        assert 2 * rounding <= stated <= margin * (upper - lower)


def computed_exactly(first, second):
    """Sums of products of columns of fractions, rounded once each."""
    return np.array(
        [[float(exact([a * b for a, b in zip(u, v)])) for v in second] for u in first]
    )


class TestUnpackedGram:
    @pytest.fixture
    def data(self, rng):
        return rng.normal(size=(60, 3)) / 4, rng.choice([-1.0, 1.0], 60)

    @pytest.mark.parametrize("intercept", [False, True])
    def test_of_a_linear_release_is_the_gram_matrix(self, data, intercept):
        X, y = data
        party = GramRelease(None, fit_intercept=intercept, x_bound=9)
        release = party.fit(X, y).release_
        assert len(release.vector) == linear_size(3, intercept)
        U = np.column_stack([np.ones((60, int(intercept))), X, y])
        gram = unpack_gram(release.vector, 4 + intercept, release)
        np.testing.assert_allclose(gram, U.T @ U)

    def test_has_the_norm_of_the_vector(self, data):
        X, y = data
        vector = GramRelease(None, x_bound=9).fit(X, y).release_.vector
        U = np.column_stack([X, y])
        assert vector @ vector == pytest.approx(np.sum((U.T @ U) ** 2))

    @pytest.mark.parametrize("intercept", [False, True])
    def test_of_a_logistic_release_follows_the_sums_of_y_u(self, data, intercept):
        X, signs = data
        party = LogisticRelease(
            None, fit_intercept=intercept, x_bound=9, classes=(-1, 1)
        )
        release = party.fit(X, signs).release_
        size = 3 + intercept
        U = np.column_stack([np.ones((60, int(intercept))), X])
        np.testing.assert_allclose(release.vector[:size], signs @ U)
        gram = unpack_gram(release.vector[size:], size, release)
        np.testing.assert_allclose(gram, U.T @ U)
