"""Adjusted values of five games of real estimators: unbiased, with true errors."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skvalue import SemivalueValuer

N = 12
N_SEEDS = 24
GAMES = [
    (LogisticRegression(), "neg_log_loss"),
    (GaussianNB(), None),
    (KNeighborsClassifier(2), None),
    (Ridge(), None),
    (DecisionTreeClassifier(max_depth=3, random_state=0), None),
]


def standardised_rows(estimator):
    load = load_diabetes if isinstance(estimator, Ridge) else load_breast_cancer
    X, y = load(return_X_y=True)
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[:, :6]
    rows = np.random.default_rng(4).permutation(len(y))[: N + 60]
    return X[rows[:N]], y[rows[:N]], X[rows[N:]], y[rows[N:]]


def errors_and_bias(estimator, scoring):
    """Errors claimed over true ones, and squared bias over its noise.

    Of Shapley values, and of Beta(2, 1) values from the same coalitions.
    """
    X, y, X_val, y_val = standardised_rows(estimator)

    def fit(**options):
        valuer = SemivalueValuer(estimator, scoring=scoring, **options)
        return valuer.fit(X, y, X_val=X_val, y_val=y_val)

    enumeration = fit(sampler="exact")
    exact = [enumeration.values_, enumeration.reweight((2, 1)).values_]
    values = np.empty((2, N_SEEDS, N))
    errors = np.empty((2, N_SEEDS, N))
    options = {"sampler": "stratified", "adjust": True, "max_evaluations": 1200}
    for seed in range(N_SEEDS):
        valuer = fit(**options, random_state=seed)
        assert valuer.adjustment_.used
        beta = valuer.reweight((2, 1))
        values[:, seed] = valuer.values_, beta.values_
        errors[:, seed] = valuer.values_error_, beta.values_error_

    deviations = values - np.array(exact)[:, None]
    noise = (deviations**2).mean(axis=(1, 2))
    bias = (deviations.mean(axis=1) ** 2).mean(axis=1)
    claimed = np.sqrt((errors**2).mean(axis=(1, 2)) / noise)
    return claimed, bias / noise * N_SEEDS


@pytest.mark.slow
def test_adjusted_errors_are_true():
    claimed, bias = zip(*(errors_and_bias(*game) for game in GAMES))
    assert 0.85 < np.min(claimed) <= np.max(claimed) < 1.15, claimed
    assert (np.mean(bias, axis=0) < 1.5).all(), bias
