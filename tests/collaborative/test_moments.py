"""Moments of the features that are not public: what releases say of them, against other
ways."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import invwishart
from sklearn.base import clone

from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    GramRelease,
    LogisticRelease,
)
from skvalue.collaborative.models import (
    SecondMoments,
    inverse_wishart_prior,
    joint_moments,
    noisy_gram_loglik,
    statistic_moments,
)
from skvalue.collaborative.party import unpack_gram

from .parties import linear_model, quietly, release_all, simulate, surprise_of


def fit(party, *rows):
    return quietly(party.fit, *rows).release_


def log_density(residuals, covariances):
    """Log densities of normal vectors of mean 0."""
    squares = np.sum(
        residuals * np.linalg.solve(covariances, residuals[..., None])[..., 0], axis=1
    )
    constant = residuals.shape[1] * np.log(2 * np.pi)
    return -0.5 * (squares + np.linalg.slogdet(covariances)[1] + constant)


class TestHierarchical:
    @pytest.mark.parametrize("p", [1, 3])
    def test_prior_is_inverse_wishart(self, p):
        model = SecondMoments(np.zeros((p, p)), 0, 0, 1.0, False)
        draws = model.second_moments(
            model.sample_prior(40_000, np.random.default_rng(0))
        )
        degrees, scale = inverse_wishart_prior(p, 1.0)
        distribution = invwishart(degrees, scale * np.eye(p))
        np.testing.assert_allclose(draws.mean(axis=0), np.eye(p) / (p + 2), atol=0.03)
        other = distribution.rvs(40_000, random_state=1).reshape(-1, p, p)
        levels = [0.1, 0.5, 0.9]
        for function in (np.linalg.det, lambda T: T[:, 0, 0], lambda T: T[:, 0, -1]):
            expected = np.quantile(function(other), levels)
            deviation = expected[2] - expected[0]
            found = np.quantile(function(draws), levels)
            np.testing.assert_allclose(found, expected, atol=0.03 * deviation)

    @pytest.mark.parametrize(
        ("kind", "intercept"),
        [
            ("linear", True),
            ("logistic", False),
            pytest.param("linear", False, marks=pytest.mark.slow),
            pytest.param("logistic", True, marks=pytest.mark.slow),
        ],
    )
    def test_likelihood_by_averaging_over_the_prior(self, rng, kind, intercept):
        X = rng.uniform(-1, 1, size=(100, 1))
        y = X[:, 0] / 2 + 0.2 * rng.normal(size=100)
        options = dict(fit_intercept=intercept, noise_random_state=0)
        # Draws near the posterior: far from it, averages are based on few draws.
        if kind == "linear":
            release = fit(GramRelease(renyi_epsilon=0.1, **options), X, y)
            model = BayesianLinear(moments="hierarchical", moment_draws=128).bind(
                [release]
            )
            middle, deviation = (
                [0.0] * intercept + [0.5, -3.2],
                [0.1] * intercept + [0.2, 0.3],
            )
        else:
            release = fit(LogisticRelease(renyi_epsilon=0.1, **options), X, y > 0)
            model = BayesianLogistic(moments="hierarchical", moment_draws=128).bind(
                [release]
            )
            middle, deviation = [0.0] * intercept + [3.0], [0.3] * intercept + [1.0]
        phi = rng.normal(middle, deviation, size=(6, len(middle)))
        size, facts = len(middle), (100.0, release.noise_scale**2, intercept)
        if kind == "linear":
            whole = unpack_gram(release.vector, size, release)
            gram = whole[:-1, :-1]
        else:
            gram = unpack_gram(release.vector[size:], size, release)
        prior = SecondMoments(gram, *facts[:2], 1.0, intercept)
        draws = prior.second_moments(prior.sample_prior(1500, rng))
        own = noisy_gram_loglik(draws, gram, *facts)
        joint = []
        for second in draws:
            if kind == "linear":
                moments = joint_moments(phi[:, :-1], np.exp(phi[:, -1]), second)
                joint.append(noisy_gram_loglik(moments, whole, *facts))
            else:
                mean, covariance = statistic_moments(phi, second, intercept)
                noise = facts[1] * np.eye(mean.shape[1])
                joint.append(
                    log_density(release.vector - 100 * mean, 100 * covariance + noise)
                )
        expected = logsumexp(joint, axis=0) - logsumexp(own)
        found = model.party_loglik(phi, release) - np.log(128)
        np.testing.assert_allclose(found, expected, atol=0.2)
        # What is integrated over matters: taken for known, moments leave less room.
        plain = clone(model).set_params(moments="plugin").bind([release])
        assert np.all(plain.party_loglik(phi, release) < expected - 1)

    def test_a_large_party_knows_its_moments(self):
        phi, parties = simulate(5, counts=(3000,))
        (release,) = release_all(parties, [5.0])
        near = phi + [0.01, 0.01, 0.02] * np.random.default_rng(0).normal(size=(8, 3))
        found, expected = (
            linear_model(moments=moments).bind([release]).party_loglik(near, release)
            for moments in ("hierarchical", "plugin")
        )
        assert np.ptp(expected) > 1
        np.testing.assert_allclose(found - found[0], expected - expected[0], atol=0.3)

    def test_equal_releases_are_worth_the_same(self):
        _, parties = simulate(1, counts=(60, 80))
        a, b = release_all(parties, (0.2, 0.5))
        model = linear_model(moments="hierarchical", moment_draws=4)
        values = surprise_of([a, b, a], model, n_particles=80, min_ess=0).values_
        assert values[0] == pytest.approx(values[2], abs=1e-12)


class TestRefuses:
    @pytest.mark.parametrize(
        ("model", "name"),
        [
            (linear_model(moments="known"), "moments"),
            (linear_model(moment_draws=0), "moment_draws"),
            (BayesianLogistic(moments="noisy"), "moments"),
        ],
    )
    def test_parameters(self, model, name):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of Bayesian"):
            model.bind([])
