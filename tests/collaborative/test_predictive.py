"""Predictive values: closed forms, axioms, rewards, parties that send garbage,
refusals."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skvalue import BayesianSurpriseScorer, PredictiveValueScorer
from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    GaussianMean,
    GramRelease,
    LogisticRelease,
    PosteriorRegressor,
    RhoShapleyReward,
    reward_gain,
)
from skvalue.exceptions import PriorOutweighsWarning
from skvalue.semivalues import tabulated_semivalue

from .parties import every_coalition, noisy_posterior, noisy_sum, release_all

FACTS = [
    ("a", 100, 40.0, 0.5),
    ("b", 80, 20.0, 0.1),
    ("false", 60, -30.0, 0.3),
    ("0", 0, 1.0, 1.0),
]
POINTS = np.array([0.3, 0.9, -0.1, 0.4, 0.2])
QUICK = {"n_particles": 40, "min_ess": 0, "random_state": 0}


def means(facts=FACTS, y_val=POINTS, variance=0.1, **options):
    releases = {name: noisy_sum(n, z, e) for name, n, z, e in facts}
    return PredictiveValueScorer(GaussianMean(variance), **options).fit(
        releases, y_val=y_val
    )


def gains(scorer, powers, points=POINTS):
    """Log predictive densities of a normal mean less those of the prior, in closed
    form.

    The likelihoods of the parties are raised to `powers` (n_coalitions, n_parties).
    """
    powers = np.vstack([np.zeros(len(scorer.parties_)), powers])
    mean, variance = noisy_posterior(scorer.model_, scorer.releases_.values(), powers)
    total = (variance + scorer.model.variance)[:, None]
    logs = -0.5 * (np.log(total) + (points - mean[:, None]) ** 2 / total)
    return logs[1:] - logs[0]


def five_parties(seed=0, n=200):
    """Two honest parties, shuffled targets, pure noise and a flipped sign; validation
    points."""
    rng, w = np.random.default_rng(seed), np.array([0.5, -0.3])
    parties = []
    for kind in ("honest", "honest", "shuffled", "noise", "flipped", "validation"):
        X = 0.39 * rng.normal(size=(n, 2))
        signal, noise = X @ w, 0.16 * rng.standard_normal(n)
        y = {"noise": 3 * noise, "flipped": noise - signal}.get(kind, signal + noise)
        y = rng.permutation(y) if kind == "shuffled" else y
        parties.append((X, np.clip(y, -1, 1)))
    return parties[:5], dict(zip(("X_val", "y_val"), parties[5]))


class TestValues:
    def test_closed_form_and_shapley(self):
        scorer = means()
        exact = gains(scorer, every_coalition(4)).mean(axis=1)
        np.testing.assert_allclose(scorer.coalition_values_, exact, atol=1e-5)
        np.testing.assert_allclose(
            scorer.values_, tabulated_semivalue(exact), atol=1e-5
        )
        assert scorer.values_.sum() == pytest.approx(scorer.grand_value_, abs=1e-12)
        assert scorer.coalition_values_[0] == 0
        assert scorer.standalone_values_[0] == scorer.coalition_values_[1]
        assert abs(scorer.values_[3]) < 1e-15  # no rows
        assert scorer.values_[2] < 0 < scorer.values_[0]

    @pytest.mark.parametrize(
        "semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1)]
    )
    def test_semivalues(self, semivalue):
        scorer = means(semivalue=semivalue)
        expected = tabulated_semivalue(means().coalition_values_, semivalue)
        np.testing.assert_allclose(scorer.values_, expected, atol=1e-12)
        tables = gains(scorer, every_coalition(4)).T
        each = [tabulated_semivalue(table, semivalue) for table in tables]
        error = np.std(each, axis=0, ddof=1) / np.sqrt(len(POINTS))
        np.testing.assert_allclose(scorer.validation_error_, error, atol=1e-5)

    @pytest.mark.parametrize(
        "semivalue", [pytest.param("shapley", marks=pytest.mark.slow), (4, 1)]
    )
    def test_semivalues_of_many_parties(self, semivalue):
        many = [(i, 50, 15.0 + i, 0.1) for i in range(13)]
        sampled = means(many, semivalue=semivalue, n_permutations=100, random_state=0)
        table = gains(sampled, every_coalition(13)).mean(axis=1)
        assert sampled.grand_value_ == pytest.approx(table[-1], abs=1e-4)
        exact = tabulated_semivalue(table, semivalue)
        assert (
            np.abs(sampled.values_ - exact) < 4.5 * sampled.values_error_ + 1e-5
        ).all()

    @pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 3)])
    def test_two_names_gain_nothing_under_banzhaf(self, pair):
        game = means().coalition_values_
        i, j = pair
        numbers = np.arange(8)
        low, high = numbers & ((1 << j) - 1), (numbers >> j) << (j + 1)
        merged = game[(low | high) | np.where(numbers >> i & 1, 1 << j, 0)]
        one = tabulated_semivalue(merged, "banzhaf")[i]
        assert means(semivalue="banzhaf").values_[list(pair)].sum() == pytest.approx(
            one, abs=1e-12
        )
        shapley = tabulated_semivalue(merged)[i]
        assert abs(means().values_[list(pair)].sum() - shapley) > 1e-3 or 3 in pair

    def test_errors_over_points(self):
        scorer = means()
        each = np.array([means(y_val=[point]).values_ for point in POINTS])
        np.testing.assert_allclose(scorer.values_, each.mean(axis=0), atol=1e-12)
        expected = each.std(axis=0, ddof=1) / np.sqrt(len(POINTS))
        np.testing.assert_allclose(scorer.validation_error_, expected, atol=1e-12)

    def test_order_of_parties_and_blocks_of_points_do_not_matter(self):
        from sklearn import config_context

        scorer = means()
        np.testing.assert_allclose(
            means(FACTS[::-1]).values_[::-1], scorer.values_, atol=1e-12
        )
        with config_context(working_memory=1):
            np.testing.assert_allclose(means().values_, scorer.values_, atol=1e-12)

    def test_a_far_point_does_not_underflow(self):
        facts = [("a", 10_000, 0.0, None), ("b", 10_000, 1.0, None)]
        points = np.array([0.0, 6.0])
        scorer = means(facts, points, variance=0.01)
        (gain,) = gains(scorer, np.ones((1, 2)), points)
        assert gain[1] < -1700
        assert scorer.grand_value_ == pytest.approx(gain.mean(), rel=1e-3)

    def test_standard_errors_are_honest(self):
        parties, points = five_parties(n=80)
        releases = [GramRelease(None).fit(*rows).release_ for rows in parties[:2]]
        scorer = PredictiveValueScorer(BayesianLinear(), **QUICK)
        runs = [
            clone(scorer).set_params(random_state=seed).fit(releases, **points)
            for seed in range(8)
        ]
        found = np.std([run.values_ for run in runs], axis=0, ddof=1)
        assert (
            0.4
            < (found / np.mean([run.values_error_ for run in runs], axis=0)).mean()
            < 2.5
        )

    def test_two_classes(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(600, 2)) / 3
        y = np.where(X[:, 0] + 0.2 * rng.normal(size=600) > 0, "yes", "no")
        flipped = np.where(y[200:400] == "yes", "no", "yes")
        party = LogisticRelease(None, classes=("no", "yes"))
        releases = [party.fit(X[a:b], t).release_ for a, b, t in
                    ((0, 200, y[:200]), (200, 400, flipped))]  # fmt: skip
        model = BayesianLogistic(classes=("no", "yes"))
        scorer = PredictiveValueScorer(model, **QUICK)
        scorer.fit(releases, X_val=X[400:], y_val=y[400:])
        assert scorer.values_[0] > 0 > scorer.values_[1]
        with pytest.raises(
            ValueError, match="y_val must hold only labels of classes_.* Got 'may"
        ):
            scorer.fit(releases, X_val=X[400:], y_val=["maybe"] * 200)

    def test_clone_and_pickle(self):
        scorer = pickle.loads(pickle.dumps(means()))
        np.testing.assert_array_equal(scorer.values_, means().values_)
        assert not hasattr(clone(scorer), "values_")


class TestGarbage:
    @pytest.mark.slow
    def test_and_at_a_renyi_epsilon_of_one_half(self):
        """Mean of 20 draws of the noise."""
        found = []
        for seed in range(20):
            parties, points = five_parties(seed)
            releases = release_all(parties, [0.5] * 5, seed=10 * seed)
            scorer = PredictiveValueScorer(
                BayesianLinear(), n_particles=160, random_state=0
            )
            found.append(scorer.fit(releases, **points).values_)
        values = np.mean(found, axis=0)
        assert values[2:].max() < 0.5 * values[:2].min()

    def test_is_worth_less_than_half_of_an_honest_party(self):
        parties, points = five_parties()
        releases = [GramRelease(None).fit(*rows).release_ for rows in parties]
        scorer = PredictiveValueScorer(BayesianLinear(), **QUICK).fit(
            releases, **points
        )
        assert scorer.values_[2:].max() < 0.5 * scorer.values_[:2].min()
        assert scorer.values_[4] < 0

    def test_surprise_warns_of_a_prior_that_pays_for_it(self):
        honest, other, _, noise, _ = five_parties()[0]
        releases = [
            GramRelease(None).fit(*rows).release_ for rows in (honest, other, noise)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("error", PriorOutweighsWarning)
            weak = BayesianSurpriseScorer(BayesianLinear(), **QUICK).fit(releases)
        assert weak.values_.max() < 2 * weak.values_[:2].min()
        strong = BayesianSurpriseScorer(BayesianLinear(a0=20, b0=0.5), **QUICK)
        with pytest.warns(
            PriorOutweighsWarning, match=r"the releases of \[.*2.*\]"
        ) as found:
            strong.fit(releases)
        assert found[0].filename == __file__
        assert strong.values_[2] > 5 * strong.values_[:2].max()
        with pytest.warns(PriorOutweighsWarning, match=r"releases of \[0, 1, 2\]"):
            strong.set_params(model=BayesianLinear(a0=101, b0=2.6)).fit(releases)


class TestRewards:
    @pytest.mark.parametrize("control", ["temper", "noise"])
    def test_attain_their_targets(self, control):
        scorer = means(FACTS[:2])
        scheme = RhoShapleyReward(0.5, control=control, random_state=0).fit(scorer)
        np.testing.assert_allclose(
            scheme.attained_rewards_, scheme.target_rewards_, rtol=0.02
        )
        assert scheme.target_rewards_.max() == scorer.grand_value_

    def test_a_party_of_negative_value_receives_the_prior(self):
        scheme = RhoShapleyReward(0.5, random_state=0).fit(means(FACTS[:3]))
        assert scheme.temper_[2] == scheme.attained_rewards_[2] == 0

    def test_refusals(self):
        with pytest.raises(
            ValueError, match="scorer must have a party of a value above 0"
        ):
            RhoShapleyReward().fit(means(FACTS[2:]))
        with pytest.raises(ValueError, match="scorer must have semivalue='shapley'"):
            RhoShapleyReward().fit(means(semivalue="banzhaf"))


class TestRewardGain:
    def test_is_the_difference_to_the_exact_posterior_of_other_rows(self):
        (X, y), (more_X, more_y) = five_parties(n=100)[0][:2]
        party, model, few = (
            GramRelease(0.5),
            BayesianLinear(),
            {"n_splits": 3, "n_draws": 300},
        )
        own = GramRelease(None).fit(X[:40], y[:40]).release_
        model = model.bind([own])
        prior = model.sample_prior(2000, np.random.default_rng(0))
        worse, error = reward_gain(
            PosteriorRegressor(model, prior), party, X[:40], y[:40], **few
        )
        assert worse < -3 * error
        exact = (
            GramRelease(None)
            .fit(np.append(X, more_X, 0), np.append(y, more_y))
            .release_
        )
        scorer = PredictiveValueScorer(BayesianLinear(), **QUICK)
        scorer.fit([exact], X_val=X, y_val=y)
        reward = PosteriorRegressor(
            scorer.model_, scorer.sample(n_draws=2000, random_state=0)
        )
        better, error = reward_gain(reward, party, X[:10], y[:10], **few)
        assert better > 0
        same, error = reward_gain(reward, party, X, y, **few)
        assert abs(same) < 0.1
        assert error < 0.05


class TestRefusals:
    def test_points(self):
        party = GramRelease(None).fit(*five_parties()[0][0]).release_
        scorer = PredictiveValueScorer(BayesianLinear(), **QUICK)
        for points, message in [
            ({}, "X_val and y_val must hold points"),
            ({"y_val": [1.0]}, "X_val and y_val must hold points"),
            ({"X_val": [[1.0]], "y_val": [1.0]}, "X has 1 features"),
            ({"X_val": [[1.0, 2]] * 2, "y_val": [1]}, "must have the same length"),
            (
                {"X_val": [[1.0, 2]], "y_val": [np.nan]},
                "y_val must have a finite.* Got nan",
            ),
        ]:
            with pytest.raises(ValueError, match=message):
                scorer.fit([party], **points)
