"""Moments of the features that are not public: what releases say of them, against other ways."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import invwishart, multivariate_normal
from sklearn.base import clone

from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    BayesianSurpriseScorer,
    GramRelease,
    LogisticRelease,
)
from skvalue.collaborative.mediator import inverse_wishart
from skvalue.collaborative.models import (
    SecondMoments,
    fourth_moments,
    inverse_wishart_prior,
    noisy_gram_loglik,
    second_moments_loglik,
)
from skvalue.collaborative.party import gram_size, gram_weights, to_fourth
from skvalue.privacy import svec_index

from .parties import linear_model, quietly, release_all, simulate


def fit(party, *rows):
    return quietly(party.fit, *rows).release_


class TestFourth:
    """Rows at the corners of a square: far from normal, as squares do not vary."""

    W, S2 = np.array([0.5, -0.4]), 0.05

    def rows(self, rng, n):
        X = rng.choice([-0.5, 0.5], size=(n, 2))
        return X, X @ self.W + np.sqrt(self.S2) * rng.standard_normal(n)

    @pytest.mark.parametrize("layout", ["svec", "cross"])
    @pytest.mark.parametrize("intercept", [False, True])
    def test_likelihood_by_simulation(self, rng, layout, intercept):
        X, y = self.rows(rng, 200_000)
        y += 0.2 if intercept else 0.0
        rows, columns, weights = gram_weights(2, intercept, layout)
        U = np.column_stack([np.ones((len(X), int(intercept))), X, y])
        terms = U[:, rows] * U[:, columns] * weights
        # The noise is small, so that the released moments are as good as exact.
        party = GramRelease(
            1e4, fit_intercept=intercept, layout=layout, moments_fraction=0.3, x_bound=1, y_bound=3
        )
        party.set_params(noise_random_state=0)
        release = fit(party, X[:500], y[:500])
        phi = np.concatenate([[0.2] * intercept, self.W, [np.log(self.S2)]])[None]
        distribution = multivariate_normal(
            500 * terms.mean(axis=0),
            500 * np.cov(terms.T) + (release.noise_scale**2 + 1e-12) * np.eye(len(rows)),
        )
        exact = distribution.logpdf(release.vector[: len(rows)])
        noisy = BayesianLinear(moments="noisy").bind([release]).party_loglik(phi, release)[0]
        normal = BayesianLinear().bind([release]).party_loglik(phi, release)[0]
        assert abs(noisy - exact) < 3
        assert abs(normal - exact) > 5

    @pytest.mark.parametrize("intercept", [False, True])
    def test_normal_rows_have_the_normal_likelihood(self, rng, intercept):
        X, y = rng.normal(size=(80, 2)) / 3, rng.normal(size=80) / 3
        release = fit(
            GramRelease(renyi_epsilon=0.5, fit_intercept=intercept, noise_random_state=0), X, y
        )
        model = BayesianLinear().bind([release])
        phi = model.sample_prior(5, rng)
        gram, second, _ = model.release_facts(release)
        q = len(svec_index(len(second))[0]) - intercept
        # With this much noise on fourth moments only the guess of a normal distribution is left.
        fourth = fourth_moments(np.zeros((q, q)), 80, 1e12, second, intercept)
        w, s2 = phi[:, :-1], np.exp(phi[:, -1])
        expected = noisy_gram_loglik(w, s2, second, release, gram)
        found = noisy_gram_loglik(w, s2, second, release, gram, fourth)
        np.testing.assert_allclose(found, expected, rtol=1e-3)
        exact = fourth_moments(np.zeros((q, q)), 80, 1e-30, second, intercept)
        assert np.linalg.eigvalsh(exact)[0] > 0

    def test_share_of_the_budget(self, rng):
        X, y = self.rows(rng, 200)
        plain = fit(GramRelease(renyi_epsilon=0.5, noise_random_state=0), X, y)
        party = GramRelease(renyi_epsilon=0.5, moments_fraction=0.36, noise_random_state=0)
        release = fit(party, X, y)
        size = gram_size(2, False)
        assert len(release.statistic) == size + 6
        # Together they lose what epsilon says; the Gram matrix alone has the rest of it.
        ratio = release.sensitivity / release.noise_scale
        assert ratio == pytest.approx(plain.sensitivity / plain.noise_scale)
        assert plain.noise_scale / release.noise_scale == pytest.approx(0.8)
        clean = fit(GramRelease(None, moments_fraction=0.36), X, y)
        fourth = to_fourth(clean.vector[size:] / clean.moments_weight, 2, False)
        np.testing.assert_allclose(np.diag(fourth), [200 / 16, 200 / 8, 200 / 16])
        np.testing.assert_allclose(clean.vector[:size], fit(GramRelease(None), X, y).vector)

    def test_values(self, rng):
        """Squares that do not vary reveal more of the variance of the noise than normal rows do."""
        releases = [
            fit(
                GramRelease(renyi_epsilon=5.0, moments_fraction=0.3, noise_random_state=i),
                *self.rows(rng, 300),
            )
            for i in range(2)
        ]
        scorer = BayesianSurpriseScorer(
            linear_model(moments="noisy"), n_particles=160, random_state=0
        ).fit(releases)
        assert scorer.grand_value_ > scorer.standalone_values_.max() > 1
        draws = scorer.sample(n_draws=400, random_state=0)
        deviation = draws[:, :2].std(axis=0)
        assert np.all(np.abs(draws[:, :2].mean(axis=0) - self.W) < 4 * deviation)


class TestHierarchical:
    @pytest.mark.parametrize("p", [1, 3])
    def test_prior_is_inverse_wishart(self, p):
        model = SecondMoments(np.zeros((p, p)), 0, 0, 1.0, False)
        draws = model.second(model.sample_prior(40_000, np.random.default_rng(0)))
        degrees, scale = inverse_wishart_prior(p, 1.0)
        distribution = invwishart(degrees, scale * np.eye(p))
        np.testing.assert_allclose(draws.mean(axis=0), np.eye(p) / (p + 2), atol=0.03)
        other = distribution.rvs(40_000, random_state=1).reshape(-1, p, p)
        scales = np.repeat(scale * np.eye(p)[None], 40_000, axis=0)
        third = inverse_wishart(np.full(40_000, degrees), scales, np.random.default_rng(2))
        levels = [0.1, 0.5, 0.9]
        for function in (np.linalg.det, lambda T: T[:, 0, 0], lambda T: T[:, 0, -1]):
            expected = np.quantile(function(other), levels)
            deviation = expected[2] - expected[0]
            for some in (draws, third):
                found = np.quantile(function(some), levels)
                np.testing.assert_allclose(found, expected, atol=0.03 * deviation)

    @pytest.mark.parametrize("intercept", [False, True])
    @pytest.mark.parametrize("kind", ["linear", "logistic"])
    def test_likelihood_by_averaging_over_the_prior(self, rng, kind, intercept):
        X = rng.uniform(-1, 1, size=(100, 1))
        y = X[:, 0] / 2 + 0.2 * rng.normal(size=100)
        options = dict(fit_intercept=intercept, noise_random_state=0)
        # Draws near the posterior: far from it, averages are based on few draws.
        if kind == "linear":
            release = fit(GramRelease(renyi_epsilon=0.1, **options), X, y)
            model = BayesianLinear(moments="hierarchical", moment_draws=128).bind([release])
            middle, deviation = [0.0] * intercept + [0.5, -3.2], [0.1] * intercept + [0.2, 0.3]
        else:
            release = fit(LogisticRelease(renyi_epsilon=0.1, **options), X, y > 0)
            model = BayesianLogistic(moments="hierarchical", moment_draws=128).bind([release])
            middle, deviation = [0.0] * intercept + [3.0], [0.3] * intercept + [1.0]
        phi = rng.normal(middle, deviation, size=(6, len(middle)))
        gram = model.gram(release)[:-1, :-1] if kind == "linear" else model._split(release)[1]
        variance = release.noise_scale**2
        prior = SecondMoments(gram, 100, variance, 1.0, intercept)
        draws = prior.second(prior.sample_prior(1500, rng))
        own = second_moments_loglik(draws, gram, 100.0, variance, intercept)
        joint = []
        for second in draws:
            if kind == "linear":
                w, s2 = phi[:, :-1], np.exp(phi[:, -1])
                joint.append(noisy_gram_loglik(w, s2, second, release, model.gram(release)))
            else:
                joint.append(model._noisy_loglik(phi, release, second))
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

    @pytest.mark.slow
    def test_gibbs_with_its_own_draws_of_moments_agrees(self):
        _, parties = simulate(1, counts=(100,))
        releases = release_all(parties, [0.5])
        model = linear_model(moments="hierarchical", moment_draws=16)
        pool = BayesianSurpriseScorer(model, n_particles=160, random_state=0).fit(releases)
        gibbs = BayesianSurpriseScorer(model, method="gibbs", random_state=0).fit(releases)
        assert gibbs.grand_value_ == pytest.approx(pool.grand_value_, abs=0.3)

    def test_equal_releases_are_worth_the_same(self):
        _, parties = simulate(1, counts=(60, 80))
        a, b = release_all(parties, (0.2, 0.5))
        model = linear_model(moments="hierarchical", moment_draws=4)
        scorer = BayesianSurpriseScorer(model, n_particles=80, min_ess=0, random_state=0)
        values = scorer.fit([a, b, a]).values_
        assert values[0] == pytest.approx(values[2], abs=1e-12)


class TestRefuses:
    def test_releases_without_fourth_moments(self):
        _, parties = simulate(1, counts=(60, 80))
        releases = release_all(parties, (0.2, 0.5))
        with pytest.raises(ValueError, match="releases must hold fourth moments .* Got 2 of 2"):
            BayesianSurpriseScorer(linear_model(moments="noisy")).fit(releases)
        releases = release_all(parties, (0.2, 0.5), moments_fraction=0.2)
        with pytest.raises(ValueError, match="'gibbs' needs moments 'plugin' or 'hierarchical'"):
            BayesianSurpriseScorer(linear_model(moments="noisy"), method="gibbs").fit(releases)

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
