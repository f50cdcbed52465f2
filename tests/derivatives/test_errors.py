"""Errors of averaged noise from what was released, and rows that join recorded
walks."""

import numpy as np
import pytest

from skvalue.derivatives import (
    HalvedMoments,
    class_probabilities,
    denoised_means,
    pooled_variances,
    recorded_positions,
    without_tails,
)
from skvalue.semivalues import size_weights


def test_means_are_shrunk_by_their_noise(rng):
    truth = 2 + rng.normal(size=(400, 20))
    noisy = truth + 3 * rng.normal(size=truth.shape)
    found = denoised_means(noisy, np.full(400, 9.0), np.zeros(20))
    best = noisy.mean(axis=0) + (noisy - noisy.mean(axis=0)) / (1 + 9)
    np.testing.assert_allclose(found, best, atol=0.3)
    assert ((found - truth) ** 2).mean() < 1.0 < ((noisy - truth) ** 2).mean() / 8
    # Without noise they are left alone; noise alone leaves the public gradient.
    np.testing.assert_allclose(
        denoised_means(noisy, np.zeros(400), np.zeros(20)), noisy
    )
    start = rng.normal(size=20)
    noise = start + rng.normal(size=(400, 20))
    away = np.abs(denoised_means(noise, np.ones(400), start) - start).max()
    assert away < 0.2 * np.abs(noise - start).max()


def test_noise_of_each_player_has_its_own_weight(rng):
    variances = np.repeat([0.01, 25.0], 200)
    noisy = rng.normal(size=(400, 30)) * np.sqrt(1 + variances)[:, None]
    found = denoised_means(noisy, variances, np.zeros(30))
    kept = (found * noisy).sum(axis=1) / (noisy**2).sum(axis=1)
    np.testing.assert_allclose(
        [kept[:200].mean(), kept[200:].mean()], [1, 1 / 26], atol=0.05
    )


def moments(samples):
    found = HalvedMoments()
    for sample in samples:
        found = found.plus(sample)
    np.testing.assert_allclose(found.mean(), samples.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(
        found.variances(), samples.var(axis=0, ddof=1), rtol=1e-9
    )
    halves = [samples[half::2].var(axis=0, ddof=1) for half in (0, 1)]
    np.testing.assert_allclose(found.of_halves(), halves, rtol=1e-9)
    return found


def test_variances_are_pooled_as_far_as_halves_disagree(rng):
    samples = rng.normal(size=(40, 500))
    pooled = pooled_variances(moments(samples), np.zeros(500))
    assert pooled.std() < 0.3 * samples.var(axis=0, ddof=1).std()
    assert pooled.mean() == pytest.approx(samples.var(axis=0, ddof=1).mean())
    scales = np.exp(rng.normal(size=500))
    found = pooled_variances(moments(samples * scales), np.zeros(500))
    assert np.corrcoef(found, scales**2)[0, 1] > 0.95
    kinds = np.arange(500) % 2
    by_kind = pooled_variances(moments(samples * (1 + 9 * kinds)), kinds)
    assert by_kind[kinds == 1].min() > 20 * by_kind[kinds == 0].max()
    few = pooled_variances(
        moments(samples[:, :4]), np.arange(4)
    )  # one of each kind: left alone
    np.testing.assert_allclose(few, samples[:, :4].var(axis=0, ddof=1), rtol=1e-12)


@pytest.mark.parametrize(
    "semivalue", ["banzhaf", "leave-one-out", (16, 1), (1, 16)], ids=str
)
def test_tails_without_weight(semivalue):
    q = size_weights(semivalue, 500)
    kept = without_tails(q)
    dropped = kept == 0
    assert dropped.mean() > 0.3
    assert q[dropped].sum() <= 1e-6
    np.testing.assert_allclose(kept[~dropped], q[~dropped], rtol=2e-6)
    assert kept.sum() == pytest.approx(1, abs=1e-12)
    flat = size_weights("shapley", 500)
    assert without_tails(flat) is flat


@pytest.mark.parametrize("semivalue", ["shapley", (16, 1), "leave-one-out"], ids=str)
def test_recorded_positions_are_quantiles(semivalue):
    q = size_weights(semivalue, 51)
    record = recorded_positions(q, 20, 5, n_models=1000)
    assert [len(at) for at in record[:5]] == [0] * 5
    assert {len(at) for at in record[5:]} == {66, 67}
    counts = np.bincount(np.concatenate(record).astype(int), minlength=51)
    np.testing.assert_allclose(counts / 1000, q, atol=1e-3)


def test_probabilities_are_means_over_models():
    class Model:
        def outputs(self, thetas):
            return np.log(np.array([[[1.0, 3.0]], [[1.0, 1.0]]]))[: len(thetas)]

    class Odds:
        def outputs(self, thetas):
            return np.log(np.array([[[3.0]]]))

    np.testing.assert_allclose(class_probabilities(Model(), [0, 1]), [[0.375, 0.625]])
    np.testing.assert_allclose(class_probabilities(Odds(), [0]), [[0.25, 0.75]])
