"""Leave-one-out without retraining, against models of scikit-learn that are fitted
again."""

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
    right = np.asarray(y)[:, None] == model.classes_
    return np.log(model.predict_proba(X)[right]).mean()


# Name -> (estimator, number of classes; 0 is a regression, scorer, whether steps are
# repeated). None of them has a batched solver.
MODELS = {
    "no-penalty": (LogisticRegression(C=np.inf, **LOGISTIC), 2, log_loss, True),
    "class-weight": (
        LogisticRegression(class_weight={"a": 2, "b": 1}, **LOGISTIC), 2, log_loss, True,
    ),
    "liblinear": (LogisticRegression(solver="liblinear", **EXACT), 2, log_loss, True),
    "sparse-multiclass": (LogisticRegression(tol=1e-7, max_iter=10_000), 3, log_loss, True),
    "sparse-ridge": (Ridge(alpha=2.0, tol=1e-12), 0, "r2", False),
    "sparse-least-squares": (LinearRegression(tol=1e-14), 0, "neg_mean_squared_error", False),
    "ridge-classifier": (RidgeClassifier(), 2, "roc_auc", False),
    "ridge-classifier-3": (RidgeClassifier(alpha=0.5), 3, "accuracy", False),
    "poisson": (PoissonRegressor(alpha=0.1, **LOGISTIC), 0, "neg_mean_poisson_deviance", True),
    "gamma": (GammaRegressor(alpha=0.1, **LOGISTIC), 0, None, True),
    "kernel-ridge": (KernelRidge(alpha=0.5, kernel="rbf", gamma=0.2), 0, "r2", False),
}  # fmt: skip
by_name = pytest.mark.parametrize("name", MODELS)


def problem(name):
    estimator, n_classes, scoring, is_curved = MODELS[name]
    n = 80 if name == "poisson" else 40 if is_curved else 20
    X, y, X_val, y_val = noisy_line(
        0, n, 50, 4, n_classes, (1.0, -0.5), names=["a", "b", "c"]
    )
    if name in ("poisson", "gamma"):
        y, y_val = np.exp(0.3 * y), np.exp(0.3 * y_val)
    if "sparse" in name:
        X, X_val = sparse.csr_array(X), sparse.csr_array(X_val)
    return estimator, scoring, is_curved, (X, y), {"X_val": X_val, "y_val": y_val}


@by_name
def test_values_are_those_of_refits(name):
    estimator, scoring, _, rows, points = problem(name)
    refit = LeaveOneOutValuer(estimator, method="refit", scoring=scoring).fit(
        *rows, **points
    )
    found = LeaveOneOutValuer(estimator, scoring=scoring).fit(*rows, **points)
    assert not refit.approximate_
    assert not found.approximate_
    assert found.n_evaluations_ == refit.n_evaluations_ == len(rows[1]) + 1
    scale = np.abs(refit.values_).max()
    np.testing.assert_allclose(found.values_, refit.values_, atol=1e-4 * scale)
    assert found.utility_ == pytest.approx(refit.utility_, abs=1e-4 * scale)
    again = LeaveOneOutValuer(estimator, scoring=scoring, method="newton").fit(
        *rows, **points
    )
    np.testing.assert_array_equal(found.values_, again.values_)
    assert found.empty_utility_ == refit.empty_utility_


@pytest.mark.parametrize("seed", [3, 4])
def test_no_value_depends_on_tol(seed):
    # Without some row, steps with the Hessian of all rows do not converge.
    n = (30, 40)[seed - 3]
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 40, seed - 1))
    y = (2 * X[:, 0] + 0.6 * rng.logistic(size=n + 40) > 0).astype(int)
    points = {"X_val": X[n:], "y_val": y[n:]}
    loose = LogisticRegression(C=np.inf, tol=1e-4, max_iter=10_000, solver="newton-cg")
    tight = LogisticRegression(C=np.inf, **LOGISTIC)
    found = LeaveOneOutValuer(loose, scoring=log_loss).fit(X[:n], y[:n], **points)
    refit = LeaveOneOutValuer(tight, method="refit", scoring=log_loss).fit(
        X[:n], y[:n], **points
    )
    assert not found.approximate_
    np.testing.assert_allclose(found.values_, refit.values_, atol=1e-6)


# Name -> parameters with which "auto" trains models again.
REFITS = {
    "batched": {},
    "another-estimator": {"estimator": GaussianNB(), "batch": "never"},
    "no-derivative": {
        "estimator": LogisticRegression(C=1.0, l1_ratio=1.0, solver="saga")
    },
    "scaler": {"estimator": make_pipeline(StandardScaler(), LogisticRegression())},
    "balanced": {"estimator": LogisticRegression(class_weight="balanced")},
    "asked-for": {"estimator": RidgeClassifier(), "method": "refit"},
    "not-batched": {"estimator": RidgeClassifier(), "batch": "never"},
    "separable": {"estimator": LogisticRegression(C=np.inf, max_iter=5)},
}


@pytest.mark.parametrize("name", REFITS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::skvalue.exceptions.UnbatchedFitWarning")
def test_what_is_refitted(name):
    *_, rows, points = problem("ridge-classifier")
    if name == "separable":
        rows = rows[0], np.where(rows[0][:, 0] > 0, "a", "b")
    valuer = LeaveOneOutValuer(**REFITS[name])
    assert valuer.fit(*rows, **points).approximate_ is False
    again = clone(valuer).set_params(method="refit").fit(*rows, **points)
    np.testing.assert_array_equal(valuer.values_, again.values_)
    assert "newton" not in valuer.estimate_cost(*rows, **points).solver


def test_groups_weights_and_transformers():
    estimator, scoring, _, (X, y), points = problem("poisson")
    groups = np.arange(80) // 4
    options = {
        "groups": groups,
        "sample_weight": np.random.default_rng(1).uniform(0.5, 2, 80),
    }
    auto, newton, refit = (
        LeaveOneOutValuer(estimator, method=method, scoring=scoring).fit(
            X, y, **options, **points
        )
        for method in ("auto", "newton", "refit")
    )
    np.testing.assert_array_equal(auto.values_, refit.values_)
    np.testing.assert_allclose(
        newton.values_, refit.values_, atol=1e-4 * np.ptp(refit.values_)
    )
    # A scaler that stays as it is for all rows: the rows may as well be scaled before.
    pipeline, scaler = (
        make_pipeline(StandardScaler(), estimator),
        StandardScaler().fit(X),
    )
    scaled = {**points, "X_val": scaler.transform(points["X_val"])}
    fixed = LeaveOneOutValuer(pipeline, method="newton").fit(X, y, **points)
    assert fixed.approximate_
    before = LeaveOneOutValuer(estimator).fit(scaler.transform(X), y, **scaled)
    np.testing.assert_allclose(fixed.values_, before.values_, atol=1e-9)


def test_rows_without_which_there_is_no_such_model():
    X, y = (
        np.random.default_rng(0).normal(size=(30, 3)),
        np.array(list("ab" * 14 + "ac")),
    )
    points = {"X_val": X[:10] + 0.1, "y_val": y[:10]}
    alone = np.c_[X, np.arange(30) == 7]  # without row 7, a column is zero
    of_targets = {"X_val": alone[:9] + 0.1, "y_val": X[:9, 0]}
    for model, rows, given in [
        (
            RidgeClassifier(),
            (X, y),
            points,
        ),  # without the last row, there are two classes
        (LinearRegression(), (sparse.csr_array(alone), X[:, 0]), of_targets),
    ]:
        one, other = (
            LeaveOneOutValuer(model, method=method).fit(*rows, **given)
            for method in ("newton", "refit")
        )
        np.testing.assert_allclose(one.values_, other.values_, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": GaussianNB()}, "estimator must be one of LogisticRegression"),
        ({"batch": "never"}, "batch and device must be 'auto' with method='newton'"),
        ({"estimator": LogisticRegression(C=np.inf)}, "estimator must"),
        ({"sample_weight": [0.0] + [1.0] * 19}, "sample_weight must be positive"),
    ],
    ids=["no-derivatives", "batch", "separable", "weight-zero"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_newton_refuses(options, message):
    X, X_val = np.random.default_rng(0).normal(size=(2, 20, 2))
    options = dict(options)
    given = {name: options.pop(name) for name in ("sample_weight",) if name in options}
    valuer = LeaveOneOutValuer(**options, method="newton")
    with pytest.raises(ValueError, match=message):
        valuer.fit(X, X[:, 0] > 0, X_val=X_val, y_val=X_val[:, 0] > 0, **given)
