"""drop="auto" leaves clean rows alone and drops wrong ones."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import KNNShapleyValuer
from skvalue.selection import ValueFilteredClassifier

# Loader of a clean data set, number of its rows that are used (None: all), and seed.
CLEAN = [
    (load_iris, None, 0),
    (load_wine, None, 0),
    (load_breast_cancer, None, 0),
    (load_digits, None, 0),
    (load_digits, 500, 0),
    (load_digits, 500, 1),
    (load_breast_cancer, 250, 0),
    (load_breast_cancer, 250, 1),
    (load_wine, 120, 0),
    (load_wine, 120, 1),
]


def loss(estimator, load, n_rows, seed):
    """How much cross-validated accuracy "auto" costs on all rows, or n_rows of them."""
    X, y = load(return_X_y=True)
    if n_rows is not None:
        rows = np.random.default_rng(seed).permutation(len(y))[:n_rows]
        X = X[rows]
        y = y[rows]
    splits = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    filtered = ValueFilteredClassifier(estimator, KNNShapleyValuer(), drop="auto")

    def accuracy(model):
        pipeline = make_pipeline(StandardScaler(), model)
        return cross_val_score(pipeline, X, y, cv=splits).mean()

    return accuracy(estimator) - accuracy(filtered)


def test_costs_nothing_on_clean_rows():
    assert loss(GaussianNB(), load_iris, None, 0) <= 0.005


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), GaussianNB()], ids=["linear", "bayes"]
)
@pytest.mark.parametrize(("load", "n_rows", "seed"), CLEAN)
def test_costs_nothing_on_ten_clean_sets(load, n_rows, seed, estimator):
    assert loss(estimator, load, n_rows, seed) <= 0.005


def test_drops_rows_with_flipped_labels(noisy_digits):
    X, y, flipped, X_test, y_test = noisy_digits
    X = X[:400]
    y = y[:400]
    flipped = flipped[:400]
    model = ValueFilteredClassifier(
        KNeighborsClassifier(1), KNNShapleyValuer(), drop="auto"
    )
    plain = KNeighborsClassifier(1).fit(X, y).score(X_test, y_test)
    assert model.fit(X, y).score(X_test, y_test) > plain + 0.1
    assert model.drop_ in (0.2, 0.3)
    assert flipped[model.dropped_indices_].mean() > 0.8
    mean_scores = model.drop_scores_.mean(axis=1)
    assert mean_scores[0] < mean_scores.max() - 0.05


def test_scores_do_not_depend_on_n_jobs(noisy):
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
            # Values would go to the process of each split.
            assert not hasattr(self, "values_")
            return type(self)()

    X, y, _ = noisy
    model = ValueFilteredClassifier(GaussianNB(), Fresh(), drop="auto", cv=2).fit(X, y)
    assert model.drop_scores_.shape == (6, 2)


@pytest.mark.parametrize("cv", [[], iter([])])
@pytest.mark.parametrize("groups", [None, np.arange(60) % 6])
def test_no_split_is_refused(cv, groups, noisy):
    X, y = noisy[0][:60], noisy[1][:60]
    model = ValueFilteredClassifier(GaussianNB(), drop="auto", cv=cv)
    with pytest.raises(ValueError, match="cv must give at least one split"):
        model.fit(X, y, groups=groups)


@pytest.mark.parametrize("cv", [None, 5, np.int64(5)])
def test_folds_keep_groups_together(cv, noisy):
    X, y = noisy[0][:60], noisy[1][:60]
    groups = np.arange(60) % 6
    splits = list(GroupKFold(5).split(X, y, groups))
    expected = ValueFilteredClassifier(GaussianNB(), drop="auto", cv=splits)
    model = clone(expected).set_params(cv=cv).fit(X, y, groups=groups)
    scores = expected.fit(X, y, groups=groups).drop_scores_
    np.testing.assert_array_equal(model.drop_scores_, scores)
