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

CLEAN = [
    (load, None, 0) for load in (load_iris, load_wine, load_breast_cancer, load_digits)
]
for load, n_rows in ((load_digits, 500), (load_breast_cancer, 250), (load_wine, 120)):
    CLEAN += [(load, n_rows, seed) for seed in range(2)]


def loss(estimator, load, n, seed):
    """How much cross-validated accuracy "auto" costs on all rows, or n of them."""
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(y))[:n] if n else slice(None)
    X, y = X[rows], y[rows]
    splits = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    filtered = ValueFilteredClassifier(estimator, KNNShapleyValuer(), drop="auto")
    plain, auto = (
        cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=splits).mean()
        for model in (estimator, filtered)
    )
    return plain - auto


def test_costs_nothing_on_clean_rows():
    assert loss(GaussianNB(), load_iris, None, 0) <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), GaussianNB()], ids=["linear", "bayes"]
)
@pytest.mark.parametrize(("load", "n", "seed"), CLEAN)
def test_costs_nothing_on_ten_clean_sets(load, n, seed, estimator):
    assert len(CLEAN) == 10
    assert loss(estimator, load, n, seed) <= 0.005


def test_drops_wrong_rows(noisy_digits):
    X, y, flipped, X_test, y_test = noisy_digits
    X, y, flipped = X[:400], y[:400], flipped[:400]
    model = ValueFilteredClassifier(
        KNeighborsClassifier(1), KNNShapleyValuer(), drop="auto"
    )
    plain = KNeighborsClassifier(1).fit(X, y).score(X_test, y_test)
    assert model.fit(X, y).score(X_test, y_test) > plain + 0.1
    assert model.drop_ in (0.2, 0.3)
    assert flipped[model.dropped_indices_].mean() > 0.8
    mean = model.drop_scores_.mean(axis=1)
    assert mean[0] < mean.max() - 0.05


def test_scoring_jobs_and_splitter(noisy):
    X, y, _ = noisy
    options = {"drop": "auto", "scoring": "neg_log_loss", "cv": 3}
    model = ValueFilteredClassifier(GaussianNB(), **options, n_jobs=2)
    with parallel_config("threading"):
        model.fit(X, y)
    assert model.drop_scores_.shape == (6, 3)
    assert (model.drop_scores_ < 0).all()
    alone = ValueFilteredClassifier(GaussianNB(), **options).fit(X, y)
    np.testing.assert_array_equal(alone.drop_scores_, model.drop_scores_)


def test_splits_get_an_unfitted_valuer(noisy, first_column):
    class Fresh(first_column):
        def __sklearn_clone__(self):
            assert not hasattr(
                self, "values_"
            )  # which would go to the process of each split
            return type(self)()

    X, y, _ = noisy
    model = ValueFilteredClassifier(GaussianNB(), Fresh(), drop="auto", cv=2).fit(X, y)
    assert model.drop_scores_.shape == (6, 2)
