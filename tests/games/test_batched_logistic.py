"""Logistic regression in batches gives what the loop gives."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, matthews_corrcoef

from skvalue.games import ModelGame
from skvalue.games.solvers import SOLVED

from .batched import (
    EXACT,
    KINDS,
    check_equal,
    classes,
    coalitions,
    each_kind,
    of_all_kinds,
    spread,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MODEL = LogisticRegression(solver="newton-cholesky", **EXACT)


@each_kind
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_coalitions_of_any_kind_are_those_of_the_loop(n_classes, kind, rng):
    masks = spread(coalitions(rng, 50, kind), 12)
    for scoring in (None, "neg_log_loss", "balanced_accuracy"):
        game = check_equal(MODEL, classes(n_classes), masks, scoring=scoring)
        assert game.solver == "logistic"


@pytest.mark.parametrize(
    "scoring", ["roc_auc", "neg_brier_score", make_scorer(matthews_corrcoef)]
)
def test_any_scorer_is_that_of_the_loop(scoring, rng):
    masks = spread(coalitions(rng, 50, "permutation"), 12)
    X, y, X_val, y_val = classes(2)
    if scoring == "neg_brier_score":  # the labels that it takes
        y = (y == "a") * 1
        y_val = (y_val == "a") * 1
    data = X, y, X_val, y_val
    check_equal(MODEL, data, masks, scoring=scoring, empty_utility=0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("n_features", "unit", "C"),
    [
        (1, 1.0, 1.0),
        (1, 1.0, 1e4),
        (1, 1.0, 1e6),
        (1, 1e4, 0.1),
        (3, 1.0, 1.0),
        (3, 1.0, 1e4),
        (3, 1e4, 1e-3),
    ],
)
@pytest.mark.filterwarnings("ignore:Models of as few rows as columns")
def test_coalitions_after_separable_ones_are_those_of_a_call_of_their_own(
    n_features, unit, C, n_classes
):
    # Of seven rows most coalitions are separable: their probabilities are 0 or 1, which
    # a row of another class that joins them contradicts.
    masks = (np.arange(1, 2**7)[:, None] >> np.arange(7)) % 2 == 1
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(scale=unit, size=(7, n_features))
        y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=7 - n_classes)]
        model = LogisticRegression(C=C)
        game = ModelGame(model, X, y, X, y, scoring="neg_log_loss")
        assert game.solver == "logistic"
        utilities = game.utility(masks)
        alone = np.concatenate([game.utility(mask[None]) for mask in masks])
        np.testing.assert_allclose(utilities, alone, atol=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "parameters",
    [{"C": 100.0}, {"C": 1e-3}, {"fit_intercept": False}, {"solver": "lbfgs"}],
    ids=str,
)
def test_any_parameters_are_those_of_the_loop(n_classes, parameters, rng):
    masks = of_all_kinds(rng, 50, 4)
    model = LogisticRegression(**{"solver": "newton-cholesky", **EXACT, **parameters})
    check_equal(model, classes(n_classes), masks, scoring="neg_log_loss")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_and_groups_are_those_of_the_loop(n_classes, rng):
    data = classes(n_classes)
    weights = rng.random(50) * 3
    weights[::7] = 0
    check_equal(
        MODEL,
        data,
        rng.random((12, 10)) < 0.5,
        scoring="neg_log_loss",
        sample_weight=weights,
        groups=np.arange(50) % 10,
        sample_weight_val=rng.random(len(data[3])),
    )


def test_more_columns_than_rows_are_those_of_the_loop(rng):
    _, y, _, y_val = classes(2)  # more classes have no batched solver for them
    X = rng.normal(size=(50, 150))
    X_val = rng.normal(size=(len(y_val), 150))
    weights = rng.random(50) * 3
    weights[::7] = 0
    masks = rng.random((4, 50)) < 0.5
    data = X, y, X_val, y_val
    check_equal(MODEL, data, masks, scoring="neg_log_loss", sample_weight=weights)


def test_objectives_of_columns_on_all_scales_are_minimal(rng):
    # scikit-learn's own solvers may give up here: the better of them is the measure.
    X, y, _, _ = classes(2)
    X = X * [1e-3, 1, 1, 30, 1e3] + [0, 1, 100, 0, 0]
    masks = coalitions(rng, 50, "permutation")
    game = ModelGame(LogisticRegression(C=1e3), X, y, X, y)
    game.utility(masks)
    solver = game._solver
    coefs, status = solver.engine.solve(masks, solver.counts(masks))
    is_solved = status == SOLVED
    assert is_solved.mean() > 0.9

    def objective(coef, rows):
        z = solver.X[rows] @ coef
        losses = np.logaddexp(0, z) - z * (solver.y[rows] == 1)
        return np.sum(losses) + coef[:-1] @ coef[:-1] / 2e3

    def objective_of_scikit_learn(name, rows):
        model = LogisticRegression(C=1e3, solver=name, **EXACT).fit(X[rows], y[rows])
        return objective(np.r_[model.coef_[0], model.intercept_], rows)

    solved_masks = spread(masks[is_solved], 5)
    solved_coefs = spread(coefs[is_solved, 0], 5)
    for mask, coef in zip(solved_masks, solved_coefs):
        best = min(
            objective_of_scikit_learn(name, mask)
            for name in ("newton-cholesky", "lbfgs")
        )
        assert objective(coef, mask) <= best + 1e-9 * (1 + best)


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": np.inf},
        {"class_weight": "balanced"},
        {"l1_ratio": 0.5, "solver": "saga"},
        {"solver": "liblinear"},
        {"warm_start": True},
    ],
    ids=str,
)
def test_parameters_without_a_batched_solver_are_left_to_the_loop(parameters):
    assert ModelGame(LogisticRegression(**parameters), *classes(2)).solver == "loop"


def test_subclasses_are_left_to_the_loop():
    class Subclass(LogisticRegression):
        pass

    assert ModelGame(Subclass(), *classes(2)).solver == "loop"


def test_scorers_of_the_model_itself_are_left_to_the_loop():
    def first_coefficient(model, X, y):
        return model.coef_[0, 0]

    game = ModelGame(
        LogisticRegression(), *classes(2), scoring=first_coefficient, empty_utility=0
    )
    assert game.solver == "loop"


def test_nothing_is_batched_with_batch_never():
    assert ModelGame(LogisticRegression(), *classes(2), batch="never").solver == "loop"


@pytest.mark.parametrize("n_jobs", [2, None])
def test_utilities_have_the_same_bits_for_any_workers(n_jobs, rng):
    masks = np.concatenate([coalitions(rng, 50, kind) for kind in KINDS * 4])
    options = {"scoring": "neg_log_loss"}
    one = ModelGame(LogisticRegression(), *classes(2), **options, n_jobs=1)
    many = ModelGame(LogisticRegression(), *classes(2), **options, n_jobs=n_jobs)
    expected = one.utility(masks)
    np.testing.assert_array_equal(many.utility(masks), expected)
    np.testing.assert_array_equal(one.utility(masks), expected)  # and once more
    n_nonempty = np.count_nonzero(masks.any(axis=1))
    assert one.n_evaluations == 2 * n_nonempty  # nothing is kept in memory
