"""Gains of manipulations: by hand, of honest rows, and under every kind of valuer."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from skvalue import (
    BayesianSurpriseScorer,
    DataBanzhafValuer,
    DataShapleyValuer,
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    InRunShapleyValuer,
    KNNShapleyValuer,
    LeaveOneOutValuer,
    PredictiveValueScorer,
    PriArTaScorer,
    TKNNShapleyValuer,
)
from skvalue.collaborative import BayesianLinear, GramRelease
from skvalue.inspection import ManipulationDisplay, manipulation_gain
from skvalue.inspection.manipulations import ATTACKS, Submission
from tests.problems import noisy_line, split, two_classes

PARTIES = np.array(list("abcd"))[np.arange(60) % 4]
PROBLEM = two_classes(0, 60, 60)
FEW_FITS = {"n_folds": 2, "n_repeats": 2, "random_state": 0}


def gain(valuer, problem=PROBLEM, party="b", groups=PARTIES, **options):
    """Gains on a problem, with its validation points."""
    return manipulation_gain(
        valuer,
        *problem.rows,
        groups,
        party=party,
        **problem.points,
        **{**FEW_FITS, **options},
    )


def digits(seed, n_rows=500):
    """A problem of two classes: the digits below and from 5."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))[: 2 * n_rows]
    return split(X[order] / 16, (y[order] >= 5).astype(int), n_rows)


def honest(submission, rng):
    return submission


def twice(submission, rng):
    rows = submission.own_rows
    return submission.append(submission.X[rows], submission.y[rows])


class GroupSizes(BaseEstimator):
    """A rule that pays by the number of rows."""

    def fit(self, X, y, *, X_val=None, y_val=None, groups=None):
        self.groups_, self.values_ = np.unique(groups, return_counts=True)
        return self


@pytest.mark.parametrize(
    "problem",
    [PROBLEM, noisy_line(0, 60, 60, n_classes=3)],
    ids=["two classes", "three classes"],
)
@pytest.mark.parametrize("attack", ATTACKS)
class TestAttacks:
    """Manipulations of 15 rows of one of four parties."""

    names = np.arange(60) % 4

    @pytest.fixture
    def submission(self, problem, attack):
        honest = Submission(
            problem.X, problem.y, self.names, problem.X_val, problem.y_val
        )
        return ATTACKS[attack](honest, np.random.default_rng(0))

    def test_rows_of_other_parties_are_unchanged(self, submission, problem):
        others = submission.names > 0
        others_before = self.names > 0
        np.testing.assert_array_equal(submission.X[others], problem.X[others_before])
        np.testing.assert_array_equal(submission.y[others], problem.y[others_before])
        np.testing.assert_array_equal(
            submission.names[others], self.names[others_before]
        )

    def test_number_of_rows_and_names(self, submission, attack):
        n_rows = {
            "rows 4 times": 60,
            "rows 4 times, moved": 60,
            "rows under 4 names": 60,
            "rows under 4 names, moved": 60,
            "also another's rows": 30,
            "also validation points": 27,
            "half withheld": 8,
            "garbage besides": 30,
        }
        own_rows = submission.own_rows
        assert len(own_rows) == n_rows.get(attack, 15)
        n_names = 4 if "4 names" in attack else 1
        assert len(np.unique(submission.names[own_rows])) == n_names

    def test_number_of_new_rows(self, submission, attack, problem):
        n_new_rows = {
            "rows 4 times, moved": 45,
            "rows under 4 names, moved": 45,
            "noise in features": 15,
            "garbage only": 15,
            "garbage besides": 15,
            "also validation points": 12,
        }
        is_equal = (submission.X[:, None] == problem.X).all(axis=2)
        is_new = ~is_equal.any(axis=1)
        assert is_new.sum() == n_new_rows.get(attack, 0)

    def test_labels_are_those_that_occur(self, submission, attack, problem):
        assert set(submission.y) <= set(problem.y)
        if attack == "20 % of labels wrong":
            assert (submission.y != problem.y).sum() == 3


class TestGains:
    def test_gains_of_a_share_by_hand(self):
        """Rows sent twice raise the share by the number of rows from 1/4 to 2/5."""
        result = gain(GroupSizes(), attacks={"twice": twice, "none": honest})
        np.testing.assert_allclose(result.gain, [0.6, 0.0], atol=1e-12)
        np.testing.assert_allclose(result.change, [0.15, 0.0], atol=1e-12)
        assert result.proved.tolist() == [True, False]
        assert result.honest == 0.25
        assert result.worst == 0
        assert result.n_fits == 12
        assert (result.gain_error == 0).all()

    def test_gains_of_a_price_by_hand(self):
        result = gain(GroupSizes(), attacks={"twice": twice}, pay="value")
        np.testing.assert_allclose(result.gain, [1.0])
        np.testing.assert_allclose(result.change, [15.0])
        expected = "'twice' the party changes its payment by +100 % (error 0), from 15"
        assert expected in result.sentence

    @pytest.mark.filterwarnings("ignore::UserWarning")
    @pytest.mark.parametrize(
        "valuer",
        [
            KNNShapleyValuer(),
            DataShapleyValuer(
                group_values="faithful",
                max_evaluations=300,
                adjust=False,
                random_state=0,
            ),
        ],
        ids=["sums of rows", "faithful"],
    )
    def test_more_names_for_the_same_rows_gain_nothing(self, valuer):
        names = ["4 names, at random", "4 names, by label"]
        result = gain(valuer, attacks=names, pay="value")
        assert (np.abs(result.change) < 1e-12).all()
        assert not result.proved.any()
        assert "No gain of 2 manipulations is proved" in result.sentence

    def test_copies_gain(self):
        names = ["rows 4 times", "rows under 4 names", "rows 4 times, moved"]
        groups = np.arange(200) % 5
        result = gain(KNNShapleyValuer(), digits(0, 200), 0, groups, attacks=names)
        assert result.proved.all()
        assert (result.gain > 0.8).all()

    def test_copies_within_the_radius_gain_nothing_under_the_quotient(self):
        names = ["rows 4 times", "rows under 4 names", "rows 4 times, moved"]
        valuer = KNNShapleyValuer(duplicates="quotient")
        groups = np.arange(200) % 5
        result = gain(valuer, digits(0, 200), 0, groups, attacks=names)
        assert (np.abs(result.gain[:2]) < 1e-12).all()
        # Moved copies are beyond the radius.
        assert result.gain[2] > 0.5

    def test_a_party_that_is_paid_nothing_has_a_change_and_no_gain(self):
        opposite = np.where(PROBLEM.y == "yes", "no", "yes")
        y = np.where(PARTIES == "b", opposite, PROBLEM.y)
        problem = PROBLEM._replace(y=y)
        result = gain(KNNShapleyValuer(), problem, attacks=["only another's rows"])
        assert result.honest == 0
        assert np.isnan(result.gain[0])
        assert result.change[0] > 0
        assert "(error" in result.sentence

    def test_dropping_bad_rows_never_loses_in_expectation(self):
        groups = np.arange(300) % 5
        is_wrong = (np.arange(300) < 60) & (groups == 0)

        def drop(submission, rng):
            return submission.drop(np.flatnonzero(is_wrong))

        changes = []
        for seed in range(6):
            problem = digits(seed, 300)
            problem = problem._replace(y=np.where(is_wrong, 1 - problem.y, problem.y))
            result = gain(
                KNNShapleyValuer(empty_utility="prior"),
                problem,
                0,
                groups,
                attacks={"drop": drop},
                pay="value",
                n_repeats=1,
            )
            changes.append(result.change[0])
        assert np.mean(changes) > 0
        assert np.min(changes) > -0.005

    def test_random_state_decides(self):
        result = gain(KNNShapleyValuer(), random_state=3)
        again = gain(KNNShapleyValuer(), random_state=3)
        np.testing.assert_array_equal(result.gain, again.gain)

    def test_default_is_all_manipulations(self):
        assert gain(KNNShapleyValuer()).attack == list(ATTACKS)

    @pytest.mark.slow
    def test_an_honest_attack_is_proved_in_few_draws(self):
        """The error is that of the sampled coalitions and of the validation points."""
        valuer = DataShapleyValuer(
            max_evaluations=66, adjust=False, sampler="stratified"
        )
        groups = np.arange(24) % 4 + 4 * (np.arange(24) // 12)
        n_proved = 0
        for seed in range(200):
            problem = two_classes(seed, 24, 30)
            result = manipulation_gain(
                valuer,
                *problem.rows,
                groups,
                party=0,
                **problem.points,
                attacks={"honest": honest},
                pay="value",
                random_state=seed,
            )
            n_proved += int(result.proved[0])
        assert n_proved <= 10


@pytest.mark.slow
class TestNames:
    """More names for the same rows, under exact values."""

    exact = {"estimator": LogisticRegression(), "sampler": "exact"}
    groups = np.arange(500) % 5

    def result(self, valuer, seed, attacks):
        return gain(valuer, digits(seed), 0, self.groups, attacks=attacks, pay="value")

    @pytest.mark.parametrize("seed", range(3))
    def test_two_names_gain_nothing_under_banzhaf_values(self, seed):
        def two_names(submission, rng):
            return ATTACKS["4 names, at random"](submission, rng, n=2)

        result = self.result(DataBanzhafValuer(**self.exact), seed, {"2": two_names})
        assert abs(result.change[0]) < 1e-12

    def test_four_names_gain_nothing_under_banzhaf_values(self):
        valuer = DataBanzhafValuer(**self.exact)
        results = [self.result(valuer, s, ["4 names, at random"]) for s in range(3)]
        gains = np.array([result.gain[0] for result in results])
        errors = np.array([result.gain_error[0] for result in results])
        assert gains.mean() < 2 * np.sqrt(np.mean(errors**2) / 3)

    def test_four_names_are_paid_under_shapley_values(self):
        valuer = DataShapleyValuer(**self.exact)
        results = [self.result(valuer, s, ["4 names, at random"]) for s in range(3)]
        assert np.mean([result.gain[0] for result in results]) > 0.2


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "valuer",
    [
        KNNShapleyValuer(),
        TKNNShapleyValuer(radius=0.3),
        LeaveOneOutValuer(),
        DataShapleyValuer(sampler="exact"),
        InRunShapleyValuer(random_state=0),
        GradientSemivalueValuer(n_permutations=3, random_state=0),
        FederatedSemivalueValuer(n_rounds=3, random_state=0),
    ],
    ids=lambda valuer: type(valuer).__name__,
)
def test_every_valuer_with_groups_is_taken(valuer):
    result = gain(valuer, attacks=["half withheld", "garbage besides"], pay="value")
    assert np.isfinite(result.change).all()
    assert np.isfinite(result.change_error).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
class TestScorersOfParties:
    few_particles = {"n_particles": 40, "min_ess": 0, "random_state": 0}

    @pytest.fixture
    def market(self):
        """Rows of three parties, and points of the buyer."""
        rng = np.random.default_rng(0)
        X = 0.3 * rng.normal(size=(260, 2))
        y = np.clip(X @ [0.8, -0.5] + 0.1 * rng.normal(size=260), -1, 1)
        return {
            "X": X[:180],
            "y": y[:180],
            "groups": np.repeat(list("abc"), 60),
            "party": "b",
            "X_val": X[180:],
            "y_val": y[180:],
            "release": GramRelease(None),
        }

    def test_names_gain_and_garbage_loses_under_predictive_values(self, market):
        result = manipulation_gain(
            PredictiveValueScorer(BayesianLinear(), **self.few_particles),
            **market,
            attacks=["rows under 4 names", "garbage only"],
            pay="value",
            **FEW_FITS,
        )
        # Shapley values of names.
        assert result.gain[0] > 0.3
        assert result.change[1] < 0

    @pytest.mark.parametrize("has_points", [True, False])
    def test_copies_gain_under_bayesian_surprise(self, market, has_points):
        if not has_points:
            market = {**market, "X_val": None, "y_val": None}
        result = manipulation_gain(
            BayesianSurpriseScorer(BayesianLinear(), **self.few_particles),
            **market,
            attacks=["rows 4 times"],
            **FEW_FITS,
        )
        assert result.gain[0] > 0.3


class TestPriArTa:
    """A score is not a price."""

    @pytest.fixture
    def sellers(self):
        """The buyer's rows, then 100 rows of each of two sellers."""
        X = np.random.default_rng(0).normal(size=(300, 3))
        X[200:] += 1.0
        return X[:100], X[100:200], X[200:]

    def test_each_name_is_paid(self, sellers):
        buyer, first, second = sellers
        scorer = PriArTaScorer(max_norm=3.0).fit(buyer)
        result = manipulation_gain(
            scorer,
            np.vstack([first, second]),
            np.zeros(200),
            np.repeat([0, 1], 100),
            party=1,
            attacks=["4 names, at random"],
            pay="value",
            **FEW_FITS,
        )
        assert result.gain[0] == pytest.approx(3.0, abs=0.4)

    def test_made_up_rows_have_the_largest_score(self, sellers):
        buyer, first, second = sellers
        scorer = PriArTaScorer(max_norm=3.0).fit(buyer)
        made_up = np.full((100, 3), 3.0 / np.sqrt(3))
        assert scorer.transform([first, second, made_up]).argmax() == 2

    def test_made_up_rows_gain(self, sellers):
        buyer, first, second = sellers

        def make_up(submission, rng):
            X = submission.X.copy()
            X[submission.own_rows] = 3.0 / np.sqrt(3)
            return submission._replace(X=X)

        result = manipulation_gain(
            PriArTaScorer(max_norm=3.0).fit(buyer),
            np.vstack([first, second]),
            np.zeros(200),
            np.repeat([0, 1], 100),
            party=1,
            attacks={"made up": make_up},
            pay="value",
            **FEW_FITS,
        )
        assert result.gain[0] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"party": "x"}, "party must be one of at least two groups"),
        ({"groups": np.repeat("b", 60)}, "party must be one of at least two groups"),
        ({"pay": "money"}, "pay must be"),
        ({"attacks": ["nothing"]}, "attacks must be"),
        ({"attacks": "rows"}, "attacks must be"),
        ({"attacks": {}}, "attacks must be"),
        ({"n_folds": 1}, "n_folds must be"),
        ({"n_repeats": 0}, "n_repeats must be"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        gain(KNNShapleyValuer(), **options)


def test_labels_of_validation_points_alone_are_refused():
    with pytest.raises(ValueError, match="X_val and y_val must be passed together"):
        manipulation_gain(
            KNNShapleyValuer(), *PROBLEM.rows, PARTIES, party="b", y_val=PROBLEM.y_val
        )


class TestDisplay:
    attacks = ("rows 4 times", "half withheld")

    @pytest.fixture
    def results(self):
        pytest.importorskip("matplotlib")
        return {
            "share": gain(KNNShapleyValuer(), attacks=self.attacks),
            "value": gain(KNNShapleyValuer(), attacks=self.attacks, pay="value"),
        }

    def test_each_rule_is_a_column(self, results):
        display = ManipulationDisplay(results).plot()
        assert display.text_.shape == (2, 2)
        for j, result in enumerate(results.values()):
            for i in range(2):
                text = display.text_[i, j]
                assert float(text.get_text()) == round(100 * result.gain[i])
                assert (text.get_weight() == "bold") == result.proved[i]
        labels = [tick.get_text() for tick in display.ax_.get_yticklabels()]
        assert labels == list(self.attacks)

    def test_one_result_is_one_column(self, results):
        assert ManipulationDisplay(results["share"]).plot().text_.shape == (2, 1)

    def test_different_manipulations_are_refused(self):
        pytest.importorskip("matplotlib")
        results = {
            name: gain(KNNShapleyValuer(), attacks=[name]) for name in self.attacks
        }
        message = "results must have the same manipulations"
        with pytest.raises(ValueError, match=message):
            ManipulationDisplay(results).plot()
