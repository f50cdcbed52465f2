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
    model = ValueFilteredClassifier(
        LogisticRegression(), KNNShapleyValuer(n_jobs=1), memory=folder
    )
    GridSearchCV(model, {"drop": drops}, cv=3).fit(X, y)


@pytest.mark.parametrize(
    ("drops", "kept", "limit"),
    [
        (DROPS[2:3], True, 1.3),
        (DROPS, False, 0.5),
    ],  # 4 valuations against 1, and against 13
    ids=["one drop", "no memory"],
)
def test_four_drops_with_memory(drops, kept, limit, rows, ratio, tmp_path):
    fresh = (str(tmp_path / str(number)) for number in count())
    ratio(
        f"grid of four drops with memory against {len(drops)}, memory={kept}",
        lambda: search(DROPS, next(fresh), *rows),
        lambda: search(drops, next(fresh) if kept else None, *rows),
        limit,
        rounds=5,
    )
