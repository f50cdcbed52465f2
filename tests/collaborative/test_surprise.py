"""The mediator's values: axioms, errors, what it refuses, what it never holds."""

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


def means(facts, **options):
    releases = {name: noisy_sum(n, z, e) for name, n, z, e in facts}
    return surprise_of(releases, GaussianMean(0.1), **options)


def shapley_of(table):
    """Shapley values of a table by number of coalitions."""
    n, numbers = int(np.log2(len(table))), np.arange(len(table))
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
    return surprise_of(
        dict(zip("abc", release_all(parties, (0.2, 0.1, 0.2)))), n_particles=160
    )


class TestAxioms:
    def test_values_are_the_shapley_values_of_the_table(self, scorer):
        table = scorer.coalition_values_
        expected = enumerate_semivalue(lambda some: table[sum(1 << i for i in some)], 3)
        np.testing.assert_allclose(scorer.values_, expected, atol=1e-12)
        assert scorer.values_.sum() == pytest.approx(scorer.grand_value_, abs=1e-10)
        assert scorer.grand_value_ == table[-1]
        np.testing.assert_array_equal(scorer.standalone_values_, table[[1, 2, 4]])
        assert scorer.ess_.min() > 100
        assert scorer.n_evaluations_ == 8

    def test_v1_no_value_is_negative(self, parties):
        releases = release_all(parties, (1e-6, 0.004, 1e-5))
        table = surprise_of(releases, n_particles=80).coalition_values_
        assert table[0] == 0
        assert table.min() >= 0

    def test_f1_a_party_without_rows_is_worth_exactly_nothing(self, parties):
        real = release_all(parties[:2], (0.2, 0.5))
        empty = NoisyStatistic("linear", 0, (1.0,) * 6, 0.1, 2.0, (1.0, 1.0), 2)
        releases = {"a": real[0], "no rows": empty, "b": real[1]}
        scorer = surprise_of(releases, n_particles=40, min_ess=0)
        assert scorer.values_[1] == 0.0
        assert scorer.standalone_values_[1] == 0.0
        scheme = RhoShapleyReward(0.5, random_state=0).fit(scorer)
        assert (
            scheme.target_rewards_[1]
            == scheme.attained_rewards_[1]
            == scheme.temper_[1]
            == 0
        )

    def test_f2_equal_releases_are_worth_the_same(self, parties):
        a, b = release_all(parties[:2], (0.2, 0.5))
        releases = {
            "x": a,
            "other": b,
            "twin": a,
            "more": release_all(parties[2:], [0.1])[0],
        }
        scorer = surprise_of(releases, n_particles=80)
        assert scorer.values_[0] > 0
        assert scorer.values_[0] == pytest.approx(scorer.values_[2], abs=1e-12)
        table = scorer.coalition_values_
        for rest in (0, 2, 8, 10):
            assert table[rest | 1] == table[rest | 4]

    def test_models_are_bound_to_releases_in_one_order(self):
        """Whatever a user's model makes of their order, that of the user does not
        matter."""

        class Recorder(GaussianMean):
            given = []

            def bind(self, releases):
                self.given.append(releases)
                return super().bind(releases)

        releases = [
            noisy_sum(n, 30.0, e) for n, e in ((200, 0.2), (100, 0.5), (100, 0.1))
        ]
        for some in (releases, releases[::-1]):
            surprise_of(some, Recorder(0.1))
        assert Recorder.given[0] == Recorder.given[1]

    def test_f3_less_noise_on_the_same_sum_is_worth_more(self):
        scorer = means(
            [("i", 100, 30.0, 0.5), ("j", 100, 30.0, 0.05), ("k", 80, 22.0, 0.2)]
        )
        assert scorer.values_[0] > scorer.values_[1]
        table = scorer.coalition_values_
        for rest in (0, 4):
            assert table[rest | 1] > table[rest | 2]

    def test_order_and_names_of_parties_do_not_matter(self, parties, scorer):
        names = ["c", "a", "b"]
        again = clone(scorer).fit({name: scorer.releases_[name] for name in names})
        for name, value in zip(again.parties_, again.values_):
            assert value == scorer.values_[scorer.parties_.index(name)]
        assert again.surprise(["a", "c"]) == scorer.surprise(["c", "a"])
        # The same seed gives the same bits.
        listed = clone(scorer).fit([scorer.releases_[name] for name in "abc"])
        np.testing.assert_array_equal(
            listed.coalition_values_, scorer.coalition_values_
        )
        assert listed.parties_ == [0, 1, 2]

    def test_other_seeds_differ_a_little(self, scorer):
        other = clone(scorer).set_params(random_state=1).fit(scorer.releases_)
        assert (other.coalition_values_[1:] != scorer.coalition_values_[1:]).all()
        np.testing.assert_allclose(other.values_, scorer.values_, atol=0.3)


class TestComputation:
    def test_standard_errors_are_honest(self, parties):
        releases = release_all(parties[:2], (0.2, 0.1))
        runs = [
            surprise_of(releases, n_particles=48, min_ess=0, random_state=seed)
            for seed in range(8)
        ]
        found = np.std([run.coalition_values_ for run in runs], axis=0, ddof=1)[1:]
        stated = np.mean([run.coalition_values_error_ for run in runs], axis=0)[1:]
        assert 0.5 < (found / stated).mean() < 2
        found = np.std([run.values_ for run in runs], axis=0, ddof=1)
        stated = np.mean([run.values_error_ for run in runs], axis=0)
        assert 0.4 < (found / stated).mean() < 2.2

    def test_many_parties_are_sampled(self):
        """More than twelve; against the closed form of all coalitions."""
        rng, n = np.random.default_rng(0), 13
        facts = [
            (i, 20 + 10 * i, 0.3 * (20 + 10 * i) + rng.normal(), 0.05 + 0.02 * i)
            for i in range(n)
        ]
        sampled = means(facts, n_permutations=100)
        assert not hasattr(sampled, "coalition_values_")
        assert sampled.n_evaluations_ < 100 * 13 + 2
        assert sampled.values_.sum() == pytest.approx(sampled.grand_value_)
        table = exact_table(sampled.model_, list(sampled.releases_.values()))
        assert sampled.grand_value_ == pytest.approx(table[-1], abs=1e-4)
        gaps = np.abs(sampled.values_ - shapley_of(table))
        assert np.all(gaps < 5 * sampled.values_error_ + 1e-6)
        assert np.any(gaps > 1e-6)
        assert np.all(sampled.values_error_ > 0)

    @pytest.mark.slow
    def test_twenty_equal_parties(self):
        scorer = means([(i, 50, 15.0, 0.1) for i in range(20)], n_permutations=200)
        assert scorer.values_.sum() == pytest.approx(scorer.grand_value_)
        gap = np.abs(scorer.values_ - scorer.grand_value_ / 20)
        assert 0 < gap.max() < scorer.grand_value_ / 40
        assert np.all(gap < 5 * scorer.values_error_)

    def test_tables_of_many_blocks_are_in_closed_form(self):
        """Coalitions are taken 256 at a time."""
        scorer = means(
            [(i, 30 + 9 * i, 10.0 + 2 * i, 0.1 + 0.05 * i) for i in range(10)]
        )
        table = exact_table(scorer.model_, list(scorer.releases_.values()))
        assert scorer.n_evaluations_ == len(scorer.coalition_values_) == 1024
        np.testing.assert_allclose(scorer.coalition_values_, table, atol=1e-4)
        np.testing.assert_allclose(scorer.values_, shapley_of(table), atol=1e-4)
        for coalition in ([0, 8], [3, 9, 1], list(range(10))):
            number = sum(1 << i for i in coalition)
            assert scorer.surprise(coalition) == pytest.approx(table[number], abs=1e-4)

    def test_small_samples_are_made_up_for_or_warned_about(self, parties):
        releases = release_all(parties, (12.5, 12.5, 12.5))
        scorer = BayesianSurpriseScorer(linear_model(), n_particles=40, random_state=0)
        message = "effective sample size below min_ess=5000"
        with (
            warnings.catch_warnings(action="error"),
            pytest.raises(ConvergenceWarning, match=message),
        ):
            scorer.set_params(min_ess=5000).fit(releases[:2])
        assert scorer.values_.sum() == pytest.approx(
            scorer.grand_value_
        )  # no work is lost
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            few = clone(scorer).set_params(min_ess=0).fit(releases)
            enough = (
                clone(few).set_params(min_ess=1.2 * few.ess_[1:].min()).fit(releases)
            )
        assert len(enough._game.particles.phi) > len(few._game.particles.phi)

    def test_samples_have_the_coalition_s_distribution(self, scorer):
        model = scorer.model_
        draws = scorer.sample(["b", "c"], 3000, random_state=0)
        particles = scorer._game.particles
        weights = particles.weights(particles.loglik @ scorer._powers(["b", "c"], 1.0))
        np.testing.assert_allclose(
            draws.mean(axis=0), weights @ particles.phi, atol=0.02
        )
        assert len(np.unique(draws[:, 0])) > 2900
        prior = scorer.sample([], 3000, random_state=0)
        many = model.sample_prior(20_000, np.random.default_rng(0))
        assert prior[:, 0].std() == pytest.approx(many[:, 0].std(), rel=0.1)

    def test_a_user_s_model(self):
        built_in = means([("a", 100, 30.0, 0.5), ("b", 90, 20.0, 0.1)])
        own = surprise_of(built_in.releases_, Sampled(GaussianMean(0.1)))
        np.testing.assert_allclose(own.values_, built_in.values_, atol=0.1)
        reward = RhoShapleyReward(random_state=0).fit(own).rewards_["b"]
        assert np.isfinite(reward.mnlp(None, [0.2, 0.3]))


class TestRolesApart:
    def test_the_mediator_holds_no_row(self, parties, scorer):
        scheme = RhoShapleyReward(random_state=0, n_draws=50).fit(scorer)
        kept = pickle.dumps([scorer, scheme])
        for X, y in parties:
            for row in [*X, *np.column_stack([X, y])]:
                assert row.tobytes() not in kept
            assert all(target.tobytes() not in kept for target in y if abs(target) < 1)

    @pytest.mark.parametrize(
        "wrap", [lambda x: x, list, lambda x: {"a": x}, lambda x: [x, x]]
    )
    def test_the_mediator_accepts_no_rows(self, parties, wrap):
        with pytest.raises(TypeError, match="releases must"):
            surprise_of(wrap(parties[0][0]))

    def test_the_reward_takes_a_fitted_scorer_only(self, parties):
        with pytest.raises(
            TypeError, match="scorer must be a fitted BayesianSurpriseScorer or "
        ):
            RhoShapleyReward().fit(parties[0][0])
        with pytest.raises(NotFittedError):
            RhoShapleyReward().fit(BayesianSurpriseScorer(linear_model()))

    def test_a_party_needs_no_other(self, parties):
        party = GramRelease(renyi_epsilon=0.2).fit(*parties[0])
        assert set(vars(party)) >= {"release_", "privacy_"}
        assert not any("releases" in name or "model" in name for name in vars(party))

    def test_pickle_goes_on(self, scorer):
        copy = pickle.loads(pickle.dumps(scorer))
        assert copy.surprise(["a"]) == scorer.surprise(["a"])


class TestRefuses:
    def test_releases_that_contradict(self, parties):
        base = dict(zip("abc", release_all(parties, (0.2, 0.1, 0.2))))
        X, y = parties[0]

        def fit_with(release, model=None):
            return surprise_of({**base, "d": release}, model)

        classes = LogisticRelease(renyi_epsilon=0.2).fit(X, y > 0).release_
        for rows, options, message in [
            (X, dict(fit_intercept=True), "agree in intercept"),
            (X, dict(x_bound=2.0), "agree in bounds"),
            (X[:, :1], {}, "agree in n_features. Got 1, 2"),
        ]:
            with pytest.raises(ValueError, match=message):
                fit_with(
                    GramRelease(renyi_epsilon=0.2, **options).fit(rows, y).release_
                )
        for model, message in [
            (linear_model(), "of kind 'linear' for BayesianLinear. Got 'logistic'"),
            (
                BayesianLogistic(),
                "of kind 'logistic' for BayesianLogistic. Got 'linear'",
            ),
        ]:
            with pytest.raises(ValueError, match=message):
                fit_with(classes, model)
        with pytest.raises(ValueError, match="releases must hold at least one release"):
            surprise_of({})

    def test_other_priors(self, parties):
        X, y = parties[0]
        model = linear_model()
        plain = GramRelease(None).fit(X, y).release_

        def fit_with(own, *priors):
            releases = [
                GramRelease(None, prior=prior).fit(X, y).release_ for prior in priors
            ]
            return surprise_of([plain, *releases], own, n_particles=40, min_ess=0)

        fit_with(model, model, model.prior_statement(), None)
        fit_with(
            model, clone(model).set_params(noise_aware=False)
        )  # not a matter of the prior
        # The same prior in other words.
        same = clone(model).set_params(
            precision=model.precision * np.eye(2), mean=[0, 0]
        )
        fit_with(model, same)
        other = clone(model).set_params(a0=21)
        with pytest.raises(
            ValueError, match=r"releases must agree in prior. Got .*20.0.*21.0"
        ):
            fit_with(model, model, other)
        with pytest.raises(
            ValueError, match=r"model must have the prior that releases .*21.0.*20"
        ):
            fit_with(model, other)
        tilted = [clone(model).set_params(precision=np.eye(2) + x) for x in (0.1, 0.2)]
        with pytest.raises(
            ValueError, match="model must have the prior that releases state"
        ):
            fit_with(tilted[0], tilted[1])
        with pytest.raises(
            ValueError, match=r'prior that releases .*"GaussianMean".*"BayesianL'
        ):
            fit_with(model, GaussianMean())

        class Own:
            sample_prior = log_prior = party_loglik = predict_logpdf = staticmethod(
                print
            )

        with pytest.raises(
            ValueError, match="model must have a method prior_statement where"
        ):
            fit_with(Own(), model)
        with pytest.raises(ValueError, match="'prior' parameter of GramRelease"):
            GramRelease(prior=3).fit(X, y)

    def test_other_classes(self, parties):
        X, y = parties[0]
        y = np.where(y > 0, "yes", "no")
        one, two = (
            LogisticRelease(None, classes=classes).fit(X, y).release_
            for classes in (("no", "yes"), ("yes", "no"))
        )
        model = BayesianLogistic(classes=("no", "yes"))
        with pytest.raises(ValueError, match="releases must agree in classes"):
            surprise_of([one, two], model)
        with pytest.raises(ValueError, match="classes must be those of the releases"):
            surprise_of([two], model)

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
                "x_covariance must be a symmetric positive",
            ),
            (BayesianLinear(a0=0), "'a0' parameter of BayesianLinear"),
            ("linear", "'model' parameter of BayesianSurpriseScorer"),
        ],
    )
    def test_models(self, parties, model, message):
        with pytest.raises(ValueError, match=message):
            surprise_of(release_all(parties, (0.2, 0.1, 0.2)), model)

    def test_questions(self, scorer):
        for coalition in (["z"], "ab"):  # the latter is no coalition of a and b
            with pytest.raises(ValueError, match="coalition must .*Got.*(z|ab)"):
                scorer.surprise(coalition)
        with pytest.raises(ValueError, match="temper must be in"):
            scorer.sample(["a"], temper=2)

    def test_small_parties_are_named(self, parties):
        (X, y), *_ = parties
        with pytest.warns(NormalApproximationWarning, match="This party has 30 rows"):
            small = GramRelease(renyi_epsilon=0.2).fit(X[:30], y[:30]).release_
        with pytest.warns(
            NormalApproximationWarning, match="Parties .'tiny'. have fewer than 50"
        ):
            surprise_of({"tiny": small}, n_particles=80)


class TestFittedAgain:
    def test_is_a_fit_of_its_own(self):
        many = [(f"p{i}", 50, 0.1 * i, 1.0) for i in range(13)]
        releases = means(many, n_permutations=20).releases_
        scorer = means(many[:3], n_permutations=20)
        scorer.fit(releases)
        assert not hasattr(scorer, "coalition_values_")
        fresh = clone(scorer).fit(releases)
        assert scorer.n_evaluations_ == fresh.n_evaluations_
        np.testing.assert_array_equal(scorer.values_, fresh.values_)

    def test_what_is_refused_or_interrupted_changes_nothing(self, monkeypatch):
        scorer = means([("a", 100, 0.2, 1.0), ("b", 50, 0.1, 1.0)])
        scheme = RhoShapleyReward(random_state=0).fit(scorer)
        before, held = dict(vars(scorer)), dict(vars(scheme))
        other = means([("c", 9, 0.3, 1.0)])
        monkeypatch.setattr(GaussianMean, "prior_quantile", interrupt)
        with pytest.raises(KeyboardInterrupt):
            scorer.fit(other.releases_)
        assert vars(scorer) == before
        other.values_ = np.zeros(1)
        with pytest.raises(
            ValueError, match="scorer must have a party of a value above 0"
        ):
            scheme.fit(other)
        assert vars(scheme) == held


def interrupt(*args):
    raise KeyboardInterrupt
