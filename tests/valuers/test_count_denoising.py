"""Smoothing and shrinkage of noisy counts: against normal distributions, and in both limits."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import truncnorm

from skvalue.valuers.tknn_shapley import (
    count_posterior,
    neighbour_values,
    posterior_draws,
    smoothing_bases,
    value_sizes,
)

# Standard deviations that the smooth part and the common level may have.
SCALES = 10.0 ** np.arange(0, 6.01, 0.5)


def line(n):
    """Points on a line, and what the smoothing needs of them."""
    x = np.sort(np.random.default_rng(0).uniform(0, 4, n))
    return np.abs(x[:, None] - x), np.arange(n), 1.0


def covariances(bases):
    return [(basis.vectors * basis.weights) @ basis.vectors.T for basis in bases]


def test_draws_have_the_posterior_mean_and_standard_deviation():
    distances, landmarks, reach = line(6)
    y = np.array([300.0, 280, 250, 200, 220, 260])
    (basis, *_), _ = smoothing_bases(distances, landmarks, reach, np.arange(6) % 2, 2)
    posterior, prior = posterior_draws(y, [basis], 30.0, np.random.default_rng(0), 40_000)
    (kernel,) = covariances([basis])
    logs, means, squares = [], [], []
    for s in (0.0, *SCALES):
        for tau in SCALES[s <= SCALES]:
            covariance = s**2 * kernel + tau**2 + 900 * np.eye(6)
            precision = np.linalg.inv(covariance)
            logs.append(-0.5 * (y @ precision @ y + np.linalg.slogdet(covariance)[1]))
            means.append(y - 900 * precision @ y)
            squares.append(900 - 900**2 * np.diag(precision) + means[-1] ** 2)
    weights = np.exp(np.array(logs) - max(logs))
    mean, square = weights @ means / weights.sum(), weights @ squares / weights.sum()
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
    for bases in smoothing_bases(distances[:, landmarks], landmarks, reach, labels, 3):
        for basis in bases:
            product = basis.vectors.T @ basis.vectors
            np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-6)


def test_counts_are_drawn_from_distributions_cut_off_at_zero():
    distances, landmarks, reach = line(8)
    labels, noise, n_draws = np.arange(8) % 2, 30.0, 20_000
    noisy = np.array([[-60, -20, 0, 10, 30, 60, 100, 600], [40, 0, -50, 20, -10, 0, 90, 500]])
    posterior = count_posterior(
        noisy, noise, distances, landmarks, reach, labels, 2, n_draws=n_draws, seed=3
    )
    # The sums and differences of counts, of the same random numbers, before they are cut off.
    rng = np.random.default_rng(3)
    sums, gaps = (
        posterior_draws(part, bases, 2**0.5 * noise, rng, n_draws)[0]
        for part, bases in zip(
            (noisy.sum(axis=0), noisy[0] - noisy[1]),
            smoothing_bases(distances, landmarks, reach, labels, 2),
        )
    )
    gaps = gaps[rng.permutation(n_draws)]
    for found, free in ((posterior.same, (sums + gaps) / 2), (posterior.other, (sums - gaps) / 2)):
        assert found.min() >= 0
        for cut, draws in zip(found.T, free.T):
            mean, deviation = draws.mean(), draws.std()
            expected = truncnorm(-mean / deviation, np.inf, mean, deviation)
            assert cut.mean() == pytest.approx(expected.mean(), rel=0.1)
            assert cut.std() == pytest.approx(expected.std(), rel=0.1)
            if mean > 4 * deviation:
                np.testing.assert_array_equal(cut, np.maximum(draws, 0))


def real_values(same, other, n_classes, semivalue):
    """Values for counts that are known, and need not be integers."""
    draws = np.array([same, other], dtype=float)[:, None]
    known = SimpleNamespace(same=draws[0], other=draws[1], prior=draws, largest=700, signal=9.0)
    return value_sizes(known, n_classes, semivalue)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1)])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_real_values_are_those_of_integers_and_between_them(semivalue, n_classes):
    rng = np.random.default_rng(0)
    same, other = rng.integers(0, 300, (2, 2000))
    same[:50], other[50:100] = 0, 0
    agree, differ = neighbour_values(same, other, n_classes, semivalue)
    real = real_values(same, other, n_classes, semivalue)
    least = 1e-3 / np.maximum(same + other, 1)  # sizes have logarithms
    for found, values, count in zip(real, (agree, -differ), (same, other)):
        expected = np.maximum(values, least)[count > 0]
        np.testing.assert_allclose(np.abs(found)[count > 0], expected, rtol=1e-12, atol=1e-15)
    between = real_values(same + 1.5, other, n_classes, semivalue)[0]
    ends = [
        np.maximum(neighbour_values(same + k, other, n_classes, semivalue)[0], least)
        for k in (1, 2)
    ]
    inside = (other > 0) & (same > 3)
    assert (between <= np.maximum(*ends) + 1e-12)[inside].all()
    assert (between >= np.minimum(*ends) - 1e-12)[inside].all()
    if semivalue in ("shapley", (4, 1)):  # and nearly halfway
        many = inside & (same + other > 50)
        gap = np.abs(between - np.mean(ends, axis=0))
        assert (gap <= 0.1 * np.abs(ends[0] - ends[1]) + 1e-12)[many].all()


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_limits(n_classes, semivalue):
    n = 30
    distances, landmarks, reach = line(n)
    rng = np.random.default_rng(2)
    labels, counts = np.arange(n) % n_classes, rng.integers(1, 400, (2, n))
    exact = np.array(neighbour_values(*counts, n_classes, semivalue))
    least = 1e-3 / counts.sum(axis=0)  # sizes have logarithms
    for noise, expected in (
        (1e-3, np.maximum(np.abs(exact), least) * [[1], [-1]]),
        (1e8, np.array([np.full(n, 0.5), np.full(n, -0.5)])),
    ):
        noisy = counts + (0 if noise < 1 else rng.normal(0, noise, (2, n)))
        posterior = count_posterior(noisy, noise, distances, landmarks, reach, labels, n_classes)
        found = value_sizes(posterior, n_classes, semivalue)
        np.testing.assert_allclose(found, expected, rtol=2e-3)


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
