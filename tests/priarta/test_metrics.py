"""Closed forms against independent implementations, also for singular covariances."""

import mpmath
import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import multivariate_normal

from skvalue.priarta import (
    diversity_relevance,
    principal_contributions,
    symmetric_kl,
    wasserstein,
)
from skvalue.priarta.buyer import psd_factor


def random_covariance(rng, d, rank):
    factor = rng.normal(size=(d, rank))
    return factor @ factor.T


def wasserstein_by_roots(mean, covariance, mean_other, covariance_other):
    """From matrix roots."""
    root = sqrtm(covariance)
    cross = sqrtm(root @ covariance_other @ root)
    traces = np.trace(covariance) + np.trace(covariance_other)
    square = np.sum((mean - mean_other) ** 2) + traces - 2 * np.trace(cross).real
    return np.sqrt(max(square, 0.0))


def wasserstein_in_40_digits(mean, factor, mean_other, factor_other):
    """From factors A, B of the covariances: the singular values of A' B."""
    with mpmath.workdps(40):
        A = mpmath.matrix(factor.tolist())
        B = mpmath.matrix(factor_other.tolist())
        nuclear_norm = mpmath.fsum(mpmath.svd_r(A.T * B, compute_uv=False))
        shifts = [mpmath.mpf(a) - mpmath.mpf(b) for a, b in zip(mean, mean_other)]
        shift = mpmath.fsum(x**2 for x in shifts)
        traces = mpmath.fsum(x**2 for x in A) + mpmath.fsum(x**2 for x in B)
        square = shift + traces - 2 * nuclear_norm
        return float(mpmath.sqrt(max(square, mpmath.mpf(0))))


class TestWasserstein:
    @pytest.mark.parametrize("d", [1, 2, 7, 20])
    def test_equals_that_by_matrix_roots(self, rng, d):
        S1 = random_covariance(rng, d, d + 3)
        S2 = random_covariance(rng, d, d + 3)
        m1, m2 = rng.normal(size=(2, d))
        expected = wasserstein_by_roots(m1, S1, m2, S2)
        assert wasserstein(m1, S1, m2, S2) == pytest.approx(expected, abs=1e-8)

    @pytest.mark.parametrize("ranks", [(6, 2), (2, 6), (1, 1), (3, 3), (4, 6)], ids=str)
    @pytest.mark.parametrize("scale", [1.0, 1e-4])
    def test_of_singular_covariances_equals_that_in_40_digits(self, rng, ranks, scale):
        F1, F2 = (scale * rng.normal(size=(6, rank)) for rank in ranks)
        m1, m2 = scale * rng.normal(size=(2, 6))
        distance = wasserstein(m1, F1 @ F1.T, m2, F2 @ F2.T)
        expected = wasserstein_in_40_digits(m1, F1, m2, F2)
        assert distance == pytest.approx(expected, abs=1e-8)

    @pytest.mark.parametrize("step", [0.0, 1e-9, 1e-6, 1e-3])
    @pytest.mark.parametrize("rank", [3, 5])
    def test_keeps_its_digits_where_it_is_small(self, rng, step, rank):
        # A difference of traces would be wrong by the square root of the rounding
        # error, 1e-8.
        F1 = rng.normal(size=(5, rank))
        F2 = F1 + step * rng.normal(size=(5, rank))
        mean = np.zeros(5)
        distance = wasserstein(mean, F1 @ F1.T, mean, F2 @ F2.T)
        expected = wasserstein_in_40_digits(mean, F1, mean, F2)
        assert distance == pytest.approx(expected, rel=1e-6, abs=1e-8)

    def test_of_points_is_the_euclidean_distance(self):
        zeros = np.zeros((2, 2))
        assert wasserstein([0.0, 0.0], zeros, [3.0, 4.0], zeros) == 5.0

    def test_in_one_dimension_is_that_of_standard_deviations(self):
        assert wasserstein([0.0], [[4.0]], [0.0], [[9.0]]) == pytest.approx(1.0)

    def test_of_stacks_is_that_of_each_pair(self, rng):
        covariances = [random_covariance(rng, 4, rank) for rank in (2, 3, 4, 4)]
        stack = np.reshape(covariances, (2, 2, 4, 4))
        means = rng.normal(size=(2, 2, 4))
        covariance = random_covariance(rng, 4, 4)
        mean = np.zeros(4)
        distances = wasserstein(mean, covariance, means, stack)
        assert distances.shape == (2, 2)
        for index in np.ndindex(2, 2):
            expected = wasserstein(mean, covariance, means[index], stack[index])
            assert distances[index] == pytest.approx(expected)
        reversed_distances = wasserstein(means, stack, mean, covariance)
        assert reversed_distances == pytest.approx(distances)


class TestPrincipalContributions:
    def test_sum_to_the_squared_distance(self, rng):
        S1 = random_covariance(rng, 5, 3)
        S2 = random_covariance(rng, 5, 4)
        m1, m2 = rng.normal(size=(2, 5))
        axes = np.linalg.qr(rng.normal(size=(5, 5)))[0].T
        contributions = principal_contributions(m1, S1, m2, S2, axes)
        assert contributions.shape == (2, 5)
        assert contributions.min() >= 0
        square = wasserstein(m1, S1, m2, S2) ** 2
        assert contributions.sum() == pytest.approx(square, rel=1e-9)
        assert contributions[0] == pytest.approx((axes @ (m1 - m2)) ** 2)

    def test_of_commuting_covariances_are_those_of_standard_deviations(self):
        S1 = np.diag([1.0, 4.0])
        S2 = np.diag([9.0, 0.0])
        contributions = principal_contributions([0, 0], S1, [0, 0], S2, np.eye(2))
        assert contributions[1] == pytest.approx([4.0, 4.0])


class TestSymmetricKL:
    @pytest.fixture
    def moments(self, rng):
        S1 = random_covariance(rng, 2, 5)
        S2 = random_covariance(rng, 2, 5)
        m1, m2 = rng.normal(size=(2, 2))
        return m1, S1, m2, S2

    def test_is_that_of_draws(self, moments):
        m1, S1, m2, S2 = moments
        p = multivariate_normal(m1, S1)
        q = multivariate_normal(m2, S2)
        x = p.rvs(200_000, random_state=1)
        y = q.rvs(200_000, random_state=1)
        forward = np.mean(p.logpdf(x) - q.logpdf(x))
        backward = np.mean(q.logpdf(y) - p.logpdf(y))
        assert symmetric_kl(*moments) == pytest.approx(forward + backward, rel=0.03)

    def test_is_symmetric_and_zero_for_equal_distributions(self, moments):
        m1, S1, m2, S2 = moments
        assert symmetric_kl(m2, S2, m1, S1) == pytest.approx(symmetric_kl(*moments))
        assert symmetric_kl(m1, S1, m1, S1) == pytest.approx(0, abs=1e-12)

    def test_of_a_singular_covariance_is_finite_with_a_ridge_only(self):
        flat = np.diag([1.0, 0.0])
        moments = [0, 0], flat, [0, 0], np.eye(2)
        assert symmetric_kl(*moments) == np.inf
        expected = 0.5 * (0.5 / 1.5 + 1.5 / 0.5 + 2) - 2
        assert symmetric_kl(*moments, ridge=0.5) == pytest.approx(expected)


class TestDiversityAndRelevance:
    def test_are_geometric_means_over_the_directions_of_the_buyer(self):
        own = np.diag([4.0, 1.0, 1e-6])  # the last direction is below the threshold
        diversity, relevance = diversity_relevance(own, np.diag([1.0, 3.0, 7.0]))
        assert diversity == pytest.approx(np.sqrt(3 / 4 * 2 / 3))
        assert relevance == pytest.approx(np.sqrt(1 / 4 * 1 / 3))

    def test_take_the_length_of_an_image_of_a_direction(self):
        # |S u| = 3 along each, though u' S u = 0.
        turned = np.array([[0.0, 3.0], [3.0, 0.0]])
        _, relevance = diversity_relevance(np.diag([3.0, 1.5]), turned)
        assert relevance == pytest.approx(np.sqrt(0.5))

    def test_are_fractions_that_sum_to_at_most_one(self, rng):
        sellers = np.array([random_covariance(rng, 3, 4) for _ in range(5)])
        both = diversity_relevance(random_covariance(rng, 3, 4), sellers)
        assert np.shape(both) == (2, 5)
        assert (np.sum(both, axis=0) <= 1 + 1e-12).all()
        assert np.min(both) >= 0


def test_factor_is_of_the_nearest_positive_semidefinite_matrix(rng):
    indefinite = np.diag([2.0, -1.0, 0.0])
    factor = psd_factor(indefinite)
    assert factor @ factor.T == pytest.approx(np.diag([2.0, 0.0, 0.0]))
    for _ in range(50):
        other = random_covariance(rng, 3, 3) * rng.uniform(0, 1)
        assert np.linalg.norm(other - indefinite) >= 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: psd_factor(np.ones((2, 3))),
            "covariance must be square matrices. Got shape",
        ),
        (
            lambda: psd_factor([[np.nan]]),
            "covariance must hold finite numbers. Got NaN",
        ),
        (lambda: wasserstein([0, 0], [[1]], [0], [[1]]), "mean must have 1 entries"),
        (
            lambda: wasserstein([np.inf], [[1]], [0], [[1]]),
            "mean must hold finite numbers",
        ),
        (
            lambda: symmetric_kl([0], [[1]], [0], [[1]], ridge=-1),
            "ridge must be a finite number",
        ),
        (
            lambda: diversity_relevance([[1]], [[1]], threshold=1),
            r"threshold must be in \[0, 1\)",
        ),
        (
            lambda: diversity_relevance([[0]], [[1]]),
            "covariance must have a positive eigenvalue",
        ),
        (
            lambda: diversity_relevance([[1]], np.eye(2)),
            "covariance_other must hold matrices",
        ),
    ],
    ids=[
        "shape",
        "nan",
        "length",
        "infinite",
        "ridge",
        "threshold",
        "no variance",
        "other shape",
    ],
)
def test_invalid_moments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
