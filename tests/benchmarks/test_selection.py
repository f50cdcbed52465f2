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


# With memory a grid of any number of drops takes 4 valuations, one for each of three
# splits and one for the final fit; without, four drops take 13.
@pytest.mark.parametrize(
    ("drops", "with_memory", "limit"),
    [(DROPS[2:3], True, 1.3), (DROPS, False, 0.5)],
    ids=["one drop", "no memory"],
)
def test_four_drops_with_memory_cost_one_valuation(
    drops, with_memory, limit, rows, ratio, tmp_path
):
    stores = (str(tmp_path / str(number)) for number in count())

    def search_four_drops():
        search(DROPS, next(stores), *rows)

    def search_reference():
        search(drops, next(stores) if with_memory else None, *rows)

    ratio(
        f"grid of four drops with memory against {len(drops)}, memory={with_memory}",
        search_four_drops,
        search_reference,
        limit,
        rounds=5,
    )
