"""Leave-one-out without retraining, against models that are fitted again."""

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import LeaveOneOutValuer

from ..problems import noisy_line

EXACT = {"tol": 1e-10, "max_iter": 10_000}
LOGISTIC = {**EXACT, "solver": "newton-cholesky"}


def log_loss(model, X, y):
    """Minus the log-loss, without the checks of scikit-learn."""
    is_label = np.asarray(y)[:, None] == model.classes_
    return np.log(model.predict_proba(X)[is_label]).mean()


class Case(NamedTuple):
    """An estimator without a batched solver, on a problem of its kind."""

    estimator: object
    scoring: object
    n_classes: int = 0  # 0 is a regression
    n: int = 20
    is_sparse: bool = False
    is_positive: bool = False

    @property
    def problem(self):
        problem = noisy_line(
            0, self.n, 50, 4, self.n_classes, (1.0, -0.5), names=["a", "b", "c"]
        )
        if self.is_positive:
            y = np.exp(0.3 * problem.y)
            problem = problem._replace(y=y, y_val=np.exp(0.3 * problem.y_val))
        if self.is_sparse:
            X = sparse.csr_array(problem.X)
            problem = problem._replace(X=X, X_val=sparse.csr_array(problem.X_val))
        return problem


CASES = {
    "no-penalty": Case(LogisticRegression(C=np.inf, **LOGISTIC), log_loss, 2, 40),
    "class-weight": Case(
        LogisticRegression(class_weight={"a": 2, "b": 1}, **LOGISTIC), log_loss, 2, 40
    ),
    "liblinear": Case(LogisticRegression(solver="liblinear", **EXACT), log_loss, 2, 40),
    "sparse-multiclass": Case(
        LogisticRegression(tol=1e-7, max_iter=10_000), log_loss, 3, 40, is_sparse=True
    ),
    "sparse-ridge": Case(Ridge(alpha=2.0, tol=1e-12), "r2", is_sparse=True),
    "sparse-least-squares": Case(
        LinearRegression(tol=1e-14), "neg_mean_squared_error", is_sparse=True
    ),
    "ridge-classifier": Case(RidgeClassifier(), "roc_auc", 2),
    "ridge-classifier-3": Case(RidgeClassifier(alpha=0.5), "accuracy", 3),
    "poisson": Case(
        PoissonRegressor(alpha=0.1, **LOGISTIC),
        "neg_mean_poisson_deviance",
        n=80,
        is_positive=True,
    ),
    "gamma": Case(GammaRegressor(alpha=0.1, **LOGISTIC), None, n=40, is_positive=True),
    "kernel-ridge": Case(KernelRidge(alpha=0.5, kernel="rbf", gamma=0.2), "r2"),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_refits(name):
    estimator, scoring, *_ = CASES[name]
    problem = CASES[name].problem
    refit = problem.fit(LeaveOneOutValuer(estimator, method="refit", scoring=scoring))
    valuer = problem.fit(LeaveOneOutValuer(estimator, scoring=scoring))
    scale = np.abs(refit.values_).max()
    np.testing.assert_allclose(valuer.values_, refit.values_, atol=1e-4 * scale)
    assert valuer.utility_ == pytest.approx(refit.utility_, abs=1e-4 * scale)
    assert valuer.empty_utility_ == refit.empty_utility_
    assert valuer.n_evaluations_ == refit.n_evaluations_ == len(problem.y) + 1
    assert not refit.approximate_
    assert not valuer.approximate_


@pytest.mark.parametrize("name", CASES)
def test_auto_takes_newton_steps_where_they_save_time(name):
    estimator, scoring, *_ = CASES[name]
    problem = CASES[name].problem
    auto = problem.fit(LeaveOneOutValuer(estimator, scoring=scoring))
    newton = LeaveOneOutValuer(estimator, scoring=scoring, method="newton")
    np.testing.assert_array_equal(auto.values_, problem.fit(newton).values_)


@pytest.mark.parametrize(("seed", "n", "d"), [(3, 30, 2), (4, 40, 3)])
def test_no_value_depends_on_tol(seed, n, d):
    # Without some row, steps with the Hessian of all rows do not converge.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 40, d))
    y = (2 * X[:, 0] + 0.6 * rng.logistic(size=n + 40) > 0).astype(int)
    points = {"X_val": X[n:], "y_val": y[n:]}
    loose = LogisticRegression(C=np.inf, tol=1e-4, max_iter=10_000, solver="newton-cg")
    tight = LogisticRegression(C=np.inf, **LOGISTIC)
    valuer = LeaveOneOutValuer(loose, scoring=log_loss).fit(X[:n], y[:n], **points)
    refit = LeaveOneOutValuer(tight, method="refit", scoring=log_loss)
    refit.fit(X[:n], y[:n], **points)
    assert not valuer.approximate_
    np.testing.assert_allclose(valuer.values_, refit.values_, atol=1e-6)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"estimator": GaussianNB(), "batch": "never"},
        {"estimator": LogisticRegression(C=1.0, l1_ratio=1.0, solver="saga")},
        {"estimator": make_pipeline(StandardScaler(), LogisticRegression())},
        {"estimator": LogisticRegression(class_weight="balanced")},
        {"estimator": RidgeClassifier(), "method": "refit"},
        {"estimator": RidgeClassifier(), "batch": "never"},
        {"estimator": LogisticRegression(C=np.inf, max_iter=5)},
    ],
    ids=[
        "batched",
        "another-estimator",
        "no-derivative",
        "scaler",
        "balanced",
        "asked-for",
        "not-batched",
        "separable",
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::skvalue.exceptions.UnbatchedFitWarning")
def test_auto_trains_models_again_elsewhere(parameters, request):
    problem = CASES["ridge-classifier"].problem
    if "separable" in request.node.name:
        problem = problem._replace(y=np.where(problem.X[:, 0] > 0, "a", "b"))
    valuer = problem.fit(LeaveOneOutValuer(**parameters))
    assert valuer.approximate_ is False
    refit = problem.fit(clone(valuer).set_params(method="refit"))
    np.testing.assert_array_equal(valuer.values_, refit.values_)
    cost = valuer.estimate_cost(*problem.rows, **problem.points)
    assert "newton" not in cost.solver


class TestGroupsWithWeights:
    options = {
        "groups": np.arange(80) // 4,
        "sample_weight": np.random.default_rng(1).uniform(0.5, 2, 80),
    }

    def fit(self, method):
        estimator, scoring, *_ = CASES["poisson"]
        valuer = LeaveOneOutValuer(estimator, method=method, scoring=scoring)
        return CASES["poisson"].problem.fit(valuer, **self.options)

    def test_auto_trains_models_again(self):
        auto = self.fit("auto")
        np.testing.assert_array_equal(auto.values_, self.fit("refit").values_)

    def test_newton_steps_find_the_same_models(self):
        values = self.fit("refit").values_
        newton = self.fit("newton")
        np.testing.assert_allclose(newton.values_, values, atol=1e-4 * np.ptp(values))


def test_a_scaler_stays_that_of_all_rows():
    # The rows may as well be scaled before.
    estimator, *_ = CASES["poisson"]
    problem = CASES["poisson"].problem
    pipeline = make_pipeline(StandardScaler(), estimator)
    valuer = problem.fit(LeaveOneOutValuer(pipeline, method="newton"))
    assert valuer.approximate_
    scaler = StandardScaler().fit(problem.X)
    scaled = problem._replace(
        X=scaler.transform(problem.X), X_val=scaler.transform(problem.X_val)
    )
    of_scaled = scaled.fit(LeaveOneOutValuer(estimator))
    np.testing.assert_allclose(valuer.values_, of_scaled.values_, atol=1e-9)


X = np.random.default_rng(0).normal(size=(30, 3))
ONE_OF_A_CLASS = np.array(list("ab" * 14 + "ac"))
ONE_IN_A_COLUMN = np.c_[X, np.arange(30) == 7]


@pytest.mark.parametrize(
    ("model", "rows", "points"),
    [
        (RidgeClassifier(), (X, ONE_OF_A_CLASS), (X[:10] + 0.1, ONE_OF_A_CLASS[:10])),
        (
            LinearRegression(),
            (sparse.csr_array(ONE_IN_A_COLUMN), X[:, 0]),
            (ONE_IN_A_COLUMN[:9] + 0.1, X[:9, 0]),
        ),
    ],
    ids=["the only row of a class", "the only row of a column"],
)
def test_rows_without_which_there_is_no_such_model_are_refitted(model, rows, points):
    X_val, y_val = points
    newton = LeaveOneOutValuer(model, method="newton")
    newton.fit(*rows, X_val=X_val, y_val=y_val)
    refit = LeaveOneOutValuer(model, method="refit")
    refit.fit(*rows, X_val=X_val, y_val=y_val)
    np.testing.assert_allclose(newton.values_, refit.values_, atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "options", "message"),
    [
        (
            {"estimator": GaussianNB()},
            {},
            "estimator must be one of LogisticRegression",
        ),
        (
            {"batch": "never"},
            {},
            "batch and device must be 'auto' with method='newton'",
        ),
        ({"estimator": LogisticRegression(C=np.inf)}, {}, "estimator must"),
        (
            {},
            {"sample_weight": [0.0] + [1.0] * 19},
            "sample_weight must be positive",
        ),
    ],
    ids=["no-derivatives", "batch", "separable", "weight-zero"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_newton_refuses_models_without_a_unique_optimum(parameters, options, message):
    X, X_val = np.random.default_rng(0).normal(size=(2, 20, 2))
    valuer = LeaveOneOutValuer(**parameters, method="newton")
    with pytest.raises(ValueError, match=message):
        valuer.fit(X, X[:, 0] > 0, X_val=X_val, y_val=X_val[:, 0] > 0, **options)


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(C=-1.0), Ridge(-1.0), KernelRidge(-1.0)]
)
def test_newton_checks_the_parameters_of_the_estimator(estimator):
    X, X_val = np.random.default_rng(0).normal(size=(2, 20, 2))
    y, y_val = (np.sign(rows[:, 0]).astype(int) for rows in (X, X_val))
    valuer = LeaveOneOutValuer(estimator, method="newton")
    with pytest.raises(ValueError, match="parameter of .* must be"):
        valuer.fit(X, y, X_val=X_val, y_val=y_val)


# Scores that cannot tell --------------------------------------------------------------


@pytest.mark.parametrize("groups", [None, np.arange(60) // 2])
@pytest.mark.parametrize(("scoring", "says"), [(None, True), ("neg_log_loss", False)])
def test_values_that_are_all_zero_name_a_smooth_score(groups, scoring, says):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    X = np.c_[10.0 * y, rng.normal(size=90)]
    valuer = LeaveOneOutValuer(scoring=scoring)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        valuer.fit(X[:60], y[:60], X_val=X[60:], y_val=y[60:], groups=groups)
    messages = [str(warning.message) for warning in caught]
    assert any("neg_log_loss" in message for message in messages) == says
    assert valuer.values_.any() != says
