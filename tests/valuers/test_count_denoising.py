"""Smoothing and shrinkage of noisy counts: against the normal law, and in both limits."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, truncnorm

from skvalue.valuers.tknn_shapley import neighbour_values
from skvalue.valuers.tknn_shapley._denoising import (
    _SCALES,
    Basis,
    _evidence,
    count_posterior,
    positive_draws,
    posterior_draws,
    real_neighbour_values,
    smoothing_bases,
    value_sizes,
)


def line(n):
    """Points on a line, and what the smoothing wants to know of them."""
    x = np.sort(np.random.default_rng(0).uniform(0, 4, n))
    return np.abs(x[:, None] - x), np.arange(n), 1.0


def covariances(bases):
    return [(basis.vectors * basis.weights) @ basis.vectors.T for basis in bases]


def test_evidence_is_the_normal_density():
    distances, landmarks, reach = line(7)
    y = np.random.default_rng(1).normal(50, 20, 7)
    basis = smoothing_bases(distances, landmarks, reach, np.arange(7) % 2, 2)[0][1]
    got = _evidence(y, basis, 12.0)
    (kernel,) = covariances([basis])
    scales = [0.0, *_SCALES]
    for i, s in enumerate(scales):
        for j, tau in enumerate(_SCALES):
            if s > tau:
                assert got[i, j] == -np.inf
                continue
            if tau > 1e4:  # too large for the check to invert
                continue
            cov = s**2 * kernel + 144.0 * np.eye(7) + tau**2
            expected = multivariate_normal.logpdf(y, np.zeros(7), cov) + 3.5 * np.log(2 * np.pi)
            assert got[i, j] == pytest.approx(expected, rel=1e-7, abs=1e-6)


def test_draws_have_the_posterior_mean_and_deviation():
    distances, landmarks, reach = line(6)
    y = np.array([300.0, 280, 250, 200, 220, 260])
    (basis, *_), _ = smoothing_bases(distances, landmarks, reach, np.arange(6) % 2, 2)
    posterior, prior = posterior_draws(y, [basis], 30.0, np.random.default_rng(0), 40_000)
    logs = _evidence(y, basis, 30.0)
    share = np.exp(logs - logs.max())
    share /= share.sum()
    (kernel,) = covariances([basis])
    mean, square = np.zeros(6), np.zeros(6)
    for i, s in enumerate([0.0, *_SCALES]):
        for j, tau in enumerate(_SCALES):
            precision = np.linalg.inv(s**2 * kernel + tau**2 + 900 * np.eye(6))
            part = y - 900 * precision @ y
            mean += share[i, j] * part
            square += share[i, j] * (900 - 900**2 * np.diag(precision) + part**2)
    np.testing.assert_allclose(posterior.mean(axis=0), mean, atol=0.6)
    np.testing.assert_allclose(posterior.std(axis=0), np.sqrt(square - mean**2), rtol=0.02)
    assert prior.std() > 1000 * posterior.std(axis=0).max()


def test_noise_that_drowns_everything_leaves_the_prior():
    distances, landmarks, reach = line(6)
    (basis, *_), _ = smoothing_bases(distances, landmarks, reach, np.arange(6) % 2, 2)
    posterior, prior = posterior_draws(np.ones(6), [basis], 1e15, np.random.default_rng(0))
    np.testing.assert_allclose(posterior, prior, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 7])
def test_covariance_of_differences_is_that_of_independent_classes(n_classes):
    n = 12
    distances, landmarks, reach = line(n)
    labels = np.arange(n) % n_classes
    total, difference = smoothing_bases(distances, landmarks, reach, labels, n_classes)
    for k, (basis, found) in enumerate(zip(covariances(total), covariances(difference))):
        # own label less all others is a linear map of the counts of all classes at all points
        signs = np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)
        expected = np.einsum("vl,wl,vw->vw", signs, signs, basis) / n_classes
        np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=str(k))


def test_landmarks_approximate():
    distances, _, reach = line(300)
    landmarks = np.unique(np.linspace(0, 299, 120).astype(int))
    labels = np.arange(300) % 3
    rng = np.random.default_rng(0)
    smooth = 400 * (2 + np.sin(np.linspace(0, 6, 300)))
    noisy = np.array([0.7, 0.3])[:, None] * smooth + rng.normal(0, 60, (2, 300))
    sizes = [
        value_sizes(count_posterior(noisy, 60.0, columns, points, reach, labels, 3), 3)
        for columns, points in (
            (distances, np.arange(300)),
            (distances[:, landmarks], landmarks),
        )
    ]
    np.testing.assert_allclose(sizes[0], sizes[1], rtol=0.2)
    basis = Basis(np.exp(-distances[:, landmarks]), landmarks)
    product = basis.vectors.T @ basis.vectors
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-6)


def test_positive_draws_are_of_the_normal_law_cut_off_at_zero():
    rng = np.random.default_rng(0)
    for mean, deviation in ((-2.0, 1.0), (0.0, 3.0), (2.0, 1.0), (50.0, 1.0)):
        cut = positive_draws(mean + deviation * rng.standard_normal((100_000, 1)))
        law = truncnorm(-mean / deviation, np.inf, mean, deviation)
        assert cut.min() >= 0
        assert cut.mean() == pytest.approx(law.mean(), rel=0.03)
        assert cut.std() == pytest.approx(law.std(), rel=0.03)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1)])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_real_values_are_those_of_integers_and_between_them(semivalue, n_classes):
    rng = np.random.default_rng(0)
    same, other = rng.integers(0, 300, (2, 2000))
    same[:50], other[50:100] = 0, 0
    agree, differ = neighbour_values(same, other, n_classes, semivalue)
    real = real_neighbour_values(same, other, n_classes, semivalue, 700)
    np.testing.assert_allclose(real[0][same > 0], agree[same > 0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(real[1][other > 0], differ[other > 0], rtol=1e-12, atol=1e-15)
    between = real_neighbour_values(same + 1.5, other + 0.0, n_classes, semivalue, 700)[0]
    ends = [neighbour_values(same + k, other, n_classes, semivalue)[0] for k in (1, 2)]
    inside = (other > 0) & (same > 3)
    assert (between <= np.maximum(*ends) + 1e-12)[inside].all()
    assert (between >= np.minimum(*ends) - 1e-12)[inside].all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_limits(n_classes):
    n = 30
    distances, landmarks, reach = line(n)
    rng = np.random.default_rng(2)
    labels, counts = np.arange(n) % n_classes, rng.integers(1, 400, (2, n))
    for noise, expected in (
        (1e-3, np.array([neighbour_values(*counts, n_classes)[k] for k in (0, 1)])),
        (1e8, np.array([np.full(n, 0.5), np.full(n, -0.5)])),
    ):
        noisy = counts + (0 if noise < 1 else rng.normal(0, noise, (2, n)))
        posterior = count_posterior(noisy, noise, distances, landmarks, reach, labels, n_classes)
        np.testing.assert_allclose(value_sizes(posterior, n_classes), expected, rtol=2e-3)


def test_smoothing_brings_counts_nearer_to_the_truth():
    n = 200
    distances, landmarks, reach = line(n)
    smooth = 100 * (3 + np.sin(np.linspace(0, 6, n)))
    labels, rng = np.arange(n) % 2, np.random.default_rng(0)
    clean = np.array([0.6, 0.4])[:, None] * smooth
    noisy = clean + rng.normal(0, 80, (2, n))
    posterior = count_posterior(noisy, 80.0, distances, landmarks, reach, labels, 2)
    for found, truth, raw in zip((posterior.same, posterior.other), clean, noisy):
        assert np.abs(found.mean(axis=0) - truth).mean() < 0.35 * np.abs(raw - truth).mean()
