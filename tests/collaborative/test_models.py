"""Models against closed forms, quadrature and simulation."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    GaussianMean,
    GramRelease,
    LogisticRelease,
)
from skvalue.collaborative.models import joint_moments, statistic_moments
from skvalue.collaborative.party import gram_vector, logistic_vector
from skvalue.privacy import svec, svec_index

from .parties import (
    NIG,
    Sampled,
    every_coalition,
    exact_surprise,
    exact_table,
    linear_model,
    nig_kl,
    noisy_posterior,
    noisy_sum,
    quietly,
    release_all,
    simulate,
    surprise_of,
)


class TestNormalInverseGamma:
    PRIOR = NIG(np.array([0.1, -0.2]), np.array([[2.0, 0.3], [0.3, 1.0]]), 4.0, 1.5)
    POSTERIOR = NIG(np.array([0.4, 0.2]), np.array([[9.0, 1.0], [1.0, 7.0]]), 9.0, 2.5)

    def model(self, prior):
        model = BayesianLinear(a0=prior.a, b0=prior.b)
        model.prior_mean_, model.prior_precision_ = prior.mean, prior.precision
        return model

    def test_divergence_by_simulation(self, rng):
        posterior, prior = self.model(self.POSTERIOR), self.model(self.PRIOR)
        phi = posterior.sample_prior(200_000, rng)
        logs = posterior.log_prior(phi) - prior.log_prior(phi)
        assert nig_kl(self.POSTERIOR, self.PRIOR) == pytest.approx(
            logs.mean(), abs=0.02
        )
        assert nig_kl(self.POSTERIOR, self.POSTERIOR) == pytest.approx(0, abs=1e-12)

    def test_density_integrates_to_one(self):
        model = self.model(NIG(np.array([0.3]), np.array([[2.0]]), 3.0, 1.0))
        grid = np.stack(
            np.meshgrid(np.linspace(-8, 8, 801), np.linspace(-5, 6, 551)), axis=-1
        )
        density = np.exp(model.log_prior(grid.reshape(-1, 2)))
        assert density.sum() * 0.02 * 0.02 == pytest.approx(1, abs=1e-3)


class TestLinear:
    @pytest.mark.parametrize("intercept", [False, True])
    def test_moments_of_the_statistic_by_simulation(self, rng, intercept):
        """The likelihood is normal, with the mean and covariance of simulated sums."""
        covariance = np.array([[0.1, 0.03], [0.03, 0.2]])
        phi = np.array([[0.2, 0.5, -0.4, np.log(0.05)]])[:, 0 if intercept else 1 :]
        X = rng.multivariate_normal(np.zeros(2), covariance, size=200_000)
        y = X @ phi[0, -3:-1] + np.sqrt(0.05) * rng.standard_normal(len(X))
        y += phi[0, 0] if intercept else 0.0
        U = np.column_stack([np.ones((len(X), int(intercept))), X, y])
        terms = svec(U[:, :, None] * U[:, None, :])[:, int(intercept) :]
        np.testing.assert_allclose(gram_vector(X, y, intercept), terms.sum(axis=0))
        party = GramRelease(
            None, renyi_epsilon=0.5, fit_intercept=intercept, noise_random_state=0
        )
        release = quietly(party.fit, X[:80], np.clip(y[:80], -1, 1)).release_
        model = BayesianLinear(x_covariance=covariance).bind([release])
        distribution = multivariate_normal(
            80 * terms.mean(axis=0),
            80 * np.cov(terms.T) + release.noise_scale**2 * np.eye(terms.shape[1]),
        )
        assert model.party_loglik(phi, release)[0] == pytest.approx(
            distribution.logpdf(release.vector), abs=0.1
        )

    def test_rotation_and_cholesky_agree(self, rng):
        """The fast likelihood of the isotropic layout is the general one."""
        _, parties = simulate(0, counts=(90,))
        (release,) = release_all(parties, [0.3])
        model = linear_model(x_covariance=0.15 * np.eye(2)).bind([release])
        phi = model.sample_prior(20, rng)
        rows, columns, weights = svec_index(3)
        moments = joint_moments(phi[:, :-1], np.exp(phi[:, -1]), 0.15 * np.eye(2))
        expected = []
        for m in moments:
            cov = m[np.ix_(rows, rows)] * m[np.ix_(columns, columns)]
            cov += m[np.ix_(rows, columns)] * m[np.ix_(columns, rows)]
            cov = 90 * cov * weights[
                :, None
            ] * weights + release.noise_scale**2 * np.eye(6)
            distribution = multivariate_normal(90 * m[rows, columns] * weights, cov)
            expected.append(distribution.logpdf(release.vector))
        np.testing.assert_allclose(
            model.party_loglik(phi, release), expected, rtol=1e-9
        )

    def test_without_noise_values_are_in_closed_form(self):
        """Every coalition within 0.05, on average over some runs, of the conjugate
        posterior."""
        _, parties = simulate(3, counts=(60, 80, 120))
        releases = release_all(parties, [None] * 3)
        runs = [
            surprise_of(releases, n_particles=300, random_state=seed)
            for seed in range(4)
        ]
        exact = [
            exact_surprise(runs[0].model_, releases, k) for k in every_coalition(3)
        ]
        found = np.mean([run.coalition_values_ for run in runs], axis=0)
        assert min(exact[1:]) > 4
        np.testing.assert_allclose(found, exact, atol=0.05)

    def test_tempered_values_are_in_closed_form(self):
        _, parties = simulate(3, counts=(60, 80, 120))
        releases = release_all(parties, [None] * 3)
        scorer = surprise_of(releases, n_particles=600)
        for kappa in (0.001, 0.01, 0.1, 0.3, 0.7, 1.0):
            exact = exact_surprise(scorer.model_, releases, [kappa] * 3)
            assert scorer.surprise(temper=kappa) == pytest.approx(exact, abs=0.1)

    def test_known_and_estimated_moments_of_x_agree(self):
        _, parties = simulate(5)
        releases = release_all(parties, [0.2, 0.5, 2.5])
        values = [
            surprise_of(
                releases, linear_model(x_covariance=c), n_particles=80, min_ess=0
            )
            for c in (None, 0.15 * np.eye(2))
        ]
        np.testing.assert_allclose(*(v.coalition_values_ for v in values), atol=0.25)

    def test_prediction(self, rng):
        _, parties = simulate(5, counts=(60,))
        (release,) = release_all(parties, [None], fit_intercept=True)
        model = linear_model().bind([release])
        phi, X, y = (
            np.array([[0.5, 1.0, -1.0, -2.0]]),
            rng.normal(size=(4, 2)),
            rng.normal(size=4),
        )
        mean = 0.5 + X @ [1.0, -1.0]
        np.testing.assert_allclose(model.predict_mean(phi, X)[0], mean)
        expected = norm(mean, np.exp(-1.0)).logpdf(y)
        np.testing.assert_allclose(model.predict_logpdf(phi, X, y)[0], expected)


class TestLogistic:
    SECOND = 0.1 * np.eye(3) + 0.02
    W = np.array([1.5, -2.0, 0.5])

    MEAN = np.array([0.3, -0.2, 0.1])

    def rows(self, rng, n, intercept=None):
        """Centred rows without an intercept, and others with one."""
        mean = np.zeros(3) if intercept is None else self.MEAN
        X = rng.multivariate_normal(mean, self.SECOND, size=n)
        logits = X @ self.W + (intercept or 0.0)
        return X, np.where(rng.random(n) < 1 / (1 + np.exp(-logits)), 1.0, -1.0)

    @pytest.mark.parametrize("intercept", [None, 0.7])
    def test_moments_by_simulation(self, rng, intercept):
        X, signs = self.rows(rng, 100_000, intercept)
        constant = intercept is not None
        terms = [
            logistic_vector(x[None], s[None], constant)
            for x, s in zip(X[:3], signs[:3])
        ]
        w, second, U = self.W, self.SECOND, X
        if constant:
            w = np.append(intercept, w)
            second = np.ones((4, 4))
            second[0, 1:] = second[1:, 0] = self.MEAN
            second[1:, 1:] = self.SECOND + np.outer(self.MEAN, self.MEAN)
            U = np.column_stack([np.ones(len(X)), X])
        rows, columns = np.array(np.tril_indices(U.shape[1]))[:, int(constant) :]
        weights = np.where(rows == columns, 1, 2**0.5)
        every = np.column_stack(
            [signs[:, None] * U, U[:, rows] * U[:, columns] * weights]
        )
        np.testing.assert_allclose(every[:3], terms)
        mean, covariance = statistic_moments(w[None], second, constant)
        np.testing.assert_allclose(mean[0], every.mean(axis=0), atol=7e-3)
        np.testing.assert_allclose(covariance[0], np.cov(every.T), atol=7e-3)

    @pytest.mark.parametrize(
        "intercept", [pytest.param(None, marks=pytest.mark.slow), 0.7]
    )
    def test_normal_likelihood_is_near_the_full_data_posterior(self, rng, intercept):
        """Without noise: what the statistic says is nearly what the rows say."""
        X, signs = self.rows(rng, 400, intercept)
        party = LogisticRelease(
            None, x_bound=5, classes=(-1, 1), fit_intercept=intercept is not None
        )
        release = party.fit(X, signs).release_
        if intercept is not None:
            X = np.column_stack([np.ones(400), X])
        model = BayesianLogistic(classes=(-1, 1))
        scorer = surprise_of([release], model, n_particles=160)
        w = scorer.model_.sample_prior(20_000, rng)
        logs = -np.logaddexp(0, -signs[:, None] * (X @ w.T)).sum(axis=0)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        full = weights @ logs - np.log(np.mean(np.exp(logs - logs.max()))) - logs.max()
        assert scorer.grand_value_ == pytest.approx(full, abs=0.35)
        means = [weights @ w, scorer.sample(n_draws=1000, random_state=0).mean(axis=0)]
        np.testing.assert_allclose(*means, atol=0.25)

    def test_prediction_with_an_intercept(self, rng):
        X, signs = self.rows(rng, 60, 0.7)
        party = LogisticRelease(None, classes=(-1, 1), fit_intercept=True)
        model = BayesianLogistic(classes=(-1, 1)).bind([party.fit(X, signs).release_])
        phi = np.array([[0.5, 1.0, -1.0, 0.0]])
        probabilities = 1 / (1 + np.exp(-signs * (0.5 + X @ [1.0, -1.0, 0.0])))
        np.testing.assert_allclose(
            np.exp(model.predict_logpdf(phi, X, signs)[0]), probabilities
        )

    def test_private_values_are_below_exact_ones(self, rng):
        X, signs = self.rows(rng, 400)
        values = []
        for epsilon in (0.01, 0.2, None):
            party = LogisticRelease(
                None,
                renyi_epsilon=epsilon,
                x_bound=2,
                classes=(-1, 1),
                noise_random_state=0,
            )
            release = quietly(party.fit, X, signs).release_
            model = BayesianLogistic(classes=(-1, 1))
            values.append(surprise_of([release], model, n_particles=200).grand_value_)
        assert values[0] < values[1] < values[2]


class TestMean:
    @pytest.mark.parametrize(
        ("wrap", "runs", "tolerance"),
        [(lambda model: model, 1, 1e-4), (Sampled, 4, 0.03)],
    )
    def test_is_in_closed_form(self, wrap, runs, tolerance):
        releases = [
            noisy_sum(100, 30.4, 0.5), noisy_sum(200, 63.0, 0.01), noisy_sum(50, 14.0, None)
        ]  # fmt: skip
        model = GaussianMean(0.1, prior_mean=0.1, prior_variance=0.5)
        runs = [
            surprise_of(releases, wrap(model), random_state=seed)
            for seed in range(runs)
        ]
        found = np.mean([run.coalition_values_ for run in runs], axis=0)
        np.testing.assert_allclose(found, exact_table(model, releases), atol=tolerance)
        draws = runs[-1].sample([0, 1], 4000, random_state=0)
        mean, variance = noisy_posterior(model, releases, [1, 1, 0])
        assert draws.mean() == pytest.approx(mean, abs=5 * (variance / 4000) ** 0.5)
        assert draws.var() == pytest.approx(variance, rel=0.15)

    def test_far_out_where_the_prior_has_hardly_any_mass(self):
        model, releases = (
            GaussianMean(0.01, prior_variance=0.01),
            [noisy_sum(400, -400.0, None)],
        )
        exact = exact_table(model, releases)[1]
        assert surprise_of(releases, model).grand_value_ == pytest.approx(
            exact, abs=1e-4, rel=1e-4
        )

    @pytest.mark.parametrize("prior_variance", [1.0, 1e4])
    def test_parties_who_disagree(self, prior_variance):
        releases = [noisy_sum(400, 400 * mean, None) for mean in (-0.9, 0.9, 0.9, 0.1)]
        model = GaussianMean(1e-4, prior_variance=prior_variance)
        found = surprise_of(releases, model).coalition_values_
        np.testing.assert_allclose(found, exact_table(model, releases), atol=5e-3)

    def test_density_of_numbers(self):
        phi, y = np.array([[0.3], [-1.0]]), np.array([0.0, 1.0, 1.0])
        found = GaussianMean(4.0).predict_logpdf(phi, None, y)
        np.testing.assert_allclose(found, norm(phi, 2.0).logpdf(y))
