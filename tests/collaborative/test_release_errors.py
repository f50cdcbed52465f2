"""Errors that the noise of releases causes, and what they are computed from."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from skvalue import BayesianSurpriseScorer, PredictiveValueScorer
from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    BetaBernoulli,
    GammaPoisson,
    GaussianMean,
    GramRelease,
    LogisticRelease,
    RhoShapleyReward,
)
from skvalue.exceptions import NoiseExceedsSignalWarning

from .coverage import (
    EPSILONS,
    FAST,
    MODELS,
    PARTIES,
    draw_logistic,
    draw_parties,
    measure,
    release_rows,
    values_without_noise,
)
from .parties import (
    Sampled,
    beta_kl,
    every_coalition,
    exact_surprise,
    gamma_kl,
    noisy_posterior,
    noisy_sum,
    release_all,
    simulate,
)


def fit_means(facts, scorer=None, **fit_params):
    """A scorer of a mean, fitted to sums: (number of rows, sum, Renyi epsilon)."""
    if scorer is None:
        scorer = PredictiveValueScorer(GaussianMean(0.1), random_state=0)
        fit_params = {"y_val": [0.3, 0.5, 0.1, 0.4]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return scorer.fit([noisy_sum(*fact) for fact in facts], **fit_params)


NOISY = [(100, 40.0, 0.5), (100, 35.0, 0.1), (60, -10.0, 0.3)]
EXACT = [(count, total, None) for count, total, _ in NOISY]


class TestExactPosteriors:
    def test_linear_divergences_are_in_closed_form(self):
        releases = release_all(simulate(0)[1], (None, None, None))
        model = BayesianLinear().bind(releases)
        masks = every_coalition(3)
        posteriors = model.exact_posteriors(
            masks @ [release.n_samples for release in releases],
            masks @ np.array([release.statistic for release in releases]),
        )
        expected = [exact_surprise(model, releases, powers) for powers in masks]
        np.testing.assert_allclose(posteriors.divergences(), expected, atol=1e-9)

    def test_linear_predictions_are_student_t(self):
        _, ((X, y), *_) = simulate(1)
        release = GramRelease(None, fit_intercept=True).fit(X, y).release_
        model = BayesianLinear(0.5, a0=2.0, b0=0.1).bind([release])
        posteriors = model.exact_posteriors(np.array([len(X)]), release.vector[None])
        u = np.column_stack([np.ones(len(X)), X])
        precision = 0.5 * np.eye(3) + u.T @ u
        mean = np.linalg.solve(precision, u.T @ y)
        a = 2.0 + len(X) / 2
        b = 0.1 + (y @ y - mean @ precision @ mean) / 2
        new = np.array([[1.0, 0.2, -0.3]])
        scale = np.sqrt(b / a * (1 + new @ np.linalg.solve(precision, new[0])))
        expected = stats.t.logpdf(0.4, 2 * a, new @ mean, scale)
        computed = posteriors.log_densities(new[:, 1:], np.array([0.4]))
        np.testing.assert_allclose(computed[0], expected, atol=1e-9)

    def test_means_have_the_posterior_without_noise(self):
        model = GaussianMean(0.1, prior_mean=0.2, prior_variance=0.5)
        release = noisy_sum(50, 20.0, None)
        posteriors = model.exact_posteriors(np.array([50.0]), np.array([[20.0]]))
        mean, variance = noisy_posterior(model, [release], [1])
        expected = stats.norm.logpdf([0.1, 0.9], mean, np.sqrt(variance + 0.1))
        np.testing.assert_allclose(
            posteriors.log_densities(None, [0.1, 0.9])[0], expected
        )

    def test_ones_have_a_beta_posterior(self):
        model = BetaBernoulli(2.0, 3.0)
        posteriors = model.exact_posteriors(np.array([10.0]), np.array([[4.0]]))
        assert posteriors.divergences()[0] == pytest.approx(beta_kl(6, 9, 2, 3))
        densities = np.exp(posteriors.log_densities(None, [1, 0]))[0]
        np.testing.assert_allclose(densities, [6 / 15, 9 / 15])

    def test_counts_have_a_gamma_posterior(self):
        model = GammaPoisson(2.0, 3.0)
        posteriors = model.exact_posteriors(np.array([10.0]), np.array([[14.0]]))
        assert posteriors.divergences()[0] == pytest.approx(gamma_kl(16, 13, 2, 3))
        expected = stats.nbinom.logpmf([0, 3], 16, 13 / 14)
        np.testing.assert_allclose(posteriors.log_densities(None, [0, 3])[0], expected)

    @pytest.mark.parametrize("name", ["mean", "ones", "counts"])
    def test_a_prior_alone_has_no_divergence(self, name):
        model = MODELS[name][2]
        posteriors = model.exact_posteriors(np.zeros(1), np.zeros((1, 1)))
        assert abs(posteriors.divergences()[0]) < 1e-12

    @pytest.mark.parametrize(
        ("has_intercept", "base_rate"), [(False, None), (True, None), (True, 0.7)]
    )
    def test_logistic_values_are_near_those_of_a_sampled_posterior(
        self, has_intercept, base_rate
    ):
        X, y = draw_logistic("honest", 300, np.random.default_rng(0))
        X_val, y_val = draw_logistic("honest", 100, np.random.default_rng(1))
        party = LogisticRelease(None, fit_intercept=has_intercept)
        release = party.fit(X, y).release_
        model = BayesianLogistic(0.1, base_rate=base_rate)
        sampled = PredictiveValueScorer(model, **FAST)
        sampled.fit([release], X_val=X_val, y_val=y_val)
        bound = sampled.model_
        posteriors = bound.exact_posteriors(
            np.array([0.0, 300.0]), np.array([0 * release.vector, release.vector])
        )
        prior, alone = posteriors.log_densities(bound.map_features(X_val), y_val)
        assert (alone - prior).mean() == pytest.approx(sampled.grand_value_, abs=0.02)
        surprise = BayesianSurpriseScorer(model, **FAST).fit([release]).grand_value_
        assert posteriors.divergences()[1] == pytest.approx(surprise, abs=0.4)


class TestExactStatistics:
    def test_the_sum_behind_a_noisy_one_is_normal(self, rng):
        release = noisy_sum(100, 40.0, 0.05)
        phi = np.full((20_000, 1), 0.2)
        sums = GaussianMean(0.3).exact_statistics(phi, release, rng)[:, 0]
        gain = 30 / (30 + release.noise_scale**2)
        assert sums.mean() == pytest.approx(20 + gain * 20, abs=0.2)
        assert sums.std() == pytest.approx(
            np.sqrt(gain) * release.noise_scale, rel=0.03
        )

    @pytest.mark.parametrize("name", MODELS)
    def test_a_release_without_noise_is_the_statistic(self, rng, name):
        rows, party, model, _ = draw_parties(name, "equal")
        (release,) = release_rows(party, rows[:1], None, 0)
        model = model.bind([release])
        phi = model.sample_prior(3, rng)
        statistics = model.exact_statistics(phi, release, rng)
        assert (statistics == release.vector).all()

    @pytest.mark.parametrize("name", MODELS)
    def test_with_little_noise_statistics_are_those_of_the_rows(self, rng, name):
        rows, party, model, _ = draw_parties(name, "equal")
        exact, noisy = (
            release_rows(party, rows[:1], epsilon, 0)[0] for epsilon in (None, 2000.0)
        )
        model = model.bind([noisy])
        phi = model.sample_prior(3, rng)
        statistics = model.exact_statistics(phi, noisy, rng)
        gaps = np.abs(statistics - exact.vector)
        assert gaps.max() < 10 * noisy.noise_scale + 1

    @pytest.mark.parametrize("name", MODELS)
    def test_statistics_are_within_the_bounds_of_rows(self, rng, name):
        rows, party, model, _ = draw_parties(name, "equal")
        (release,) = release_rows(party, rows[:1], 0.05, 0)
        model = model.bind([release])
        phi = model.sample_prior(50, rng)
        statistics = model.exact_statistics(phi, release, rng)
        if name in ("linear", "logistic"):
            # The sums of squares of the three features, in a lower triangle.
            first = 0 if name == "linear" else 3
            squares = statistics[:, first + np.array([0, 2, 5])]
            assert (squares >= 0).all()
            assert (squares.sum(axis=1) <= release.n_samples * (1 + 1e-9)).all()
        else:
            largest = release.n_samples * release.bounds[1]
            assert (statistics <= largest).all()
            assert (statistics >= release.n_samples * release.bounds[0]).all()


class TestAttributes:
    def test_without_noise_the_computation_is_all(self):
        scorer = fit_means(EXACT)
        assert (scorer.release_error_ == 0).all()
        assert (scorer.values_error_ == scorer.computation_error_).all()

    def test_the_whole_error_is_of_both(self):
        releases = release_all(simulate(0)[1], (0.2, 0.5, 1.0))
        scorer = BayesianSurpriseScorer(BayesianLinear(), **FAST)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoiseExceedsSignalWarning)
            scorer.fit(releases)
        assert (scorer.computation_error_ > 0).all()
        assert (scorer.release_error_ > scorer.computation_error_).all()
        whole = np.hypot(scorer.computation_error_, scorer.release_error_)
        np.testing.assert_allclose(scorer.values_error_, whole)
        alone = scorer.coalition_values_error_
        assert (alone[1:] > scorer.coalition_computation_error_[1:]).all()
        assert alone[0] == 0
        assert scorer.grand_value_error_ == alone[-1]

    def test_a_party_without_rows_has_no_error(self):
        scorer = fit_means([*NOISY, (0, 1.0, 0.3)])
        assert scorer.release_error_[3] < 1e-12 < scorer.release_error_[0]

    def test_more_noise_has_larger_errors(self):
        less = fit_means(NOISY)
        more = fit_means([(count, total, e / 50) for count, total, e in NOISY])
        assert more.release_error_.mean() > 2 * less.release_error_.mean()

    def test_errors_do_not_depend_on_the_order_of_parties(self):
        scorer = fit_means(NOISY)
        other = fit_means(NOISY[::-1])
        np.testing.assert_allclose(other.values_error_[::-1], scorer.values_error_)

    @pytest.mark.parametrize(
        "model",
        [Sampled(GaussianMean(0.1)), BayesianLinear(noise_aware=False)],
        ids=["a user's model", "noise ignored"],
    )
    def test_a_model_without_exact_values_has_no_error_of_noise(self, model):
        if isinstance(model, BayesianLinear):
            releases = release_all(simulate(0)[1], (0.2, 0.5, 1.0))
        else:
            releases = [noisy_sum(*fact) for fact in NOISY]
        scorer = BayesianSurpriseScorer(model, **FAST)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scorer.fit(releases)
        for name in ("release_error_", "values_error_", "coalition_values_error_"):
            assert not hasattr(scorer, name)
        assert (scorer.computation_error_ > 0).any()
        scheme = RhoShapleyReward(random_state=0).fit(scorer)
        assert not hasattr(scheme, "target_rewards_error_")

    def test_what_an_approximation_misses_is_no_error_of_noise(self):
        """Normal approximations are worst where parties contradict each other."""

        def draw(n, seed):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(n, 2)) / 3
            return X, (rng.random(n) < expit(X @ [5.0, -3.0])).astype(int)

        # With hardly any noise there is hardly an error; the closed form alone is off
        # by .06 for the first party.
        releases = []
        for seed, (n, is_flipped) in enumerate([(800, 0), (200, 0), (400, 1)]):
            X, y = draw(n, seed)
            party = LogisticRelease(1e5, noise_random_state=seed)
            releases.append(party.fit(X, y ^ is_flipped).release_)
        X_val, y_val = draw(100, 9)
        model = BayesianLogistic(0.04)
        scorer = PredictiveValueScorer(model, n_particles=300, random_state=0)
        scorer.fit(releases, X_val=X_val, y_val=y_val)
        assert np.abs(scorer.values_).min() > 0.1
        assert scorer.release_error_.max() < 0.002

    def test_more_than_12_parties_have_errors(self):
        facts = [(50, 15.0 + i, 0.1) for i in range(13)]
        scorer = PredictiveValueScorer(
            GaussianMean(0.1), n_permutations=10, random_state=0
        )
        scorer = fit_means(facts, scorer, y_val=[0.3, 0.5])
        assert (scorer.release_error_ > 0).all()
        assert (scorer.values_error_ > scorer.release_error_).all()


class TestCoverage:
    """Two errors cover the values without noise, over fresh noise."""

    @pytest.mark.parametrize("parties", PARTIES)
    def test_of_means(self, parties):
        differences, errors = measure("mean", parties, 1.0, True, n_releases=8)
        assert (np.abs(differences) <= 2 * errors).mean() >= 0.85
        assert errors.mean() < 5 * np.sqrt(np.mean(differences**2))

    def test_of_linear_regressions(self):
        differences, errors = measure("linear", "equal", 2.0, True, n_releases=3)
        assert (np.abs(differences) <= 2 * errors).mean() >= 0.8
        assert errors.mean() < 5 * np.sqrt(np.mean(differences**2))

    @pytest.mark.slow
    @pytest.mark.parametrize("epsilon", EPSILONS)
    @pytest.mark.parametrize("parties", PARTIES)
    @pytest.mark.parametrize("is_predictive", [True, False], ids=["gain", "surprise"])
    @pytest.mark.parametrize("name", MODELS)
    def test_of_all_models(self, name, is_predictive, parties, epsilon):
        n_releases = 20 if name == "logistic" else 50
        differences, errors = measure(name, parties, epsilon, is_predictive, n_releases)
        is_covered = (np.abs(differences) <= 2 * errors).mean(axis=1)
        sampling_error = np.sqrt(0.95 * 0.05 / 4 / n_releases)
        sampling_error = max(sampling_error, is_covered.std() / np.sqrt(n_releases))
        assert is_covered.mean() + 2 * sampling_error >= 0.9


class TestWarning:
    MATCH = "Noise exceeds the signal"

    def test_noise_that_exceeds_the_values_is_said(self):
        rows, party, model, points = draw_parties("linear", "equal")
        releases = release_rows(party, rows, 0.05, 1)
        with pytest.warns(NoiseExceedsSignalWarning, match=self.MATCH):
            PredictiveValueScorer(model, **FAST).fit(releases, **points)

    @pytest.mark.parametrize("epsilon", [None, 8.0])
    def test_little_noise_is_not(self, epsilon):
        rows, party, model, points = draw_parties("mean", "equal")
        releases = release_rows(party, rows, epsilon, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("error", NoiseExceedsSignalWarning)
            PredictiveValueScorer(model, **FAST).fit(releases, **points)


class TestRewards:
    def test_errors_of_targets_cover_those_without_noise(self):
        rows, party, model, _ = draw_parties("mean", "mixed")
        exact = values_without_noise(model, party, rows, None)
        shares = []
        for seed in range(1, 9):
            scorer = BayesianSurpriseScorer(model, **FAST)
            scorer.fit(release_rows(party, rows, 1.0, seed))
            scheme = RhoShapleyReward(0.5, random_state=0).fit(scorer)
            targets = exact.sum() * np.sqrt(exact / exact.max())
            gaps = np.abs(scheme.target_rewards_ - targets)
            shares.append((gaps <= 2 * scheme.target_rewards_error_).mean())
        assert np.mean(shares) >= 0.85

    def test_without_noise_there_is_none(self):
        scheme = RhoShapleyReward(0.5, random_state=0).fit(fit_means(EXACT))
        assert (scheme.target_rewards_error_ == 0).all()
