"""Data and coalitions of games that batched solvers play, and comparisons of games."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification, make_regression

from skvalue.games import ModelGame

# Of scikit-learn's solvers: the utilities of batches are those at the optimum.
EXACT = {"tol": 1e-9, "max_iter": 5000}

KINDS = ["permutation", "random", "leave-one-out", "small"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def coalitions(rng, n, kind):
    """Masks of a permutation's prefixes, random ones, leave-one-out, or small ones."""
    if kind == "permutation":
        order = rng.permutation(n)
        return np.argsort(order)[None] <= np.arange(n)[:, None]
    if kind == "random":
        return rng.random((20, n)) < rng.random((20, 1))
    if kind == "leave-one-out":
        return ~np.eye(n, dtype=bool)
    masks = np.zeros((40, n), dtype=bool)
    for mask in masks:
        mask[rng.choice(n, rng.integers(1, 6), replace=False)] = True
    return np.unique(masks, axis=0)


def spread(masks, count):
    """At least ``count`` of the masks, evenly spread."""
    return masks[:: max(1, len(masks) // count)]


def of_all_kinds(rng, n, count):
    """Coalitions of every kind, at least ``count`` of each."""
    return np.concatenate([spread(coalitions(rng, n, kind), count) for kind in KINDS])


def classes(n_classes, seed=0):
    """Rows of two or three classes, and validation points."""
    if n_classes == 3:
        X, y = load_iris(return_X_y=True)
        X = X + np.random.default_rng(0).normal(scale=1e-3, size=X.shape)  # no ties
    else:
        X, y = make_classification(
            160, 5, n_informative=4, n_redundant=0, random_state=seed
        )
    order = np.random.default_rng(seed).permutation(len(y))
    X = X[order]
    y = np.array(["b", "a", "c"])[y[order]]
    return X[:50], y[:50], X[50:], y[50:]


def targets(n_features=5):
    """Rows of a regression, and validation points."""
    X, y = make_regression(90, n_features, noise=20.0, random_state=0)
    return X[:40] + 3, y[:40] / 50, X[40:] + 3, y[40:] / 50


def check_same(estimator, data, masks, settings, **parameters):
    """The games of two settings have the same utilities, to 1e-6; return both."""
    one, other = (
        ModelGame(estimator, *data, **options, **parameters) for options in settings
    )
    utilities = one.utility(masks)
    np.testing.assert_allclose(utilities, other.utility(masks), atol=1e-6)
    assert one.n_failed == other.n_failed
    assert one.n_one_class == other.n_one_class
    assert np.ptp(utilities) > 0
    return one, other


def check_equal(estimator, data, masks, **parameters):
    """The batched game equals the loop; return it."""
    settings = ({}, {"batch": "never"})
    batched, loop = check_same(estimator, data, masks, settings, **parameters)
    assert batched.solver != loop.solver == "loop"
    return batched
