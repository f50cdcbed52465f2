"""Statements about expectations: more parties, more noise; coverage; and noise
ignored."""

import numpy as np
import pytest

from skvalue.collaborative import GaussianMean, GramRelease
from skvalue.privacy import draw_noise

from .parties import (
    linear_model,
    noisy_posterior,
    noisy_sum,
    quietly,
    release_all,
    simulate,
    surprise_of,
)

KNOWN = linear_model(x_covariance=0.15 * np.eye(2))
EPSILONS = [0.004, 0.02, 0.1, 0.5, 2.5, 12.5]


def expected_gaussian_value(model, counts, epsilons, bound=1.0):
    """Mutual information of the mean and noisy sums: the mean of the value over
    releases."""
    noise = np.array([0.5 * 2 / e * (2 * bound) ** 2 for e in epsilons])
    counts = np.asarray(counts, float)
    precision = 1 / model.prior_variance + np.sum(
        counts**2 / (counts * model.variance + noise)
    )
    return 0.5 * np.log(precision * model.prior_variance)


class TestGaussianMean:
    MODEL = GaussianMean(0.05, prior_variance=0.1)

    def mean_value(self, epsilons, n_sets=600):
        """Simulated from the prior; the last party's noise is within that of smaller
        epsilons."""
        rng = np.random.default_rng(0)
        values = []
        for _ in range(n_sets):
            mu = rng.normal(scale=0.1**0.5)
            releases = []
            for count, epsilon in zip((50, 80), epsilons):
                total = count * mu + np.sqrt(count * 0.05) * rng.normal()
                scale = np.sqrt(0.5 * 2 / epsilon) * 2
                total += scale * rng.normal()
                releases.append(noisy_sum(count, total, epsilon))
            mean, variance = noisy_posterior(self.MODEL, releases, [1, 1])
            ratio = variance / 0.1
            values.append(0.5 * (ratio - 1 - np.log(ratio) + mean**2 / 0.1))
        return np.mean(values)

    def test_v2_v3_in_closed_form(self):
        """The mean of the value is an information gain: more parties add, more noise
        takes."""
        information = [
            expected_gaussian_value(self.MODEL, (50, 80), (0.3, e)) for e in EPSILONS
        ]
        assert np.all(np.diff(information) > 0)
        alone = expected_gaussian_value(self.MODEL, (50,), (0.3,))
        assert alone < information[0]
        for epsilon, expected in zip(EPSILONS[1::2], information[1::2]):
            assert self.mean_value((0.3, epsilon)) == pytest.approx(expected, abs=0.06)


@pytest.mark.slow
class TestLinear:
    def test_v2_more_parties(self):
        """Paired means over data from the prior: a coalition's value grows as parties
        join."""
        tables = []
        for seed in range(48):
            _, parties = simulate(1000 + seed, counts=(60, 120, 200))
            releases = release_all(parties, (0.2, 0.1, 0.2), seed=100 * seed)
            tables.append(
                surprise_of(releases, KNOWN, n_particles=160).coalition_values_
            )
        tables = np.array(tables)
        for small, large in [(1, 3), (2, 3), (3, 7), (1, 5), (4, 7)]:
            gain = tables[:, large] - tables[:, small]
            assert gain.mean() > -2 * gain.std() / np.sqrt(len(gain))
        assert np.mean(tables[:, 7] - tables[:, 1]) > 1

    def test_v3_more_noise(self):
        means = []
        for seed in range(32):
            _, parties = simulate(2000 + seed, counts=(200,))
            party = GramRelease(noise_random_state=seed)
            path = quietly(party.path, *parties[0], renyi_epsilons=EPSILONS)
            scorers = [
                surprise_of([release], KNOWN, n_particles=160) for release in path
            ]
            means.append([scorer.grand_value_ for scorer in scorers])
        assert np.all(np.diff(np.mean(means, axis=0)) > 0)

    @pytest.mark.parametrize("epsilon", [0.02, 0.1, 2.5])
    def test_intervals_cover(self, epsilon):
        """90 % intervals of 100 data sets from the prior; those that ignore noise do
        not."""
        inside = {True: [], False: []}
        for seed in range(100):
            phi, parties = simulate(3000 + seed, counts=(100, 200))
            releases = release_all(parties, (epsilon, epsilon), seed=100 * seed)
            for aware in inside:
                scorer = surprise_of(
                    releases, linear_model(noise_aware=aware), n_particles=160
                )
                draws = scorer.sample(n_draws=800, random_state=0)
                low, high = np.quantile(draws, [0.05, 0.95], axis=0)
                inside[aware].append((low < phi) & (phi < high))
        aware, blind = (np.mean(inside[kind]) for kind in (True, False))
        print(
            f"epsilon {epsilon}: {aware:.2f} covered, {blind:.2f} where noise is ignored"
        )
        assert 0.80 <= aware <= 0.98
        assert blind < 0.75


def test_noise_ignored_turns_the_trade_off_round():
    """A party that is taken at its word gains by noise; one whose noise is known
    loses."""
    _, parties = simulate(1)
    party = GramRelease(noise_random_state=3)
    path = quietly(party.path, *parties[1], renyi_epsilons=[0.004, 0.1, 12.5])
    values = {}
    for aware in (True, False):
        model = linear_model(noise_aware=aware)
        scorers = [surprise_of([release], model, n_particles=80) for release in path]
        values[aware] = [scorer.grand_value_ for scorer in scorers]
    assert values[True][0] < values[True][1] < values[True][2]
    assert values[False][0] > 2 * values[False][2]


def test_the_audit_sees_noise_of_releases():
    release = noisy_sum(10, 3.0, 0.5)
    noise = draw_noise(release.event, 2000)
    assert noise.std() == pytest.approx(release.noise_scale, rel=0.1)
