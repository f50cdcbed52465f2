"""drop="auto" leaves clean rows alone and drops wrong ones."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import KNNShapleyValuer
from skvalue.selection import ValueFilteredClassifier


def subset(load, seed, n):
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    return X[rows], y[rows]


CLEAN = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    **{
        f"{load.__name__[5:]} {n} {seed}": lambda load=load, seed=seed, n=n: subset(load, seed, n)
        for load, n in ((load_digits, 500), (load_breast_cancer, 250), (load_wine, 120))
        for seed in range(2)
    },
}


def loss(estimator, X, y):
    """How much cross-validated accuracy "auto" costs."""
    splits = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    filtered = ValueFilteredClassifier(estimator, KNNShapleyValuer(), drop="auto")
    plain, auto = (
        cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=splits).mean()
        for model in (estimator, filtered)
    )
    return plain - auto


@pytest.mark.parametrize("name", ["iris"])
def test_costs_nothing_on_clean_rows(name):
    assert loss(LogisticRegression(), *CLEAN[name]()) <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()], ids=["linear", "bayes"])
@pytest.mark.parametrize("name", CLEAN)
def test_costs_nothing_on_ten_clean_sets(name, estimator):
    assert len(CLEAN) == 10
    assert loss(estimator, *CLEAN[name]()) <= 0.005


def test_drops_wrong_rows(noisy_digits):
    X, y, flipped, X_test, y_test = noisy_digits
    X, y, flipped = X[:600], y[:600], flipped[:600]
    model = ValueFilteredClassifier(KNeighborsClassifier(1), KNNShapleyValuer(), drop="auto")
    plain = KNeighborsClassifier(1).fit(X, y).score(X_test, y_test)
    assert model.fit(X, y).score(X_test, y_test) > plain + 0.1
    assert model.drop_ in (0.2, 0.3)
    assert flipped[model.dropped_indices_].mean() > 0.8
    mean = model.drop_scores_.mean(axis=1)
    assert mean[0] < mean.max() - 0.05


def test_scoring_jobs_and_splitter(noisy):
    X, y, _ = noisy
    model = ValueFilteredClassifier(
        LogisticRegression(), drop="auto", scoring="neg_log_loss", cv=3, n_jobs=2
    )
    with parallel_config("threading"):
        model.fit(X, y)
    assert model.drop_scores_.shape == (6, 3)
    assert (model.drop_scores_ < 0).all()
    alone = ValueFilteredClassifier(
        LogisticRegression(), drop="auto", scoring="neg_log_loss", cv=3
    ).fit(X, y)
    np.testing.assert_array_equal(alone.drop_scores_, model.drop_scores_)
