"""What `memory` saves in a grid over `drop`."""

from itertools import count

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skvalue import KNNShapleyValuer
from skvalue.selection import ValueFilteredClassifier

pytestmark = pytest.mark.bench

DROPS = [0, 0.05, 0.1, 0.2]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=10_000)
    return rng.normal(size=(len(y), 20)) + y[:, None], y


def search(drops, folder, X, y):
    """A grid-search in an empty store, or with none."""
    model = ValueFilteredClassifier(LogisticRegression(), KNNShapleyValuer(n_jobs=1), memory=folder)
    GridSearchCV(model, {"drop": drops}, cv=3).fit(X, y)


def test_four_drops_cost_little_more_than_one(rows, ratio, tmp_path):
    fresh = (str(tmp_path / str(number)) for number in count())
    four_to_one = ratio(
        "grid of four drops with memory",
        lambda: search(DROPS, next(fresh), *rows),
        lambda: search(DROPS[2:3], next(fresh), *rows),
        1.3,
        rounds=5,
    )
    assert four_to_one <= 1.3


def test_memory_saves_most_of_the_valuations(rows, ratio, tmp_path):
    fresh = (str(tmp_path / str(number)) for number in count())
    kept_to_not = ratio(
        "grid with memory against none",
        lambda: search(DROPS, next(fresh), *rows),
        lambda: search(DROPS, None, *rows),
        0.5,  # 4 valuations against 13
        rounds=3,
    )
    assert kept_to_not <= 0.5
