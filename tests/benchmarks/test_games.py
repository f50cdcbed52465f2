"""Batched solvers against a loop over scikit-learn's fits, and the loop against its
fits.

    pytest tests/benchmarks/test_games.py -m bench

prints coalitions per second over the loop's. Everything runs on one thread.
"""

from functools import partial
from time import perf_counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from skvalue.games import ModelGame

from .compare import coalitions, learnable

pytestmark = pytest.mark.bench

LOOP = 20  # coalitions of one round of the loop over fits


@pytest.fixture
def one_thread():
    with threadpool_limits(1):
        yield


def fits(estimator, X, y, X_val, y_val, masks):
    """The bare loop."""
    scores = []
    for mask in masks:
        model = clone(estimator)
        try:
            scores.append(model.fit(X[mask], y[mask]).score(X_val, y_val))
        except ValueError:  # one class, or fewer rows than neighbours
            scores.append(np.nan)
    return scores


def speed_up(estimator, data, masks, rounds=5):
    """Coalitions per second over those of the bare loop, in turn; and microseconds of
    each."""
    game = ModelGame(estimator, **data, n_jobs=1)
    assert game.solver != "loop"
    some = masks[np.linspace(0, len(masks) - 1, LOOP).astype(int)]
    game.utility(masks)  # compiles
    fits(estimator, **data, masks=some)
    ours, theirs = [], []
    for _ in range(rounds):
        start = perf_counter()
        fits(estimator, **data, masks=some)
        middle = perf_counter()
        game.utility(masks)
        theirs.append((middle - start) / len(some))
        ours.append((perf_counter() - middle) / len(masks))
    return (
        np.median(np.divide(theirs, ours)),
        np.median(ours) * 1e6,
        np.median(theirs) * 1e6,
    )


SOLVERS = [  # estimator, target, rows, columns, least quotient
    (LogisticRegression(), "classes", 100, 10, 100),
    (LogisticRegression(), "classes", 300, 20, 40),
    (LogisticRegression(), "classes", 500, 50, 10),
    (Ridge(), "targets", 300, 20, 100),
    (LinearRegression(), "targets", 300, 20, 10),
    (NearestCentroid(), "classes", 300, 20, 10),
    (GaussianNB(), "classes", 300, 20, 10),
    (KNeighborsClassifier(), "classes", 300, 20, 10),
]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("kind", ["orders", "random"])
@pytest.mark.parametrize(("estimator", "target", "n", "d", "least"), SOLVERS, ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_batched_solvers(estimator, target, n, d, least, kind, capsys):
    data = learnable(n, d, target=target)
    ratio, ours, theirs = speed_up(estimator, data, coalitions(n, kind))
    if kind == "random" and target == "targets":  # nothing to start from: a lower limit
        least = min(least, 60)
    with capsys.disabled():
        print(
            f"\n{estimator}, n={n}, d={d}, {kind}: {ours:.1f} us a coalition, the loop "
            f"{theirs:.0f} us: {ratio:.0f} x; limit {least}"
        )
    assert ratio >= least


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    "model", [KNeighborsClassifier(), KNeighborsRegressor()], ids=str
)
def test_neighbours_that_are_refused(model, ratio, rng):
    target = "classes" if isinstance(model, KNeighborsClassifier) else "targets"
    data = learnable(300, 20, target=target)
    masks = (
        np.argsort(rng.random((500, 300)), axis=1) < rng.integers(2, 5, 500)[:, None]
    )
    known = ModelGame(model, **data, n_jobs=1)
    asked = ModelGame(model, **data, n_jobs=1, batch="never", cache_size=0)
    ratio(
        f"coalitions of 2 to 4 rows, {model}, over the loop",
        lambda: known.utility(masks),
        lambda: asked.utility(masks[:50]),
        1.0,  # a tenth of the time of as many coalitions
    )
    assert known.n_failed > 0.4 * known.n_evaluations


@pytest.mark.usefixtures("one_thread")
def test_the_loop_costs_little_over_its_fits(ratio, rng):
    data = learnable(300, 20)
    masks = rng.random((200, 300)) < 0.5
    tree = DecisionTreeClassifier(random_state=0)
    game = ModelGame(tree, **data, cache_size=0)
    bare = partial(fits, tree, **data, masks=masks)
    ratio("the loop over its fits", lambda: game.utility(masks), bare, 1.1)
