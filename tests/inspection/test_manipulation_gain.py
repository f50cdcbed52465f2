"""Gains of manipulations: exact ones, honest ones, errors, every kind of valuer,
refusals."""

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
from skvalue.inspection.manipulations import ATTACKS, Sent
from tests.problems import noisy_line, split, two_classes

PARTIES = np.array(list("abcd"))[np.arange(60) % 4]
PROBLEM = two_classes(0, 60, 60)
QUICK = dict(n_folds=2, n_repeats=2, random_state=0)


def gain(valuer, problem=PROBLEM, party="b", groups=PARTIES, **options):
    options = {**QUICK, **options}
    points = {} if "release" in options or hasattr(valuer, "model_") else problem.points
    return manipulation_gain(
        valuer, *problem.rows, groups, party=party, **points, **options
    )


def digits(seed, n=500):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))[: 2 * n]
    return split(X[order] / 16, (y[order] >= 5).astype(int), n)


class TestAttacks:
    @pytest.mark.parametrize("problem", [PROBLEM, noisy_line(0, 60, 60, n_classes=3)])
    @pytest.mark.parametrize("attack", ATTACKS)
    def test_leave_the_rows_of_others_alone(self, attack, problem):
        names = np.arange(60) % 4
        sent = Sent(problem.X, problem.y, names, problem.X_val, problem.y_val)
        found = ATTACKS[attack](sent, np.random.default_rng(0))
        others, before = found.names > 0, names > 0
        np.testing.assert_array_equal(found.X[others], problem.X[before])
        np.testing.assert_array_equal(found.y[others], problem.y[before])
        np.testing.assert_array_equal(found.names[others], names[before])
        rows = {"rows": 60, "also another's": 30, "also validation": 27, "half": 8}
        expected = next(
            (n for start, n in rows.items() if attack.startswith(start)), 15
        )
        assert (~others).sum() == (30 if attack == "garbage besides" else expected)
        n_names = 4 if "4 names" in attack else 1
        assert len(np.unique(found.names[~others])) == n_names
        assert set(found.y) <= set(problem.y)
        changed = (~(found.X[:, None] == problem.X).all(axis=2).any(axis=1)).sum()
        new = {"rows 4 times, moved": 45, "rows under 4 names, moved": 45, "noise in features": 15,
               "garbage only": 15, "garbage besides": 15, "also validation points": 12}  # fmt: skip
        assert changed == new.get(attack, 0)
        if attack == "20 % of labels wrong":
            assert (found.y != problem.y).sum() == 3


class TestGains:
    def test_by_hand(self):
        """Rows sent twice under an additive rule of rows: the share goes from 1/4 to
        2/5."""
        result = gain(
            GroupSizes(),
            attacks={"twice": lambda sent, rng: twice(sent), "none": lambda s, rng: s},
        )
        np.testing.assert_allclose(result.gain, [0.6, 0.0], atol=1e-12)
        np.testing.assert_allclose(result.change, [0.15, 0.0], atol=1e-12)
        assert result.proved.tolist() == [True, False]
        assert (result.honest, result.worst, result.n_fits) == (0.25, 0, 12)
        assert (result.gain_error == 0).all()
        by_value = gain(
            GroupSizes(), attacks={"twice": lambda s, rng: twice(s)}, pay="value"
        )
        np.testing.assert_allclose([by_value.gain[0], by_value.change[0]], [1.0, 15.0])
        assert (
            "'twice' the party changes its payment by +100 % (error 0), from 15"
            in by_value.sentence
        )

    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_shells_of_sums_of_rows_gain_nothing(self):
        names = ["4 names, at random", "4 names, by label"]
        result = gain(KNNShapleyValuer(), attacks=names, pay="value")
        assert (np.abs(result.change) < 1e-12).all()
        assert not result.proved.any()
        assert "No gain of 2 manipulations is proved" in result.sentence
        faithful = DataShapleyValuer(
            group_values="faithful", max_evaluations=300, adjust=False, random_state=0
        )
        assert (np.abs(gain(faithful, attacks=names, pay="value").change) < 1e-12).all()

    def test_copies_and_their_cure(self):
        names = ["rows 4 times", "rows under 4 names", "rows 4 times, moved"]
        problem, groups = digits(0, 200), np.arange(200) % 5
        plain = gain(KNNShapleyValuer(), problem, 0, groups, attacks=names)
        assert plain.proved.all()
        assert (plain.gain > 0.8).all()
        cured = KNNShapleyValuer(duplicates="quotient")
        cured = gain(cured, problem, 0, groups, attacks=names)
        assert (np.abs(cured.gain[:2]) < 1e-12).all()
        assert cured.gain[2] > 0.5  # beyond the radius

    def test_a_party_that_is_paid_nothing(self):
        wrong = PROBLEM._replace(
            y=np.where(
                PARTIES == "b", np.where(PROBLEM.y == "yes", "no", "yes"), PROBLEM.y
            )
        )
        result = gain(KNNShapleyValuer(), wrong, attacks=["only another's rows"])
        assert result.honest == 0
        assert np.isnan(result.gain[0])
        assert result.change[0] > 0
        assert "(error" in result.sentence

    def test_dropping_bad_rows_never_loses_in_expectation(self):
        changes, groups = [], np.arange(300) % 5
        for seed in range(6):
            problem, wrong = digits(seed, 300), np.arange(300) < 60
            y = np.where(wrong & (groups == 0), 1 - problem.y, problem.y)

            def drop(sent, rng, wrong=wrong):
                return sent.kept(np.flatnonzero(~(wrong & (sent.names == 0))))

            result = gain(
                KNNShapleyValuer(empty_utility="prior"), problem._replace(y=y), 0, groups,
                attacks={"drop": drop}, pay="value", n_repeats=1,
            )  # fmt: skip
            changes.append(result.change[0])
        assert np.mean(changes) > 0
        assert np.min(changes) > -0.005

    def test_the_state_decides(self):
        one, other = (gain(KNNShapleyValuer(), random_state=3) for _ in range(2))
        np.testing.assert_array_equal(one.gain, other.gain)
        assert one.attack == list(ATTACKS)

    @pytest.mark.slow
    def test_an_honest_attack_is_proved_in_few_draws(self):
        """The luck of the sampled coalitions, and the validation points, are in the
        error."""
        valuer, proved = (
            DataShapleyValuer(max_evaluations=66, adjust=False, sampler="stratified"),
            0,
        )
        for seed in range(200):
            problem = two_classes(seed, 24, 30)
            result = manipulation_gain(
                valuer, *problem.rows, np.arange(24) % 4 + 4 * (np.arange(24) // 12), party=0,
                **problem.points, attacks={"honest": lambda sent, rng: sent}, pay="value",
                random_state=seed,
            )  # fmt: skip
            proved += int(result.proved[0])
        assert proved <= 10

    @pytest.mark.slow
    def test_names_under_banzhaf(self):
        """Two names gain nothing, four random ones lose; Shapley values pay them."""
        exact = dict(estimator=LogisticRegression(), sampler="exact")
        found, shapley = [], []
        for seed in range(3):
            problem, groups = digits(seed), np.arange(500) % 5
            two = {"2": lambda s, rng: ATTACKS["4 names, at random"](s, rng, n=2)}
            result = gain(
                DataBanzhafValuer(**exact), problem, 0, groups, attacks=two, pay="value"
            )
            assert abs(result.change[0]) < 1e-12
            names = ["4 names, at random"]
            options = dict(party=0, groups=groups, attacks=names, pay="value")
            found.append(gain(DataBanzhafValuer(**exact), problem, **options))
            shapley.append(gain(DataShapleyValuer(**exact), problem, **options).gain[0])
        error = np.sqrt(np.mean([r.gain_error[0] ** 2 for r in found]) / 3)
        assert np.mean([r.gain[0] for r in found]) < 2 * error
        assert np.mean(shapley) > 0.2


def twice(sent):
    return sent.plus(sent.X[sent.own], sent.y[sent.own])


class GroupSizes(BaseEstimator):
    """A rule that pays by the number of rows."""

    def fit(self, X, y, *, X_val=None, y_val=None, groups=None):
        self.groups_, self.values_ = np.unique(groups, return_counts=True)
        return self


VALUERS = [
    KNNShapleyValuer(), TKNNShapleyValuer(radius=0.3), LeaveOneOutValuer(),
    DataShapleyValuer(sampler="exact"), InRunShapleyValuer(random_state=0),
    GradientSemivalueValuer(n_permutations=3, random_state=0),
    FederatedSemivalueValuer(n_rounds=3, random_state=0),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("valuer", VALUERS, ids=lambda valuer: type(valuer).__name__)
def test_every_valuer_with_groups(valuer):
    result = gain(valuer, attacks=["half withheld", "garbage besides"], pay="value")
    assert np.isfinite(result.change).all()
    assert np.isfinite(result.change_error).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_scorers_of_parties():
    rng = np.random.default_rng(0)
    X = 0.3 * rng.normal(size=(260, 2))
    y = np.clip(X @ [0.8, -0.5] + 0.1 * rng.normal(size=260), -1, 1)
    groups = np.repeat(list("abc"), 60)
    options = dict(party="b", release=GramRelease(None), **QUICK)
    points = dict(X_val=X[180:], y_val=y[180:])
    quick = dict(n_particles=40, min_ess=0, random_state=0)
    names = ["rows under 4 names", "garbage only"]
    scorer = PredictiveValueScorer(BayesianLinear(), **quick)
    result = manipulation_gain(
        scorer,
        X[:180],
        y[:180],
        groups,
        **points,
        **options,
        attacks=names,
        pay="value",
    )
    assert result.gain[0] > 0.3  # Shapley values of names
    assert result.change[1] < 0
    surprise = BayesianSurpriseScorer(BayesianLinear(), **quick)
    for given in (points, {}):
        result = manipulation_gain(
            surprise,
            X[:180],
            y[:180],
            groups,
            **given,
            **options,
            attacks=["rows 4 times"],
        )
        assert result.gain[0] > 0.3


def test_a_score_is_not_a_price():
    """PriArTa: k names are paid k times, and a made-up summary has the largest
    score."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[200:] += 1.0
    scorer = PriArTaScorer(max_norm=3.0).fit(X[:100])
    groups = np.repeat([0, 1], 100)[:200]

    def made_up(sent, rng):
        far = sent.X.copy()
        far[sent.own] = 3.0 / np.sqrt(3)
        return sent._replace(X=far)

    attacks = {"4 names": ATTACKS["4 names, at random"], "made up": made_up}
    result = manipulation_gain(
        scorer,
        X[100:],
        np.zeros(200),
        groups,
        party=1,
        attacks=attacks,
        pay="value",
        **QUICK,
    )
    assert result.gain[0] == pytest.approx(3.0, abs=0.4)
    far = np.full((100, 3), 3.0 / np.sqrt(3))
    assert scorer.transform([X[100:200], X[200:], far]).argmax() == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(party="x"), "party must be one of at least two groups"),
        (dict(groups=np.repeat("b", 60)), "party must be one of at least two groups"),
        (dict(pay="money"), "pay must be"),
        (dict(attacks=["nothing"]), "attacks must be"),
        (dict(attacks="rows"), "attacks must be"),
        (dict(attacks={}), "attacks must be"),
        (dict(n_folds=1), "n_folds must be"),
        (dict(n_repeats=0), "n_repeats must be"),
    ],
)
def test_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        gain(KNNShapleyValuer(), **options)
    with pytest.raises(ValueError, match="X_val and y_val must be passed together"):
        manipulation_gain(
            KNNShapleyValuer(), *PROBLEM.rows, PARTIES, party="b", y_val=PROBLEM.y_val
        )


class TestDisplay:
    def test_a_column_per_rule(self):
        pytest.importorskip("matplotlib")
        names = ["rows 4 times", "half withheld"]
        results = {
            "share": gain(KNNShapleyValuer(), attacks=names),
            "value": gain(KNNShapleyValuer(), attacks=names, pay="value"),
        }
        display = ManipulationDisplay(results).plot()
        assert display.text_.shape == (2, 2)
        for j, result in enumerate(results.values()):
            for i in range(2):
                assert float(display.text_[i, j].get_text()) == round(
                    100 * result.gain[i]
                )
                bold = display.text_[i, j].get_weight() == "bold"
                assert bold == result.proved[i]
        assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == names
        one = ManipulationDisplay(results["share"]).plot(
            ax=display.figure_.add_subplot()
        )
        assert one.text_.shape == (2, 1)

    def test_refuses_different_manipulations(self):
        pytest.importorskip("matplotlib")
        results = [
            gain(KNNShapleyValuer(), attacks=[name]) for name in list(ATTACKS)[:2]
        ]
        with pytest.raises(
            ValueError, match="results must have the same manipulations"
        ):
            ManipulationDisplay(dict(zip("ab", results))).plot()
