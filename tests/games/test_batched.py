"""Batched solvers give what the loop gives."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, matthews_corrcoef

from skvalue.games import ModelGame
from skvalue.games._answers import SOLVED

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

EXACT = dict(tol=1e-12, max_iter=5000)


def coalitions(rng, n, kind):
    """A permutation, random ones, leave-one-out, and small ones."""
    if kind == "permutation":
        order = rng.permutation(n)
        return np.argsort(order)[None] <= np.arange(n)[:, None]
    if kind == "random":
        return rng.random((20, n)) < rng.random((20, 1))
    if kind == "leave-one-out":
        return ~np.eye(n, dtype=bool)
    masks = np.zeros((40, n), dtype=bool)
    for mask in masks:
        mask[rng.choice(n, rng.integers(1, 6), replace=False)] = True
    return np.unique(masks, axis=0)


KINDS = ["permutation", "random", "leave-one-out", "small"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def classes(n_classes, seed=0):
    if n_classes == 3:
        X, y = load_iris(return_X_y=True)
    else:
        X, y = make_classification(160, 5, n_informative=4, n_redundant=0, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order], np.array(["b", "a", "c"])[y[order]]
    return X[:50], y[:50], X[50:], y[50:]


def targets(n_features=5):
    X, y = make_regression(90, n_features, noise=20.0, random_state=0)
    return X[:40] + 3, y[:40] / 50, X[40:] + 3, y[40:] / 50


def check_equal(estimator, data, masks, tolerance=1e-6, **parameters):
    """The batched game equals the loop; return it."""
    batched = ModelGame(estimator, *data, **parameters)
    loop = ModelGame(estimator, *data, batch="never", **parameters)
    assert loop.solver == "loop"
    assert batched.solver != "loop"
    np.testing.assert_allclose(batched.utility(masks), loop.utility(masks), atol=tolerance)
    assert batched.n_failed == loop.n_failed
    assert np.ptp(batched.utility(masks)) > 0
    return batched


@each_kind
@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "balanced_accuracy"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true")
def test_logistic(n_classes, scoring, kind, rng):
    data = classes(n_classes)
    masks = coalitions(rng, 50, kind)
    model = LogisticRegression(solver="newton-cholesky", **EXACT)
    assert check_equal(model, data, masks, scoring=scoring).solver == "logistic"


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_brier_score", make_scorer(matthews_corrcoef)])
def test_logistic_with_any_scorer(scoring, rng):
    masks = coalitions(rng, 50, "permutation")
    model = LogisticRegression(solver="newton-cholesky", **EXACT)
    if scoring == "neg_brier_score":
        y_as_numbers = [part if part.ndim == 2 else (part == "a") * 1 for part in classes(2)]
        check_equal(model, y_as_numbers, masks, scoring=scoring, empty_utility=-0.25)
    else:
        check_equal(model, classes(2), masks, scoring=scoring, empty_utility=0)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "parameters", [{"C": 100.0}, {"C": 1e-3}, {"fit_intercept": False}, {"solver": "lbfgs"}]
)
def test_logistic_parameters(n_classes, parameters, rng):
    masks = np.concatenate([coalitions(rng, 50, kind) for kind in KINDS])
    model = LogisticRegression(**{"solver": "newton-cholesky", **EXACT, **parameters})
    check_equal(model, classes(n_classes), masks, scoring="neg_log_loss")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_weights_and_groups(n_classes, rng):
    X, y, X_val, y_val = classes(n_classes)
    weights = rng.random(50) * 3
    weights[::7] = 0
    model = LogisticRegression(solver="newton-cholesky", **EXACT)
    check_equal(
        model, (X, y, X_val, y_val), rng.random((30, 10)) < 0.5, scoring="neg_log_loss",
        sample_weight=weights, groups=np.arange(50) % 10,
        sample_weight_val=rng.random(len(y_val)),
    )  # fmt: skip


def test_logistic_of_rows_on_all_scales(rng):
    # scikit-learn's own solvers may give up here: the better of them is the measure.
    X, y, X_val, y_val = classes(2)
    X = X * [1e-3, 1, 1, 30, 1e3] + [0, 1, 100, 0, 0]
    masks = np.concatenate([coalitions(rng, 50, kind) for kind in ("permutation", "random")])
    game = ModelGame(LogisticRegression(C=1e3), X, y, X, y)
    game.utility(masks)
    solver = game._solver
    coefs, status = solver._solve(masks, solver.y == 1, solver._start)
    assert (status == SOLVED).mean() > 0.9

    def loss(coef, rows):
        z = solver.X[rows] @ coef
        return np.sum(np.logaddexp(0, z) - z * (solver.y[rows] == 1)) + coef[:-1] @ coef[:-1] / 2e3

    for mask, coef in zip(masks[status == SOLVED], coefs[status == SOLVED]):
        best = min(
            loss(np.r_[model.coef_[0], model.intercept_], mask)
            for name in ("newton-cholesky", "lbfgs")
            for model in [LogisticRegression(C=1e3, solver=name, **EXACT).fit(X[mask], y[mask])]
        )
        assert loss(coef, mask) <= best + 1e-9 * (1 + best)


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": np.inf},
        {"class_weight": "balanced"},
        {"l1_ratio": 0.5, "solver": "saga"},
        {"solver": "liblinear"},
        {"warm_start": True},
    ],
)
def test_what_logistic_leaves_to_the_loop(parameters):
    assert ModelGame(LogisticRegression(**parameters), *classes(2)).solver == "loop"


def test_subclasses_and_strange_scorers_are_left_to_the_loop():
    class Mine(LogisticRegression):
        pass

    assert ModelGame(Mine(), *classes(2)).solver == "loop"
    scored = ModelGame(
        LogisticRegression(), *classes(2), scoring=lambda m, X, y: m.coef_[0, 0], empty_utility=0
    )
    assert scored.solver == "loop"
    assert ModelGame(LogisticRegression(), *classes(2), batch="never").solver == "loop"


@pytest.mark.parametrize("n_jobs", [2, None])
def test_same_bits_for_any_workers(n_jobs, rng):
    masks = np.concatenate([coalitions(rng, 50, kind) for kind in KINDS] * 4)
    one = ModelGame(LogisticRegression(), *classes(2), scoring="neg_log_loss", n_jobs=1)
    many = ModelGame(LogisticRegression(), *classes(2), scoring="neg_log_loss", n_jobs=n_jobs)
    expected = one.utility(masks)
    np.testing.assert_array_equal(many.utility(masks), expected)
    np.testing.assert_array_equal(one.utility(masks), expected)  # and when asked again
