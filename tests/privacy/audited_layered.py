"""Runs of private Layered Shapley for the table of audits.

Utilities of a real model move less than is proved, so that a missing factor would go
unseen. The games here do the worst that the proof allows: one row moves the marginal
contribution of another to every coalition of k rows that it is in by all of the bound
for k, and its own by all of that.
"""

from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from unittest.mock import patch

import numpy as np

from skvalue import LayeredShapleyValuer
from skvalue.estimation import Utilities, block_values
from skvalue.games import StableLogisticGame
from skvalue.privacy import LaplaceEvent, Ledger, draw_noise
from skvalue.privacy.audit import search_sensitivity
from skvalue.valuers.layered_shapley import change_bounds, plan_release, secret_value

N, K = (
    7,
    3,
)  # sizes of blocks divide the number of others: a row is in a block of every layer
POINTS = dict(X_val=np.array([[1.0], [-1.0]]), y_val=np.array([1, 0]))
QUERY, CANARY = 0, 4
RECORDS = [(0.5, 0), (0.5, 1), (-0.9, 1)]
ROWS = [RECORDS[0]] * N


# Games in which the canary's label moves marginal contributions by all of the bound. -----------


def bounds():
    """Bounds of the change of marginal contributions to 1, 2, ... others, and of one's
    own."""
    game = StableLogisticGame(*POINTS.values(), *POINTS.values())
    return change_bounds(N, 1.0, 1.0, True, *game.validation_bounds())


def alone(masks):
    """Coalitions of k others move one way by half of what k moves, with the query the
    other way."""
    others, with_query = masks.sum(axis=1) - masks[:, QUERY], masks[:, QUERY]
    return np.where(with_query, 1.0, -1.0) * bounds()[0][np.maximum(others, 1) - 1] / 2


def together(masks):
    """Coalitions of one and two rows move in opposite ways, so that all contributions
    do."""
    return np.where(masks.sum(axis=1) % 2, 1.0, -1.0) * bounds()[0][0] / 2


def vector(masks):
    """All coalitions with the canary move the same way: most, its own value."""
    return bounds()[1][np.maximum(masks.sum(axis=1), 1) - 1]


@contextmanager
def playing(rows, sides):
    """The label of the canary decides utilities, by the side on which a coalition
    is."""
    label = 2 * rows[CANARY][1] - 1

    def utility(game, masks):
        if masks.shape[1] != N:  # of public rows
            return np.zeros(len(masks))
        return 0.5 * label * sides(masks) * masks[:, CANARY]

    with patch.object(StableLogisticGame, "utility", utility):
        yield


def game_of(rows, **setting):
    x, y = np.array(rows).T
    return StableLogisticGame(x[:, None], y.astype(int), *POINTS.values(), **setting)


def fit(rows, epsilon=1.0, **parameters):
    x, y = np.array(rows).T
    parameters = {"l2": 1.0, "n_layers": K, "tol": 2.0, "random_state": 0, **parameters}
    valuer = LayeredShapleyValuer(epsilon=epsilon, **parameters)
    return valuer.fit(x[:, None], y.astype(int), **POINTS)


def with_canary(record):
    """The rows with another canary."""
    return [*ROWS[:CANARY], record, *ROWS[CANARY + 1 :]]


NEIGHBOURS = with_canary(RECORDS[1]), ROWS  # the first has the larger value


# One value ----------------------------------------------------------------------------


@lru_cache
def one_claim(halved=False):
    """What a query charges to its ledger; halved, as for a row left out."""
    ledger = Ledger(None, "audit", epsilon=10.0, delta=1e-5)
    fit(ROWS, ledger=ledger).values_for(QUERY)
    event = ledger.charges[0].event
    half = replace(event, scale=event.scale / 2, sensitivity=event.sensitivity / 2)
    return half if halved else event


def one_clean(rows):
    """The value of the query, without noise: noise is too small to see."""
    with playing(rows, alone):
        return fit(rows, epsilon=1e12).values_for(QUERY)


def one_scores(n, halved=False, clean=one_clean):
    """Values of both neighbours with the noise of n queries each."""
    return [clean(rows) + draw_noise(one_claim(halved), n) for rows in NEIGHBOURS]


@lru_cache
def one_noise(n):
    """Noise of n queries, each on a fit of its own."""
    values = [fit(ROWS).values_for(QUERY) for _ in range(n)]
    return np.array(values) - fit(ROWS, epsilon=1e12).values_for(QUERY)


def search_one(claim, clean=one_clean, rows=with_canary, records=RECORDS):
    """Rows next to the one of the query, one of them replaced."""
    return search_sensitivity(
        lambda one: clean(rows(one[0])),
        records,
        1,
        claimed=claim.sensitivity,
        relation="replace",
    )


# A number of blocks that is random ----------------------------------------------------


def random_clean(rows):
    """Layers played with probability 1/2, in one block, and divided by the mean, as in
    the paper.

    Of all draws, one that can be: all layers are played, on blocks that begin with the
    canary.
    """
    others = np.array([CANARY, *(j for j in range(N) if j not in (QUERY, CANARY))])
    with playing(rows, alone):
        utilities = Utilities(game_of(rows))
        total = utilities.of(np.array([[QUERY]]))[0] - utilities.game.empty_utility
        for k in range(1, K + 1):
            joined = np.r_[others[:k], QUERY][None]
            total += 2 * (utilities.of(joined) - utilities.of(others[None, :k]))[0]
    return total / N


# An intercept without penalty ---------------------------------------------------------


def intercept_clean(rows):
    """The value of a row, where the constant is so large that its coefficient costs
    nothing."""
    x, y = np.array(rows).T
    game = StableLogisticGame(
        np.column_stack([x, np.full(3, 100.0)]), y.astype(int), np.array([[1.0, 100.0]]),
        np.array([1]), max_norm=1e3, fit_intercept=False,
    )  # fmt: skip
    n_shuffles = intercept_plan().n_shuffles
    (value,) = block_values(
        Utilities(game), n_shuffles, [0], lambda *k: np.random.default_rng(k)
    )
    return value


TINY = [(1.0, 1)] * 2


def intercept_plan():
    return plan_release(3, 1, epsilon=1.0, delta=1e-5, tol=2.0)


def intercept_noise():
    return intercept_plan().noise


def intercept_scores(n):
    clean = [intercept_clean([*TINY, (1.0, label)]) for label in (0, 1)]
    return [value + draw_noise(intercept_noise(), n) for value in clean]


def search_intercept(claim):
    records = [(1.0, 0), (1.0, 1), (-1.0, 1)]
    return search_one(claim, intercept_clean, lambda record: [*TINY, record], records)


# Secret coalitions --------------------------------------------------------------------


def secret_claim():
    ledger = Ledger(None, "audit", epsilon=10.0, delta=1e-5)
    fit(ROWS, design="iid", n_layers=2, ledger=ledger).values_for(QUERY)
    return ledger.charges[0].event


@lru_cache
def secret_scores(n, public=False):
    """Values of many queries on fresh coalitions; or all on those of which the canary
    is one."""
    plan = plan_release(N, 2, epsilon=1.0, delta=1e-5, design="iid", tol=2.0)
    scale = fit(ROWS, design="iid", n_layers=2).noise_scale_
    scores = []
    for rows in NEIGHBOURS:
        noise = draw_noise(LaplaceEvent(scale, 1.0), n)
        game = game_of(rows)
        if public:
            clean = (2 * rows[CANARY][1] - 1) * bounds()[0][:2].sum() / N / 2
        else:
            with playing(rows, alone):
                clean = np.array(
                    [secret_value(plan, Utilities(game), QUERY) for _ in range(n)]
                )
        scores.append(clean + noise)
    return scores


# All values, and the vector of them ---------------------------------------------------

PRIVATE = dict(n_layers=1)
KINDS = {"all": together, "publish": vector}


@lru_cache
def values_claim(release):
    ledger = Ledger(None, "audit", epsilon=10.0, delta=1e-5)
    fit(ROWS, epsilon=8.0, release=release, ledger=ledger, **PRIVATE)
    return ledger.charges[0].event


def values_of(release, n, epsilon=8.0):
    """Values of n fits on the data, and of n on their neighbour.

    Of "all" values those of the other rows: the canary's is for its owner.
    """
    kept = np.arange(N) != CANARY if release == "all" else slice(None)
    for rows in NEIGHBOURS:
        with playing(rows, KINDS[release]):
            fits = [fit(rows, epsilon, release=release, **PRIVATE) for _ in range(n)]
        yield np.array([valuer.values_ for valuer in fits])[:, kept]


@lru_cache
def values_runs(release, n):
    """Values of n fits on either side, and those without noise: it is too small to
    see."""
    return list(values_of(release, n)), values_clean(release)


@lru_cache
def values_clean(release):
    return [values[0] for values in values_of(release, 1, epsilon=1e9)]


def values_scores(release, n, short=1.0):
    """Log-likelihood ratios of the runs, with less noise, under Laplace noise on either
    side."""
    found = zip(*values_runs(release, n))
    clean = values_runs(release, n)[1]
    released = [exact + short * (run - exact) for run, exact in found]
    return [
        (np.abs(run - clean[1]) - np.abs(run - clean[0])).sum(axis=1)
        for run in released
    ]


def values_noise(release, n, short=1.0):
    runs, clean = values_runs(release, n)
    return short * (runs[0] - clean[0])


def without_own(claim):
    """Noise for what a row does to others' values, over the noise that covers its own
    too."""
    return values_claim("all").scale / claim.scale
