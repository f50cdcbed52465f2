import pickle

import numpy as np
import pytest
from problems import noisy_line
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
)
from sklearn.metrics import (
    log_loss,
    mean_poisson_deviance,
    mean_squared_error,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures

from skvalue import InfluenceValuer, ValueFilter
from skvalue.derivatives import AccuracyGap
from skvalue.exceptions import FewValidationPointsWarning
from skvalue.inspection import linear_datamodeling_score, noisy_label_auc

from ..cases import one_of_each

EXACT = {"tol": 1e-10, "max_iter": 1000, "solver": "newton-cholesky"}
LOGISTIC = LogisticRegression(**EXACT)


def minus_log_loss(model, X, y):
    return -log_loss(y, model.predict_proba(X), labels=model.classes_)


def minus_squares(model, X, y):
    return -mean_squared_error(y, model.predict(X))


def minus_deviance(model, X, y):
    return -mean_poisson_deviance(y, model.predict(X))


# Name -> (estimator, number of classes, minus the loss).
MODELS = {
    "binary": (LOGISTIC, 2, minus_log_loss),
    "multiclass": (LOGISTIC, 3, minus_log_loss),
    "ridge": (Ridge(2.0), 0, minus_squares),
    "poisson": (PoissonRegressor(alpha=0.1, **EXACT), 0, minus_deviance),
    "kernel": (KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3), 0, minus_squares),
    "pipeline": (make_pipeline(PolynomialFeatures(2), Ridge()), 0, minus_squares),
    "pipeline-binary": (make_pipeline(Normalizer(), LOGISTIC), 2, minus_log_loss),
}
by_name = pytest.mark.parametrize("name", MODELS)


def problem(name, n=200, n_points=100):
    estimator, n_classes, utility = MODELS[name]
    names = ["no", "perhaps", "yes"][:n_classes]
    X, y, X_val, y_val = noisy_line(0, n, n_points, 3, n_classes, names=names)
    if not n_classes:
        y, y_val = np.exp(0.3 * y), np.exp(0.3 * y_val)
    return estimator, X, y, X_val, y_val, utility


def decreases(estimator, X, y, X_val, y_val, utility, players):
    """Decrease of the utility without the rows of each player, by fitting again."""
    full = utility(clone(estimator).fit(X, y), X_val, y_val)
    found = []
    for rows in players:
        rest = np.setdiff1d(np.arange(len(y)), rows)
        found.append(
            full - utility(clone(estimator).fit(X[rest], y[rest]), X_val, y_val)
        )
    return np.array(found)


@by_name
def test_values_equal_the_change_under_refits(name):
    estimator, X, y, X_val, y_val, utility = problem(name)
    some = np.arange(0, 200, 4)
    exact = decreases(estimator, X, y, X_val, y_val, utility, some)
    second = InfluenceValuer(estimator, order=2).fit(X, y, X_val=X_val, y_val=y_val)
    assert np.abs(second.values_[some] - exact).max() < 0.01 * np.abs(exact).max()
    first = InfluenceValuer(estimator).fit(X, y, X_val=X_val, y_val=y_val)
    assert np.corrcoef(first.values_[some], exact)[0, 1] > 0.94
    fitted = clone(estimator).fit(X, y)
    assert first.utility_ == pytest.approx(utility(fitted, X_val, y_val), rel=1e-9)
    assert first.utility_ > first.empty_utility_


@by_name
def test_groups(name):
    estimator, X, y, X_val, y_val, utility = problem(name, n=120)
    groups = np.arange(120) % 12
    players = [np.flatnonzero(groups == g) for g in range(12)]
    exact = decreases(estimator, X, y, X_val, y_val, utility, players)
    points = {"X_val": X_val, "y_val": y_val}
    first = InfluenceValuer(estimator).fit(X, y, groups=groups, **points)
    second = InfluenceValuer(estimator, order=2).fit(X, y, groups=groups, **points)
    rows = InfluenceValuer(estimator).fit(X, y, **points)
    np.testing.assert_allclose(
        first.values_, np.bincount(groups, rows.values_), atol=1e-14
    )
    first_error, error = (np.abs(v.values_ - exact).max() for v in (first, second))
    assert error < 0.1 * np.abs(exact).max()
    assert error < 0.5 * first_error


@pytest.mark.parametrize(
    ("name", "order", "groups"),
    one_of_each([*MODELS], [1, 2], [None, np.arange(40) % 9, np.arange(40) // 8]),
)
def test_contributions_sum_to_values(name, order, groups):
    estimator, X, y, X_val, y_val, _ = problem(name, n=40, n_points=20)
    valuer = InfluenceValuer(estimator, order=order)
    valuer.fit(X, y, X_val=X_val, y_val=y_val, groups=groups)
    players = range(0, len(valuer.values_), 4)
    parts = np.array([valuer.contributions(i).contributions for i in players])
    np.testing.assert_allclose(parts.sum(axis=1), valuer.values_[players], atol=1e-12)
    error = (20 * parts).std(axis=1, ddof=1) / np.sqrt(20)
    np.testing.assert_allclose(
        valuer.validation_error_[players], error, rtol=1e-6, atol=1e-14
    )
    with pytest.warns(FewValidationPointsWarning):
        assert not valuer.harmful(0.1)[valuer.values_ > 0].any()
    held_out = InfluenceValuer(estimator, order=order, cv=3).fit(X, y, groups=groups)
    parts = held_out.contributions(2).contributions
    assert parts.sum() == pytest.approx(held_out.values_[2], abs=1e-12)


@pytest.mark.parametrize("name", ["binary", "multiclass", "ridge", "poisson"])
def test_rows_that_join(name):
    estimator, X, y, X_val, y_val, utility = problem(name)
    new, labels = X[180:], y[180:]
    X, y = X[:180], y[:180]
    second = InfluenceValuer(estimator, order=2).fit(X, y, X_val=X_val, y_val=y_val)
    joined = [
        utility(clone(estimator).fit(np.r_[X, [row]], np.r_[y, [label]]), X_val, y_val)
        for row, label in zip(new, labels)
    ]
    exact = np.array(joined) - second.utility_
    scores = second.score_samples(new, labels)
    assert np.abs(scores - exact).max() < 0.02 * np.abs(exact).max()
    np.testing.assert_allclose(second.score_samples(X, y), second.values_, atol=1e-15)
    first = InfluenceValuer(estimator).fit(X, y, X_val=X_val, y_val=y_val)
    assert np.corrcoef(first.score_samples(new, labels), exact)[0, 1] > 0.99
    if name != "poisson":  # its penalty is relative to the sum of weights
        np.testing.assert_allclose(first.transform(new), 0, atol=1e-15)
    if name in ("binary", "multiclass"):
        p = clone(estimator).fit(X, y).predict_proba(new)
        by_label = [
            second.score_samples(new, [label] * 20) for label in second.classes_
        ]
        expected = (p * np.array(by_label).T).sum(axis=1)
        np.testing.assert_allclose(second.transform(new)[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("name", ["binary", "multiclass", "ridge"])
def test_sparse_rows_conjugate_gradients_and_jobs(name):
    estimator, X, y, X_val, y_val, _ = problem(name, n=60)
    X, X_val = np.where(np.abs(X) > 0.4, X, 0), np.where(np.abs(X_val) > 0.4, X_val, 0)
    for order in (1, 2):
        valuer = InfluenceValuer(estimator, order=order)
        dense = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val)
        lean = clone(valuer).fit(
            sparse.csr_array(X), y, X_val=sparse.csr_array(X_val), y_val=y_val
        )
        np.testing.assert_allclose(lean.values_, dense.values_, atol=1e-7)
        new = sparse.csr_array(X_val[:5])
        np.testing.assert_allclose(
            lean.score_samples(new, y_val[:5]),
            dense.score_samples(X_val[:5], y_val[:5]),
            atol=1e-7,
        )
        np.testing.assert_allclose(
            lean.validation_error_, dense.validation_error_, atol=1e-7
        )
        with config_context(working_memory=0):
            without = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val)
        assert (dense.solver_, without.solver_) == ("cholesky", "cg")
        # With order=2, conjugate gradients have the Hessian without the row in the
        # second step too.
        atol = (
            1e-9
            if order == 1 or name == "ridge"
            else 0.03 * np.abs(dense.values_).max()
        )
        np.testing.assert_allclose(without.values_, dense.values_, atol=atol)
        two = clone(valuer).set_params(n_jobs=2, cv=3).fit(X, y)
        np.testing.assert_array_equal(
            two.values_, two.set_params(n_jobs=1).fit(X, y).values_
        )


def mean_decision(decisions, y, weights):
    return weights @ decisions, weights


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.FewValidationPointsWarning")
@pytest.mark.parametrize(
    "utility", ["accuracy", "roc_auc", mean_decision, AccuracyGap(np.arange(100) % 2)]
)
def test_other_utilities(utility):
    estimator, X, y, X_val, y_val, _ = problem("binary")
    points = {"X_val": X_val, "y_val": y_val}
    first, second = (
        InfluenceValuer(estimator, utility=utility, order=order).fit(X, y, **points)
        for order in (1, 2)
    )
    assert np.corrcoef(first.values_, second.values_)[0, 1] > 0.99
    rest = np.arange(200) != 17
    without = clone(first).fit(X[rest], y[rest], **points)
    decrease = first.utility_ - without.utility_
    assert second.values_[17] == pytest.approx(
        decrease, abs=0.01 * np.abs(second.values_).max()
    )
    assert first.contributions(3).contributions.sum() == pytest.approx(first.values_[3])
    if utility != "accuracy":
        with pytest.raises(
            ValueError, match="needs a utility that is a mean over validation"
        ):
            first.harmful()
        assert not hasattr(first, "validation_error_")
        with pytest.raises(
            ValueError, match="contributions needs a utility that is a mean"
        ):
            second.contributions(0)


def test_values_predict_retraining_and_find_wrong_labels(rng):
    X, X_val = rng.normal(size=(300, 5)), rng.normal(size=(200, 5))
    y, y_val = (
        part[:, 0] + 0.3 * rng.normal(size=len(part)) > 0 for part in (X, X_val)
    )
    wrong = rng.random(300) < 0.1
    y = y ^ wrong
    valuer = InfluenceValuer().fit(X, y, X_val=X_val, y_val=y_val)
    result = linear_datamodeling_score(
        valuer.values_, LogisticRegression(), X, y, X_val, y_val, n_subsets=30, fraction=0.2,
        random_state=0,
    )  # fmt: skip
    assert result.score > 0.9
    assert noisy_label_auc(valuer.values_, wrong) > 0.8
    kept = ValueFilter(InfluenceValuer(), drop=0.1).fit_resample(
        X, y, X_val=X_val, y_val=y_val
    )
    assert len(kept[0]) == 270


@pytest.mark.parametrize("kind", ["sparse", "frame"])
def test_other_containers_and_targets_grow_too(kind):
    pandas = pytest.importorskip("pandas")
    change = {
        "sparse": sparse.csr_array,
        "frame": lambda X: pandas.DataFrame(X, columns=list("abc")),
    }
    change = change[kind]
    estimator, X, y, X_val, y_val, _ = problem("pipeline", n=50)
    points = {"X_val": change(X_val), "y_val": y_val}
    whole = InfluenceValuer(estimator).fit(change(X), y, **points)
    grown = InfluenceValuer(estimator)
    grown.fit(change(X), y, X_val=change(X_val[:20]), y_val=y_val[:20])
    grown.add_validation(change(X_val[20:]), y_val[20:])
    np.testing.assert_allclose(grown.values_, whole.values_, atol=1e-14)


@pytest.mark.parametrize("utility", ["neg_loss", "roc_auc"])
def test_points_that_come(utility):
    _, X, y, X_val, y_val, _ = problem("binary")
    valuer = InfluenceValuer(utility=utility)
    whole = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val)
    grown = clone(valuer).fit(X, y, X_val=X_val[:60], y_val=y_val[:60])
    grown.add_validation(X_val[60:], y_val[60:])
    np.testing.assert_array_equal(grown.values_, whole.values_)
    copy = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(copy.score_samples(X_val), whole.score_samples(X_val))


def test_wrong_arguments():
    _, X, y, X_val, y_val, _ = problem("binary", n=40)
    with pytest.raises(ValueError, match="estimator must be LogisticRegression, Ridge"):
        InfluenceValuer(RandomForestClassifier()).fit(X, y)
    with pytest.raises(
        ValueError, match="utility must be 'neg_loss', .* or a callable for"
    ):
        InfluenceValuer(utility="accuracy").fit(X, X[:, 0])
    _, X3, y3, *_ = problem("multiclass", n=60)
    with pytest.raises(
        ValueError,
        match="utility='roc_auc' needs two classes: it ranks points by one decision. Got 3",
    ):
        InfluenceValuer(utility="roc_auc").fit(X3, y3)
    with pytest.raises(
        ValueError, match="utility must return a finite number and a finite"
    ):
        InfluenceValuer(utility=lambda z, y, weights: (0.0, [1.0])).fit(X, y)
    points = {"X_val": X_val, "y_val": y_val}
    with pytest.raises(
        ValueError, match="groups must name at least two groups of the 100 val"
    ):
        InfluenceValuer(utility=AccuracyGap([0, 1])).fit(X, y, **points)
    with pytest.raises(
        ValueError, match="utility='roc_auc' needs validation points of both"
    ):
        InfluenceValuer(utility="roc_auc").fit(X, y, X_val=X[:1], y_val=y[:1])
    with pytest.raises(ValueError, match="The 'order' parameter"):
        InfluenceValuer(order=3).fit(X, y)
    valuer = InfluenceValuer(RidgeClassifier()).fit(X, y)
    assert valuer.transform(X_val).shape == (100, 1)


def test_torch_module_is_told_of_the_class_for_it():
    torch = pytest.importorskip("torch")
    with pytest.raises(
        ValueError, match="for a torch module take UnrolledValuer. Got Linear."
    ):
        InfluenceValuer(torch.nn.Linear(2, 2)).fit(np.eye(2), [0, 1])
