"""Statements about expectations: more parties, more noise, coverage, noise ignored."""

import numpy as np
import pytest

from skvalue.collaborative import GaussianMean, GramRelease
from skvalue.privacy import draw_noise

from .parties import (
    gaussian_kl,
    linear_model,
    noisy_posterior,
    noisy_sum,
    quietly,
    release_all,
    simulate,
    surprise_of,
)

KNOWN_COVARIANCE = linear_model(x_covariance=0.15 * np.eye(2))
EPSILONS = [0.004, 0.02, 0.1, 0.5, 2.5, 12.5]


def information_gain(model, counts, epsilons, bound=1.0):
    """Mutual information of the mean and noisy sums: the mean of the value."""
    noise = np.array([0.5 * 2 / epsilon * (2 * bound) ** 2 for epsilon in epsilons])
    counts = np.asarray(counts, float)
    gains = counts**2 / (counts * model.variance + noise)
    precision = 1 / model.prior_variance + np.sum(gains)
    return 0.5 * np.log(precision * model.prior_variance)


class TestGaussianMean:
    MODEL = GaussianMean(0.05, prior_variance=0.1)

    def mean_value(self, epsilons, n_datasets=600):
        """Mean value over data from the prior.

        The last party's noise is within that of smaller epsilons.
        """
        rng = np.random.default_rng(0)
        values = []
        for _ in range(n_datasets):
            mu = rng.normal(scale=0.1**0.5)
            releases = []
            for count, epsilon in zip((50, 80), epsilons):
                total = count * mu + np.sqrt(count * 0.05) * rng.normal()
                total += np.sqrt(0.5 * 2 / epsilon) * 2 * rng.normal()
                releases.append(noisy_sum(count, total, epsilon))
            mean, variance = noisy_posterior(self.MODEL, releases, [1, 1])
            values.append(gaussian_kl(mean, variance, 0.0, 0.1))
        return np.mean(values)

    def test_v2_v3_more_parties_and_less_noise_have_a_larger_mean_value(self):
        gains = [
            information_gain(self.MODEL, (50, 80), (0.3, epsilon))
            for epsilon in EPSILONS
        ]
        assert np.all(np.diff(gains) > 0)
        assert information_gain(self.MODEL, (50,), (0.3,)) < gains[0]

    def test_mean_value_is_the_information_gain(self):
        for epsilon in EPSILONS[1::2]:
            expected = information_gain(self.MODEL, (50, 80), (0.3, epsilon))
            assert self.mean_value((0.3, epsilon)) == pytest.approx(expected, abs=0.06)


@pytest.mark.slow
class TestLinear:
    def test_v2_mean_value_increases_as_parties_join(self):
        """Paired means over data from the prior."""
        tables = []
        for seed in range(48):
            _, parties = simulate(1000 + seed, counts=(60, 120, 200))
            releases = release_all(parties, (0.2, 0.1, 0.2), seed=100 * seed)
            scorer = surprise_of(releases, KNOWN_COVARIANCE, n_particles=160)
            tables.append(scorer.coalition_values_)
        tables = np.array(tables)
        for small, large in [(1, 3), (2, 3), (3, 7), (1, 5), (4, 7)]:
            gains = tables[:, large] - tables[:, small]
            assert gains.mean() > -2 * gains.std() / np.sqrt(len(gains))
        assert np.mean(tables[:, 7] - tables[:, 1]) > 1

    def test_v3_mean_value_increases_with_epsilon(self):
        values = []
        for seed in range(32):
            _, parties = simulate(2000 + seed, counts=(200,))
            party = GramRelease(noise_random_state=seed)
            path = quietly(party.path, *parties[0], renyi_epsilons=EPSILONS)
            scorers = [
                surprise_of([release], KNOWN_COVARIANCE, n_particles=160)
                for release in path
            ]
            values.append([scorer.grand_value_ for scorer in scorers])
        assert np.all(np.diff(np.mean(values, axis=0)) > 0)

    @pytest.mark.parametrize("epsilon", [0.02, 0.1, 2.5])
    def test_intervals_cover_unless_noise_is_ignored(self, epsilon):
        """90 % intervals of 100 data sets from the prior."""
        is_covered = {True: [], False: []}
        for seed in range(100):
            phi, parties = simulate(3000 + seed, counts=(100, 200))
            releases = release_all(parties, (epsilon, epsilon), seed=100 * seed)
            for noise_aware in (True, False):
                model = linear_model(noise_aware=noise_aware)
                scorer = surprise_of(releases, model, n_particles=160)
                draws = scorer.sample(n_draws=800, random_state=0)
                low, high = np.quantile(draws, [0.05, 0.95], axis=0)
                is_covered[noise_aware].append((low < phi) & (phi < high))
        aware = np.mean(is_covered[True])
        unaware = np.mean(is_covered[False])
        print(
            f"epsilon {epsilon}: {aware:.2f} covered, {unaware:.2f} where noise is "
            "ignored"
        )
        assert 0.80 <= aware <= 0.98
        assert unaware < 0.75


def test_noise_decreases_values_unless_it_is_ignored():
    _, parties = simulate(1)
    party = GramRelease(noise_random_state=3)
    path = quietly(party.path, *parties[1], renyi_epsilons=[0.004, 0.1, 12.5])

    def values(noise_aware):
        model = linear_model(noise_aware=noise_aware)
        scorers = [surprise_of([release], model, n_particles=80) for release in path]
        return [scorer.grand_value_ for scorer in scorers]

    aware = values(True)
    assert aware[0] < aware[1] < aware[2]
    unaware = values(False)
    assert unaware[0] > 2 * unaware[2]


def test_noise_of_the_event_has_the_scale_of_the_release():
    release = noisy_sum(10, 3.0, 0.5)
    noise = draw_noise(release.event, 2000)
    assert noise.std() == pytest.approx(release.noise_scale, rel=0.1)
