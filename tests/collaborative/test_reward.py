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

from .parties import (
    Sampled,
    gaussian_kl,
    noisy_posterior,
    noisy_sum,
    quietly,
    release_all,
    simulate,
    surprise_of,
)


@pytest.fixture(scope="module")
def game():
    _, parties = simulate(1)
    scorer = surprise_of(
        dict(zip("abc", release_all(parties, (0.2, 0.1, 0.2)))),
        n_particles=40,
        min_ess=0,
    )
    w, X = (
        simulate(1)[0][:2],
        np.random.default_rng(5).normal(size=(300, 2)) * 0.15**0.5,
    )
    noise = np.exp(simulate(1)[0][2] / 2) * np.random.default_rng(6).normal(size=300)
    return scorer, X, X @ w + noise


@pytest.fixture(scope="module")
def schemes(game):
    return {
        control: RhoShapleyReward(
            0.2, control=control, n_draws=150, random_state=0
        ).fit(game[0])
        for control in ("temper", "noise")
    }


class TestTargets:
    def test_are_reached(self, schemes):
        for scheme in schemes.values():
            np.testing.assert_allclose(
                scheme.attained_rewards_, scheme.target_rewards_, atol=0.02
            )

    def test_p2_the_most_valuable_party_gets_everything(self, game, schemes):
        scorer = game[0]
        top = int(np.argmax(scorer.values_))
        for name, nothing in (("temper", 1.0), ("noise", 0.0)):
            scheme = schemes[name]
            assert scheme.attained_rewards_[top] == scorer.grand_value_
            assert scheme.similarity_[top] == 0
            assert (
                getattr(scheme, "temper_" if name == "temper" else "tau_")[top]
                == nothing
            )

    def test_p4_all_parties_gain(self, game, schemes):
        scorer, *_ = game
        scheme = RhoShapleyReward(n_draws=20, random_state=0).fit(scorer)
        assert scheme.rho_ == min(1.0, scheme.rho_max_)
        assert scheme.individually_rational_.all()
        assert np.all(scheme.attained_rewards_ >= scorer.standalone_values_ - 1e-6)
        with pytest.warns(UserWarning, match="rho=3 is above rho_max_"):
            greedy = RhoShapleyReward(3.0, n_draws=20, random_state=0).fit(scorer)
        assert not greedy.individually_rational_.all()

    def test_p6_smaller_rho_gives_more(self, game):
        totals = [
            RhoShapleyReward(rho, n_draws=20, random_state=0)
            .fit(game[0])
            .attained_rewards_.sum()
            for rho in (0.05, 0.2, 0.6)
        ]
        assert totals[0] > totals[1] > totals[2]

    def test_where_no_rho_will_do(self):
        """One draw of the noise by which a party alone surprises more than all
        together."""
        facts = [(100, 80.0, 5.0), (100, -60.0, 0.5)]
        releases = [noisy_sum(n, z, e) for n, z, e in facts]
        scorer = surprise_of(releases, GaussianMean(0.1))
        assert scorer.standalone_values_[0] > scorer.grand_value_
        with pytest.warns(
            UserWarning, match="No rho gives every party at least what it has"
        ):
            scheme = RhoShapleyReward(random_state=0).fit(scorer)
        assert scheme.rho_ == 0.2
        assert not scheme.individually_rational_.all()

    @pytest.mark.parametrize("sampled", [False, True])
    def test_few_draws_are_warned_of(self, sampled):
        """A grid has no draws, and `n_particles` does nothing there."""
        model = Sampled(GaussianMean(0.1)) if sampled else GaussianMean(0.1)
        releases = [noisy_sum(100, 30.0, e) for e in (0.5, 0.02)]
        scorer = surprise_of(releases, model, n_particles=40, min_ess=0).set_params(
            min_ess=1e9
        )
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            RhoShapleyReward(0.2, n_draws=20, random_state=0).fit(scorer)
        assert [w.category for w in found] == [ConvergenceWarning] * sampled
        assert all(
            "rewards of [1] are based on few effective" in str(w.message) for w in found
        )

    def test_a_game_without_value(self):
        empty = noisy_sum(0, 0.0, 0.1)
        scorer = surprise_of([empty, empty], GaussianMean())
        with pytest.raises(
            ValueError, match="scorer must have a party of a value above 0"
        ):
            RhoShapleyReward().fit(scorer)


class TestControls:
    def test_tempering_is_monotone_and_in_closed_form(self):
        releases = [noisy_sum(100, 30.0, 0.2) for _ in range(2)]
        scorer = surprise_of(releases, GaussianMean(0.1))
        kappas = np.linspace(0, 1, 21)
        values = [scorer.surprise(temper=kappa) for kappa in kappas]
        model = scorer.model_
        exact = [
            gaussian_kl(*noisy_posterior(model, releases, [k, k]), 0.0, 1.0)
            for k in kappas
        ]
        np.testing.assert_allclose(values, exact, atol=1e-4)
        assert np.all(np.diff(values) > 0)

    def test_tempered_value_increases_on_a_sampled_pool(self, game):
        scorer, *_ = game
        values = [scorer.surprise(temper=kappa) for kappa in np.linspace(0, 1, 30)]
        assert values[0] == pytest.approx(0, abs=1e-12)
        assert values[-1] == pytest.approx(scorer.grand_value_)
        assert np.all(np.diff(values) > 0)

    def test_p5_tempering_stays_closer_than_noise(self):
        """On average over the noise."""
        releases = [noisy_sum(100, 30.0, e) for e in (0.2, 0.02, 0.1)]
        scorer = surprise_of(releases, GaussianMean(0.1))
        y = 0.3 + 0.1**0.5 * np.random.default_rng(0).normal(size=300)
        temper = RhoShapleyReward(0.3, random_state=0).fit(scorer)
        noisy = [
            RhoShapleyReward(0.3, control="noise", random_state=s).fit(scorer)
            for s in range(3)
        ]
        below = temper.temper_ < 1
        mean = np.mean([scheme.similarity_ for scheme in noisy], axis=0)
        assert np.all(temper.similarity_[below] > mean[below])
        for party in np.flatnonzero(below):
            mnlp = [scheme.rewards_[party].mnlp(None, y) for scheme in noisy]
            assert temper.rewards_[party].mnlp(None, y) < np.mean(mnlp)

    def test_of_several_crossings_the_first_is_taken(self):
        """The value may rise again as noise is added."""

        def value(tau):
            return (
                3.0 - tau if tau < 2 else min(0.4 * tau, 2.5) if tau < 50 else 100 / tau
            )

        grid = np.geomspace(1e-3, 1e5, 33)
        assert first_crossing(value, 1.5, grid, 12) == pytest.approx(1.5, rel=0.01)
        assert first_crossing(value, 0.01, grid, 12) == pytest.approx(1e4, rel=0.01)
        assert first_crossing(value, 1e-9, grid, 12) == 1e5

    def test_noise_is_the_paper_s(self, game, schemes):
        """P1: all releases keep their guarantee, epsilon / (1 + tau epsilon), or
        better."""
        scorer = game[0]
        tau = schemes["noise"].tau_
        assert np.all(tau[:2] > 0)
        for release in scorer.releases_.values():
            more = release.with_noise(tau[0], np.zeros(6))
            assert more.renyi_epsilon == release.renyi_epsilon / (
                1 + tau[0] * release.renyi_epsilon
            )
            extra = 0.5 * 2 * release.sensitivity**2 * tau[0]
            assert more.noise_scale**2 == pytest.approx(release.noise_scale**2 + extra)

    @pytest.mark.parametrize("control", ["temper", "noise"])
    def test_draws_have_the_reward_s_value(self, control):
        releases = [noisy_sum(100, 30.0, e) for e in (0.5, 0.02)]
        scorer = surprise_of(releases, GaussianMean(0.1))
        scheme = RhoShapleyReward(
            0.3, control=control, n_draws=4000, random_state=0
        ).fit(scorer)
        for party in (0, 1):
            draws = scheme.rewards_[party].samples_
            value = gaussian_kl(draws.mean(), draws.var(), 0.0, 1.0)
            assert value == pytest.approx(scheme.target_rewards_[party], abs=0.12)

    def test_refit_forgets(self):
        releases = [noisy_sum(100, 30.0, e) for e in (0.5, 0.02)]
        scorer = surprise_of(releases, GaussianMean(0.1))
        scheme = RhoShapleyReward(0.2, n_draws=20, random_state=0).fit(scorer)
        assert hasattr(scheme, "temper_")
        scheme.set_params(control="noise").fit(scorer)
        assert not hasattr(scheme, "temper_")
        assert hasattr(scheme, "tau_")


class TestPosteriors:
    def test_a_regressor(self, game, schemes):
        _, X, y = game
        reward = schemes["temper"].rewards_["c"]
        assert isinstance(reward, PosteriorRegressor)
        assert is_regressor(reward)
        check_is_fitted(reward)
        assert reward.fit(X[:2], y[:2]) is reward
        np.testing.assert_allclose(
            reward.predict(X), X @ reward.samples_[:, :2].mean(axis=0)
        )
        assert reward.score(X, y) == r2_score(y, reward.predict(X)) > 0.5
        direct = np.array([
            np.exp(-0.5 * (y - X @ d[:2]) ** 2 / np.exp(d[2])) / np.sqrt(2 * np.pi * np.exp(d[2]))
            for d in reward.samples_
        ])  # fmt: skip
        assert reward.mnlp(X, y) == pytest.approx(-np.log(direct.mean(axis=0)).mean())
        with pytest.raises(
            ValueError, match="X and y must have the same length. Got 300 and 2"
        ):
            reward.mnlp(X, y[:2])
        with pytest.raises(
            ValueError, match="X has 1 features, but PosteriorRegressor is exp"
        ):
            reward.predict(X[:, :1])

    def test_a_classifier(self, rng):
        X = rng.normal(size=(300, 2)) / 2
        y = np.where(X @ [2.0, -1.0] + 0.3 * rng.normal(size=300) > 0, "yes", "no")
        party = LogisticRelease(
            renyi_epsilon=1.0, x_bound=2, classes=("no", "yes"), noise_random_state=0
        )
        releases = [quietly(party.fit, X[i::2], y[i::2]).release_ for i in range(2)]
        model = BayesianLogistic(0.5, classes=("no", "yes"))
        scorer = surprise_of(releases, model, n_particles=80)
        reward = RhoShapleyReward(0.2, random_state=0).fit(scorer).rewards_[0]
        assert isinstance(reward, PosteriorClassifier)
        assert is_classifier(reward)
        probabilities = reward.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        assert reward.score(X, y) > 0.8
        assert set(reward.predict(X)) == {"no", "yes"}
        right = np.where(y == "yes", probabilities[:, 1], probabilities[:, 0])
        assert reward.mnlp(X, y) == pytest.approx(-np.log(right).mean())
        with pytest.raises(
            ValueError, match="y must hold only labels of classes_.* Got 'maybe'"
        ):
            reward.mnlp(X[:2], ["maybe", "yes"])
        with pytest.raises(
            ValueError, match="X has 3 features, but PosteriorClassifier is exp"
        ):
            reward.predict(np.ones((2, 3)))

    def test_blocks_of_rows_do_not_matter(self, game, schemes):
        """Two million draws times rows are taken at a time."""
        _, X, y = game
        reward = schemes["temper"].rewards_["a"]
        alone = reward.log_density(X, y)
        repeats = 3_000_000 // (len(reward.samples_) * len(X)) + 1
        many = reward.log_density(np.tile(X, (repeats, 1)), np.tile(y, repeats))
        np.testing.assert_allclose(
            many.reshape(repeats, -1), np.tile(alone, (repeats, 1))
        )
