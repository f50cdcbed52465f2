"""The Bayes estimate equals its definition, along the buyer's directions and at any
noise."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from skvalue.priarta.buyer import Prior, priors_of, shrink_moments
from skvalue.privacy import smat, svec

from .markets import gaussian_rows

ANY = np.array([np.inf])
FLOOR = 0.02  # of the mean variance, in all directions
SIZES = np.concatenate([[0.0], 10.0 ** np.arange(-2, 12.25, 0.25)])


def covariance_of(statistics):
    covariance = np.cov(statistics.T)
    return covariance / np.trace(covariance) * len(covariance) + FLOOR * np.eye(
        len(covariance)
    )


def by_definition(covariance, gap, longest=np.inf):
    """Posterior mean, size by size, from densities and inverses."""
    p = len(gap)
    sizes = SIZES[SIZES * p <= longest**2]
    totals = [size * covariance + np.eye(p) for size in sizes]
    fit = np.array([multivariate_normal(cov=total).logpdf(gap) for total in totals])
    weight = np.exp(fit - fit.max())
    means = [
        size * covariance @ np.linalg.solve(both, gap)
        for size, both in zip(sizes, totals)
    ]
    return weight @ means / weight.sum()


@pytest.mark.parametrize("length", [0.5, 3.0, 30.0])
def test_it_is_the_posterior_mean(rng, length):
    statistics = rng.normal(size=(50, 6)) * [3, 2, 1, 1, 0.1, 0]
    gaps = length * rng.normal(size=(4, 6))
    longest = np.array([np.inf, 1e3, 3.0, 0.1])
    found = Prior(statistics).estimate(gaps, longest)
    expected = [
        by_definition(covariance_of(statistics), *each) for each in zip(gaps, longest)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_a_few_directions_and_the_rest(rng):
    # 128 directions are kept, and all others have the same variance: the prior of all
    # 130.
    deviations = np.r_[5.0, 3.0, np.ones(128)]
    statistics = np.vstack([np.eye(130), -np.eye(130)]) * deviations
    prior, gap = Prior(statistics), 2 * rng.normal(size=130)
    assert prior.directions.shape == (130, 128)
    expected = by_definition(covariance_of(statistics), gap)
    np.testing.assert_allclose(prior.estimate(gap[None], ANY), [expected], rtol=1e-7)


@pytest.mark.parametrize("statistics", [np.ones((5, 6)), np.ones((1, 6))], ids=str)
def test_without_directions_all_are_alike(rng, statistics):
    gaps = 2 * rng.normal(size=(4, 6))
    expected = [by_definition(np.eye(6), g) for g in gaps]
    np.testing.assert_allclose(
        Prior(statistics).estimate(gaps, ANY), expected, rtol=1e-9
    )


def test_it_lets_go_of_what_noise_cannot_be(rng):
    prior = Prior(rng.normal(size=(50, 6)) * [3, 2, 1, 1, 0.1, 0])
    gaps = 1e4 * rng.normal(size=(4, 6))
    np.testing.assert_allclose(prior.estimate(gaps, ANY), gaps, atol=0.1)
    quiet = 0.3 * rng.normal(size=(4, 6))
    shrunk = prior.estimate(quiet, ANY)
    assert (np.linalg.norm(shrunk, axis=1) < np.linalg.norm(quiet, axis=1)).all()


def test_it_pays_where_sellers_differ_as_rows_do(rng):
    statistics = rng.normal(size=(200, 20)) * np.r_[np.full(3, 5.0), np.full(17, 0.3)]
    noise = rng.normal(size=(300, 20))

    def risk(prior, gap):
        return np.mean((prior.estimate(gap + noise, ANY) - gap) ** 2)

    same, other = np.r_[4, 4, 4, np.zeros(17)], np.r_[0, 0, 0, np.full(17, 3.0)]
    assert risk(Prior(statistics), same) < 0.5 * risk(Prior(np.ones((2, 20))), same)
    assert risk(Prior(statistics), other) < 1.05  # plain: 1


def test_symmetric_matrices_there_and_back(rng):
    square = rng.normal(size=(3, 4, 4))
    matrices = square + np.swapaxes(square, 1, 2)
    vectors = svec(matrices)
    assert vectors.shape == (3, 10)
    np.testing.assert_allclose((vectors**2).sum(axis=1), (matrices**2).sum(axis=(1, 2)))
    np.testing.assert_allclose(smat(vectors, 4), matrices)


def test_priors_are_of_rows_and_of_their_products(rng):
    rows = gaussian_rows(rng, 30, 4) + 5
    around = rows - rows.mean(axis=0)
    products = np.array([svec(np.outer(row, row)) for row in around])
    for prior, vectors in zip(priors_of(rows, seed=0), (rows, products)):
        gaps = rng.normal(size=(3, vectors.shape[1]))
        np.testing.assert_allclose(
            prior.estimate(gaps, ANY), Prior(vectors).estimate(gaps, ANY)
        )


@pytest.mark.slow
def test_few_rows_are_taken_where_there_are_many_dimensions(rng):
    """Of products 2^22 numbers, or two rows."""
    wide = gaussian_rows(rng, 12, 1200)
    assert priors_of(wide, seed=0)[1].directions.shape == (1200 * 1201 / 2, 5)


def test_moments_are_taken_in_units_of_their_noise(rng):
    rows = gaussian_rows(rng, 100, 3)
    mean, covariance = rows.mean(axis=0), np.cov(rows.T)
    priors = priors_of(rows, seed=0)
    noise = np.array([[0.2, 0.1], [0.02, 0.01]])
    means = mean + 0.1 * rng.normal(size=(2, 3))
    moments = covariance + means[:, :, None] * means[:, None, :] + 0.05 * np.eye(3)
    found = shrink_moments((mean, covariance), means, moments, noise, priors, 2.0)
    for place, (a, b) in enumerate(noise):
        shrunk = (
            mean + a * priors[0].estimate((means[place] - mean)[None] / a, 2 / a)[0]
        )
        np.testing.assert_allclose(found[0][place], shrunk)
        # An entry of m m' changes by m_i e_j + m_j e_i + e_i e_j; on average over the
        # diagonal:
        b = np.sqrt(b**2 + 4 * a**2 * (shrunk @ shrunk) / 3 + 2 * a**4)
        gap = moments[place] - np.outer(shrunk, shrunk) - covariance
        by = b * priors[1].estimate(svec(gap)[None] / b, 4 / b)[0]
        np.testing.assert_allclose(found[1][place], covariance + smat(by, 3))
    exact = shrink_moments(
        (mean, covariance), means, moments, np.full((2, 2), 1e-9), priors, 2.0
    )
    np.testing.assert_allclose(exact[0], means, atol=1e-7)
    outer = exact[0][:, :, None] * exact[0][:, None, :]
    np.testing.assert_allclose(exact[1] + outer, moments, atol=1e-7)


def test_noise_longer_than_the_radius_leaves_nothing(rng):
    rows = gaussian_rows(rng, 100, 3)
    mean, covariance = rows.mean(axis=0), np.cov(rows.T)
    loud = np.full((1, 2), 20.0)
    means, moments = 20 * rng.normal(size=(1, 3)), 20 * np.eye(3)[None]
    priors = priors_of(rows, seed=0)
    found = shrink_moments((mean, covariance), means, moments, loud, priors, radius=1.0)
    assert np.array_equal(found[0], mean[None])
    assert np.array_equal(found[1], covariance[None])
