"""Batched solvers against a loop over scikit-learn's fits, and the loop against them.

    pytest tests/benchmarks/test_games.py -m bench

prints coalitions per second over the loop's. Everything runs on one thread.
"""

from functools import partial
from time import perf_counter
from typing import NamedTuple

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

N_IN_LOOP = 20  # coalitions of one round of the loop over fits


@pytest.fixture
def _one_thread():
    with threadpool_limits(1):
        yield


def fit_each(estimator, X, y, X_val, y_val, masks):
    """The bare loop."""
    scores = []
    for mask in masks:
        model = clone(estimator)
        try:
            scores.append(model.fit(X[mask], y[mask]).score(X_val, y_val))
        except ValueError:  # one class, or fewer rows than neighbours
            scores.append(np.nan)
    return scores


class SpeedUp(NamedTuple):
    """Seconds of a coalition in a batched game, and in the bare loop; medians."""

    ratio: float
    game_seconds: float
    loop_seconds: float


def measure_speed_up(estimator, data, masks, rounds=5):
    """The `SpeedUp` of a batched game over the bare loop, which run in turn."""
    game = ModelGame(estimator, **data, n_jobs=1)
    assert game.solver != "loop"
    evenly_spaced = np.linspace(0, len(masks) - 1, N_IN_LOOP).astype(int)
    loop_masks = masks[evenly_spaced]
    # The first run compiles.
    game.utility(masks)
    fit_each(estimator, **data, masks=loop_masks)
    game_seconds = []
    loop_seconds = []
    for _ in range(rounds):
        start = perf_counter()
        fit_each(estimator, **data, masks=loop_masks)
        middle = perf_counter()
        game.utility(masks)
        end = perf_counter()
        loop_seconds.append((middle - start) / len(loop_masks))
        game_seconds.append((end - middle) / len(masks))
    return SpeedUp(
        np.median(np.divide(loop_seconds, game_seconds)),
        np.median(game_seconds),
        np.median(loop_seconds),
    )


# Estimator, target, rows, columns and smallest quotient.
SOLVERS = [
    (LogisticRegression(), "classes", 100, 10, 100),
    (LogisticRegression(), "classes", 300, 20, 40),
    (LogisticRegression(), "classes", 500, 50, 10),
    (Ridge(), "targets", 300, 20, 100),
    (LinearRegression(), "targets", 300, 20, 10),
    (NearestCentroid(), "classes", 300, 20, 10),
    (GaussianNB(), "classes", 300, 20, 10),
    (KNeighborsClassifier(), "classes", 300, 20, 10),
]


@pytest.mark.usefixtures("_one_thread")
@pytest.mark.parametrize("kind", ["orders", "random"])
@pytest.mark.parametrize(("estimator", "target", "n", "d", "limit"), SOLVERS, ids=str)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_batched_solver_is_faster_than_the_loop(
    estimator, target, n, d, limit, kind, capsys
):
    data = learnable(n, d, target=target)
    speed_up = measure_speed_up(estimator, data, coalitions(n, kind))
    if kind == "random" and target == "targets":
        # There is no coalition to start from.
        limit = min(limit, 60)
    with capsys.disabled():
        print(
            f"\n{estimator}, n={n}, d={d}, {kind}: {1e6 * speed_up.game_seconds:.1f} "
            f"us a coalition, the loop {1e6 * speed_up.loop_seconds:.0f} us: "
            f"{speed_up.ratio:.0f} x; limit {limit}"
        )
    assert speed_up.ratio >= limit


@pytest.mark.usefixtures("_one_thread")
@pytest.mark.parametrize(
    ("model", "target"),
    [(KNeighborsClassifier(), "classes"), (KNeighborsRegressor(), "targets")],
    ids=str,
)
def test_refusal_of_few_neighbours_costs_a_tenth_of_the_loop(model, target, ratio, rng):
    data = learnable(300, 20, target=target)
    ranks = np.argsort(rng.random((500, 300)), axis=1)
    masks = ranks < rng.integers(2, 5, 500)[:, None]
    batched = ModelGame(model, **data, n_jobs=1)
    loop = ModelGame(model, **data, n_jobs=1, batch="never", cache_size=0)
    ratio(
        f"coalitions of 2 to 4 rows, {model}, over the loop",
        lambda: batched.utility(masks),
        lambda: loop.utility(masks[:50]),  # a tenth of the coalitions
        1.0,
    )
    assert batched.n_failed > 0.4 * batched.n_evaluations


@pytest.mark.usefixtures("_one_thread")
def test_loop_costs_little_over_its_fits(ratio, rng):
    data = learnable(300, 20)
    masks = rng.random((200, 300)) < 0.5
    tree = DecisionTreeClassifier(random_state=0)
    game = ModelGame(tree, **data, cache_size=0)
    bare_loop = partial(fit_each, tree, **data, masks=masks)
    ratio("the loop over its fits", lambda: game.utility(masks), bare_loop, 1.1)
