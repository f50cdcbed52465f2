import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split

from skvalue import KNNShapleyValuer
from skvalue.datasets import flip_labels


class FirstColumnValuer(BaseEstimator):
    """A row's value is its first feature; it keeps what its fit was given."""

    def __init__(self, epsilon=None):
        self.epsilon = epsilon

    def fit(self, X, y, X_val=None, y_val=None, groups=None, sample_weight_val=None):
        self.seen_ = {
            "X": X,
            "y": y,
            "X_val": X_val,
            "y_val": y_val,
            "groups": groups,
            "sample_weight_val": sample_weight_val,
        }
        self.values_ = np.asarray(X, dtype=float)[:, 0]
        if groups is not None:
            _, codes = np.unique(groups, return_inverse=True)
            self.values_ = np.bincount(codes, weights=self.values_)
        return self

    def harmful(self, fdr=0.1):
        return self.values_ < -10 * fdr


class CountingValuer(KNNShapleyValuer):
    """Counts its fits over all its copies."""

    fits = 0

    def fit(self, X, y, *, X_val=None, y_val=None, groups=None, sample_weight_val=None):
        type(self).fits += 1
        return super().fit(
            X,
            y,
            X_val=X_val,
            y_val=y_val,
            groups=groups,
            sample_weight_val=sample_weight_val,
        )


@pytest.fixture
def rows():
    """Values are the first column: -2, 5, -1, 0, 3, 1."""
    X = np.column_stack([[-2.0, 5.0, -1.0, 0.0, 3.0, 1.0], np.arange(6.0)])
    return X, np.array(["a", "b", "b", "a", "a", "b"])


@pytest.fixture
def counting():
    CountingValuer.fits = 0
    return CountingValuer


@pytest.fixture(scope="session")
def first_column():
    return FirstColumnValuer


@pytest.fixture(scope="session")
def noisy():
    """Two classes, one label in five flipped, and the mask."""
    X, y = make_classification(
        240, 6, n_informative=4, class_sep=1.5, flip_y=0, random_state=0
    )
    y, flipped = flip_labels(y, 0.2, random_state=0)
    return X, y, flipped


@pytest.fixture(scope="session")
def noisy_digits():
    """Digits with a quarter of the labels flipped: X, y, flipped, X_test, y_test."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)
    y, flipped = flip_labels(y, 0.25, random_state=0)
    return X, y, flipped, X_test, y_test
