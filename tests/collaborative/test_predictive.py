"""Predictive values: closed forms, axioms, rewards, and parties that send garbage."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from skvalue import BayesianSurpriseScorer, PredictiveValueScorer
from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    BetaBernoulli,
    GammaPoisson,
    GaussianMean,
    GramRelease,
    LogisticRelease,
    NoisyStatistic,
    PartyScores,
    PosteriorRegressor,
    RhoShapleyReward,
    reward_gain,
)
from skvalue.exceptions import ClippedRowsWarning, PriorOutweighsWarning
from skvalue.privacy import clip_rows
from skvalue.semivalues import tabulated_semivalue

from .parties import every_coalition, noisy_posterior, noisy_sum, release_all

# Name, number of rows, sum and Renyi epsilon.
FACTS = [
    ("a", 100, 40.0, 0.5),
    ("b", 80, 20.0, 0.1),
    ("false", 60, -30.0, 0.3),
    ("0", 0, 1.0, 1.0),
]
POINTS = np.array([0.3, 0.9, -0.1, 0.4, 0.2])
FAST = {"n_particles": 40, "min_ess": 0, "random_state": 0}


def value_means(facts=FACTS, y_val=POINTS, variance=0.1, **options):
    """A scorer fitted to sums of numbers."""
    releases = {
        name: noisy_sum(count, total, epsilon) for name, count, total, epsilon in facts
    }
    scorer = PredictiveValueScorer(GaussianMean(variance), **options)
    return scorer.fit(releases, y_val=y_val)


def exact_gains(scorer, powers, points=POINTS):
    """Log predictive densities of a normal mean less those of the prior.

    The likelihoods of the parties are raised to `powers` (n_coalitions, n_parties).
    """
    powers = np.vstack([np.zeros(len(scorer.parties_)), powers])
    mean, variance = noisy_posterior(scorer.model_, scorer.releases_.values(), powers)
    total = (variance + scorer.model.variance)[:, None]
    logs = -0.5 * (np.log(total) + (points - mean[:, None]) ** 2 / total)
    return logs[1:] - logs[0]


def standard_error(values):
    """Standard error of means of values over rows."""
    return np.std(values, axis=0, ddof=1) / np.sqrt(len(values))


def five_parties(seed=0, n=200):
    """Rows of five parties, and validation points.

    Two parties are honest; the others have shuffled targets, pure noise and a flipped
    sign.
    """
    rng = np.random.default_rng(seed)
    w = np.array([0.5, -0.3])
    datasets = []
    for kind in ("honest", "honest", "shuffled", "noise", "flipped", "validation"):
        X = 0.39 * rng.normal(size=(n, 2))
        signal = X @ w
        noise = 0.16 * rng.standard_normal(n)
        y = signal + noise
        if kind == "noise":
            y = 3 * noise
        elif kind == "flipped":
            y = noise - signal
        elif kind == "shuffled":
            y = rng.permutation(y)
        datasets.append((X, np.clip(y, -1, 1)))
    *parties, (X_val, y_val) = datasets
    return parties, {"X_val": X_val, "y_val": y_val}


def exact_releases(parties):
    return [GramRelease(None).fit(X, y).release_ for X, y in parties]


class TestValues:
    def test_coalition_values_are_in_closed_form(self):
        scorer = value_means()
        expected = exact_gains(scorer, every_coalition(4)).mean(axis=1)
        np.testing.assert_allclose(scorer.coalition_values_, expected, atol=1e-5)
        np.testing.assert_allclose(
            scorer.values_, tabulated_semivalue(expected), atol=1e-5
        )
        assert scorer.coalition_values_[0] == 0
        assert scorer.standalone_values_[0] == scorer.coalition_values_[1]

    def test_shapley_values_are_efficient(self):
        scorer = value_means()
        assert scorer.values_.sum() == pytest.approx(scorer.grand_value_, abs=1e-12)

    def test_false_sums_have_negative_values_and_no_rows_have_none(self):
        values = value_means().values_
        assert values[2] < 0 < values[0]
        assert abs(values[3]) < 1e-15

    @pytest.mark.parametrize(
        "semivalue", ["shapley", "banzhaf", "leave-one-out", (4, 1)], ids=str
    )
    def test_semivalues_and_validation_errors_are_those_of_the_table(self, semivalue):
        scorer = value_means(semivalue=semivalue)
        expected = tabulated_semivalue(value_means().coalition_values_, semivalue)
        np.testing.assert_allclose(scorer.values_, expected, atol=1e-12)
        tables = exact_gains(scorer, every_coalition(4)).T
        by_point = [tabulated_semivalue(table, semivalue) for table in tables]
        np.testing.assert_allclose(
            scorer.validation_error_, standard_error(by_point), atol=1e-5
        )

    @pytest.mark.parametrize(
        "semivalue", [pytest.param("shapley", marks=pytest.mark.slow), (4, 1)], ids=str
    )
    def test_sampled_semivalues_of_13_parties_are_within_their_errors(self, semivalue):
        facts = [(i, 50, 15.0 + i, 0.1) for i in range(13)]
        scorer = value_means(
            facts, semivalue=semivalue, n_permutations=100, random_state=0
        )
        table = exact_gains(scorer, every_coalition(13)).mean(axis=1)
        assert scorer.grand_value_ == pytest.approx(table[-1], abs=1e-4)
        gaps = np.abs(scorer.values_ - tabulated_semivalue(table, semivalue))
        assert (gaps < 4.5 * scorer.computation_error_ + 1e-5).all()

    @pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 3)])
    def test_two_names_of_a_party_gain_nothing_under_banzhaf(self, pair):
        game = value_means().coalition_values_
        i, j = pair
        # The game of three parties, of which i has the rows of i and j.
        numbers = np.arange(8)
        low = numbers & ((1 << j) - 1)
        high = (numbers >> j) << (j + 1)
        joined = np.where(numbers >> i & 1, 1 << j, 0)
        merged_game = game[(low | high) | joined]

        two_names = value_means(semivalue="banzhaf").values_[list(pair)].sum()
        one_name = tabulated_semivalue(merged_game, "banzhaf")[i]
        assert two_names == pytest.approx(one_name, abs=1e-12)
        # Under Shapley values two names gain or lose, unless one has no rows.
        two_names = value_means().values_[list(pair)].sum()
        one_name = tabulated_semivalue(merged_game)[i]
        assert abs(two_names - one_name) > 1e-3 or 3 in pair

    def test_values_and_validation_errors_are_means_over_points(self):
        scorer = value_means()
        by_point = np.array([value_means(y_val=[point]).values_ for point in POINTS])
        np.testing.assert_allclose(scorer.values_, by_point.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(
            scorer.validation_error_, standard_error(by_point), atol=1e-12
        )

    def test_nothing_is_known_of_the_error_over_a_single_point(self):
        scorer = value_means(y_val=POINTS[:1])
        assert np.isnan(scorer.validation_error_).all()
        with pytest.raises(ValueError, match="at least 2 validation points"):
            PartyScores.from_scorer(scorer, "0" * 64, 1)

    def test_values_do_not_depend_on_the_order_of_parties(self):
        reversed_values = value_means(FACTS[::-1]).values_[::-1]
        np.testing.assert_allclose(reversed_values, value_means().values_, atol=1e-12)

    def test_values_do_not_depend_on_blocks_of_points(self):
        values = value_means().values_
        with config_context(working_memory=1):
            np.testing.assert_allclose(value_means().values_, values, atol=1e-12)

    def test_distant_point_does_not_underflow(self):
        facts = [("a", 10_000, 0.0, None), ("b", 10_000, 1.0, None)]
        points = np.array([0.0, 6.0])
        scorer = value_means(facts, points, variance=0.01)
        (gains,) = exact_gains(scorer, np.ones((1, 2)), points)
        assert gains[1] < -1700
        assert scorer.grand_value_ == pytest.approx(gains.mean(), rel=1e-3)

    def test_standard_errors_are_those_of_repeated_fits(self):
        parties, points = five_parties(n=80)
        releases = exact_releases(parties[:2])
        scorer = PredictiveValueScorer(BayesianLinear(), **FAST)
        runs = [
            clone(scorer).set_params(random_state=seed).fit(releases, **points)
            for seed in range(8)
        ]
        deviations = np.std([run.values_ for run in runs], axis=0, ddof=1)
        stated = np.mean([run.computation_error_ for run in runs], axis=0)
        assert 0.4 < (deviations / stated).mean() < 2.5

    def test_clone_is_not_fitted(self):
        assert not hasattr(clone(value_means()), "values_")

    def test_pickle_keeps_the_values(self):
        scorer = pickle.loads(pickle.dumps(value_means()))
        np.testing.assert_array_equal(scorer.values_, value_means().values_)


@pytest.fixture(scope="module")
def classes_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) / 3
    is_yes = X[:, 0] + 0.2 * rng.normal(size=600) > 0
    return X, np.where(is_yes, "yes", "no")


@pytest.fixture(scope="module")
def classes_releases(classes_data):
    """Of 200 rows, and of 200 rows with flipped labels."""
    X, y = classes_data
    flipped = np.where(y == "yes", "no", "yes")
    party = LogisticRelease(None, classes=("no", "yes"))
    return [
        party.fit(X[:200], y[:200]).release_,
        party.fit(X[200:400], flipped[200:400]).release_,
    ]


class TestTwoClasses:
    @pytest.fixture
    def scorer(self):
        model = BayesianLogistic(classes=("no", "yes"))
        return PredictiveValueScorer(model, **FAST)

    def test_flipped_labels_have_a_negative_value(
        self, scorer, classes_data, classes_releases
    ):
        X, y = classes_data
        scorer.fit(classes_releases, X_val=X[400:], y_val=y[400:])
        assert scorer.values_[0] > 0 > scorer.values_[1]

    def test_unknown_label_is_refused(self, scorer, classes_data, classes_releases):
        X, _ = classes_data
        with pytest.raises(
            ValueError, match="y_val must hold only labels of classes_.* Got 'may"
        ):
            scorer.fit(classes_releases, X_val=X[400:], y_val=["maybe"] * 200)


class TestGarbage:
    def test_is_worth_less_than_half_of_an_honest_party(self):
        parties, points = five_parties()
        scorer = PredictiveValueScorer(BayesianLinear(), **FAST)
        scorer.fit(exact_releases(parties), **points)
        assert scorer.values_[2:].max() < 0.5 * scorer.values_[:2].min()
        assert scorer.values_[4] < 0

    @pytest.mark.slow
    def test_is_worth_less_than_half_at_a_renyi_epsilon_of_one_half(self):
        """On average over 20 draws of the noise."""
        values = []
        for seed in range(20):
            parties, points = five_parties(seed)
            releases = release_all(parties, [0.5] * 5, seed=10 * seed)
            scorer = PredictiveValueScorer(
                BayesianLinear(), n_particles=160, random_state=0
            )
            values.append(scorer.fit(releases, **points).values_)
        values = np.mean(values, axis=0)
        assert values[2:].max() < 0.5 * values[:2].min()


class TestPriorOutweighsWarning:
    """Surprise pays for contradicting a strong prior."""

    @pytest.fixture
    def releases(self):
        honest, also_honest, _, noise, _ = five_parties()[0]
        return exact_releases([honest, also_honest, noise])

    def test_weak_prior_does_not_warn(self, releases):
        with warnings.catch_warnings():
            warnings.simplefilter("error", PriorOutweighsWarning)
            scorer = BayesianSurpriseScorer(BayesianLinear(), **FAST).fit(releases)
        assert scorer.values_.max() < 2 * scorer.values_[:2].min()

    def test_strong_prior_that_pays_for_noise_warns(self, releases):
        scorer = BayesianSurpriseScorer(BayesianLinear(a0=20, b0=0.5), **FAST)
        with pytest.warns(
            PriorOutweighsWarning, match=r"the releases of \[.*2.*\]"
        ) as caught:
            scorer.fit(releases)
        assert caught[0].filename == __file__
        assert "of BayesianLinear, a smaller a0" in str(caught[0].message)
        assert scorer.values_[2] > 5 * scorer.values_[:2].max()

    def test_prior_that_is_worth_more_rows_warns(self, releases):
        scorer = BayesianSurpriseScorer(BayesianLinear(a0=101, b0=2.6), **FAST)
        with pytest.warns(PriorOutweighsWarning, match=r"releases of \[0, 1, 2\]"):
            scorer.fit(releases)

    @pytest.mark.parametrize(
        ("model", "advice"),
        [
            (GaussianMean(0.1, prior_mean=-9.0), "GaussianMean, a larger prior_var"),
            (BetaBernoulli(900, 1), "smaller a and b"),
        ],
    )
    def test_the_advice_is_about_the_model(self, model, advice):
        release = noisy_sum(100, 40.0, 0.5)
        if isinstance(model, BetaBernoulli):
            release = NoisyStatistic("bernoulli", 100, (9.0,), 0.5, 2.0, (0.0, 1.0))
        with pytest.warns(PriorOutweighsWarning) as caught:
            BayesianSurpriseScorer(model).fit([release])
        assert advice in str(caught[0].message)
        assert "a0" not in str(caught[0].message)


class TestRewards:
    @pytest.mark.parametrize("control", ["temper", "noise"])
    def test_attain_their_targets(self, control):
        scorer = value_means(FACTS[:2])
        scheme = RhoShapleyReward(0.5, control=control, random_state=0).fit(scorer)
        np.testing.assert_allclose(
            scheme.attained_rewards_, scheme.target_rewards_, rtol=0.02
        )
        assert scheme.target_rewards_.max() == scorer.grand_value_

    def test_party_of_negative_value_receives_the_prior(self):
        scheme = RhoShapleyReward(0.5, random_state=0).fit(value_means(FACTS[:3]))
        assert scheme.temper_[2] == scheme.attained_rewards_[2] == 0

    def test_game_without_a_positive_value_is_refused(self):
        with pytest.raises(
            ValueError, match="scorer must have a party of a value above 0"
        ):
            RhoShapleyReward().fit(value_means(FACTS[2:]))

    def test_other_semivalue_is_refused(self):
        with pytest.raises(ValueError, match="scorer must have semivalue='shapley'"):
            RhoShapleyReward().fit(value_means(semivalue="banzhaf"))


@pytest.fixture(scope="module")
def honest():
    """The rows of two honest parties."""
    return five_parties(n=100)[0][:2]


@pytest.fixture(scope="module")
def joint_reward(honest):
    """The posterior of the rows of both, without noise."""
    (X, y), (other_X, other_y) = honest
    party = GramRelease(None).fit(np.append(X, other_X, 0), np.append(y, other_y))
    scorer = PredictiveValueScorer(BayesianLinear(), **FAST)
    scorer.fit([party.release_], X_val=X, y_val=y)
    draws = scorer.sample(n_draws=2000, random_state=0)
    return PosteriorRegressor(scorer.model_, draws)


class TestRewardGain:
    """The gain over the exact posterior of the party's other rows."""

    OPTIONS = {"n_splits": 3, "n_draws": 300}

    def test_of_the_prior_is_negative(self, honest):
        X, y = honest[0]
        X = X[:40]
        y = y[:40]
        model = BayesianLinear().bind([GramRelease(None).fit(X, y).release_])
        prior = model.sample_prior(2000, np.random.default_rng(0))
        reward = PosteriorRegressor(model, prior)
        gain, error = reward_gain(reward, GramRelease(0.5), X, y, **self.OPTIONS)
        assert gain < -3 * error

    def test_of_a_larger_posterior_is_positive_for_few_rows(self, honest, joint_reward):
        X, y = honest[0]
        gain, _ = reward_gain(
            joint_reward, GramRelease(0.5), X[:10], y[:10], **self.OPTIONS
        )
        assert gain > 0

    def test_of_a_similar_posterior_is_near_zero(self, honest, joint_reward):
        X, y = honest[0]
        gain, error = reward_gain(joint_reward, GramRelease(0.5), X, y, **self.OPTIONS)
        assert abs(gain) < 0.1
        assert error < 0.05


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({}, "X_val and y_val must hold points"),
        ({"y_val": [1.0]}, "X_val and y_val must hold points"),
        ({"X_val": [[1.0]], "y_val": [1.0]}, "X has 1 features"),
        ({"X_val": [[1.0, 2]] * 2, "y_val": [1]}, "must have the same length"),
        ({"X_val": [[1.0, 2]], "y_val": []}, "y_val must hold at least one point"),
        ({"X_val": [[1.0, 2]], "y_val": [np.nan]}, "y_val contains NaN"),
        (
            {"X_val": [[1.0, 2]], "y_val": [1e200]},
            r"y_val must have a finite.* Got 1e\+200",
        ),
    ],
    ids=["none", "no X", "columns", "length", "empty", "nan", "huge"],
)
def test_invalid_validation_points_are_refused(points, message):
    (release,) = exact_releases(five_parties()[0][:1])
    scorer = PredictiveValueScorer(BayesianLinear(), **FAST)
    with pytest.raises(ValueError, match=message):
        scorer.fit([release], **points)


def release_of(family):
    upper = {"gaussian": 1.0, "bernoulli": 1.0, "poisson": 9.0}[family]
    lower = -1.0 if family == "gaussian" else 0.0
    return NoisyStatistic(family, 50, (20.0,), 0.5, 2.0, (lower, upper))


@pytest.mark.parametrize("method", ["fit", "estimate_cost"])
@pytest.mark.parametrize(
    ("model", "entry", "message"),
    [
        (GaussianMean(0.1), np.nan, "y_val contains NaN"),
        (GaussianMean(0.1), "much", "y_val must hold numbers"),
        (BetaBernoulli(), np.nan, "y_val contains NaN"),
        (BetaBernoulli(), 0.5, "y_val must hold zeros and ones .* Got 0.5"),
        (BetaBernoulli(), 2, "y_val must hold zeros and ones .* Got 2"),
        (BetaBernoulli(), "yes", "y_val must hold numbers"),
        (GammaPoisson(), np.inf, "y_val contains infinity"),
        (GammaPoisson(), -1, "y_val must hold counts .* Got -1"),
        (GammaPoisson(), 1.5, "y_val must hold counts .* Got 1.5"),
    ],
)
def test_targets_without_a_density_are_refused(model, entry, message, method):
    family = {"GaussianMean": "gaussian", "BetaBernoulli": "bernoulli"}
    release = release_of(family.get(type(model).__name__, "poisson"))
    scorer = PredictiveValueScorer(model, **FAST)
    with pytest.raises(ValueError, match=message):
        getattr(scorer, method)([release], y_val=[1, entry])


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [([True, False, True], [1, 0, 1]), (["1", "0", "1"], [1, 0, 1])],
    ids=["bool", "text"],
)
def test_ones_of_any_type_are_ones(labels, numbers):
    scorer = PredictiveValueScorer(BetaBernoulli(), **FAST)
    values = scorer.fit([release_of("bernoulli")], y_val=labels).values_
    expected = scorer.fit([release_of("bernoulli")], y_val=numbers).values_
    np.testing.assert_array_equal(values, expected)


class TestPublicMaps:
    """Validation points and rows to predict are mapped and clipped as parties' are."""

    MAP = {"x_centre": [5.0, -3.0], "x_scale": [100.0, 0.01]}

    @pytest.fixture
    def scorers(self):
        """Fitted to mapped features, and to features in odd units with a map."""
        parties, points = five_parties()
        direct = PredictiveValueScorer(BayesianLinear(), **FAST)
        direct.fit(exact_releases(parties), **points)
        releases = [
            GramRelease(None, **self.MAP).fit(self.odd(X), y).release_
            for X, y in parties
        ]
        mapped = PredictiveValueScorer(BayesianLinear(), **FAST)
        mapped.fit(releases, X_val=self.odd(points["X_val"]), y_val=points["y_val"])
        return direct, mapped

    def odd(self, X):
        return self.MAP["x_centre"] + X * self.MAP["x_scale"]

    def test_values_are_those_of_mapped_features(self, scorers):
        direct, mapped = scorers
        np.testing.assert_allclose(mapped.values_, direct.values_, rtol=1e-6)

    def test_rewards_predict_rows_in_units_of_the_parties(self, scorers):
        X = np.array([[0.2, -0.1], [3.0, 4.0]])
        rewards = [
            RhoShapleyReward(0.5, n_draws=50, random_state=0).fit(scorer).rewards_[0]
            for scorer in scorers
        ]
        expected = rewards[0].predict(X)
        np.testing.assert_allclose(rewards[1].predict(self.odd(X)), expected, rtol=1e-6)
        assert rewards[0].predict(X / 5)[1] == pytest.approx(expected[1])

    def test_probabilities_are_of_rows_that_are_mapped_once(self):
        X, y = logistic_rows(200)
        release = LogisticRelease(None, x_scale=2.0).fit(2 * X, y).release_
        scorer = PredictiveValueScorer(BayesianLogistic(), **FAST)
        scorer.fit([release], X_val=2 * X, y_val=y)
        reward = RhoShapleyReward(n_draws=50, random_state=0).fit(scorer).rewards_[0]
        logits = reward.samples_ @ clip_rows(X, 1.0).T
        expected = (1 / (1 + np.exp(-logits))).mean(axis=0)
        np.testing.assert_allclose(reward.predict_proba(2 * X)[:, 1], expected)

    def test_rewards_in_files_have_the_map(self, scorers):
        X = self.odd(np.array([[0.2, -0.1], [3.0, 4.0]]))
        scheme = RhoShapleyReward(0.5, n_draws=50, random_state=0).fit(scorers[1])
        reward = scheme.rewards_[0]
        read = PosteriorRegressor.from_json(reward.to_json())
        np.testing.assert_array_equal(read.predict(X), reward.predict(X))

    def test_releases_of_different_maps_are_refused(self):
        parties, points = five_parties()
        releases = [
            GramRelease(None, x_scale=scale).fit(X, y).release_
            for scale, (X, y) in zip((1.0, 2.0), parties)
        ]
        scorer = PredictiveValueScorer(BayesianLinear(), **FAST)
        with pytest.raises(ValueError, match="releases must agree in x_scale"):
            scorer.fit(releases, **points)

    def test_points_that_are_clipped_are_said(self, scorers):
        parties, points = five_parties()
        releases = exact_releases(parties[:2])
        scorer = PredictiveValueScorer(BayesianLinear(), **FAST)
        with pytest.warns(
            ClippedRowsWarning, match="200 of 200 validation points are longer than x_b"
        ):
            scorer.fit(releases, X_val=100 * points["X_val"], y_val=points["y_val"])
        with warnings.catch_warnings():
            warnings.simplefilter("error", ClippedRowsWarning)
            scorer.fit(releases, **points)


def logistic_rows(n, kind="honest", seed=0):
    """Rows with features of positive means, and labels of which 0.86 are 1."""
    rng = np.random.default_rng(seed)
    X = 0.3 + 0.3 * rng.normal(size=(n, 2))
    y = rng.random(n) < 1 / (1 + np.exp(-(1.5 + X @ [3.0, -2.0])))
    if kind == "irrelevant":
        X = rng.permutation(X)
    return X, y.astype(int)


class TestBaseRates:
    """Of features that say nothing, the frequencies of the classes are not paid."""

    @pytest.mark.parametrize(
        ("base_rate", "is_paid"), [(None, True), (0.86, False)], ids=str
    )
    def test_only_a_prior_at_one_half_pays_irrelevant_rows(self, base_rate, is_paid):
        kinds = ("honest", "irrelevant")
        rows = [logistic_rows(400, kind, seed) for seed, kind in enumerate(kinds)]
        party = LogisticRelease(None, fit_intercept=base_rate is not None)
        releases = [party.fit(X, y).release_ for X, y in rows]
        X_val, y_val = logistic_rows(400, seed=2)
        scorer = PredictiveValueScorer(BayesianLogistic(base_rate=base_rate), **FAST)
        values = scorer.fit(releases, X_val=X_val, y_val=y_val).values_
        assert values[0] > values[1]
        assert (values[1] > 0.01) == is_paid

    def test_the_intercept_has_its_logit_as_prior_mean(self):
        X, y = logistic_rows(100)
        release = LogisticRelease(None, fit_intercept=True).fit(X, y).release_
        model = BayesianLogistic(mean=0.5, base_rate=0.8).bind([release])
        np.testing.assert_allclose(model.prior_mean_, [np.log(4), 0.5, 0.5])

    def test_releases_without_an_intercept_are_refused(self):
        release = LogisticRelease(None).fit(*logistic_rows(100)).release_
        with pytest.raises(ValueError, match="base_rate must be None for releases"):
            BayesianLogistic(base_rate=0.8).bind([release])

    def test_it_is_part_of_the_prior_that_parties_state(self):
        statements = [
            BayesianLogistic(base_rate=rate).prior_statement()
            for rate in (None, 0.8, 0.7)
        ]
        assert len(set(statements)) == 3
        assert "base_rate" not in statements[0]
