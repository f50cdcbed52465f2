"""Moments of features that are not public: what releases say of them."""

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

QUANTILES = [0.1, 0.5, 0.9]


def log_density(residuals, covariances):
    """Log densities of normal vectors of mean 0."""
    whitened = np.linalg.solve(covariances, residuals[..., None])[..., 0]
    squares = np.sum(residuals * whitened, axis=1)
    constant = residuals.shape[1] * np.log(2 * np.pi)
    return -0.5 * (squares + np.linalg.slogdet(covariances)[1] + constant)


@pytest.mark.parametrize("p", [1, 3])
def test_prior_of_moments_is_inverse_wishart(p):
    model = SecondMoments(np.zeros((p, p)), 0, 0, 1.0, False)
    phi = model.sample_prior(40_000, np.random.default_rng(0))
    draws = model.second_moments(phi)
    np.testing.assert_allclose(draws.mean(axis=0), np.eye(p) / (p + 2), atol=0.03)

    degrees, scale = inverse_wishart_prior(p, 1.0)
    distribution = invwishart(degrees, scale * np.eye(p))
    expected_draws = distribution.rvs(40_000, random_state=1).reshape(-1, p, p)
    for function in (np.linalg.det, lambda T: T[:, 0, 0], lambda T: T[:, 0, -1]):
        expected = np.quantile(function(expected_draws), QUANTILES)
        spread = expected[2] - expected[0]
        quantiles = np.quantile(function(draws), QUANTILES)
        np.testing.assert_allclose(quantiles, expected, atol=0.03 * spread)


class HierarchicalCase:
    """A noisy release, its hierarchical model, and draws near the posterior.

    Far from the posterior, averages would be based on few draws.
    """

    def __init__(self, rng, kind, intercept):
        self.kind = kind
        self.intercept = intercept
        X = rng.uniform(-1, 1, size=(100, 1))
        y = X[:, 0] / 2 + 0.2 * rng.normal(size=100)
        if kind == "linear":
            party_class = GramRelease
            model_class = BayesianLinear
            center = [0.0] * intercept + [0.5, -3.2]
            deviation = [0.1] * intercept + [0.2, 0.3]
        else:
            party_class = LogisticRelease
            model_class = BayesianLogistic
            y = y > 0
            center = [0.0] * intercept + [3.0]
            deviation = [0.3] * intercept + [1.0]
        party = party_class(
            renyi_epsilon=0.1, fit_intercept=intercept, noise_random_state=0
        )
        self.release = quietly(party.fit, X, y).release_
        model = model_class(moments="hierarchical", moment_draws=128)
        self.model = model.bind([self.release])
        self.phi = rng.normal(center, deviation, size=(6, len(center)))

    def grams(self):
        """The noisy sums of u u', and those with y where there are some."""
        release = self.release
        size = self.phi.shape[1]
        if self.kind == "linear":
            joint_gram = unpack_gram(release.vector, size, release)
            return joint_gram[:-1, :-1], joint_gram
        return unpack_gram(release.vector[size:], size, release), None

    def expected_loglik(self, rng):
        """The log-likelihood given the sums of u u', averaged over the prior."""
        release = self.release
        gram, joint_gram = self.grams()
        facts = (100.0, release.noise_scale**2, self.intercept)
        prior = SecondMoments(gram, *facts[:2], 1.0, self.intercept)
        draws = prior.second_moments(prior.sample_prior(1500, rng))
        gram_loglik = noisy_gram_loglik(draws, gram, *facts)
        joint_loglik = []
        for draw in draws:
            if self.kind == "linear":
                moments = joint_moments(self.phi[:, :-1], np.exp(self.phi[:, -1]), draw)
                joint_loglik.append(noisy_gram_loglik(moments, joint_gram, *facts))
            else:
                mean, covariance = statistic_moments(self.phi, draw, self.intercept)
                noise = release.noise_scale**2 * np.eye(mean.shape[1])
                joint_loglik.append(
                    log_density(release.vector - 100 * mean, 100 * covariance + noise)
                )
        return logsumexp(joint_loglik, axis=0) - logsumexp(gram_loglik)


@pytest.mark.parametrize(
    ("kind", "intercept"),
    [
        ("linear", True),
        ("logistic", False),
        pytest.param("linear", False, marks=pytest.mark.slow),
        pytest.param("logistic", True, marks=pytest.mark.slow),
    ],
)
def test_hierarchical_likelihood_is_an_average_over_moments(rng, kind, intercept):
    case = HierarchicalCase(rng, kind, intercept)
    expected = case.expected_loglik(rng)
    loglik = case.model.party_loglik(case.phi, case.release) - np.log(128)
    np.testing.assert_allclose(loglik, expected, atol=0.2)

    # It differs from that of moments which are taken as known, and leave less room.
    plugin = clone(case.model).set_params(moments="plugin").bind([case.release])
    assert np.all(plugin.party_loglik(case.phi, case.release) < expected - 1)


def test_moments_of_a_large_party_are_as_good_as_known():
    phi, parties = simulate(5, counts=(3000,))
    (release,) = release_all(parties, [5.0])
    noise = np.random.default_rng(0).normal(size=(8, 3))
    nearby = phi + [0.01, 0.01, 0.02] * noise

    def loglik(moments):
        model = linear_model(moments=moments).bind([release])
        loglik = model.party_loglik(nearby, release)
        return loglik - loglik[0]

    expected = loglik("plugin")
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(loglik("hierarchical"), expected, atol=0.3)


def test_equal_releases_are_worth_the_same_under_hierarchical_moments():
    _, parties = simulate(1, counts=(60, 80))
    first, second = release_all(parties, (0.2, 0.5))
    model = linear_model(moments="hierarchical", moment_draws=4)
    releases = [first, second, first]
    values = surprise_of(releases, model, n_particles=80, min_ess=0).values_
    assert values[0] == pytest.approx(values[2], abs=1e-12)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (linear_model(moments="known"), "moments"),
        (linear_model(moment_draws=0), "moment_draws"),
        (BayesianLogistic(moments="noisy"), "moments"),
    ],
    ids=["linear moments", "linear draws", "logistic moments"],
)
def test_invalid_parameters_of_moments_are_refused(model, name):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of Bayesian"):
        model.bind([])
