"""The Bayes estimate equals its definition, draws along the buyer's directions, and lets go."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from skvalue.priarta import _shrinkage
from skvalue.priarta._mechanism import moment_statistic
from skvalue.priarta._packing import pack, unpack
from skvalue.priarta._shrinkage import _FLOOR, _SIZES, Prior, shrink_moments, statistic_of_rows

from .markets import gaussian_rows


def covariance_of(statistics):
    covariance = np.cov(statistics.T)
    return covariance / np.trace(covariance) * len(covariance) + _FLOOR * np.eye(len(covariance))


def by_definition(covariance, gap):
    """Posterior mean, size by size, from densities and inverses."""
    p = len(gap)
    laws = [size * covariance + np.eye(p) for size in _SIZES]
    fit = np.array([multivariate_normal(cov=law).logpdf(gap) for law in laws])
    weight = np.exp(fit - fit.max())
    means = [size * covariance @ np.linalg.solve(law, gap) for size, law in zip(_SIZES, laws)]
    return weight @ means / weight.sum()


@pytest.mark.parametrize("length", [0.5, 3.0, 30.0])
def test_it_is_the_posterior_mean(rng, length):
    statistics = rng.normal(size=(50, 6)) * [3, 2, 1, 1, 0.1, 0]
    gaps = length * rng.normal(size=(4, 6))
    found = Prior(statistics).estimate(gaps)
    expected = [by_definition(covariance_of(statistics), gap) for gap in gaps]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_a_few_directions_and_the_rest(rng, monkeypatch):
    # Two directions apart, and the same variance in all others: the prior of all six.
    statistics = np.vstack([np.eye(6), -np.eye(6)]) * np.array([5, 3, 1, 1, 1, 1])
    gaps = 2 * rng.normal(size=(4, 6))
    whole = Prior(statistics).estimate(gaps)
    monkeypatch.setattr(_shrinkage, "_MOST_DIRECTIONS", 2)
    few = Prior(statistics)
    assert few.vectors.shape == (6, 2)
    np.testing.assert_allclose(few.estimate(gaps), whole, rtol=1e-9)


@pytest.mark.parametrize("statistics", [None, np.ones((5, 6)), np.ones((1, 6))], ids=str)
def test_without_directions_all_are_alike(rng, statistics):
    gaps = 2 * rng.normal(size=(4, 6))
    expected = [by_definition(np.eye(6), g) for g in gaps]
    np.testing.assert_allclose(Prior(statistics).estimate(gaps), expected, rtol=1e-9)


def test_it_lets_go_of_what_noise_cannot_be(rng):
    prior = Prior(rng.normal(size=(50, 6)) * [3, 2, 1, 1, 0.1, 0])
    gaps = 1e4 * rng.normal(size=(4, 6))
    np.testing.assert_allclose(prior.estimate(gaps), gaps, atol=0.1)
    quiet = 0.3 * rng.normal(size=(4, 6))
    assert (np.linalg.norm(prior.estimate(quiet), axis=1) < np.linalg.norm(quiet, axis=1)).all()


def test_it_pays_where_sellers_differ_as_rows_do(rng):
    statistics = rng.normal(size=(200, 20)) * np.r_[np.full(3, 5.0), np.full(17, 0.3)]
    noise = rng.normal(size=(300, 20))
    risks = []
    for gap in (np.r_[4, 4, 4, np.zeros(17)], np.r_[0, 0, 0, np.full(17, 3.0)]):
        risks.append(
            [
                np.mean((prior.estimate(gap + noise) - gap) ** 2)
                for prior in (Prior(statistics), Prior())
            ]
        )
    assert risks[0][0] < 0.5 * risks[0][1]
    assert risks[1][0] < 1.05  # plain: 1


def test_statistics_are_those_of_the_mechanism(rng):
    rows = gaussian_rows(rng, 30, 4)
    found = statistic_of_rows(rows, 0.7, seed=0)
    np.testing.assert_allclose(found.sum(axis=0), moment_statistic(rows, 0.7, "replace"))
    means, moments = unpack(found, 4)
    np.testing.assert_allclose(means, 0.7 * rows)
    np.testing.assert_allclose(moments, rows[:, :, None] * rows[:, None, :])
    np.testing.assert_allclose(pack(means, moments), found)


def test_few_rows_are_taken_where_there_are_many_dimensions(rng, monkeypatch):
    monkeypatch.setattr(_shrinkage, "_MOST_NUMBERS", 14 * 10)
    assert statistic_of_rows(gaussian_rows(rng, 30, 4), 0.7, seed=0).shape == (10, 14)
    monkeypatch.setattr(_shrinkage, "_MOST_NUMBERS", 1)
    assert statistic_of_rows(gaussian_rows(rng, 30, 4), 0.7, seed=0).shape == (2, 14)


def test_units_of_mean_and_moment(rng):
    """Both moments are taken in units of their own noise."""
    rows = gaussian_rows(rng, 100, 3)
    mean, moment = rows.mean(axis=0), rows.T @ rows / 100
    prior = Prior(statistic_of_rows(rows, 0.5, seed=0))
    noise = np.array([[0.2, 0.1], [0.02, 0.01]])
    means = mean + 0.1 * rng.normal(size=(2, 3))
    gap = rng.normal(size=(2, 3, 3)) * 0.1
    moments = moment + gap + np.swapaxes(gap, 1, 2)
    found = shrink_moments((mean, moment), means, moments, noise, prior)
    for place, (a, b) in enumerate(noise):
        packed = pack((means[place] - mean)[None] / a, (moments[place] - moment)[None] / b)
        by_mean, by_moment = unpack(prior.estimate(packed), 3)
        np.testing.assert_allclose(found[0][place], mean + a * by_mean[0])
        np.testing.assert_allclose(found[1][place], moment + b * by_moment[0])
    exact = shrink_moments((mean, moment), means, moments, np.full((2, 2), 1e-9), prior)
    np.testing.assert_allclose(exact[0], means, atol=1e-7)
    np.testing.assert_allclose(exact[1], moments, atol=1e-7)
