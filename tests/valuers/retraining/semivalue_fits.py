"""Small fits by retraining, for tests."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skvalue import SemivalueValuer

from ...problems import clusters


class Centroids(ClassifierMixin, BaseEstimator):
    """The nearest mean of a class, without a check, so that it takes no time."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.stack([X[y == c].mean(axis=0) for c in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[
            ((X[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)
        ]

    def score(self, X, y):
        return (self.predict(X) == y).mean()


def data(n=24, n_val=40, seed=0, d=3):
    return clusters(seed, n, n_val, d)


def fit(valuer, n=24, **options):
    return data(n).fit(valuer, **options)


def quick(**options):
    """A valuer whose estimator is cheap and trains coalitions one by one."""
    options = {"max_evaluations": 500, "random_state": 0, **options}
    return SemivalueValuer(Centroids(), batch="never", **options)
