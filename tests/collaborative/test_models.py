"""Models against closed forms, quadrature and simulation."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import beta, binom, gamma, multivariate_normal, norm, poisson

from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    BetaBernoulli,
    GammaPoisson,
    GaussianMean,
    GramRelease,
    LogisticRelease,
    NoisyStatistic,
)
from skvalue.collaborative.models import (
    joint_moments,
    quadratic_coefficients,
    statistic_moments,
)
from skvalue.collaborative.party import gram_vector, logistic_vector, unpack_gram
from skvalue.privacy import svec, svec_index

from .parties import (
    NormalInverseGamma,
    Sampled,
    beta_kl,
    every_coalition,
    exact_surprise,
    exact_table,
    gamma_kl,
    linear_model,
    noisy_posterior,
    noisy_sum,
    normal_inverse_gamma_kl,
    normal_kl,
    quietly,
    release_all,
    simulate,
    surprise_of,
)


class TestLinearPrior:
    PRIOR = NormalInverseGamma(
        np.array([0.1, -0.2]), np.array([[2.0, 0.3], [0.3, 1.0]]), 4.0, 1.5
    )
    POSTERIOR = NormalInverseGamma(
        np.array([0.4, 0.2]), np.array([[9.0, 1.0], [1.0, 7.0]]), 9.0, 2.5
    )

    def model(self, prior):
        model = BayesianLinear(a0=prior.a, b0=prior.b)
        model.prior_mean_ = prior.mean
        model.prior_precision_ = prior.precision
        return model

    def test_log_density_gives_the_divergence_of_draws(self, rng):
        posterior = self.model(self.POSTERIOR)
        prior = self.model(self.PRIOR)
        phi = posterior.sample_prior(200_000, rng)
        log_ratios = posterior.log_prior(phi) - prior.log_prior(phi)
        divergence = normal_inverse_gamma_kl(self.POSTERIOR, self.PRIOR)
        assert divergence == pytest.approx(log_ratios.mean(), abs=0.02)

    def test_divergence_from_itself_is_zero(self):
        divergence = normal_inverse_gamma_kl(self.POSTERIOR, self.POSTERIOR)
        assert divergence == pytest.approx(0, abs=1e-12)

    def test_density_integrates_to_one(self):
        model = self.model(
            NormalInverseGamma(np.array([0.3]), np.array([[2.0]]), 3.0, 1.0)
        )
        axes = np.linspace(-8, 8, 801), np.linspace(-5, 6, 551)
        grid = np.stack(np.meshgrid(*axes), axis=-1)
        density = np.exp(model.log_prior(grid.reshape(-1, 2)))
        assert density.sum() * 0.02 * 0.02 == pytest.approx(1, abs=1e-3)


class TestLinear:
    @pytest.mark.parametrize("intercept", [False, True])
    def test_likelihood_is_normal_with_moments_of_simulated_sums(self, rng, intercept):
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
        noise = release.noise_scale**2 * np.eye(terms.shape[1])
        distribution = multivariate_normal(
            80 * terms.mean(axis=0), 80 * np.cov(terms.T) + noise
        )
        assert model.party_loglik(phi, release)[0] == pytest.approx(
            distribution.logpdf(release.vector), abs=0.1
        )

    def test_likelihood_by_rotation_is_the_general_one(self, rng):
        """Without an intercept the noise is isotropic, and a fast form is used."""
        _, parties = simulate(0, counts=(90,))
        (release,) = release_all(parties, [0.3])
        model = linear_model(x_covariance=0.15 * np.eye(2)).bind([release])
        phi = model.sample_prior(20, rng)
        rows, columns, weights = svec_index(3)
        noise = release.noise_scale**2 * np.eye(6)
        moments = joint_moments(phi[:, :-1], np.exp(phi[:, -1]), 0.15 * np.eye(2))
        expected = []
        for m in moments:
            covariance = m[np.ix_(rows, rows)] * m[np.ix_(columns, columns)]
            covariance += m[np.ix_(rows, columns)] * m[np.ix_(columns, rows)]
            covariance = 90 * covariance * weights[:, None] * weights + noise
            mean = 90 * m[rows, columns] * weights
            distribution = multivariate_normal(mean, covariance)
            expected.append(distribution.logpdf(release.vector))
        np.testing.assert_allclose(
            model.party_loglik(phi, release), expected, rtol=1e-9
        )

    def test_values_without_noise_are_those_of_the_conjugate_posterior(self):
        """Of every coalition, within 0.05, on average over four runs."""
        _, parties = simulate(3, counts=(60, 80, 120))
        releases = release_all(parties, [None] * 3)
        runs = [
            surprise_of(releases, n_particles=300, random_state=seed)
            for seed in range(4)
        ]
        model = runs[0].model_
        expected = [
            exact_surprise(model, releases, powers) for powers in every_coalition(3)
        ]
        values = np.mean([run.coalition_values_ for run in runs], axis=0)
        assert min(expected[1:]) > 4
        np.testing.assert_allclose(values, expected, atol=0.05)

    def test_tempered_values_are_those_of_the_conjugate_posterior(self):
        _, parties = simulate(3, counts=(60, 80, 120))
        releases = release_all(parties, [None] * 3)
        scorer = surprise_of(releases, n_particles=600)
        for kappa in (0.001, 0.01, 0.1, 0.3, 0.7, 1.0):
            expected = exact_surprise(scorer.model_, releases, [kappa] * 3)
            assert scorer.surprise(temper=kappa) == pytest.approx(expected, abs=0.1)

    def test_known_and_estimated_moments_of_x_give_similar_values(self):
        _, parties = simulate(5)
        releases = release_all(parties, [0.2, 0.5, 2.5])

        def values(x_covariance):
            model = linear_model(x_covariance=x_covariance)
            scorer = surprise_of(releases, model, n_particles=80, min_ess=0)
            return scorer.coalition_values_

        np.testing.assert_allclose(values(None), values(0.15 * np.eye(2)), atol=0.25)

    def test_predictions_are_normal_around_the_linear_function(self, rng):
        _, parties = simulate(5, counts=(60,))
        (release,) = release_all(parties, [None], fit_intercept=True)
        model = linear_model().bind([release])
        phi = np.array([[0.5, 1.0, -1.0, -2.0]])
        X = rng.normal(size=(4, 2))
        y = rng.normal(size=4)
        mean = 0.5 + X @ [1.0, -1.0]
        np.testing.assert_allclose(model.predict_mean(phi, X)[0], mean)
        expected = norm(mean, np.exp(-1.0)).logpdf(y)
        np.testing.assert_allclose(model.predict_logpdf(phi, X, y)[0], expected)


class TestLogistic:
    SECOND_MOMENTS = 0.1 * np.eye(3) + 0.02
    MEAN = np.array([0.3, -0.2, 0.1])
    W = np.array([1.5, -2.0, 0.5])

    def rows(self, rng, n, intercept=None):
        """Rows and signs; the rows are centred without an intercept."""
        mean = np.zeros(3) if intercept is None else self.MEAN
        X = rng.multivariate_normal(mean, self.SECOND_MOMENTS, size=n)
        logits = X @ self.W + (intercept or 0.0)
        is_positive = rng.random(n) < 1 / (1 + np.exp(-logits))
        return X, np.where(is_positive, 1.0, -1.0)

    @pytest.mark.parametrize("intercept", [None, 0.7])
    def test_moments_of_the_statistic_are_those_of_simulated_rows(self, rng, intercept):
        X, signs = self.rows(rng, 100_000, intercept)
        has_intercept = intercept is not None
        w = self.W
        second_moments = self.SECOND_MOMENTS
        U = X
        if has_intercept:
            w = np.append(intercept, w)
            second_moments = np.ones((4, 4))
            second_moments[0, 1:] = second_moments[1:, 0] = self.MEAN
            outer = np.outer(self.MEAN, self.MEAN)
            second_moments[1:, 1:] = self.SECOND_MOMENTS + outer
            U = np.column_stack([np.ones(len(X)), X])
        rows, columns = np.array(np.tril_indices(U.shape[1]))[:, int(has_intercept) :]
        weights = np.where(rows == columns, 1, 2**0.5)
        terms = np.column_stack(
            [signs[:, None] * U, U[:, rows] * U[:, columns] * weights]
        )
        first_terms = [
            logistic_vector(X[i : i + 1], signs[i : i + 1], has_intercept)
            for i in range(3)
        ]
        np.testing.assert_allclose(terms[:3], first_terms)
        mean, covariance = statistic_moments(w[None], second_moments, has_intercept)
        np.testing.assert_allclose(mean[0], terms.mean(axis=0), atol=7e-3)
        np.testing.assert_allclose(covariance[0], np.cov(terms.T), atol=7e-3)

    @pytest.mark.parametrize(
        "intercept", [pytest.param(None, marks=pytest.mark.slow), 0.7]
    )
    def test_posterior_without_noise_is_near_that_of_the_rows(self, rng, intercept):
        X, signs = self.rows(rng, 400, intercept)
        party = LogisticRelease(
            None, x_bound=5, classes=(-1, 1), fit_intercept=intercept is not None
        )
        release = party.fit(X, signs).release_
        if intercept is not None:
            X = np.column_stack([np.ones(400), X])
        model = BayesianLogistic(classes=(-1, 1))
        scorer = surprise_of([release], model, n_particles=160)

        # The posterior of the rows, by weights of draws from the prior.
        w = scorer.model_.sample_prior(20_000, rng)
        logs = -np.logaddexp(0, -signs[:, None] * (X @ w.T)).sum(axis=0)
        likelihoods = np.exp(logs - logs.max())
        weights = likelihoods / likelihoods.sum()
        value = weights @ logs - np.log(np.mean(likelihoods)) - logs.max()
        assert scorer.grand_value_ == pytest.approx(value, abs=0.35)
        draws = scorer.sample(n_draws=1000, random_state=0)
        np.testing.assert_allclose(weights @ w, draws.mean(axis=0), atol=0.25)

    def test_probabilities_with_an_intercept_are_sigmoids(self, rng):
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
        ("wrap", "n_runs", "tolerance"),
        [(lambda model: model, 1, 1e-4), (Sampled, 4, 0.03)],
        ids=["grid", "sampled"],
    )
    def test_values_and_draws_are_those_of_the_closed_form(
        self, wrap, n_runs, tolerance
    ):
        releases = [
            noisy_sum(100, 30.4, 0.5),
            noisy_sum(200, 63.0, 0.01),
            noisy_sum(50, 14.0, None),
        ]
        model = GaussianMean(0.1, prior_mean=0.1, prior_variance=0.5)
        runs = [
            surprise_of(releases, wrap(model), random_state=seed)
            for seed in range(n_runs)
        ]
        values = np.mean([run.coalition_values_ for run in runs], axis=0)
        np.testing.assert_allclose(values, exact_table(model, releases), atol=tolerance)
        draws = runs[-1].sample([0, 1], 4000, random_state=0)
        mean, variance = noisy_posterior(model, releases, [1, 1, 0])
        assert draws.mean() == pytest.approx(mean, abs=5 * (variance / 4000) ** 0.5)
        assert draws.var() == pytest.approx(variance, rel=0.15)

    def test_posterior_in_the_tail_of_the_prior_is_integrated(self):
        model = GaussianMean(0.01, prior_variance=0.01)
        releases = [noisy_sum(400, -400.0, None)]
        expected = exact_table(model, releases)[1]
        assert surprise_of(releases, model).grand_value_ == pytest.approx(
            expected, abs=1e-4, rel=1e-4
        )

    @pytest.mark.parametrize("prior_variance", [1.0, 1e4])
    def test_posteriors_of_parties_who_disagree_are_integrated(self, prior_variance):
        releases = [noisy_sum(400, 400 * mean, None) for mean in (-0.9, 0.9, 0.9, 0.1)]
        model = GaussianMean(1e-4, prior_variance=prior_variance)
        values = surprise_of(releases, model).coalition_values_
        np.testing.assert_allclose(values, exact_table(model, releases), atol=5e-3)

    def test_predictions_are_normal_around_the_mean(self):
        phi = np.array([[0.3], [-1.0]])
        y = np.array([0.0, 1.0, 1.0])
        log_densities = GaussianMean(4.0).predict_logpdf(phi, None, y)
        np.testing.assert_allclose(log_densities, norm(phi, 2.0).logpdf(y))


class TestQuadraticLogistic:
    """PASS: polynomial approximate sufficient statistics of degree 2."""

    def releases(self, rng, fit_intercept):
        X = rng.multivariate_normal(np.zeros(2), 0.2 * np.eye(2), size=300)
        is_positive = rng.random(300) < expit(X @ [1.5, -2.0] + 0.5 * fit_intercept)
        party = LogisticRelease(
            None, x_bound=2, classes=(False, True), fit_intercept=fit_intercept
        )
        return [party.fit(X[i::3], is_positive[i::3]).release_ for i in range(3)]

    @pytest.mark.parametrize("fit_intercept", [False, True])
    def test_values_are_those_of_the_normal_posterior(self, rng, fit_intercept):
        releases = self.releases(rng, fit_intercept)
        size = 2 + fit_intercept
        model = BayesianLogistic(classes=(False, True), approximation="quadratic")
        scorer = surprise_of(releases, model, n_particles=400)

        _, b1, b2 = quadratic_coefficients(4.0)
        expected = []
        for coalition in every_coalition(3):
            precision = np.eye(size)
            right = np.zeros(size)
            for is_member, release in zip(coalition, releases):
                gram = unpack_gram(release.vector[size:], size, release)
                precision = precision - 2 * b2 * is_member * gram
                right = right + b1 * is_member * release.vector[:size]
            mean = np.linalg.solve(precision, right)
            expected.append(normal_kl(mean, precision, np.zeros(size), np.eye(size)))
        np.testing.assert_allclose(scorer.coalition_values_, expected, atol=0.1)

    @pytest.mark.parametrize(
        ("radius", "largest_error"), [(1.0, 1e-3), (4.0, 0.09), (8.0, 0.5)]
    )
    def test_quadratic_is_near_the_logarithm_of_the_sigmoid(
        self, radius, largest_error
    ):
        b0, b1, b2 = quadratic_coefficients(radius)
        s = np.linspace(-radius, radius, 201)
        errors = np.abs(b0 + b1 * s + b2 * s * s - np.log(expit(s)))
        assert b1 == pytest.approx(0.5)
        assert errors.max() < largest_error

    def test_noisy_releases_are_refused(self, rng):
        X = rng.normal(size=(80, 2)) / 3
        party = LogisticRelease(renyi_epsilon=1.0, noise_random_state=0)
        release = quietly(party.fit, X, X[:, 0] > 0).release_
        with pytest.raises(ValueError, match="approximation must be 'normal' for rel"):
            BayesianLogistic(approximation="quadratic").bind([release])


def count_release(kind, count, total, epsilon=None, upper=9.0):
    bounds = (0.0, 1.0) if kind == "bernoulli" else (0.0, upper)
    return NoisyStatistic(kind, count, (total,), epsilon, 2.0, bounds)


class TestCounts:
    @pytest.mark.parametrize(
        ("model", "release", "expected"),
        [
            (
                BetaBernoulli(0.5, 2.0),
                count_release("bernoulli", 500, 120.0),
                beta_kl(120.5, 382.0, 0.5, 2.0),
            ),
            (
                GammaPoisson(2.0, 0.7),
                count_release("poisson", 60, 80.0),
                gamma_kl(82.0, 60.7, 2.0, 0.7),
            ),
            (
                BetaBernoulli(1.0, 50.0),
                count_release("bernoulli", 1000, 990.0),
                beta_kl(991.0, 60.0, 1.0, 50.0),
            ),
            (
                GammaPoisson(),
                count_release("poisson", 50, 5000.0, upper=400.0),
                gamma_kl(5001.0, 51.0, 1.0, 1.0),
            ),
        ],
        ids=["beta", "gamma", "beta in the tail", "gamma in the tail"],
    )
    def test_values_without_noise_are_those_of_the_conjugate_posterior(
        self, model, release, expected
    ):
        value = surprise_of([release], model).grand_value_
        assert value == pytest.approx(expected, abs=1e-4, rel=1e-4)

    @pytest.mark.parametrize("b", [1e-3, 1.0])
    @pytest.mark.parametrize("a", [1e-4, 1e-3, 0.03])
    def test_priors_of_almost_no_rows_keep_their_tails(self, a, b):
        """Most of such a prior is beyond the smallest floats."""
        ones = count_release("bernoulli", 50, 20.0)
        value = surprise_of([ones], BetaBernoulli(a, b)).grand_value_
        assert value == pytest.approx(beta_kl(20 + a, 30 + b, a, b), rel=1e-3)
        counts = count_release("poisson", 50, 80.0)
        value = surprise_of([counts], GammaPoisson(a, b)).grand_value_
        assert value == pytest.approx(gamma_kl(80 + a, 50 + b, a, b), rel=1e-3)

    @pytest.mark.parametrize(
        ("model", "distribution"),
        [
            (BetaBernoulli(0.5, 2.0), lambda phi: beta.cdf(expit(phi), 0.5, 2.0)),
            (BetaBernoulli(0.01, 5.0), lambda phi: beta.cdf(expit(phi), 0.01, 5.0)),
            (BetaBernoulli(5.0, 0.01), lambda phi: beta.sf(expit(-phi), 0.01, 5.0)),
            (GammaPoisson(2.0, 0.7), lambda phi: gamma.cdf(0.7 * np.exp(phi), 2.0)),
            (GammaPoisson(0.01, 3.0), lambda phi: gamma.cdf(3 * np.exp(phi), 0.01)),
        ],
        ids=["beta", "few ones", "few zeros", "gamma", "small rates"],
    )
    def test_quantiles_invert_the_distribution_of_the_prior(self, model, distribution):
        probabilities = np.array([0.01, 0.2, 0.499, 0.5, 0.501, 0.8, 0.99])
        quantiles = model.prior_quantile(probabilities)
        np.testing.assert_allclose(distribution(quantiles), probabilities, rtol=1e-6)

    @pytest.mark.parametrize(
        ("model", "kind"), [(BetaBernoulli(), "bernoulli"), (GammaPoisson(), "poisson")]
    )
    def test_sampled_value_is_that_of_the_grid(self, model, kind):
        releases = [count_release(kind, 40, 12.0, 0.5)]
        on_grid = surprise_of(releases, model).grand_value_
        sampled = surprise_of(releases, Sampled(model), n_particles=320)
        tolerance = 4 * sampled.coalition_computation_error_[-1]
        assert sampled.grand_value_ == pytest.approx(on_grid, abs=tolerance)
        assert tolerance < 0.3

    @pytest.mark.parametrize("scale", [1.0, 0.3, 0.01])
    @pytest.mark.parametrize(
        ("model", "kind"), [(BetaBernoulli(), "bernoulli"), (GammaPoisson(), "poisson")]
    )
    def test_likelihood_is_the_sum_over_all_counts(self, model, kind, scale):
        release = count_release(kind, 30, 11.6, 0.4, upper=5.0)
        phi = np.linspace(-2, 1, 7)[:, None]
        if kind == "bernoulli":
            sums = np.arange(31)
            log_mass = binom(30, expit(phi)).logpmf(sums)
        else:
            sums = np.arange(800)
            log_mass = poisson(30 * np.exp(phi)).logpmf(sums)
        log_noise = norm(0, release.noise_scale).logpdf(11.6 - sums)
        expected = logsumexp(scale * log_mass + log_noise, axis=1)
        loglik = model.scaled_loglik(phi, release, scale)
        differences = loglik - expected
        np.testing.assert_allclose(differences, differences[0], atol=3e-3)

    @pytest.mark.parametrize(
        ("count", "upper", "total"),
        [(50, 2.0, -1700.0), (50, 1e9, 1e12), (10**9, 2.0, 500.0)],
    )
    def test_sum_that_noise_hides_is_worth_nothing(self, count, upper, total):
        release = count_release("poisson", count, total, 1e-6 / count**2, upper)
        assert surprise_of([release], GammaPoisson()).grand_value_ < 1e-2

    @pytest.mark.parametrize("kind", ["bernoulli", "poisson"])
    def test_likelihood_of_many_counts_is_nearly_normal(self, kind):
        n = 10**10
        noise_scale = 1e5
        upper = 1.0 if kind == "bernoulli" else 2.0
        epsilon = (upper / noise_scale) ** 2
        release = count_release(kind, n, 0.2 * n + 7e4, epsilon, upper)
        assert release.noise_scale == pytest.approx(noise_scale)
        p = 0.2 + np.array([-3e-5, 0.0, 1e-5])
        if kind == "bernoulli":
            phi = np.log(p) - np.log1p(-p)
            variances = n * p * (1 - p)
            model = BetaBernoulli()
        else:
            phi = np.log(p)
            variances = n * p
            model = GammaPoisson()
        loglik = model.party_loglik(phi[:, None], release)
        scales = np.sqrt(variances + noise_scale**2)
        expected = norm(n * p, scales).logpdf(release.statistic[0])
        assert np.diff(loglik - expected) == pytest.approx(0, abs=1e-3)

    @pytest.mark.parametrize(
        ("model", "y"), [(BetaBernoulli(), [0, 1]), (GammaPoisson(), range(40))]
    )
    def test_predicted_probabilities_sum_to_one(self, model, y):
        logs = model.predict_logpdf(np.array([[0.3], [-1.0]]), None, np.array(y))
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)

    def test_party_without_rows_is_worth_nothing(self):
        releases = [
            count_release("bernoulli", 0, 0.0, 1.0),
            count_release("bernoulli", 30, 9.0, 1.0),
        ]
        assert surprise_of(releases, BetaBernoulli()).values_[0] == 0


class TestScaledLikelihood:
    """The likelihood of an exact statistic, to a power, then noise (Appendix E.3)."""

    PHI = {
        "linear": [[0.5, np.log(0.05)], [-0.3, np.log(0.2)], [1.0, np.log(0.02)]],
        "linear, intercept": [[0.1, 0.5, np.log(0.05)], [-0.2, -0.3, np.log(0.2)]],
        "logistic": [[0.5], [-2.0], [3.0]],
    }

    def case(self, name, renyi_epsilon):
        """A bound model, its release, and moments of the exact statistic by phi."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(80, 1)) / 3
        intercept = name.endswith("intercept")
        options = {
            "renyi_epsilon": renyi_epsilon,
            "fit_intercept": intercept,
            "noise_random_state": 0,
        }
        second_moments = np.diag([1.0, 0.1])[1 - intercept :, 1 - intercept :]
        phi = np.array(self.PHI[name])
        if name == "logistic":
            party = LogisticRelease(None, **options)
            model = BayesianLogistic(x_covariance=[[0.1]])
            release = quietly(party.fit, X, X[:, 0] > 0).release_
            means, covariances = statistic_moments(phi, second_moments)
        else:
            party = GramRelease(None, **options)
            model = BayesianLinear(x_covariance=[[0.1]])
            release = quietly(party.fit, X, X[:, 0] / 2).release_
            moments = joint_moments(phi[:, :-1], np.exp(phi[:, -1]), second_moments)
            rows, columns, weights = (v[intercept:] for v in svec_index(2 + intercept))
            means = moments[:, rows, columns] * weights
            covariances = np.array(
                [
                    m[np.ix_(rows, rows)] * m[np.ix_(columns, columns)]
                    + m[np.ix_(rows, columns)] * m[np.ix_(columns, rows)]
                    - 2
                    * intercept
                    * np.outer(m[0, rows] * m[0, columns], m[0, rows] * m[0, columns])
                    for m in moments
                ]
            )
            covariances *= weights[:, None] * weights
        return model.bind([release]), release, phi, 80 * means, 80 * covariances

    @pytest.mark.parametrize("scale", [1.0, 0.4, 0.05])
    @pytest.mark.parametrize("name", ["linear", "logistic"])
    def test_is_the_integral_over_exact_statistics(self, name, scale):
        """By quadrature over the noise, in all dimensions of the statistic."""
        model, release, phi, means, covariances = self.case(name, 50.0)
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        size = len(release.vector)
        grid = np.stack(np.meshgrid(*[nodes] * size), axis=-1).reshape(-1, size)
        log_weights = np.log(np.stack(np.meshgrid(*[weights] * size), axis=-1))
        log_weights = log_weights.reshape(-1, size).sum(axis=1)
        exact = release.vector + release.noise_scale * grid
        expected = [
            logsumexp(
                scale * multivariate_normal(mean, covariance).logpdf(exact)
                + log_weights
            )
            for mean, covariance in zip(means, covariances)
        ]
        differences = model.scaled_loglik(phi, release, scale) - expected
        np.testing.assert_allclose(differences, differences[0], atol=1e-3)

    @pytest.mark.parametrize("name", list(PHI))
    def test_without_noise_is_the_power_of_the_likelihood(self, name):
        model, release, phi, _, _ = self.case(name, None)
        loglik = model.party_loglik(phi, release)
        scaled = model.scaled_loglik(phi, release, 0.3)
        np.testing.assert_allclose(
            np.diff(scaled), np.diff(0.3 * loglik), rtol=1e-6, atol=1e-4
        )

    @pytest.mark.parametrize("name", list(PHI))
    def test_a_small_scale_gives_the_prior(self, name):
        model, release, phi, _, _ = self.case(name, 0.2)
        scaled = model.scaled_loglik(phi, release, 1e-9)
        np.testing.assert_allclose(np.diff(scaled), 0, atol=1e-4)
        assert np.ptp(model.scaled_loglik(phi, release, 1.0)) > 0.1

    def test_hierarchical_moments_give_the_prior_too(self, rng):
        X = rng.normal(size=(60, 2)) / 3
        party = GramRelease(renyi_epsilon=0.5, noise_random_state=0)
        release = quietly(party.fit, X, X[:, 0]).release_
        model = linear_model(moments="hierarchical", moment_draws=8).bind([release])
        phi = model.sample_prior(5, rng)
        scaled = model.scaled_loglik(phi, release, 1e-9)
        np.testing.assert_allclose(scaled, scaled[0], atol=1e-4)
