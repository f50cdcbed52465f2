"""Semivalues from the contributions of all players to few coalitions."""

from itertools import product
from typing import NamedTuple

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
TWO_ROWS_EACH = {"groups": np.arange(2 * N) % N}
ALL_SEMIVALUES = pytest.mark.parametrize("semivalue", SEMIVALUES, ids=str)


class Trained(NamedTuple):
    """A game of retraining: estimator, scoring, number of classes, and options."""

    estimator: object = LogisticRegression()
    scoring: str = "neg_log_loss"
    n_classes: int = 2
    options: dict = {}


TRAINED = {
    "two classes": Trained(),
    "three classes": Trained(n_classes=3),
    "Brier": Trained(scoring="neg_brier_score"),
    "accuracy": Trained(scoring="accuracy"),
    "accuracy, three classes": Trained(scoring="accuracy", n_classes=3),
    "accuracy, groups": Trained(scoring="accuracy", options=TWO_ROWS_EACH),
    "accuracy, groups of three classes": Trained(
        scoring="accuracy", n_classes=3, options=TWO_ROWS_EACH
    ),
    "ridge": Trained(Ridge(), "r2", n_classes=0),
    "groups": Trained(options=TWO_ROWS_EACH),
    "rare class": Trained(),
    "duplicated rows": Trained(),
    "separable": Trained(LogisticRegression(C=1e3)),
    "zero weight": Trained(options={"sample_weight": np.r_[0.0, np.ones(N - 1)]}),
}


class Table(NamedTuple):
    """Utilities of all coalitions (2^n,), 0 of no players.

    Contributions of all players to them, steps, and the lengths of these, (2^n, n).
    """

    utilities: np.ndarray
    exact: np.ndarray
    steps: np.ndarray
    lengths: np.ndarray


def concave_utilities():
    """Utilities that are concave in the size, with noise."""
    rng = np.random.default_rng(0)
    strength = COALITIONS @ rng.uniform(0.5, 2, N)
    return np.sqrt(strength) + 0.1 * rng.normal(size=2**N) * (strength > 0)


def exact_contributions(utilities):
    """What every player adds to every coalition, (2^n, n)."""
    codes = (COALITIONS @ CODES)[:, None]
    return utilities[codes | CODES] - utilities[codes & ~CODES]


def table_of(kind):
    """The table of a kind of steps, or of a game of retraining."""
    if kind in TRAINED:
        return trained_table(kind)
    utilities = concave_utilities()
    exact = exact_contributions(utilities)
    unknown = np.full_like(exact, np.inf)
    if kind == "exact":
        return Table(utilities, exact, exact, unknown)
    if kind == "unknown":
        return Table(utilities, exact, np.zeros_like(exact), unknown)
    if kind == "wrong sign":
        return Table(utilities, exact, -exact, np.abs(exact))
    errors = 0.1 * np.random.default_rng(1).normal(size=exact.shape)
    return Table(utilities, exact, exact + errors, np.abs(errors))


def trained_table(kind):
    """The table of a game of retraining."""
    estimator, scoring, n_classes, options = TRAINED[kind]
    n = 2 * N if "groups" in options else N
    noise = 1e-3 if kind == "separable" else 1.0
    X, y, X_val, y_val = noisy_line(0, n=n, d=2, n_classes=n_classes, noise=noise)
    if kind == "rare class":
        y = (np.arange(n) == 0).astype(int)
    if kind == "duplicated rows":
        X = X[np.arange(n) // 3]
        y = y[np.arange(n) // 3]
    game = ModelGame(estimator, X, y, X_val, y_val, scoring=scoring, **options)
    utilities = np.full(2**N, game.empty_utility)
    utilities[1:] = game.utility(COALITIONS[1:])

    # Those to the empty coalition are exact.
    exact = exact_contributions(utilities)
    marginal = MarginalGame(game)
    steps = [exact[0]]
    lengths = [np.zeros(N)]
    for mask in COALITIONS[1:]:
        of_coalition, of_steps = marginal.steps(mask)
        steps.append(of_coalition)
        lengths.append(of_steps)
    return Table(utilities - utilities[0], exact, np.array(steps), np.array(lengths))


def play(design, table):
    """Tell a design the answers of a table, up to its last block.

    As many players as the design wants are trained for real.
    """
    while (masks := design.ask()) is not None:
        codes = masks @ CODES
        if design.full is None:
            design.tell(table.utilities[codes])
            continue
        answers = []
        for code, mask, rng in zip(codes, masks, design.generators(len(masks))):
            exact = table.exact[code]
            n_trained = design.n_trained[mask.sum()]
            if n_trained == N:
                answers.append((exact, np.zeros(N)))
                continue
            players, probabilities = draw_players(table.lengths[code], n_trained, rng)
            corrected = corrections(
                table.steps[code], players, probabilities, exact[players]
            )
            answers.append(corrected)
        design.tell(np.stack(answers, axis=1))


class Replicates(NamedTuple):
    """Values, their variances and corrections over seeds, and the true values."""

    values: np.ndarray
    variances: np.ndarray
    corrections: np.ndarray
    exact: np.ndarray


def replicates(semivalue, kind, n_seeds, n_blocks=2):
    table = table_of(kind)
    q = size_weights(semivalue, N)
    n_trained = np.array([N, N, *[3] * (N - 1)])
    designs = []
    for seed in range(n_seeds):
        design = MarginalDesign(q, n_trained, "accuracy" not in kind, seed=seed)
        design.limit = 1 + n_blocks * design.cost
        play(design, table)
        assert design.block == n_blocks
        designs.append(design)
    return Replicates(
        values=np.array([design.values() for design in designs]),
        variances=np.array([design.variances()[0] for design in designs]),
        corrections=np.array([design.correction for design in designs]),
        exact=tabulated_semivalue(table.utilities, lambda _: q),
    )


def check_unbiased(replicates):
    errors = replicates.values - replicates.exact
    variances = replicates.variances
    spread = np.maximum(errors.std(axis=0, ddof=1), 1e-12)
    t = errors.mean(axis=0) / (spread / np.sqrt(len(errors)))
    assert np.sqrt(np.mean(t**2)) < 2
    varies = variances > 1e-15  # else errors of solvers, of a row without weight
    assert (np.abs(errors[~varies]) < 1e-6).all()
    assert 0.8 < np.mean(errors[varies] ** 2 / variances[varies]) < 1.4
    assert 0.8 < np.sqrt(variances.mean() / np.mean(errors**2)) < 1.5


@pytest.mark.parametrize(
    ("kind", "semivalue"),
    [
        ("exact", "shapley"),
        ("noisy", "banzhaf"),
        ("wrong sign", "shapley"),
        ("unknown", "banzhaf"),
        ("accuracy, three classes", "shapley"),
    ],
)
def test_values_and_variances_are_unbiased(kind, semivalue):
    check_unbiased(replicates(semivalue, kind, 40))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "semivalue"),
    [*product(STEPS, SEMIVALUES), *product(TRAINED, SEMIVALUES[:2])],
    ids=str,
)
def test_values_and_variances_are_unbiased_over_many_seeds(kind, semivalue):
    check_unbiased(replicates(semivalue, kind, 300, 8))


def test_exact_steps_have_no_corrections():
    assert not replicates("shapley", "exact", 4).corrections.any()


def test_steps_of_the_wrong_sign_have_corrections_as_large_as_values():
    runs = replicates("shapley", "wrong sign", 4)
    assert runs.corrections.mean() > 0.2 * runs.values.mean()


def test_shapley_values_sum_to_the_gain():
    values = replicates("shapley", "noisy", 2, 1).values
    assert np.allclose(values.sum(axis=1), concave_utilities()[-1])


def test_larger_budgets_have_smaller_errors():
    few = replicates("shapley", "noisy", 6, n_blocks=1).variances.mean()
    many = replicates("shapley", "noisy", 6, n_blocks=9).variances.mean()
    assert 6 < few / many < 14


def shapley_design(table):
    """A design of Shapley values that trains all players, after twelve blocks."""
    q = size_weights("shapley", N)
    design = MarginalDesign(q, np.full(N + 1, N), seed=3)
    design.limit = 1 + 12 * design.cost
    play(design, table)
    return design


@ALL_SEMIVALUES
def test_another_semivalue_follows_from_the_same_contributions(semivalue):
    table = table_of("exact")
    q = size_weights(semivalue, N)
    reweighted, drawn, own = shapley_design(table).reweighted(q)
    errors = reweighted.values() - tabulated_semivalue(table.utilities, lambda _: q)
    variances, _ = reweighted.variances()
    assert np.sqrt(np.mean(errors**2 / variances)) < 2
    assert own > 0
    assert drawn > 0


def test_the_same_semivalue_has_the_same_values():
    design = shapley_design(table_of("exact"))
    reweighted, _, _ = design.reweighted(size_weights("shapley", N))
    assert np.allclose(reweighted.values(), design.values(), atol=1e-6)


def test_semivalues_of_sizes_that_were_not_drawn_are_refused():
    n = 400
    design = MarginalDesign(size_weights("banzhaf", n), np.full(n + 1, n), seed=3)
    design.limit = 1 + design.cost
    while (masks := design.ask()) is not None:
        is_first = design.full is None
        answers = np.zeros(len(masks)) if is_first else np.zeros((2, len(masks), n))
        design.tell(answers)
    with pytest.raises(ValueError, match="drawn too rarely"):
        design.reweighted(size_weights("shapley", n))


@pytest.mark.parametrize("n", [2, 3, 10, 1000, 20_000])
@ALL_SEMIVALUES
def test_strata_hold_all_sizes(n, semivalue):
    n_trained = np.full(n + 1, min(n, 30))
    design = MarginalDesign(size_weights(semivalue, n), n_trained)
    assert design.edges[0] == 0
    assert design.edges[-1] == n + 1
    assert (np.diff(design.edges) > 0).all()
    assert np.isclose(design.mass.sum(), 1)


@pytest.mark.parametrize("count", [1, 3, 10, 50])
def test_players_are_drawn_with_the_stated_probabilities(count):
    rng = np.random.default_rng(0)
    lengths = np.r_[rng.exponential(size=20), 0, 5, np.inf]
    n_drawn = np.zeros(len(lengths))
    for _ in range(1000):
        players, probabilities = draw_players(lengths, count, rng)
        n_drawn[players] += 1
    assert np.isclose(probabilities.sum(), min(count, len(lengths)))
    assert np.allclose(n_drawn / 1000, probabilities, atol=0.06)
    assert (n_drawn[probabilities == 1] == 1000).all()
