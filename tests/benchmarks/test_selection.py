"""What `memory` saves in a grid over `drop`."""

from time import perf_counter

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skvalue import KNNShapleyValuer
from skvalue.selection import ValueFilteredClassifier

pytestmark = pytest.mark.bench


def seconds(drops, folder, X, y):
    model = ValueFilteredClassifier(
        LogisticRegression(), KNNShapleyValuer(n_jobs=1), memory=str(folder)
    )
    start = perf_counter()
    GridSearchCV(model, {"drop": drops}, cv=3).fit(X, y)
    return perf_counter() - start


def test_a_grid_over_four_drops_costs_little_more_than_one(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=10_000)
    X = rng.normal(size=(len(y), 20)) + y[:, None]
    seconds([0.1], tmp_path / "warm", X[:500], y[:500])
    ratios = [
        seconds([0, 0.05, 0.1, 0.2], tmp_path / f"four {run}", X, y)
        / seconds([0.1], tmp_path / f"one {run}", X, y)
        for run in range(3)
    ]
    print("ratios", np.round(ratios, 3))
    assert min(ratios) <= 1.3
