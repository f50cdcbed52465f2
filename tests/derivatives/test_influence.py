"""Derivatives by weights and Newton steps, against models of scikit-learn that are
fitted again."""

import numpy as np
import pytest
from problems import noisy_line
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    GammaRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from skvalue.derivatives import (
    AccuracyGap,
    Hessian,
    changes_without,
    corrected_steps,
    evaluate,
    linear_model,
    newton_steps,
    row_products,
    supports,
)

EXACT = {"tol": 1e-12, "max_iter": 10_000, "solver": "newton-cholesky"}
# Name -> (estimator, number of classes; 0 is a regression).
MODELS = {
    "binary": (LogisticRegression(C=0.7, **EXACT), 2),
    "weighted-classes": (LogisticRegression(class_weight={0: 2.0, 1: 0.5}, **EXACT), 2),
    "no-penalty": (LogisticRegression(C=np.inf, **EXACT), 2),
    "liblinear": (
        LogisticRegression(intercept_scaling=2.0, **(EXACT | {"solver": "liblinear"})),
        2,
    ),
    "multiclass": (LogisticRegression(**EXACT), 4),
    "no-intercept": (LogisticRegression(fit_intercept=False, **EXACT), 3),
    "ridge": (Ridge(alpha=2.0), 0),
    "least-squares": (LinearRegression(), 0),
    "ridge-classifier": (RidgeClassifier(alpha=0.5), 2),
    "ridge-classifier-3": (RidgeClassifier(class_weight={0: 1, 1: 2, 2: 0.5}), 3),
    "poisson": (PoissonRegressor(alpha=0.1, **EXACT), 0),
    "gamma": (GammaRegressor(alpha=0.1, **EXACT), 0),
    "kernel-ridge": (KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3), 0),
    "kernel-ridge-polynomial": (KernelRidge(alpha=2.0, kernel="poly", degree=2), 0),
}
REGRESSIONS = ("ridge", "poisson", "kernel-ridge")
by_name = pytest.mark.parametrize("name", MODELS)


def problem(name, n=200, n_points=40, d=4):
    estimator, n_classes = MODELS[name]
    n = min(n, 80) if "kernel" in name else n
    X, y, X_val, y_val = noisy_line(0, n, n_points, d, n_classes, coef=(1.0, -0.5))
    if name in ("poisson", "gamma"):
        y, y_val = np.exp(0.3 * y), np.exp(0.3 * y_val)
    return estimator, X, y, X_val, y_val


def decisions(estimator, X):
    """Decisions (n, K) by the methods of scikit-learn."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    if hasattr(last, "decision_function"):
        z = estimator.decision_function(X)
    else:
        z = estimator.predict(X)
        z = np.log(z) if isinstance(last, (PoissonRegressor, GammaRegressor)) else z
    z = z.reshape(len(z), -1)
    return z - z.mean(axis=1, keepdims=True) if z.shape[1] > 1 else z


def centred(z):
    return z - z.mean(axis=-1, keepdims=True) if z.shape[-1] > 1 else z


@by_name
def test_decisions_and_optimum_are_those_of_scikit_learn(name):
    estimator, X, y, X_val, _ = problem(name)
    fitted = clone(estimator).fit(X, y)
    model = linear_model(fitted, X, y)
    found = centred(model.design(X_val) @ model.theta)
    np.testing.assert_allclose(found, decisions(fitted, X_val), atol=1e-7)
    penalty = model.penalty + model.weights.sum() * model.row_penalty
    gradient = model.X.T @ model.gradient() + penalty[:, None] * model.theta
    assert np.abs(gradient).max() < 1e-5


@by_name
def test_derivative_by_weights_equals_central_differences(name):
    estimator, X, y, X_val, _ = problem(name, n=60)
    rng, weights = (
        np.random.default_rng(1),
        np.random.default_rng(2).uniform(0.5, 1.5, 60),
    )

    def fitted(weights):
        return clone(estimator).fit(X, y, sample_weight=weights)

    model = linear_model(fitted(weights), X, y, weights)
    points = model.design(X_val)
    slopes = rng.normal(size=(len(X_val), model.theta.shape[1]))
    slopes -= slopes.mean(axis=1, keepdims=True) * (slopes.shape[1] > 1)
    direction = Hessian(model).solve((points.T @ slopes).T[None])
    rows = [0, 7, 31]
    found = -row_products(model, direction)[0][rows] / weights[rows]
    step, expected = 1e-4, []
    for row in rows:
        change = step * (np.arange(60) == row)
        difference = decisions(fitted(weights + change), X_val)
        difference = difference - decisions(fitted(weights - change), X_val)
        expected.append((slopes * difference).sum() / (2 * step))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@by_name
def test_newton_steps_against_refits(name):
    estimator, X, y, X_val, _ = problem(name)
    fitted = clone(estimator).fit(X, y)
    model = linear_model(fitted, X, y)
    hessian = Hessian(model, model.weights.mean())
    rows = np.arange(0, len(y), 40)
    steps = newton_steps(
        model, hessian, model.X[rows], model.gradient(rows), model.curvature(rows),
        model.weights[rows],
    )  # fmt: skip
    corrected = corrected_steps(model, hessian, steps, rows=rows)
    first, second = (
        centred(model.design(X_val) @ np.moveaxis(s, 2, 1)) for s in (steps, corrected)
    )
    before, exact = decisions(fitted, X_val), []
    for row in rows:
        rest = np.arange(len(y)) != row
        exact.append(decisions(clone(estimator).fit(X[rest], y[rest]), X_val) - before)
    least_squares = "ridge" in name or "least" in name
    errors = [
        np.abs(found - exact).max() / np.abs(exact).max() for found in (first, second)
    ]
    assert errors[0] < (1e-8 if least_squares else 0.1)
    assert errors[1] < (1e-8 if least_squares else 0.02)


@by_name
def test_a_newton_step_without_a_group(name):
    estimator, X, y, X_val, _ = problem(name)
    fitted = clone(estimator).fit(X, y)
    model, gone = linear_model(fitted, X, y), np.arange(20)
    (step,) = changes_without(model, Hessian(model), [gone])
    found = centred(model.design(X_val) @ step.T)
    exact = decisions(clone(estimator).fit(X[20:], y[20:]), X_val) - decisions(
        fitted, X_val
    )
    least_squares = "ridge" in name or "least" in name
    scale = np.abs(exact).max()
    assert np.abs(found - exact).max() < (1e-8 if least_squares else 0.25) * scale


@pytest.mark.parametrize("name", ["binary", "multiclass", "ridge", "poisson"])
def test_sparse_rows_and_pipelines(name):
    estimator, X, y, X_val, _ = problem(name, n=50)
    X, X_val = (np.where(np.abs(part) > 0.5, part, 0) for part in (X, X_val))
    dense = linear_model(clone(estimator).fit(X, y), X, y)
    rows = sparse.csr_array(X)
    lean = linear_model(clone(estimator).fit(X, y), rows, y)
    assert sparse.issparse(lean.X)
    assert sparse.issparse(lean.design(rows[:3]))
    direction = np.random.default_rng(0).normal(size=(2, *dense.theta.T.shape))
    direction -= direction.mean(axis=1, keepdims=True) * (direction.shape[1] > 1)
    np.testing.assert_allclose(
        Hessian(lean).solve(direction), Hessian(dense).solve(direction)
    )
    np.testing.assert_allclose(
        row_products(lean, direction), row_products(dense, direction)
    )
    pipeline = make_pipeline(
        PolynomialFeatures(2, include_bias=False), clone(estimator)
    )
    pipeline.fit(X, y)
    model = linear_model(pipeline, X, y)
    z = centred(model.design(X_val) @ model.theta)
    np.testing.assert_allclose(z, decisions(pipeline, X_val), atol=1e-9)
    assert supports(pipeline)


@pytest.mark.parametrize("name", ["binary", "multiclass", "ridge", "gamma"])
def test_conjugate_gradients_store_no_hessian(name):
    estimator, X, y, *_ = problem(name, n=80)
    model = linear_model(clone(estimator).fit(X, y), X, y)
    right = np.array([model.X[:3].T @ model.gradient(slice(3))]).swapaxes(1, 2)
    exact = Hessian(model).solve(right)
    with config_context(working_memory=0):
        hessian = Hessian(model)
    assert hessian.solver == "cg"
    found = hessian.solve(right)
    np.testing.assert_allclose(found, exact, atol=1e-8 * np.abs(exact).max())
    np.testing.assert_allclose(hessian.product(found), right, atol=1e-8)


def smooth(z):
    return z.mean() ** 2, np.full(z.shape, 2 * z.mean() / z.size)


@pytest.mark.parametrize(
    ("name", "utility"),
    [
        *((name, "neg_loss") for name in MODELS),
        *(
            (name, score)
            for name in REGRESSIONS
            for score in ("neg_mean_squared_error", "r2")
        ),
        ("binary", "accuracy"),
        ("multiclass", "accuracy"),
        ("ridge-classifier-3", "accuracy"),
        ("binary", "roc_auc"),
        ("binary", AccuracyGap(np.arange(40) % 3)),
        ("multiclass", AccuracyGap(np.arange(40) % 2)),
        ("ridge", lambda z, y, weights: smooth(z)),
    ],
)
def test_gradients_of_utilities(name, utility):
    estimator, X, y, X_val, y_val = problem(name, n=60)
    model = linear_model(clone(estimator).fit(X, y), X, y)
    z = model.design(X_val) @ model.theta
    weights = np.random.default_rng(0).random(40)
    weights /= weights.sum()
    points, value, gradient = evaluate(utility, model, z, y_val, weights)
    assert points is None or value == pytest.approx(weights @ points)
    direction, step = np.random.default_rng(1).normal(size=z.shape), 1e-5
    above, below = (
        evaluate(utility, model, z + sign * step * direction, y_val, weights)[1]
        for sign in (1, -1)
    )
    expected = (above - below) / (2 * step)
    assert (gradient * direction).sum() == pytest.approx(expected, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_scores_of_targets_are_those_of_scikit_learn(name):
    estimator, X, y, X_val, y_val = problem(name, n=60)
    fitted = clone(estimator).fit(X, y)
    model = linear_model(fitted, X, y)
    z, weights = model.design(X_val) @ model.theta, np.random.default_rng(0).random(40)
    weights /= weights.sum()
    given = y_val, fitted.predict(X_val)
    for utility, score in (
        ("r2", r2_score(*given, sample_weight=weights)),
        ("neg_mean_squared_error", -mean_squared_error(*given, sample_weight=weights)),
    ):
        assert evaluate(utility, model, z, y_val, weights)[1] == pytest.approx(score)
    with pytest.raises(ValueError, match="'r2' needs y_val of at least two values"):
        evaluate("r2", model, z, np.ones(40), weights)


def test_smoothed_scores_approach_the_scores():
    estimator, X, y, X_val, y_val = problem("binary")
    model = linear_model(clone(estimator).fit(X, y), X, y)
    z, weights = model.design(X_val) @ model.theta, np.full(40, 1 / 40)
    from sklearn.metrics import accuracy_score, roc_auc_score

    for utility, score in [
        ("accuracy", accuracy_score(y_val, z[:, 0] > 0)),
        ("roc_auc", roc_auc_score(y_val, z[:, 0])),
    ]:
        assert evaluate(utility, model, 1e6 * z, y_val, weights)[1] == pytest.approx(
            score
        )


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Lasso(), "estimator must be one of LogisticRegression"),
        (
            LogisticRegression(l1_ratio=0.5, solver="saga"),
            "estimator must have an L2 penalty",
        ),
        (Ridge(positive=True), "positive=False"),
        (KernelRidge(kernel="precomputed"), "kernel must not be 'precomputed'"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_has_no_derivatives_is_refused(estimator, message):
    X = np.eye(6)
    y = np.arange(6) % 2
    with pytest.raises(ValueError, match=message):
        linear_model(estimator.fit(X, y), X, y)


def test_no_unique_optimum():
    X = np.random.default_rng(0).normal(size=(5, 8))
    model = linear_model(LinearRegression().fit(X, X[:, 0]), X, X[:, 0])
    with pytest.raises(ValueError, match="estimator must have a unique optimum"):
        Hessian(model)
