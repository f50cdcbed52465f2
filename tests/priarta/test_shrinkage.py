"""The Bayes estimate of moments against its definition."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from skvalue.priarta.buyer import Prior, priors_of, shrink_moments
from skvalue.privacy import smat, svec

from .markets import gaussian_rows

UNBOUNDED = np.array([np.inf])
FLOOR = 0.02  # of the mean variance, in all directions
SCALES = np.concatenate([[0.0], 10.0 ** np.arange(-2, 12.25, 0.25)])


def prior_covariance(vectors):
    covariance = np.cov(vectors.T)
    p = len(covariance)
    return covariance / np.trace(covariance) * p + FLOOR * np.eye(p)


def posterior_mean(covariance, gap, max_length=np.inf):
    """Posterior mean by its definition, from densities and inverses at each scale."""
    p = len(gap)
    weights = []
    means = []
    for scale in SCALES[SCALES * p <= max_length**2]:
        total = scale * covariance + np.eye(p)
        weights.append(multivariate_normal(cov=total).logpdf(gap))
        means.append(scale * covariance @ np.linalg.solve(total, gap))
    weights = np.exp(np.array(weights) - max(weights))
    return weights @ means / weights.sum()


class TestPrior:
    VARYING = np.array([3, 2, 1, 1, 0.1, 0])  # deviations of the columns

    @pytest.mark.parametrize("length", [0.5, 3.0, 30.0])
    def test_estimate_is_the_posterior_mean(self, rng, length):
        vectors = rng.normal(size=(50, 6)) * self.VARYING
        gaps = length * rng.normal(size=(4, 6))
        max_lengths = np.array([np.inf, 1e3, 3.0, 0.1])
        covariance = prior_covariance(vectors)
        expected = [
            posterior_mean(covariance, gap, max_length)
            for gap, max_length in zip(gaps, max_lengths)
        ]
        np.testing.assert_allclose(
            Prior(vectors).estimate(gaps, max_lengths), expected, rtol=1e-7, atol=1e-9
        )

    def test_directions_beyond_128_have_one_variance(self, rng):
        # All others have the same variance, so that this is the prior of all 130.
        deviations = np.r_[5.0, 3.0, np.ones(128)]
        vectors = np.vstack([np.eye(130), -np.eye(130)]) * deviations
        prior = Prior(vectors)
        gap = 2 * rng.normal(size=130)
        assert prior.directions.shape == (130, 128)
        expected = posterior_mean(prior_covariance(vectors), gap)
        np.testing.assert_allclose(
            prior.estimate(gap[None], UNBOUNDED), [expected], rtol=1e-7
        )

    @pytest.mark.parametrize("n_samples", [5, 1])
    def test_equal_vectors_give_an_isotropic_prior(self, rng, n_samples):
        gaps = 2 * rng.normal(size=(4, 6))
        expected = [posterior_mean(np.eye(6), gap) for gap in gaps]
        prior = Prior(np.ones((n_samples, 6)))
        np.testing.assert_allclose(prior.estimate(gaps, UNBOUNDED), expected, rtol=1e-9)

    def test_gaps_far_above_the_noise_are_kept(self, rng):
        prior = Prior(rng.normal(size=(50, 6)) * self.VARYING)
        gaps = 1e4 * rng.normal(size=(4, 6))
        np.testing.assert_allclose(prior.estimate(gaps, UNBOUNDED), gaps, atol=0.1)

    def test_gaps_below_the_noise_are_shrunk(self, rng):
        prior = Prior(rng.normal(size=(50, 6)) * self.VARYING)
        gaps = 0.3 * rng.normal(size=(4, 6))
        shrunk = prior.estimate(gaps, UNBOUNDED)
        assert (np.linalg.norm(shrunk, axis=1) < np.linalg.norm(gaps, axis=1)).all()

    def test_risk_is_smaller_where_sellers_differ_as_rows_do(self, rng):
        vectors = rng.normal(size=(200, 20)) * np.r_[np.full(3, 5.0), np.full(17, 0.3)]
        noise = rng.normal(size=(300, 20))
        informed = Prior(vectors)
        isotropic = Prior(np.ones((2, 20)))

        def risk(prior, gap):
            return np.mean((prior.estimate(gap + noise, UNBOUNDED) - gap) ** 2)

        along = np.r_[4, 4, 4, np.zeros(17)]
        assert risk(informed, along) < 0.5 * risk(isotropic, along)
        across = np.r_[0, 0, 0, np.full(17, 3.0)]
        assert risk(informed, across) < 1.05  # 1 without a prior


def test_symmetric_matrices_are_vectors_of_the_same_norm(rng):
    square = rng.normal(size=(3, 4, 4))
    matrices = square + np.swapaxes(square, 1, 2)
    vectors = svec(matrices)
    assert vectors.shape == (3, 10)
    np.testing.assert_allclose((vectors**2).sum(axis=1), (matrices**2).sum(axis=(1, 2)))
    np.testing.assert_allclose(smat(vectors, 4), matrices)


class TestPriorsOfRows:
    def test_are_those_of_rows_and_of_their_outer_products(self, rng):
        rows = gaussian_rows(rng, 30, 4) + 5
        centred = rows - rows.mean(axis=0)
        products = np.array([svec(np.outer(row, row)) for row in centred])
        mean_prior, covariance_prior = priors_of(rows, seed=0)
        for prior, vectors in ((mean_prior, rows), (covariance_prior, products)):
            gaps = rng.normal(size=(3, vectors.shape[1]))
            np.testing.assert_allclose(
                prior.estimate(gaps, UNBOUNDED),
                Prior(vectors).estimate(gaps, UNBOUNDED),
            )

    @pytest.mark.slow
    def test_use_few_rows_of_many_dimensions(self, rng):
        """2^22 numbers in products, or two rows."""
        wide = gaussian_rows(rng, 12, 1200)
        _, prior = priors_of(wide, seed=0)
        assert prior.directions.shape == (1200 * 1201 / 2, 5)


class TestShrinkMoments:
    @pytest.fixture
    def rows(self, rng):
        return gaussian_rows(rng, 100, 3)

    @pytest.fixture
    def released(self, rng, rows):
        """Noisy means and second moments of two sellers."""
        means = rows.mean(axis=0) + 0.1 * rng.normal(size=(2, 3))
        outer = means[:, :, None] * means[:, None, :]
        return means, np.cov(rows.T) + outer + 0.05 * np.eye(3)

    def test_gaps_are_shrunk_in_units_of_their_noise(self, rows, released):
        mean = rows.mean(axis=0)
        covariance = np.cov(rows.T)
        means, moments = released
        priors = priors_of(rows, seed=0)
        mean_prior, covariance_prior = priors
        number_prior = Prior(np.ones((2, 1)))
        noise = np.array([[0.2, 0.1, 0.08], [0.02, 0.01, 0.009]])
        shrunk_means, shrunk_covariances = shrink_moments(
            (mean, covariance), means, moments, noise, priors, 2.0
        )
        for i, (a, b, t) in enumerate(noise):
            gap = (means[i] - mean)[None] / a
            expected_mean = mean + a * mean_prior.estimate(gap, 2 / a)[0]
            np.testing.assert_allclose(shrunk_means[i], expected_mean)

            # An entry of m m' changes by m_i e_j + m_j e_i + e_i e_j; on average over
            # the diagonal:
            square = expected_mean @ expected_mean
            own = 4 * a**2 * square / 3 + 2 * a**4
            unshrunk = moments[i] - np.outer(expected_mean, expected_mean)

            # The trace, which scales the covariance that gaps are measured from.
            total = np.sqrt(t**2 + 3 * own)
            gap = np.trace(unshrunk - covariance) / total
            gap = number_prior.estimate(np.array([[gap]]), 4 / total)[0, 0]
            target = (1 + total * gap / np.trace(covariance)) * covariance

            c = np.sqrt(b**2 + own)
            gap = svec(unshrunk - target)[None] / c
            gap = covariance_prior.estimate(gap, 4 / c)[0]
            np.testing.assert_allclose(shrunk_covariances[i], target + smat(c * gap, 3))

    def test_moments_with_hardly_any_noise_are_kept(self, rows, released):
        means, moments = released
        shrunk_means, shrunk_covariances = shrink_moments(
            (rows.mean(axis=0), np.cov(rows.T)),
            means,
            moments,
            noise=np.full((2, 3), 1e-9),
            priors=priors_of(rows, seed=0),
            radius=2.0,
        )
        np.testing.assert_allclose(shrunk_means, means, atol=1e-7)
        outer = shrunk_means[:, :, None] * shrunk_means[:, None, :]
        np.testing.assert_allclose(shrunk_covariances + outer, moments, atol=1e-7)

    def test_noise_longer_than_the_radius_gives_the_moments_of_the_buyer(
        self, rng, rows
    ):
        mean = rows.mean(axis=0)
        covariance = np.cov(rows.T)
        shrunk_means, shrunk_covariances = shrink_moments(
            (mean, covariance),
            20 * rng.normal(size=(1, 3)),
            20 * np.eye(3)[None],
            noise=np.full((1, 3), 20.0),
            priors=priors_of(rows, seed=0),
            radius=1.0,
        )
        assert np.array_equal(shrunk_means, mean[None])
        assert np.array_equal(shrunk_covariances, covariance[None])
