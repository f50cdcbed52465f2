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

# Sizes of blocks, 1 to K, divide the number of others: a row is in a block of each
# layer.
N = 7
K = 3
POINTS = dict(X_val=np.array([[1.0], [-1.0]]), y_val=np.array([1, 0]))
QUERY = 0
CANARY = 4
RECORDS = [(0.5, 0), (0.5, 1), (-0.9, 1)]
ROWS = [RECORDS[0]] * N


# Games in which the canary's label moves contributions by all of the bound ------------


def bounds():
    """Bounds of the changes of contributions to 1, 2, ... others, and of one's own."""
    game = StableLogisticGame(*POINTS.values(), *POINTS.values())
    return change_bounds(N, 1.0, 1.0, True, *game.validation_bounds())


def alone(masks):
    """Coalitions of k others move by half of what k moves, and with the query back."""
    with_query = masks[:, QUERY]
    n_others = masks.sum(axis=1) - with_query
    changes, _ = bounds()
    signs = np.where(with_query, 1.0, -1.0)
    return signs * changes[np.maximum(n_others, 1) - 1] / 2


def together(masks):
    """Coalitions of one and two rows move in opposite ways: all contributions move."""
    changes, _ = bounds()
    return np.where(masks.sum(axis=1) % 2, 1.0, -1.0) * changes[0] / 2


def vector(masks):
    """All coalitions with the canary move the same way: most of all, its own value."""
    _, own_changes = bounds()
    return own_changes[np.maximum(masks.sum(axis=1), 1) - 1]


@contextmanager
def playing(rows, sides):
    """The label of the canary decides utilities, by the side of a coalition."""
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
    if halved:
        half = event.sensitivity / 2
        return replace(event, scale=event.scale / 2, sensitivity=half)
    return event


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
        lambda records: clean(rows(*records)),
        records,
        1,
        claimed=claim.sensitivity,
        relation="replace",
    )


# The sum of two values ----------------------------------------------------------------

GROUP = (QUERY, 1)


@lru_cache
def sum_claim(single=False):
    """What a query of two rows charges to its ledger; or what one of a row charges."""
    ledger = Ledger(None, "audit", epsilon=10.0, delta=1e-5)
    valuer = fit(ROWS, n_layers=1, ledger=ledger)
    valuer.value_of_group(GROUP[:1] if single else GROUP)
    return ledger.charges[0].event


def sum_clean(rows):
    """The sum of both values, without noise: noise is too small to see."""
    with playing(rows, together):
        return fit(rows, epsilon=1e12, n_layers=1).value_of_group(GROUP).value


def sum_scores(n, single=False):
    """Sums of both neighbours, the larger first, with the noise of n queries each."""
    clean = sorted(map(sum_clean, NEIGHBOURS), reverse=True)
    return [value + draw_noise(sum_claim(single), n) for value in clean]


@lru_cache
def sum_noise(n):
    """Noise of n queries of two rows, each on a fit of its own."""
    values = [fit(ROWS, n_layers=1).value_of_group(GROUP).value for _ in range(n)]
    return (
        np.array(values)
        - fit(ROWS, epsilon=1e12, n_layers=1).value_of_group(GROUP).value
    )


# A number of blocks that is random ----------------------------------------------------


def random_clean(rows):
    """A value of layers played with probability 1/2, over the mean, as in the paper.

    Each is one block. Of all draws, one that can be: all layers are played, on blocks
    that begin with the canary.
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
    """The value of a row; the constant is so large that its coefficient is free."""
    x, y = np.array(rows).T
    game = StableLogisticGame(
        np.column_stack([x, np.full(3, 100.0)]),
        y.astype(int),
        np.array([[1.0, 100.0]]),
        np.array([1]),
        max_norm=1e3,
        fit_intercept=False,
    )

    def generator(*key):
        return np.random.default_rng(key)

    n_shuffles = intercept_plan().n_shuffles
    (value,) = block_values(Utilities(game), n_shuffles, [0], generator)
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
    """Values of n queries on fresh coalitions; or all on those with the canary."""
    plan = plan_release(N, 2, epsilon=1.0, delta=1e-5, design="iid", tol=2.0)
    scale = fit(ROWS, design="iid", n_layers=2).noise_scale_
    scores = []
    for rows in NEIGHBOURS:
        noise = draw_noise(LaplaceEvent(scale, 1.0), n)
        game = game_of(rows)
        if public:
            changes, _ = bounds()
            clean = (2 * rows[CANARY][1] - 1) * changes[:2].sum() / N / 2
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
    is_seen = np.ones(N, dtype=bool)
    if release == "all":
        is_seen[CANARY] = False
    for rows in NEIGHBOURS:
        with playing(rows, KINDS[release]):
            fits = [fit(rows, epsilon, release=release, **PRIVATE) for _ in range(n)]
        yield np.array([valuer.values_ for valuer in fits])[:, is_seen]


@lru_cache
def values_runs(release, n):
    """Values of n fits on either side, and those with noise too small to see."""
    return list(values_of(release, n)), values_clean(release)


@lru_cache
def values_clean(release):
    return [values[0] for values in values_of(release, 1, epsilon=1e9)]


def values_scores(release, n, short=1.0):
    """Log-likelihood ratios of the runs, with less noise, which is Laplace noise."""
    runs, clean = values_runs(release, n)
    scores = []
    for run, exact in zip(runs, clean):
        released = exact + short * (run - exact)
        distances = np.abs(released - clean[0])
        distances_neighbour = np.abs(released - clean[1])
        scores.append((distances_neighbour - distances).sum(axis=1))
    return scores


def values_noise(release, n, short=1.0):
    runs, clean = values_runs(release, n)
    return short * (runs[0] - clean[0])


def without_own(claim):
    """Noise for the values of others, over the noise that covers a row's own too."""
    return values_claim("all").scale / claim.scale
