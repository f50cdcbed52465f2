"""Rewards: every party gets what its target says, by every control; and posteriors."""

import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from skvalue.collaborative import (
    BayesianLogistic,
    GaussianMean,
    LogisticRelease,
    PosteriorClassifier,
    PosteriorRegressor,
    RhoShapleyReward,
)
from skvalue.collaborative.mediator import first_crossing
from skvalue.privacy import clip_rows

from .parties import (
    Sampled,
    gaussian_kl,
    noisy_posterior,
    noisy_sum,
    quietly,
    release_all,
    scaled_posterior,
    simulate,
    surprise_of,
)


@pytest.fixture(scope="module")
def scorer():
    _, parties = simulate(1)
    releases = dict(zip("abc", release_all(parties, (0.2, 0.1, 0.2))))
    return surprise_of(releases, n_particles=40, min_ess=0)


@pytest.fixture(scope="module")
def new_rows():
    """Rows and targets of the same distribution as the parties'."""
    phi, _ = simulate(1)
    X = np.random.default_rng(5).normal(size=(300, 2)) * 0.15**0.5
    noise = np.exp(phi[2] / 2) * np.random.default_rng(6).normal(size=300)
    return X, X @ phi[:2] + noise


@pytest.fixture(scope="module")
def schemes(scorer):
    return {
        control: RhoShapleyReward(
            0.2, control=control, n_draws=150, random_state=0
        ).fit(scorer)
        for control in ("temper", "scaled", "noise")
    }


@pytest.fixture
def mean_scorer():
    """A scorer of two parties, integrated on a grid."""
    releases = [noisy_sum(100, 30.0, epsilon) for epsilon in (0.5, 0.02)]
    return surprise_of(releases, GaussianMean(0.1))


class TestTargets:
    @pytest.mark.parametrize("control", ["temper", "scaled", "noise"])
    def test_are_attained(self, schemes, control):
        scheme = schemes[control]
        np.testing.assert_allclose(
            scheme.attained_rewards_, scheme.target_rewards_, atol=0.02
        )

    @pytest.mark.parametrize(
        ("control", "attribute", "unchanged"),
        [
            ("temper", "temper_", 1.0),
            ("scaled", "scale_", 1.0),
            ("noise", "tau_", 0.0),
        ],
        ids=["temper", "scaled", "noise"],
    )
    def test_p2_most_valuable_party_gets_the_posterior_of_all(
        self, scorer, schemes, control, attribute, unchanged
    ):
        top = int(np.argmax(scorer.values_))
        scheme = schemes[control]
        assert scheme.attained_rewards_[top] == scorer.grand_value_
        assert scheme.similarity_[top] == 0
        assert getattr(scheme, attribute)[top] == unchanged

    def test_p4_no_party_loses_under_the_largest_rational_rho(self, scorer):
        scheme = RhoShapleyReward(n_draws=20, random_state=0).fit(scorer)
        assert scheme.rho_ == min(1.0, scheme.rho_max_)
        assert scheme.individually_rational_.all()
        assert np.all(scheme.attained_rewards_ >= scorer.standalone_values_ - 1e-6)

    def test_rho_above_the_largest_rational_one_is_warned_of(self, scorer):
        scheme = RhoShapleyReward(3.0, n_draws=20, random_state=0)
        with pytest.warns(UserWarning, match="rho=3 is above rho_max_"):
            scheme.fit(scorer)
        assert not scheme.individually_rational_.all()

    def test_p6_smaller_rho_gives_more(self, scorer):
        totals = []
        for rho in (0.05, 0.2, 0.6):
            scheme = RhoShapleyReward(rho, n_draws=20, random_state=0).fit(scorer)
            totals.append(scheme.attained_rewards_.sum())
        assert totals[0] > totals[1] > totals[2]

    def test_small_rho_is_used_and_warned_of_where_none_is_rational(self):
        """By one draw of the noise a party alone surprises more than all together."""
        releases = [noisy_sum(100, 80.0, 5.0), noisy_sum(100, -60.0, 0.5)]
        scorer = surprise_of(releases, GaussianMean(0.1))
        assert scorer.standalone_values_[0] > scorer.grand_value_
        scheme = RhoShapleyReward(random_state=0)
        with pytest.warns(
            UserWarning, match="No rho gives every party at least what it has"
        ):
            scheme.fit(scorer)
        assert scheme.rho_ == 0.2
        assert not scheme.individually_rational_.all()

    @pytest.mark.parametrize("is_sampled", [False, True], ids=["grid", "sampled"])
    def test_few_effective_draws_are_warned_of_unless_on_a_grid(self, is_sampled):
        """A grid has no draws, and `n_particles` does nothing there."""
        model = GaussianMean(0.1)
        if is_sampled:
            model = Sampled(model)
        releases = [noisy_sum(100, 30.0, epsilon) for epsilon in (0.5, 0.02)]
        scorer = surprise_of(releases, model, n_particles=40, min_ess=0)
        scorer.set_params(min_ess=1e9)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            RhoShapleyReward(0.2, n_draws=20, random_state=0).fit(scorer)
        assert [w.category for w in caught] == [ConvergenceWarning] * is_sampled
        for warning in caught:
            message = "rewards of [1] are based on few effective"
            assert message in str(warning.message)

    def test_game_without_value_is_refused(self):
        empty = noisy_sum(0, 0.0, 0.1)
        scorer = surprise_of([empty, empty], GaussianMean())
        with pytest.raises(
            ValueError, match="scorer must have a party of a value above 0"
        ):
            RhoShapleyReward().fit(scorer)


class TestControls:
    def test_tempered_value_increases_and_is_in_closed_form(self):
        releases = [noisy_sum(100, 30.0, 0.2) for _ in range(2)]
        scorer = surprise_of(releases, GaussianMean(0.1))
        kappas = np.linspace(0, 1, 21)
        values = [scorer.surprise(temper=kappa) for kappa in kappas]
        expected = []
        for kappa in kappas:
            posterior = noisy_posterior(scorer.model_, releases, [kappa, kappa])
            expected.append(gaussian_kl(*posterior, 0.0, 1.0))
        np.testing.assert_allclose(values, expected, atol=1e-4)
        assert np.all(np.diff(values) > 0)

    def test_tempered_value_increases_on_sampled_particles(self, scorer):
        values = [scorer.surprise(temper=kappa) for kappa in np.linspace(0, 1, 30)]
        assert values[0] == pytest.approx(0, abs=1e-12)
        assert values[-1] == pytest.approx(scorer.grand_value_)
        assert np.all(np.diff(values) > 0)

    def test_p5_tempering_stays_closer_and_predicts_better_than_noise(self):
        """On average over the noise."""
        releases = [noisy_sum(100, 30.0, epsilon) for epsilon in (0.2, 0.02, 0.1)]
        scorer = surprise_of(releases, GaussianMean(0.1))
        y = 0.3 + 0.1**0.5 * np.random.default_rng(0).normal(size=300)
        tempered = RhoShapleyReward(0.3, random_state=0).fit(scorer)
        noisy = [
            RhoShapleyReward(0.3, control="noise", random_state=seed).fit(scorer)
            for seed in range(3)
        ]
        is_tempered = tempered.temper_ < 1
        mean_similarity = np.mean([scheme.similarity_ for scheme in noisy], axis=0)
        assert np.all(tempered.similarity_[is_tempered] > mean_similarity[is_tempered])
        for party in np.flatnonzero(is_tempered):
            mnlp = [scheme.rewards_[party].mnlp(None, y) for scheme in noisy]
            assert tempered.rewards_[party].mnlp(None, y) < np.mean(mnlp)

    def test_scaled_rewards_are_in_closed_form(self):
        """At a scale of .01 the surprise is 1.26, and .72 at a power of .01."""
        releases = [noisy_sum(100, 30.0, epsilon) for epsilon in (0.2, 0.1, 0.2)]
        scorer = surprise_of(releases, GaussianMean(0.1))
        scheme = RhoShapleyReward(1.0, control="scaled", random_state=0).fit(scorer)
        assert 0 < scheme.scale_[1] < scheme.scale_[0] == 1
        for scale, target in zip(scheme.scale_, scheme.target_rewards_):
            posterior = scaled_posterior(scorer.model_, releases, scale)
            assert gaussian_kl(*posterior, 0.0, 1.0) == pytest.approx(target, abs=1e-4)
        scaled = scaled_posterior(scorer.model_, releases, 0.01)
        tempered = noisy_posterior(scorer.model_, releases, [0.01] * 3)
        assert gaussian_kl(*scaled, 0.0, 1.0) == pytest.approx(1.263, abs=1e-3)
        assert gaussian_kl(*tempered, 0.0, 1.0) == pytest.approx(0.722, abs=1e-3)

    def test_without_noise_scales_are_powers(self):
        _, parties = simulate(3, counts=(60, 80, 120))
        scorer = surprise_of(release_all(parties, [None] * 3), n_particles=80)
        powers = RhoShapleyReward(0.5, n_draws=20, random_state=0).fit(scorer).temper_
        scaled = RhoShapleyReward(0.5, control="scaled", n_draws=20, random_state=0)
        np.testing.assert_allclose(scaled.fit(scorer).scale_, powers, rtol=1e-4)

    def test_model_that_cannot_be_scaled_is_refused(self):
        scorer = surprise_of([noisy_sum(100, 30.0, 0.5)], Sampled(GaussianMean(0.1)))
        with pytest.raises(ValueError, match="control must not be 'scaled' for a mode"):
            RhoShapleyReward(control="scaled").fit(scorer)

    @pytest.mark.parametrize(
        ("target", "crossing"), [(1.5, 1.5), (0.01, 1e4), (1e-9, 1e5)]
    )
    def test_first_of_several_crossings_is_taken(self, target, crossing):
        """The value may rise again as noise is added; the grid ends at 1e5."""

        def value(tau):
            if tau < 2:
                return 3.0 - tau
            if tau < 50:
                return min(0.4 * tau, 2.5)
            return 100 / tau

        grid = np.geomspace(1e-3, 1e5, 33)
        tau = first_crossing(value, target, grid, 12)
        assert tau == pytest.approx(crossing, rel=0.01)

    def test_p1_added_noise_is_that_of_the_paper(self, scorer, schemes):
        """All releases keep their guarantee, epsilon / (1 + tau epsilon), or better."""
        tau = schemes["noise"].tau_
        assert np.all(tau[:2] > 0)
        for release in scorer.releases_.values():
            noisier = release.with_noise(tau[0], np.zeros(6))
            epsilon = release.renyi_epsilon
            assert noisier.renyi_epsilon == epsilon / (1 + tau[0] * epsilon)
            variance = 0.5 * 2 * release.sensitivity**2 * tau[0]
            assert noisier.noise_scale**2 == pytest.approx(
                release.noise_scale**2 + variance
            )

    @pytest.mark.parametrize("control", ["temper", "scaled", "noise"])
    def test_draws_have_the_value_of_the_reward(self, control, mean_scorer):
        scheme = RhoShapleyReward(0.3, control=control, n_draws=4000, random_state=0)
        scheme.fit(mean_scorer)
        for party in (0, 1):
            draws = scheme.rewards_[party].samples_
            value = gaussian_kl(draws.mean(), draws.var(), 0.0, 1.0)
            assert value == pytest.approx(scheme.target_rewards_[party], abs=0.12)

    def test_refit_with_another_control_deletes_the_powers(self, mean_scorer):
        scheme = RhoShapleyReward(0.2, n_draws=20, random_state=0).fit(mean_scorer)
        assert hasattr(scheme, "temper_")
        scheme.set_params(control="noise").fit(mean_scorer)
        assert not hasattr(scheme, "temper_")
        assert hasattr(scheme, "tau_")


class TestPosteriorRegressor:
    @pytest.fixture
    def reward(self, schemes):
        return schemes["temper"].rewards_["c"]

    def test_is_a_fitted_regressor(self, reward, new_rows):
        X, y = new_rows
        assert isinstance(reward, PosteriorRegressor)
        assert is_regressor(reward)
        check_is_fitted(reward)
        assert reward.fit(X[:2], y[:2]) is reward

    def test_predicts_with_the_mean_of_the_draws(self, reward, new_rows):
        X, y = new_rows
        weights = reward.samples_[:, :2].mean(axis=0)
        np.testing.assert_allclose(reward.predict(X), clip_rows(X, 1.0) @ weights)
        assert reward.score(X, y) == r2_score(y, reward.predict(X)) > 0.5

    def test_mnlp_is_that_of_the_mean_density(self, reward, new_rows):
        X, y = new_rows
        X_clipped = clip_rows(X, 1.0)
        densities = []
        for w1, w2, log_s2 in reward.samples_:
            s2 = np.exp(log_s2)
            squares = (y - X_clipped @ [w1, w2]) ** 2
            densities.append(np.exp(-0.5 * squares / s2) / np.sqrt(2 * np.pi * s2))
        expected = -np.log(np.mean(densities, axis=0)).mean()
        assert reward.mnlp(X, y) == pytest.approx(expected)

    def test_densities_do_not_depend_on_blocks_of_rows(self, schemes, new_rows):
        """Two million draws times rows are taken at a time."""
        X, y = new_rows
        reward = schemes["temper"].rewards_["a"]
        expected = reward.log_density(X, y)
        n_repeats = 3_000_000 // (len(reward.samples_) * len(X)) + 1
        repeated = reward.log_density(np.tile(X, (n_repeats, 1)), np.tile(y, n_repeats))
        np.testing.assert_allclose(
            repeated.reshape(n_repeats, -1), np.tile(expected, (n_repeats, 1))
        )

    def test_targets_of_another_length_are_refused(self, reward, new_rows):
        X, y = new_rows
        with pytest.raises(
            ValueError, match="X and y must have the same length. Got 300 and 2"
        ):
            reward.mnlp(X, y[:2])

    def test_rows_of_other_columns_are_refused(self, reward, new_rows):
        X, _ = new_rows
        with pytest.raises(
            ValueError, match="X has 1 features, but PosteriorRegressor is exp"
        ):
            reward.predict(X[:, :1])


@pytest.fixture(scope="module")
def two_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) / 2
    is_yes = X @ [2.0, -1.0] + 0.3 * rng.normal(size=300) > 0
    return X, np.where(is_yes, "yes", "no")


@pytest.fixture(scope="module")
def classifier(two_classes):
    """The reward of one of two parties that have half of the rows each."""
    X, y = two_classes
    party = LogisticRelease(
        renyi_epsilon=1.0, x_bound=2, classes=("no", "yes"), noise_random_state=0
    )
    releases = [quietly(party.fit, X[i::2], y[i::2]).release_ for i in range(2)]
    model = BayesianLogistic(0.5, classes=("no", "yes"))
    scorer = surprise_of(releases, model, n_particles=80)
    return RhoShapleyReward(0.2, random_state=0).fit(scorer).rewards_[0]


class TestPosteriorClassifier:
    def test_is_a_classifier_of_the_labels(self, classifier, two_classes):
        X, y = two_classes
        assert isinstance(classifier, PosteriorClassifier)
        assert is_classifier(classifier)
        assert classifier.score(X, y) > 0.8
        assert set(classifier.predict(X)) == {"no", "yes"}

    def test_probabilities_sum_to_one_and_give_the_mnlp(self, classifier, two_classes):
        X, y = two_classes
        probabilities = classifier.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        of_label = np.where(y == "yes", probabilities[:, 1], probabilities[:, 0])
        assert classifier.mnlp(X, y) == pytest.approx(-np.log(of_label).mean())

    def test_unknown_label_is_refused(self, classifier, two_classes):
        X, _ = two_classes
        with pytest.raises(
            ValueError, match="y must hold only labels of classes_.* Got 'maybe'"
        ):
            classifier.mnlp(X[:2], ["maybe", "yes"])

    def test_rows_of_other_columns_are_refused(self, classifier):
        with pytest.raises(
            ValueError, match="X has 3 features, but PosteriorClassifier is exp"
        ):
            classifier.predict(np.ones((2, 3)))
