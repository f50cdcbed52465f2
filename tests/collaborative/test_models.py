"""Models against closed forms, quadrature and simulation."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    BayesianSurpriseScorer,
    BetaBernoulli,
    GammaPoisson,
    GaussianMean,
    GramRelease,
    LogisticRelease,
    Release,
)
from skvalue.collaborative.models import (
    NIG,
    gamma_kl,
    joint_moments,
    nig_kl,
    nig_log_density,
    nig_sample,
    statistic_moments,
)
from skvalue.collaborative.party import gram_weights, logistic_vector

from .parties import beta_kl, gaussian_kl, linear_model, quietly, release_all, simulate


def members(number, n):
    return [number >> i & 1 for i in range(n)]


class TestNormalInverseGamma:
    PRIOR = NIG(np.array([0.1, -0.2]), np.array([[2.0, 0.3], [0.3, 1.0]]), 4.0, 1.5)
    POSTERIOR = NIG(np.array([0.4, 0.2]), np.array([[9.0, 1.0], [1.0, 7.0]]), 9.0, 2.5)

    def test_divergence_by_simulation(self, rng):
        phi = nig_sample(self.POSTERIOR, 200_000, rng)
        logs = nig_log_density(phi, self.POSTERIOR) - nig_log_density(phi, self.PRIOR)
        assert nig_kl(self.POSTERIOR, self.PRIOR) == pytest.approx(logs.mean(), abs=0.02)
        assert nig_kl(self.POSTERIOR, self.POSTERIOR) == pytest.approx(0, abs=1e-12)

    def test_density_integrates_to_one(self):
        distribution = NIG(np.array([0.3]), np.array([[2.0]]), 3.0, 1.0)
        grid = np.stack(np.meshgrid(np.linspace(-8, 8, 801), np.linspace(-5, 6, 551)), axis=-1)
        density = np.exp(nig_log_density(grid.reshape(-1, 2), distribution))
        assert density.sum() * 0.02 * 0.02 == pytest.approx(1, abs=1e-3)


class TestLinear:
    @pytest.mark.parametrize("layout", ["svec", "cross"])
    @pytest.mark.parametrize("intercept", [False, True])
    def test_moments_of_the_statistic_by_simulation(self, rng, layout, intercept):
        """The likelihood is normal, with the mean and covariance of simulated sums."""
        covariance = np.array([[0.1, 0.03], [0.03, 0.2]])
        phi = np.array([[0.2, 0.5, -0.4, np.log(0.05)]])[:, 0 if intercept else 1 :]
        X = rng.multivariate_normal(np.zeros(2), covariance, size=200_000)
        y = X @ phi[0, -3:-1] + np.sqrt(0.05) * rng.standard_normal(len(X))
        y += phi[0, 0] if intercept else 0.0
        rows, columns, weights = gram_weights(2, intercept, layout)
        U = np.column_stack([np.ones((len(X), int(intercept))), X, y])
        terms = U[:, rows] * U[:, columns] * weights
        count, epsilon = 80, 0.5
        party = GramRelease(
            None,
            renyi_epsilon=epsilon,
            fit_intercept=intercept,
            layout=layout,
            noise_random_state=0,
        )
        release = quietly(party.fit, X[:count], np.clip(y[:count], -1, 1)).release_
        model = BayesianLinear(x_covariance=covariance).bind([release])
        distribution = multivariate_normal(
            count * terms.mean(axis=0),
            count * np.cov(terms.T) + release.noise_scale**2 * np.eye(len(rows)),
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
        rows, columns, weights = gram_weights(2, False, "svec")
        moments = joint_moments(phi[:, :-1], np.exp(phi[:, -1]), 0.15 * np.eye(2))
        expected = []
        for m in moments:
            cov = m[np.ix_(rows, rows)] * m[np.ix_(columns, columns)]
            cov += m[np.ix_(rows, columns)] * m[np.ix_(columns, rows)]
            cov = 90 * cov * weights[:, None] * weights + release.noise_scale**2 * np.eye(6)
            distribution = multivariate_normal(90 * m[rows, columns] * weights, cov)
            expected.append(distribution.logpdf(release.vector))
        np.testing.assert_allclose(model.party_loglik(phi, release), expected, rtol=1e-9)

    def test_without_noise_values_are_in_closed_form(self):
        """Every coalition within 0.05, on average over some runs, of the conjugate posterior."""
        _, parties = simulate(3, counts=(60, 80, 120))
        releases = release_all(parties, [None] * 3)
        runs = [
            BayesianSurpriseScorer(linear_model(), random_state=seed).fit(releases)
            for seed in range(4)
        ]
        exact = [runs[0].model_.exact_surprise(releases, members(k, 3)) for k in range(8)]
        found = np.mean([run.coalition_values_ for run in runs], axis=0)
        assert min(exact[1:]) > 4
        np.testing.assert_allclose(found, exact, atol=0.05)

    def test_tempered_values_are_in_closed_form(self):
        _, parties = simulate(3, counts=(60, 80, 120))
        releases = release_all(parties, [None] * 3)
        scorer = BayesianSurpriseScorer(linear_model(), random_state=0, n_particles=1200)
        scorer.fit(releases)
        for kappa in (0.001, 0.01, 0.1, 0.3, 0.7, 1.0):
            exact = scorer.model_.exact_surprise(releases, [kappa] * 3)
            assert scorer.surprise(temper=kappa) == pytest.approx(exact, abs=0.1)

    def test_known_and_estimated_moments_of_x_agree(self):
        _, parties = simulate(5)
        releases = release_all(parties, [0.2, 0.5, 2.5])
        values = [
            BayesianSurpriseScorer(linear_model(x_covariance=c), random_state=0).fit(releases)
            for c in (None, 0.15 * np.eye(2))
        ]
        np.testing.assert_allclose(*(v.coalition_values_ for v in values), atol=0.25)

    def test_prediction(self, rng):
        _, parties = simulate(5, counts=(60,))
        (release,) = release_all(parties, [None], fit_intercept=True)
        model = linear_model().bind([release])
        phi, X, y = np.array([[0.5, 1.0, -1.0, -2.0]]), rng.normal(size=(4, 2)), rng.normal(size=4)
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
        X, signs = self.rows(rng, 300_000, intercept)
        constant = intercept is not None
        terms = [logistic_vector(x[None], s[None], constant) for x, s in zip(X[:3], signs[:3])]
        w, second, U = self.W, self.SECOND, X
        if constant:
            w = np.append(intercept, w)
            second = np.ones((4, 4))
            second[0, 1:] = second[1:, 0] = self.MEAN
            second[1:, 1:] = self.SECOND + np.outer(self.MEAN, self.MEAN)
            U = np.column_stack([np.ones(len(X)), X])
        rows, columns = np.array(np.tril_indices(U.shape[1]))[:, int(constant) :]
        weights = np.where(rows == columns, 1, 2**0.5)
        every = np.column_stack([signs[:, None] * U, U[:, rows] * U[:, columns] * weights])
        np.testing.assert_allclose(every[:3], terms)
        mean, covariance = statistic_moments(w[None], second, constant)
        np.testing.assert_allclose(mean[0], every.mean(axis=0), atol=4e-3)
        np.testing.assert_allclose(covariance[0], np.cov(every.T), atol=4e-3)

    @pytest.mark.parametrize("intercept", [None, 0.7])
    def test_quadratic_approximation_is_in_closed_form(self, rng, intercept):
        X, signs = self.rows(rng, 300, intercept)
        party = LogisticRelease(
            None, x_bound=2, classes=(-1, 1), fit_intercept=intercept is not None
        )
        releases = [party.fit(X[i::3], signs[i::3]).release_ for i in range(3)]
        model = BayesianLogistic(classes=(-1, 1), approximation="quadratic")
        scorer = BayesianSurpriseScorer(model, random_state=0, n_particles=1200).fit(releases)
        exact = [scorer.model_.exact_surprise(releases, members(k, 3)) for k in range(8)]
        np.testing.assert_allclose(scorer.coalition_values_, exact, atol=0.08)

    @pytest.mark.parametrize("intercept", [None, 0.7])
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
        scorer = BayesianSurpriseScorer(model, random_state=0).fit([release])
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
        np.testing.assert_allclose(np.exp(model.predict_logpdf(phi, X, signs)[0]), probabilities)

    def test_private_values_are_below_exact_ones(self, rng):
        X, signs = self.rows(rng, 400)
        values = []
        for epsilon in (0.01, 0.2, None):
            party = LogisticRelease(
                None, renyi_epsilon=epsilon, x_bound=2, classes=(-1, 1), noise_random_state=0
            )
            release = quietly(party.fit, X, signs).release_
            model = BayesianLogistic(classes=(-1, 1))
            scorer = BayesianSurpriseScorer(model, random_state=0, n_particles=200)
            values.append(scorer.fit([release]).grand_value_)
        assert values[0] < values[1] < values[2]


class TestFamilies:
    def releases(self):
        facts = [(100, 30.4, 0.5), (200, 63.0, 0.01), (50, 14.0, None)]
        return [Release("gaussian", n, (z,), e, 2.0, (-1.0, 1.0)) for n, z, e in facts]

    @pytest.mark.parametrize(
        ("method", "runs", "tolerance"), [("grid", 1, 1e-4), ("pool", 4, 0.03)]
    )
    def test_gaussian_mean_is_in_closed_form(self, method, runs, tolerance):
        releases = self.releases()
        model = GaussianMean(0.1, prior_mean=0.1, prior_variance=0.5)
        found = []
        for seed in range(runs):
            scorer = BayesianSurpriseScorer(model, method=method, random_state=seed).fit(releases)
            found.append(scorer.coalition_values_)
        exact = [
            gaussian_kl(*model.noisy_posterior(releases, members(k, 3)), 0.1, 0.5) for k in range(8)
        ]
        np.testing.assert_allclose(np.mean(found, axis=0), exact, atol=tolerance)
        draws = scorer.sample([0, 1], 4000, random_state=0)
        mean, variance = model.noisy_posterior(releases, [1, 1, 0])
        assert draws.mean() == pytest.approx(mean, abs=5 * (variance / 4000) ** 0.5)
        assert draws.var() == pytest.approx(variance, rel=0.15)

    @pytest.mark.parametrize(
        ("model", "release", "exact"),
        [
            (
                BetaBernoulli(0.5, 2.0),
                Release("bernoulli", 500, (120.0,), None, 2.0, (0.0, 1.0)),
                beta_kl(120.5, 382.0, 0.5, 2.0),
            ),
            (
                GammaPoisson(2.0, 0.7),
                Release("poisson", 60, (80.0,), None, 2.0, (0.0, 9.0)),
                gamma_kl(82.0, 60.7, 2.0, 0.7),
            ),
            (  # far out where the prior has no mass to speak of
                BetaBernoulli(1.0, 50.0),
                Release("bernoulli", 1000, (990.0,), None, 2.0, (0.0, 1.0)),
                beta_kl(991.0, 60.0, 1.0, 50.0),
            ),
            (
                GammaPoisson(),
                Release("poisson", 50, (5000.0,), None, 2.0, (0.0, 400.0)),
                gamma_kl(5001.0, 51.0, 1.0, 1.0),
            ),
            (
                GaussianMean(0.01, prior_variance=0.01),
                Release("gaussian", 400, (-400.0,), None, 2.0, (-1.0, 1.0)),
                0.5 * (1 / 401 - 1 + np.log(401) + 100 * (400 / 401) ** 2),
            ),
        ],
    )
    def test_conjugate_without_noise(self, model, release, exact):
        scorer = BayesianSurpriseScorer(model).fit([release])
        assert scorer.grand_value_ == pytest.approx(exact, abs=1e-4, rel=1e-4)

    @pytest.mark.parametrize("kind", ["bernoulli", "poisson"])
    def test_noisy_counts_by_quadrature(self, kind):
        bounds = (0.0, 1.0) if kind == "bernoulli" else (0.0, 5.0)
        release = Release(kind, 30, (11.6,), 0.4, 2.0, bounds)
        from scipy.stats import binom, poisson

        scale = release.noise_scale
        k = np.arange(151 if kind == "poisson" else 31)
        noise = norm(0, scale).pdf(release.statistic[0] - k)

        def likelihood(theta):
            distribution = binom(30, theta) if kind == "bernoulli" else poisson(30 * theta)
            return distribution.pmf(k) @ noise

        top = 1.0 if kind == "bernoulli" else 30.0
        prior = (lambda t: 1.0) if kind == "bernoulli" else (lambda t: np.exp(-t))
        options = dict(limit=200, points=[0.2, 0.5, 1.0] if kind == "poisson" else None)
        z = quad(lambda t: prior(t) * likelihood(t), 0, top, **options)[0]
        mean = quad(lambda t: prior(t) * likelihood(t) * np.log(likelihood(t)), 0, top, **options)[
            0
        ]
        model = BetaBernoulli() if kind == "bernoulli" else GammaPoisson()
        scorer = BayesianSurpriseScorer(model).fit([release])
        assert scorer.grand_value_ == pytest.approx(mean / z - np.log(z), abs=1e-3)

    @pytest.mark.parametrize("prior_variance", [1.0, 1e4])
    def test_parties_who_disagree(self, prior_variance):
        means, n, variance = np.array([-0.9, 0.9, 0.9, 0.1]), 400, 1e-4
        releases = [Release("gaussian", n, (n * m,), None, 2.0, (-1.0, 1.0)) for m in means]
        model = GaussianMean(variance, prior_variance=prior_variance)
        scorer = BayesianSurpriseScorer(model).fit(releases)
        members = np.arange(1, 16)[:, None] >> np.arange(4) & 1
        precision = 1 / prior_variance + members.sum(axis=1) * n / variance
        ratio = 1 / (precision * prior_variance)
        shift = (members @ means * n / variance / precision) ** 2 / prior_variance
        exact = 0.5 * (ratio - 1 - np.log(ratio) + shift)
        np.testing.assert_allclose(scorer.coalition_values_[1:], exact, atol=5e-3)

    def test_a_sum_that_noise_hides_is_worth_nothing(self):
        model = GammaPoisson()
        for n, upper, z in ((50, 1.0, -1700.0), (50, 1e9, 1e12), (10**9, 1.0, 500.0)):
            release = Release("poisson", n, (z,), 1e-6 / n**2, 2.0, (0.0, upper))
            assert abs(z) < 2 * n * release.noise_scale
            assert BayesianSurpriseScorer(model).fit([release]).grand_value_ < 1e-2

    @pytest.mark.parametrize("kind", ["bernoulli", "poisson"])
    def test_sums_over_many_counts(self, kind):
        """Where a sum is nearly normal, so is what comes with noise."""
        n, probability, scale = 10**10, 0.2, 1e5
        release = Release(kind, n, (n * probability + 7e4,), scale**-2.0, 2.0, (0.0, 1.0))
        assert release.noise_scale == pytest.approx(scale)
        model = BetaBernoulli() if kind == "bernoulli" else GammaPoisson()
        probabilities = probability + np.array([-3e-5, 0.0, 1e-5])
        phi = np.log(probabilities) - (np.log1p(-probabilities) if kind == "bernoulli" else 0.0)
        found = model.party_loglik(phi[:, None], release)
        variance = n * probabilities * (1 - probabilities if kind == "bernoulli" else 1.0)
        exact = norm(n * probabilities, np.sqrt(variance + scale**2)).logpdf(release.statistic[0])
        assert np.diff(found - exact) == pytest.approx(0, abs=1e-3)

    def test_density_of_numbers(self):
        phi = np.array([[0.3], [-1.0]])
        y = np.array([0.0, 1.0, 1.0])
        logit = BetaBernoulli().predict_logpdf(phi, None, y)
        np.testing.assert_allclose(np.exp(logit[:, :1]) + np.exp(logit[:, 1:2]), 1)
        rate = GammaPoisson().predict_logpdf(phi, None, np.arange(40))
        np.testing.assert_allclose(np.exp(rate).sum(axis=1), 1)
        found = GaussianMean(4.0).predict_logpdf(phi, None, y)
        np.testing.assert_allclose(found, norm(phi, 2.0).logpdf(y))
