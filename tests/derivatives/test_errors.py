"""Errors of averaged noise from what was released."""

import numpy as np
import pytest

from skvalue.derivatives import HalvedMoments, denoised_means, pooled_variances

# Means of releases --------------------------------------------------------------------


@pytest.fixture
def truth(rng):
    """Gradients of 400 players around 2, of variance 1."""
    return 2 + rng.normal(size=(400, 20))


@pytest.fixture
def noisy(truth, rng):
    """The same with noise of variance 9."""
    return truth + 3 * rng.normal(size=truth.shape)


def test_means_are_shrunk_by_their_noise(truth, noisy):
    denoised = denoised_means(noisy, np.full(400, 9.0), np.zeros(20))
    mean = noisy.mean(axis=0)
    best = mean + (noisy - mean) / (1 + 9)
    np.testing.assert_allclose(denoised, best, atol=0.3)
    error = ((denoised - truth) ** 2).mean()
    assert error < 1.0 < ((noisy - truth) ** 2).mean() / 8


def test_means_without_noise_are_left_alone(noisy):
    denoised = denoised_means(noisy, np.zeros(400), np.zeros(20))
    np.testing.assert_allclose(denoised, noisy)


def test_means_of_noise_alone_are_the_public_gradient(rng):
    start = rng.normal(size=20)
    noise = start + rng.normal(size=(400, 20))
    denoised = denoised_means(noise, np.ones(400), start)
    assert np.abs(denoised - start).max() < 0.2 * np.abs(noise - start).max()


def test_noise_of_each_player_has_its_own_weight(rng):
    variances = np.repeat([0.01, 25.0], 200)
    noisy = rng.normal(size=(400, 30)) * np.sqrt(1 + variances)[:, None]
    denoised = denoised_means(noisy, variances, np.zeros(30))
    kept = (denoised * noisy).sum(axis=1) / (noisy**2).sum(axis=1)
    means = [kept[:200].mean(), kept[200:].mean()]
    np.testing.assert_allclose(means, [1, 1 / 26], atol=0.05)


# Variances of samples -----------------------------------------------------------------


def moments_of(samples):
    moments = HalvedMoments()
    for sample in samples:
        moments = moments.plus(sample)
    return moments


def variances_of(samples):
    return samples.var(axis=0, ddof=1)


def test_running_moments_are_those_of_the_samples(rng):
    samples = rng.normal(size=(40, 500))
    moments = moments_of(samples)
    np.testing.assert_allclose(moments.mean(), samples.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(moments.variances(), variances_of(samples), rtol=1e-9)
    halves = [variances_of(samples[::2]), variances_of(samples[1::2])]
    np.testing.assert_allclose(moments.of_halves(), halves, rtol=1e-9)


def test_equal_variances_are_pooled(rng):
    samples = rng.normal(size=(40, 500))
    pooled = pooled_variances(moments_of(samples), np.zeros(500))
    variances = variances_of(samples)
    assert pooled.std() < 0.3 * variances.std()
    assert pooled.mean() == pytest.approx(variances.mean())


def test_variances_on_which_halves_agree_are_kept(rng):
    scales = np.exp(rng.normal(size=500))
    samples = rng.normal(size=(40, 500)) * scales
    pooled = pooled_variances(moments_of(samples), np.zeros(500))
    assert np.corrcoef(pooled, scales**2)[0, 1] > 0.95


def test_variances_are_pooled_within_a_kind(rng):
    kinds = np.arange(500) % 2
    samples = rng.normal(size=(40, 500)) * (1 + 9 * kinds)
    pooled = pooled_variances(moments_of(samples), kinds)
    assert pooled[kinds == 1].min() > 20 * pooled[kinds == 0].max()


def test_one_variance_of_a_kind_is_left_alone(rng):
    samples = rng.normal(size=(40, 4))
    pooled = pooled_variances(moments_of(samples), np.arange(4))
    np.testing.assert_allclose(pooled, variances_of(samples), rtol=1e-12)
