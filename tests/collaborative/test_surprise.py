"""The mediator's values: axioms, their computation, and what they refuse."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.special import comb
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from skvalue.collaborative import (
    BayesianLinear,
    BayesianLogistic,
    BayesianSurpriseScorer,
    GaussianMean,
    GramRelease,
    LogisticRelease,
    NoisyStatistic,
    RhoShapleyReward,
)
from skvalue.exceptions import NormalApproximationWarning
from skvalue.semivalues import enumerate_semivalue

from .parties import (
    Sampled,
    exact_table,
    linear_model,
    noisy_sum,
    release_all,
    simulate,
    surprise_of,
)


def value_means(facts, **options):
    """A scorer of sums: of names, numbers of rows, sums and Renyi epsilons."""
    releases = {
        name: noisy_sum(count, total, epsilon) for name, count, total, epsilon in facts
    }
    return surprise_of(releases, GaussianMean(0.1), **options)


def shapley_of(table):
    """Shapley values of a table by number of coalitions."""
    n = int(np.log2(len(table)))
    numbers = np.arange(len(table))
    sizes = np.bitwise_count(numbers)
    values = []
    for i in range(n):
        without = numbers[numbers >> i & 1 == 0]
        weights = 1 / (n * comb(n - 1, sizes[without]))
        values.append(weights @ (table[without | 1 << i] - table[without]))
    return np.array(values)


@pytest.fixture(scope="module")
def parties():
    return simulate(1)[1]


@pytest.fixture(scope="module")
def scorer(parties):
    releases = dict(zip("abc", release_all(parties, (0.2, 0.1, 0.2))))
    return surprise_of(releases, n_particles=160)


class TestAxioms:
    def test_values_are_the_shapley_values_of_the_table(self, scorer):
        table = scorer.coalition_values_
        expected = enumerate_semivalue(
            lambda members: table[sum(1 << i for i in members)], 3
        )
        np.testing.assert_allclose(scorer.values_, expected, atol=1e-12)
        assert scorer.values_.sum() == pytest.approx(scorer.grand_value_, abs=1e-10)
        assert scorer.grand_value_ == table[-1]
        np.testing.assert_array_equal(scorer.standalone_values_, table[[1, 2, 4]])

    def test_all_coalitions_of_three_parties_are_evaluated(self, scorer):
        assert scorer.n_evaluations_ == 8
        assert scorer.ess_.min() > 100

    def test_v1_no_value_is_negative(self, parties):
        releases = release_all(parties, (1e-6, 0.004, 1e-5))
        table = surprise_of(releases, n_particles=80).coalition_values_
        assert table[0] == 0
        assert table.min() >= 0

    def test_f1_party_without_rows_is_worth_exactly_nothing(self, parties):
        first, second = release_all(parties[:2], (0.2, 0.5))
        empty = NoisyStatistic("linear", 0, (1.0,) * 6, 0.1, 2.0, (1.0, 1.0), 2)
        releases = {"a": first, "no rows": empty, "b": second}
        scorer = surprise_of(releases, n_particles=40, min_ess=0)
        assert scorer.values_[1] == 0.0
        assert scorer.standalone_values_[1] == 0.0
        scheme = RhoShapleyReward(0.5, random_state=0).fit(scorer)
        assert scheme.target_rewards_[1] == 0
        assert scheme.attained_rewards_[1] == 0
        assert scheme.temper_[1] == 0

    def test_f2_equal_releases_are_worth_the_same(self, parties):
        first, second = release_all(parties[:2], (0.2, 0.5))
        (third,) = release_all(parties[2:], [0.1])
        releases = {"x": first, "other": second, "twin": first, "more": third}
        scorer = surprise_of(releases, n_particles=80)
        assert scorer.values_[0] > 0
        assert scorer.values_[0] == pytest.approx(scorer.values_[2], abs=1e-12)
        table = scorer.coalition_values_
        for others in (0, 2, 8, 10):
            assert table[others | 1] == table[others | 4]

    def test_f3_less_noise_on_the_same_sum_is_worth_more(self):
        scorer = value_means(
            [("i", 100, 30.0, 0.5), ("j", 100, 30.0, 0.05), ("k", 80, 22.0, 0.2)]
        )
        assert scorer.values_[0] > scorer.values_[1]
        table = scorer.coalition_values_
        for others in (0, 4):
            assert table[others | 1] > table[others | 2]


class TestOrder:
    def test_models_are_bound_to_releases_in_one_order(self):
        """Whatever a user's model makes of their order, the user's does not matter."""

        class Recorder(GaussianMean):
            bound_to = []

            def bind(self, releases):
                self.bound_to.append(releases)
                return super().bind(releases)

        releases = [
            noisy_sum(200, 30.0, 0.2),
            noisy_sum(100, 30.0, 0.5),
            noisy_sum(100, 30.0, 0.1),
        ]
        surprise_of(releases, Recorder(0.1))
        surprise_of(releases[::-1], Recorder(0.1))
        assert Recorder.bound_to[0] == Recorder.bound_to[1]

    def test_values_do_not_depend_on_the_order_of_parties(self, scorer):
        names = ["c", "a", "b"]
        reordered = {name: scorer.releases_[name] for name in names}
        other = clone(scorer).fit(reordered)
        for name, value in zip(other.parties_, other.values_):
            assert value == scorer.values_[scorer.parties_.index(name)]
        assert other.surprise(["a", "c"]) == scorer.surprise(["c", "a"])

    def test_values_do_not_depend_on_names(self, scorer):
        """The same seed gives the same bits."""
        releases = [scorer.releases_[name] for name in "abc"]
        other = clone(scorer).fit(releases)
        np.testing.assert_array_equal(other.coalition_values_, scorer.coalition_values_)
        assert other.parties_ == [0, 1, 2]

    def test_another_seed_changes_values_a_little(self, scorer):
        other = clone(scorer).set_params(random_state=1).fit(scorer.releases_)
        assert (other.coalition_values_[1:] != scorer.coalition_values_[1:]).all()
        np.testing.assert_allclose(other.values_, scorer.values_, atol=0.3)


class TestComputation:
    def test_standard_errors_are_those_of_repeated_fits(self, parties):
        releases = release_all(parties[:2], (0.2, 0.1))
        runs = [
            surprise_of(releases, n_particles=48, min_ess=0, random_state=seed)
            for seed in range(8)
        ]
        tables = [run.coalition_values_ for run in runs]
        deviations = np.std(tables, axis=0, ddof=1)[1:]
        stated = [run.coalition_computation_error_ for run in runs]
        stated = np.mean(stated, axis=0)[1:]
        assert 0.5 < (deviations / stated).mean() < 2
        deviations = np.std([run.values_ for run in runs], axis=0, ddof=1)
        stated = np.mean([run.computation_error_ for run in runs], axis=0)
        assert 0.4 < (deviations / stated).mean() < 2.2

    def test_sampled_values_of_13_parties_are_within_their_errors(self):
        rng = np.random.default_rng(0)
        facts = []
        for i in range(13):
            count = 20 + 10 * i
            facts.append((i, count, 0.3 * count + rng.normal(), 0.05 + 0.02 * i))
        scorer = value_means(facts, n_permutations=100)
        assert not hasattr(scorer, "coalition_values_")
        assert scorer.n_evaluations_ < 100 * 13 + 2
        assert scorer.values_.sum() == pytest.approx(scorer.grand_value_)
        table = exact_table(scorer.model_, list(scorer.releases_.values()))
        assert scorer.grand_value_ == pytest.approx(table[-1], abs=1e-4)
        gaps = np.abs(scorer.values_ - shapley_of(table))
        assert np.all(gaps < 5 * scorer.computation_error_ + 1e-6)
        assert np.any(gaps > 1e-6)
        assert np.all(scorer.computation_error_ > 0)

    @pytest.mark.slow
    def test_sampled_values_of_20_equal_parties_are_within_their_errors(self):
        facts = [(i, 50, 15.0, 0.1) for i in range(20)]
        scorer = value_means(facts, n_permutations=200)
        assert scorer.values_.sum() == pytest.approx(scorer.grand_value_)
        gaps = np.abs(scorer.values_ - scorer.grand_value_ / 20)
        assert 0 < gaps.max() < scorer.grand_value_ / 40
        assert np.all(gaps < 5 * scorer.computation_error_)

    def test_table_of_many_blocks_is_in_closed_form(self):
        """Coalitions are taken 256 at a time."""
        facts = [(i, 30 + 9 * i, 10.0 + 2 * i, 0.1 + 0.05 * i) for i in range(10)]
        scorer = value_means(facts)
        table = exact_table(scorer.model_, list(scorer.releases_.values()))
        assert scorer.n_evaluations_ == len(scorer.coalition_values_) == 1024
        np.testing.assert_allclose(scorer.coalition_values_, table, atol=1e-4)
        np.testing.assert_allclose(scorer.values_, shapley_of(table), atol=1e-4)
        for coalition in ([0, 8], [3, 9, 1], list(range(10))):
            number = sum(1 << i for i in coalition)
            assert scorer.surprise(coalition) == pytest.approx(table[number], abs=1e-4)

    def test_user_model_of_four_methods_gives_the_same_values(self):
        scorer = value_means([("a", 100, 30.0, 0.5), ("b", 90, 20.0, 0.1)])
        sampled = surprise_of(scorer.releases_, Sampled(GaussianMean(0.1)))
        np.testing.assert_allclose(sampled.values_, scorer.values_, atol=0.1)
        reward = RhoShapleyReward(random_state=0).fit(sampled).rewards_["b"]
        assert np.isfinite(reward.mnlp(None, [0.2, 0.3]))


class TestEffectiveSampleSizes:
    @pytest.fixture
    def releases(self, parties):
        return release_all(parties, (12.5, 12.5, 12.5))

    @pytest.fixture
    def scorer(self):
        return BayesianSurpriseScorer(linear_model(), n_particles=40, random_state=0)

    def test_small_ones_are_warned_of_after_the_fit(self, scorer, releases):
        message = "effective sample size below min_ess=5000"
        with (
            warnings.catch_warnings(action="error"),
            pytest.raises(ConvergenceWarning, match=message),
        ):
            scorer.set_params(min_ess=5000).fit(releases[:2])
        # No work is lost where a filter turns the warning into an error.
        assert scorer.values_.sum() == pytest.approx(scorer.grand_value_)

    def test_small_ones_are_made_up_for_by_more_particles(self, scorer, releases):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            few = scorer.set_params(min_ess=0).fit(releases)
            min_ess = 1.2 * few.ess_[1:].min()
            many = clone(few).set_params(min_ess=min_ess).fit(releases)
        assert len(many._game.particles.phi) > len(few._game.particles.phi)


class TestSample:
    def test_draws_have_the_distribution_of_the_coalition(self, scorer):
        draws = scorer.sample(["b", "c"], 3000, random_state=0)
        particles = scorer._game.particles
        powers = scorer._powers(["b", "c"], 1.0)
        weights = particles.weights(particles.loglik @ powers)
        np.testing.assert_allclose(
            draws.mean(axis=0), weights @ particles.phi, atol=0.02
        )
        assert len(np.unique(draws[:, 0])) > 2900

    def test_draws_of_the_empty_coalition_are_from_the_prior(self, scorer):
        draws = scorer.sample([], 3000, random_state=0)
        prior = scorer.model_.sample_prior(20_000, np.random.default_rng(0))
        assert draws[:, 0].std() == pytest.approx(prior[:, 0].std(), rel=0.1)


class TestRolesApart:
    def test_mediator_holds_no_row(self, parties, scorer):
        scheme = RhoShapleyReward(random_state=0, n_draws=50).fit(scorer)
        pickled = pickle.dumps([scorer, scheme])
        for X, y in parties:
            for row in [*X, *np.column_stack([X, y])]:
                assert row.tobytes() not in pickled
            unclipped = y[np.abs(y) < 1]
            assert all(target.tobytes() not in pickled for target in unclipped)

    @pytest.mark.parametrize(
        "wrap",
        [lambda X: X, list, lambda X: {"a": X}, lambda X: [X, X]],
        ids=["array", "list of rows", "dict", "list of arrays"],
    )
    def test_mediator_refuses_rows(self, parties, wrap):
        with pytest.raises(TypeError, match="releases must"):
            surprise_of(wrap(parties[0][0]))

    def test_reward_refuses_rows(self, parties):
        with pytest.raises(
            TypeError, match="scorer must be a fitted BayesianSurpriseScorer or "
        ):
            RhoShapleyReward().fit(parties[0][0])

    def test_reward_refuses_a_scorer_that_is_not_fitted(self):
        with pytest.raises(NotFittedError):
            RhoShapleyReward().fit(BayesianSurpriseScorer(linear_model()))

    def test_party_has_no_other_party_and_no_model(self, parties):
        party = GramRelease(renyi_epsilon=0.2).fit(*parties[0])
        assert set(vars(party)) >= {"release_", "privacy_"}
        assert not any("releases" in name or "model" in name for name in vars(party))

    def test_pickled_scorer_gives_the_same_surprise(self, scorer):
        copy = pickle.loads(pickle.dumps(scorer))
        assert copy.surprise(["a"]) == scorer.surprise(["a"])


class TestReleasesThatDiffer:
    @pytest.fixture
    def releases(self, parties):
        return dict(zip("abc", release_all(parties, (0.2, 0.1, 0.2))))

    @pytest.mark.parametrize(
        ("n_features", "options", "message"),
        [
            (2, {"fit_intercept": True}, "agree in intercept"),
            (2, {"x_bound": 2.0}, "agree in bounds"),
            (1, {}, "agree in n_features. Got 1, 2"),
        ],
        ids=["intercept", "bounds", "features"],
    )
    def test_other_public_field_is_refused(
        self, parties, releases, n_features, options, message
    ):
        X, y = parties[0]
        party = GramRelease(renyi_epsilon=0.2, **options).fit(X[:, :n_features], y)
        with pytest.raises(ValueError, match=message):
            surprise_of({**releases, "d": party.release_})

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (linear_model(), "of kind 'linear' for BayesianLinear. Got 'logistic'"),
            (
                BayesianLogistic(),
                "of kind 'logistic' for BayesianLogistic. Got 'linear'",
            ),
        ],
        ids=["linear", "logistic"],
    )
    def test_other_kind_is_refused(self, parties, releases, model, message):
        X, y = parties[0]
        party = LogisticRelease(renyi_epsilon=0.2).fit(X, y > 0)
        with pytest.raises(ValueError, match=message):
            surprise_of({**releases, "d": party.release_}, model)

    def test_no_release_is_refused(self):
        with pytest.raises(ValueError, match="releases must hold at least one release"):
            surprise_of({})

    def test_other_classes_are_refused(self, parties):
        X, y = parties[0]
        y = np.where(y > 0, "yes", "no")
        first = LogisticRelease(None, classes=("no", "yes")).fit(X, y).release_
        second = LogisticRelease(None, classes=("yes", "no")).fit(X, y).release_
        model = BayesianLogistic(classes=("no", "yes"))
        with pytest.raises(ValueError, match="releases must agree in classes"):
            surprise_of([first, second], model)
        with pytest.raises(ValueError, match="classes must be those of the releases"):
            surprise_of([second], model)


class TestPriors:
    MODEL = linear_model()

    @pytest.fixture
    def fit_with(self, parties):
        """A fit of a model to a release without a prior, and releases with priors."""
        X, y = parties[0]

        def fit(model, *priors):
            releases = [
                GramRelease(None, prior=prior).fit(X, y).release_
                for prior in (None, *priors)
            ]
            return surprise_of(releases, model, n_particles=40, min_ess=0)

        return fit

    def test_model_its_statement_and_none_are_accepted(self, fit_with):
        fit_with(self.MODEL, self.MODEL, self.MODEL.prior_statement(), None)

    def test_awareness_of_noise_is_no_part_of_the_prior(self, fit_with):
        fit_with(self.MODEL, clone(self.MODEL).set_params(noise_aware=False))

    def test_same_prior_by_other_parameters_is_accepted(self, fit_with):
        same = clone(self.MODEL).set_params(
            precision=self.MODEL.precision * np.eye(2), mean=[0, 0]
        )
        fit_with(self.MODEL, same)

    def test_priors_that_differ_are_refused(self, fit_with):
        other = clone(self.MODEL).set_params(a0=21)
        with pytest.raises(
            ValueError, match=r"releases must agree in prior. Got .*20.0.*21.0"
        ):
            fit_with(self.MODEL, self.MODEL, other)

    def test_other_number_in_the_prior_is_refused(self, fit_with):
        other = clone(self.MODEL).set_params(a0=21)
        with pytest.raises(
            ValueError, match=r"model must have the prior that releases .*21.0.*20"
        ):
            fit_with(self.MODEL, other)

    def test_other_matrix_in_the_prior_is_refused(self, fit_with):
        first = clone(self.MODEL).set_params(precision=np.eye(2) + 0.1)
        second = clone(self.MODEL).set_params(precision=np.eye(2) + 0.2)
        with pytest.raises(
            ValueError, match="model must have the prior that releases state"
        ):
            fit_with(first, second)

    def test_prior_of_another_model_is_refused(self, fit_with):
        with pytest.raises(
            ValueError, match=r'prior that releases .*"GaussianMean".*"BayesianL'
        ):
            fit_with(self.MODEL, GaussianMean())

    def test_model_without_a_statement_is_refused(self, fit_with):
        class UserModel:
            sample_prior = log_prior = staticmethod(print)
            party_loglik = predict_logpdf = staticmethod(print)

        with pytest.raises(
            ValueError, match="model must have a method prior_statement where"
        ):
            fit_with(UserModel(), self.MODEL)

    def test_prior_that_is_no_text_is_refused(self, parties):
        X, y = parties[0]
        with pytest.raises(ValueError, match="'prior' parameter of GramRelease"):
            GramRelease(prior=3).fit(X, y)


class TestErrors:
    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (BayesianLinear(-1.0), "'precision' parameter of BayesianLinear"),
            (
                BayesianLinear(np.eye(3)),
                "precision must be a symmetric positive definite matrix",
            ),
            (
                BayesianLinear(x_covariance=-np.eye(2)),
                "x_covariance must be a symmetric positive .* the eigenvalue -1",
            ),
            (BayesianLinear(a0=0), "'a0' parameter of BayesianLinear"),
            ("linear", "'model' parameter of BayesianSurpriseScorer"),
        ],
        ids=["precision", "shape", "covariance", "a0", "string"],
    )
    def test_invalid_model_is_refused(self, parties, model, message):
        with pytest.raises(ValueError, match=message):
            surprise_of(release_all(parties, (0.2, 0.1, 0.2)), model)

    # The latter is no coalition of a and b.
    @pytest.mark.parametrize("coalition", [["z"], "ab"], ids=str)
    def test_unknown_coalition_is_refused(self, scorer, coalition):
        with pytest.raises(ValueError, match="coalition must .*Got.*(z|ab)"):
            scorer.surprise(coalition)

    def test_power_above_one_is_refused(self, scorer):
        with pytest.raises(ValueError, match="temper must be in"):
            scorer.sample(["a"], temper=2)

    def test_small_parties_are_named_by_a_warning(self, parties):
        X, y = parties[0]
        with pytest.warns(NormalApproximationWarning, match="This party has 30 rows"):
            release = GramRelease(renyi_epsilon=0.2).fit(X[:30], y[:30]).release_
        with pytest.warns(
            NormalApproximationWarning, match="Parties .'tiny'. have fewer than 50"
        ):
            surprise_of({"tiny": release}, n_particles=80)


class TestFittedAgain:
    def test_refit_deletes_the_table_of_coalitions(self):
        facts = [(f"p{i}", 50, 0.1 * i, 1.0) for i in range(13)]
        releases = value_means(facts, n_permutations=20).releases_
        scorer = value_means(facts[:3], n_permutations=20)
        scorer.fit(releases)
        assert not hasattr(scorer, "coalition_values_")
        fresh = clone(scorer).fit(releases)
        assert scorer.n_evaluations_ == fresh.n_evaluations_
        np.testing.assert_array_equal(scorer.values_, fresh.values_)

    def test_interrupted_fit_changes_nothing(self, monkeypatch):
        scorer = value_means([("a", 100, 0.2, 1.0), ("b", 50, 0.1, 1.0)])
        other = value_means([("c", 9, 0.3, 1.0)])
        before = dict(vars(scorer))

        def interrupt(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(GaussianMean, "prior_quantile", interrupt)
        with pytest.raises(KeyboardInterrupt):
            scorer.fit(other.releases_)
        assert vars(scorer) == before

    def test_refused_scorer_leaves_the_rewards_unchanged(self):
        scorer = value_means([("a", 100, 0.2, 1.0), ("b", 50, 0.1, 1.0)])
        scheme = RhoShapleyReward(random_state=0).fit(scorer)
        before = dict(vars(scheme))
        other = value_means([("c", 9, 0.3, 1.0)])
        other.values_ = np.zeros(1)
        with pytest.raises(
            ValueError, match="scorer must have a party of a value above 0"
        ):
            scheme.fit(other)
        assert vars(scheme) == before
