"""Semivalues from the contributions of all players to few coalitions."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from skvalue.estimation import MarginalDesign, corrections, draw_players
from skvalue.games import MarginalGame, ModelGame
from skvalue.semivalues import size_weights, tabulated_semivalue
from tests.problems import noisy_line

N = 7
COALITIONS = (np.arange(2**N)[:, None] >> np.arange(N)) % 2 == 1
CODES = 2 ** np.arange(N)
SEMIVALUES = ["shapley", "banzhaf", (4, 1), (1, 4)]
STEPS = ["exact", "noisy", "wrong sign", "unknown"]
LOG_LOSS = (LogisticRegression(), "neg_log_loss")
ACCURACY = (LogisticRegression(), "accuracy")
TRAINED = {  # estimator, scoring, number of classes, options of the game
    "two classes": (*LOG_LOSS, 2, {}),
    "three classes": (*LOG_LOSS, 3, {}),
    "Brier": (LogisticRegression(), "neg_brier_score", 2, {}),
    "accuracy": (*ACCURACY, 2, {}),
    "accuracy, three classes": (*ACCURACY, 3, {}),
    "accuracy, groups": (*ACCURACY, 2, {"groups": np.arange(2 * N) % N}),
    "accuracy, groups of three classes": (
        *ACCURACY,
        3,
        {"groups": np.arange(2 * N) % N},
    ),
    "ridge": (Ridge(), "r2", 0, {}),
    "groups": (*LOG_LOSS, 2, {"groups": np.arange(2 * N) % N}),
    "rare class": (*LOG_LOSS, 2, {}),
    "duplicated rows": (*LOG_LOSS, 2, {}),
    "separable": (LogisticRegression(C=1e3), "neg_log_loss", 2, {}),
    "zero weight": (*LOG_LOSS, 2, {"sample_weight": np.r_[0.0, np.ones(N - 1)]}),
}


def table(seed=0):
    """Utilities of all coalitions: concave in the size, with noise; 0 of no players."""
    rng = np.random.default_rng(seed)
    strength = COALITIONS @ rng.uniform(0.5, 2, N)
    return np.sqrt(strength) + 0.1 * rng.normal(size=2**N) * (strength > 0)


def contributions(utilities):
    """What every player adds to every coalition, (2^n, n)."""
    codes = COALITIONS @ CODES
    members = (codes[:, None] & CODES) > 0
    with_player, without = codes[:, None] | CODES, codes[:, None] & ~CODES
    assert (members == COALITIONS).all()
    return utilities[with_player] - utilities[without]


def play(design, utilities, exact, steps, lengths):
    """The design after its last block; those of no and of one player are exact."""
    while (masks := design.ask()) is not None:
        codes = masks @ CODES
        if design.full is None:
            design.tell(utilities[codes])
            continue
        answers = []
        for code, mask, rng in zip(codes, masks, design.generators(len(masks))):
            count = design.n_trained[mask.sum()]
            if count == N:
                answers.append((exact[code], np.zeros(N)))
                continue
            players, probabilities = draw_players(lengths[code], count, rng)
            corrected = corrections(
                steps[code], players, probabilities, exact[code][players]
            )
            answers.append(corrected)
        design.tell(np.stack(answers, axis=1))
    return design


def steps_of(kind):
    """Utilities, exact contributions, steps and their lengths: of a table, or of
    models."""
    if kind in TRAINED:
        return trained(kind)
    utilities, rng = table(), np.random.default_rng(1)
    exact = contributions(utilities)
    errors = 0.1 * rng.normal(size=exact.shape)
    steps = {
        "exact": exact, "noisy": exact + errors, "wrong sign": -exact, "unknown": 0 * exact,
    }[kind]  # fmt: skip
    lengths = {"noisy": np.abs(errors), "wrong sign": np.abs(exact)}.get(
        kind, 0 * exact + np.inf
    )
    return utilities, exact, steps, lengths


def trained(kind):
    """As `steps_of`, of a game of retraining."""
    estimator, scoring, n_classes, options = TRAINED[kind]
    n, noise = 2 * N if "groups" in options else N, 1e-3 if kind == "separable" else 1.0
    X, y, X_val, y_val = noisy_line(0, n=n, d=2, n_classes=n_classes, noise=noise)
    if kind == "rare class":
        y = (np.arange(n) == 0).astype(int)
    if kind == "duplicated rows":
        X, y = X[np.arange(n) // 3], y[np.arange(n) // 3]
    game = ModelGame(estimator, X, y, X_val, y_val, scoring=scoring, **options)
    marginal, utilities = MarginalGame(game), np.full(2**N, game.empty_utility)
    utilities[1:] = game.utility(COALITIONS[1:])
    steps, lengths = map(np.array, zip(*map(marginal.steps, COALITIONS[1:])))
    exact = contributions(utilities)
    steps = np.vstack([exact[:1], steps])
    return (
        utilities - utilities[0],
        exact,
        steps,
        np.vstack([np.zeros((1, N)), lengths]),
    )


def replicates(semivalue, kind, n_seeds, n_blocks=2):
    """Values, their variances and corrections over seeds, and the true values."""
    (utilities, *steps), q = steps_of(kind), size_weights(semivalue, N)
    n_trained = np.array([N, N, *[3] * (N - 1)])
    values, variances, added = [], [], []
    for seed in range(n_seeds):
        design = MarginalDesign(q, n_trained, "accuracy" not in kind, seed=seed)
        design.limit = 1 + n_blocks * design.cost
        play(design, utilities, *steps)
        assert design.block == n_blocks
        values.append(design.values())
        variances.append(design.variances()[0])
        added.append(design.correction)
    return *map(np.array, (values, variances, added)), tabulated_semivalue(
        utilities, lambda _: q
    )


def check_unbiased(values, variances, true):
    errors = values - true
    spread = np.maximum(errors.std(axis=0, ddof=1), 1e-12)
    t = errors.mean(axis=0) / (spread / np.sqrt(len(errors)))
    assert np.sqrt(np.mean(t**2)) < 2
    known = variances > 1e-15  # else errors of solvers, of a row without weight
    assert (np.abs(errors[~known]) < 1e-6).all()
    assert 0.8 < np.mean(errors[known] ** 2 / variances[known]) < 1.4
    assert 0.8 < np.sqrt(variances.mean() / np.mean(errors**2)) < 1.5


@pytest.mark.parametrize(
    ("kind", "semivalue"),
    [
        *zip(
            [*STEPS, "accuracy, three classes"],
            ["shapley", "banzhaf"] * 2 + ["shapley"],
        )
    ],
    ids=str,
)
def test_unbiased(kind, semivalue):
    values, variances, _, true = replicates(semivalue, kind, 40)
    check_unbiased(values, variances, true)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "semivalue"),
    [*product(STEPS, SEMIVALUES), *product(TRAINED, SEMIVALUES[:2])],
    ids=str,
)
def test_unbiased_over_many_seeds(kind, semivalue):
    values, variances, _, true = replicates(semivalue, kind, 300, 8)
    check_unbiased(values, variances, true)


def test_wrong_steps_are_told():
    """Corrections that move values by as much as these are: the steps have the wrong
    sign."""
    _, _, right, _ = replicates("shapley", "exact", 4)
    values, _, wrong, _ = replicates("shapley", "wrong sign", 4)
    assert np.abs(right).max() == 0
    assert wrong.mean() > 0.2 * values.mean()


def test_shapley_values_sum_to_the_gain():
    values, *_ = replicates("shapley", "noisy", 2, 1)
    assert np.allclose(values.sum(axis=1), table()[-1])


def test_larger_budgets_have_smaller_errors():
    few, many = (
        replicates("shapley", "noisy", 6, blocks)[1].mean() for blocks in (1, 9)
    )
    assert 6 < few / many < 14


@pytest.mark.parametrize("other", SEMIVALUES, ids=str)
def test_another_semivalue_from_the_same_contributions(other):
    utilities = table()
    exact, q = contributions(utilities), size_weights(other, N)
    design = MarginalDesign(size_weights("shapley", N), np.full(N + 1, N), seed=3)
    design.limit = 1 + 12 * design.cost
    play(design, utilities, exact, exact, exact)
    again, drawn, own = design.reweighted(q)
    true = tabulated_semivalue(utilities, lambda _: q)
    z = (again.values() - true) / np.sqrt(again.variances()[0])
    assert np.sqrt(np.mean(z**2)) < 2
    assert own > 0
    assert drawn > 0
    if other == "shapley":
        assert np.allclose(again.values(), design.values(), atol=1e-6)


def test_semivalues_of_sizes_that_were_not_drawn_are_refused():
    n = 400
    design = MarginalDesign(size_weights("banzhaf", n), np.full(n + 1, n), seed=3)
    design.limit = 1 + design.cost
    while (masks := design.ask()) is not None:
        one = design.full is None
        design.tell(np.zeros(len(masks)) if one else np.zeros((2, len(masks), n)))
    with pytest.raises(ValueError, match="drawn too rarely"):
        design.reweighted(size_weights("shapley", n))


@pytest.mark.parametrize("n", [2, 3, 10, 1000, 20_000])
@pytest.mark.parametrize("semivalue", SEMIVALUES, ids=str)
def test_strata_hold_all_sizes(n, semivalue):
    design = MarginalDesign(
        size_weights(semivalue, n), np.minimum(np.full(n + 1, n), 30)
    )
    assert design.edges[0] == 0
    assert design.edges[-1] == n + 1
    assert (np.diff(design.edges) > 0).all()
    assert np.isclose(design.mass.sum(), 1)


@pytest.mark.parametrize("count", [1, 3, 10, 50])
def test_players_are_drawn_with_the_stated_probabilities(count):
    rng = np.random.default_rng(0)
    lengths = np.r_[rng.exponential(size=20), 0, 5, np.inf]
    drawn = np.zeros(len(lengths))
    for _ in range(1000):
        players, probabilities = draw_players(lengths, count, rng)
        drawn[players] += 1
    assert np.isclose(probabilities.sum(), min(count, len(lengths)))
    assert np.allclose(drawn / 1000, probabilities, atol=0.06)
    assert (drawn[probabilities == 1] == 1000).all()
