"""Small data sets that tests share: rows with validation points.

Each function takes a seed or a generator first. `X, y, X_val, y_val = two_classes(0)`
unpacks a problem; `valuer.fit(*problem.rows, **problem.points)` and
`problem.fit(valuer)` fit it.
"""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import make_classification


class Problem(NamedTuple):
    """Rows and validation points."""

    X: np.ndarray
    y: np.ndarray
    X_val: np.ndarray
    y_val: np.ndarray

    @property
    def rows(self):
        return self.X, self.y

    @property
    def points(self):
        return {"X_val": self.X_val, "y_val": self.y_val}

    def fit(self, valuer, **options):
        return valuer.fit(self.X, self.y, **self.points, **options)


def split(X, y, n):
    """The first n rows; the others are validation points."""
    return Problem(X[:n], y[:n], X[n:], y[n:])


def two_classes(rng, n=40, n_val=20, d=3, noise=0.5, names=("no", "yes")):
    """Two classes by the sign of a noisy first feature.

    Without names they are the numbers 0 and 1.
    """
    rng = np.random.default_rng(rng)
    X = rng.normal(size=(n + n_val, d))
    y = (X[:, 0] + noise * rng.normal(size=n + n_val) > 0).astype(int)
    return split(X, named(y, names), n)


def named(codes, names):
    """The names of codes, or the codes if there are none."""
    return codes if names is None else np.array([*names])[codes]


def noisy_line(
    rng, n=60, n_val=30, d=4, n_classes=0, coef=(1.0,), noise=1.0, names=None
):
    """Targets along a line with noise, or classes of equal size by these targets."""
    rng = np.random.default_rng(rng)
    coef = np.r_[coef, np.zeros(d - len(coef))]
    X = rng.normal(size=(n, d))
    X_val = rng.normal(size=(n_val, d))
    y = X @ coef + noise * rng.normal(size=n)
    y_val = X_val @ coef + noise * rng.normal(size=n_val)
    if n_classes:
        edges = np.quantile(y, np.arange(1, n_classes) / n_classes)
        y = named(np.digitize(y, edges), names)
        y_val = named(np.digitize(y_val, edges), names)
    return Problem(X, y, X_val, y_val)


def unrelated(rng, n=24, n_val=15, d=3, n_classes=2):
    """Normal rows and targets that do not depend on them; each class has a row and a
    point."""
    rng = np.random.default_rng(rng)
    X = rng.normal(size=(n, d))
    X_val = rng.normal(size=(n_val, d))
    if not n_classes:
        return Problem(X, rng.normal(size=n), X_val, rng.normal(size=n_val))
    y = labels_of_all_classes(rng, n, n_classes)
    y_val = labels_of_all_classes(rng, n_val, n_classes)
    return Problem(X, y, X_val, y_val)


def labels_of_all_classes(rng, n, n_classes):
    """Labels drawn at random, after one of each class."""
    return np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]


def on_a_grid(rng, n=80, n_val=30, d=3, n_classes=2):
    """Rows on a coarse grid, with ties and duplicates; each class has a row."""
    rng = np.random.default_rng(rng)
    X = rng.integers(-2, 3, (n, d)) / 2.0
    X_val = rng.integers(-2, 3, (n_val, d)) / 2.0
    if n_classes == 0:
        return Problem(X, rng.normal(size=n) + 10, X_val, rng.normal(size=n_val) + 10)
    y = labels_of_all_classes(rng, n, n_classes)
    return Problem(X, y, X_val, rng.integers(0, n_classes, n_val))


def clusters(seed=0, n=24, n_val=40, d=3, names=("no", "yes"), **options):
    """Two classes of `make_classification`; one label in ten is drawn at random."""
    options = {"n_informative": d, "n_redundant": 0, "flip_y": 0.1, **options}
    X, y = make_classification(n + n_val, d, random_state=seed, **options)
    return split(X, named(y, names), n)
