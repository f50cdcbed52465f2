"""Adjusted values of five games of real estimators: unbiased, and their errors are true
ones."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skvalue import SemivalueValuer

N, REPLICATES = 12, 24
GAMES = [
    (LogisticRegression(), "neg_log_loss"),
    (GaussianNB(), None),
    (KNeighborsClassifier(2), None),
    (Ridge(), None),
    (DecisionTreeClassifier(max_depth=3, random_state=0), None),
]


def rows(estimator):
    load = load_diabetes if isinstance(estimator, Ridge) else load_breast_cancer
    X, y = load(return_X_y=True)
    some = np.random.default_rng(4).permutation(len(y))[: N + 60]
    X, y = (X[some] - X.mean(axis=0)) / X.std(axis=0), y[some]
    return X[:N, :6], y[:N], X[N:, :6], y[N:]


def measured(estimator, scoring):
    """Errors claimed over true ones, and squared bias over its noise, of two
    semivalues."""
    X, y, X_val, y_val = rows(estimator)

    def fit(**options):
        valuer = SemivalueValuer(estimator, scoring=scoring, **options)
        return valuer.fit(X, y, X_val=X_val, y_val=y_val)

    exact = fit(sampler="exact")
    exact = [exact.values_, exact.reweight((2, 1)).values_]
    values, errors = np.empty((2, 2, REPLICATES, N))
    options = dict(sampler="stratified", adjust=True, max_evaluations=1200)
    for seed in range(REPLICATES):
        valuer = fit(**options, random_state=seed)
        assert valuer.adjustment_.used
        again = valuer.reweight((2, 1))
        values[:, seed] = valuer.values_, again.values_
        errors[:, seed] = valuer.values_error_, again.values_error_
    noise = [((found - true) ** 2).mean() for found, true in zip(values, exact)]
    bias = [
        ((found.mean(axis=0) - true) ** 2).mean() for found, true in zip(values, exact)
    ]
    claimed = np.sqrt((errors**2).mean(axis=(1, 2)) / noise)
    return claimed, np.divide(bias, noise) * REPLICATES


@pytest.mark.slow
def test_adjusted_errors_are_true():
    claimed, bias = zip(*(measured(estimator, scoring) for estimator, scoring in GAMES))
    assert 0.85 < np.min(claimed) <= np.max(claimed) < 1.15, claimed
    assert (np.mean(bias, axis=0) < 1.5).all(), bias
