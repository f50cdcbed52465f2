"""Runs of private Layered Shapley for the table of audits.

Utilities of a real model move less than is proved, so that a missing factor would go unseen. The
games here do the worst that the proof allows: one row moves the utility of every coalition of k
rows that it is in by all of the bound for k.
"""

from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from unittest.mock import patch

import numpy as np

from skvalue import LayeredShapleyValuer
from skvalue.games import StableLogisticGame
from skvalue.privacy import LaplaceEvent, Ledger, draw_noise
from skvalue.privacy.audit import search_sensitivity
from skvalue.valuers.layered_shapley import Utilities, plan_release, secret_value

# Where controls are patched.
PRIVATE = import_module("skvalue.valuers.layered_shapley._private")
RELEASE = import_module("skvalue.valuers.layered_shapley._release")

N, K = 7, 3  # sizes of blocks divide the number of others: a row is in a block of every layer
JUDGES = dict(X_val=np.array([[1.0], [-1.0]]), y_val=np.array([1, 0]))
ASKED, CANARY = 0, 4
RECORDS = [(0.5, 0), (0.5, 1), (-0.9, 1)]
ROWS = [RECORDS[0]] * N


def worst_alone(game, masks, n_jobs=None):
    """The canary's label moves coalitions with the row asked for one way, others the other way."""
    sizes = masks.sum(axis=1)
    label = 2 * game._t[CANARY] - 1
    side = np.where(masks[:, ASKED], 1.0, -1.0)
    bounds = np.array([game.replace_bound(max(size, 1)) for size in sizes])
    return 0.5 * bounds * label * side * masks[:, CANARY], np.zeros(len(masks), dtype=bool)


def worst_together(game, masks, n_jobs=None):
    """The canary's label moves coalitions of even and odd sizes in opposite ways."""
    sizes = masks.sum(axis=1)
    label = 2 * game._t[CANARY] - 1
    bounds = np.array([game.replace_bound(max(size, 1)) for size in sizes])
    found = 0.5 * bounds * label * np.where(sizes % 2, 1.0, -1.0) * masks[:, CANARY]
    return found, np.zeros(len(masks), dtype=bool)


def worst_vector(game, masks, n_jobs=None):
    """The canary's label moves all coalitions that it is in the same way: most, its own value."""
    sizes = masks.sum(axis=1)
    label = 2 * game._t[CANARY] - 1
    bounds = np.array([game.replace_bound(max(size, 1)) for size in sizes])
    return 0.5 * bounds * label * masks[:, CANARY], np.zeros(len(masks), dtype=bool)


@contextmanager
def playing(utility, **patches):
    with patch.object(StableLogisticGame, "_compute", utility):
        if not patches:
            yield
            return
        with patch.multiple(PRIVATE, **patches):
            yield


def fit(rows, epsilon=1.0, **parameters):
    x, y = np.array(rows).T
    parameters = {"l2": 1.0, "n_layers": K, "accuracy": 2.0, "random_state": 0, **parameters}
    valuer = LayeredShapleyValuer(epsilon=epsilon, **parameters)
    return valuer.fit(x[:, None], y.astype(int), **JUDGES)


def neighbours():
    other = list(ROWS)
    other[CANARY] = RECORDS[1]
    return other, ROWS  # the first has the larger value


def half_bounds(*args, **kwargs):
    """The exclusion of a row in place of its replacement."""
    return true_bounds(*args, **kwargs) / 2


true_bounds = PRIVATE.replace_bounds


# One value ----------------------------------------------------------------------------------


def one_claim():
    """What a query charges to its ledger."""
    ledger = Ledger(None, "audit", epsilon=10.0, delta=1e-5)
    fit(ROWS, ledger=ledger).values_for(ASKED)
    return ledger.charges[0].event


def one_clean(rows, utility=worst_alone):
    """The value asked for, without noise: noise is too small to see."""
    with playing(utility):
        return fit(rows, epsilon=1e12).values_for(ASKED)


@lru_cache
def one_scale(halved=False):
    with playing(worst_alone, **({"replace_bounds": half_bounds} if halved else {})):
        return one_claim()


def one_scores(n, halved=False):
    clean = [one_clean(rows) for rows in neighbours()]
    noise = draw_noise(one_scale(halved), (2, n))
    return [clean[0] + noise[0], clean[1] + noise[1]]


def one_noise(n, halved=False):
    return draw_noise(one_scale(halved), n)


def search_one(claim, utility=worst_alone):
    """Rows beside the one asked for, one of them replaced."""

    def value(rows):
        order = [RECORDS[0]] * N
        order[CANARY] = rows[0]
        return one_clean(order, utility)

    return search_sensitivity(value, RECORDS, 1, claimed=claim.sensitivity, relation="replace")


# A number of blocks that is random ----------------------------------------------------------


def random_count(release, utilities, players, seeds):
    """Layers played with chance 1/2, in one block, and divided by the mean: as in the paper."""
    n, i = utilities.n, players[0]
    total = utilities.of(np.array([[i]]))[0] - utilities.game.empty_utility
    for k in range(1, len(release.counts)):
        rng = seeds(k, 0)
        order = np.array([j for j in rng.permutation(n) if j != i])
        order = np.r_[CANARY, order[order != CANARY]]  # of all draws, one that can be
        joined = np.r_[order[:k], i][None]
        total += 2 * (utilities.of(joined) - utilities.of(order[None, :k]))[0]
    return np.array([total / n])


def random_clean(rows):
    with playing(worst_alone), patch.object(RELEASE, "private_values", random_count):
        return fit(rows, epsilon=1e12).values_for(ASKED)


def random_scores(n):
    clean = [random_clean(rows) for rows in neighbours()]
    noise = draw_noise(one_scale(), (2, n))
    return [clean[0] + noise[0], clean[1] + noise[1]]


def search_random(claim):
    def value(rows):
        order = [RECORDS[0]] * N
        order[CANARY] = rows[0]
        return random_clean(order)

    return search_sensitivity(value, RECORDS, 1, claimed=claim.sensitivity, relation="replace")


# An intercept without penalty ---------------------------------------------------------------


def free_intercept(game, masks, n_jobs=None):
    """Utilities of models whose constant is so large that its coefficient costs nothing."""
    from skvalue.games.solvers.stable_kernels import stable_tile

    Z, Z_val = game._Z.copy(), game._signed_val.copy()
    Z[:, -1] *= 100
    Z_val[-1] *= 100
    utilities = np.zeros(len(masks))
    for row, mask in enumerate(masks):
        members, coefs, status = np.flatnonzero(mask), np.zeros((1, Z.shape[1])), np.zeros(1, int)
        stable_tile(
            Z, game._t, members, np.array([0, len(members)]),
            np.array([1 / (game.l2 * len(members))]), 1e-6, 1.0, 300, coefs, status,
        )  # fmt: skip
        utilities[row] = -np.log1p(np.exp(-np.clip(coefs[0] @ Z_val, -700, 700))) @ game._weights
    return utilities, np.zeros(len(masks), dtype=bool)


def intercept_clean(rows, utility):
    with playing(utility):
        x, y = np.array(rows).T
        valuer = LayeredShapleyValuer(
            l2=1.0, n_layers=1, accuracy=2.0, random_state=0, epsilon=1e12
        ).fit(x[:, None], y.astype(int), X_val=np.ones((2, 1)), y_val=[0, 1],
              sample_weight_val=[0.0, 1.0])  # fmt: skip
        return valuer.values_for(0)


TINY = [(1.0, 1)] * 3


def intercept_noise():
    return plan_release(3, 1, epsilon=1.0, delta=1e-5, accuracy=2.0).noise


def intercept_scores(n, utility):
    clean = [intercept_clean([*TINY[:2], (1.0, label)], utility) for label in (0, 1)]
    noise = draw_noise(intercept_noise(), (2, n))
    return [clean[0] + noise[0], clean[1] + noise[1]]


def search_intercept(claim, utility):
    return search_sensitivity(
        lambda rows: intercept_clean([*TINY[:2], rows[0]], utility),
        [(1.0, 0), (1.0, 1), (-1.0, 1)],
        1,
        claimed=claim.sensitivity,
        relation="replace",
    )


# Secret coalitions --------------------------------------------------------------------------


def secret_claim():
    ledger = Ledger(None, "audit", epsilon=10.0, delta=1e-5)
    fit(ROWS, design="iid", n_layers=2, ledger=ledger).values_for(ASKED)
    return ledger.charges[0].event


@lru_cache
def secret_scores(n, public=False):
    """Values of many queries on fresh coalitions; or all on those of which the canary is one."""
    plan = plan_release(N, 2, epsilon=1.0, delta=1e-5, design="iid", accuracy=2.0)
    with playing(worst_alone):
        scores = []
        for rows in neighbours():
            scale = fit(rows, design="iid", n_layers=2).noise_scale_
            noise = draw_noise(LaplaceEvent(scale, 1.0), n)
            if public:
                bounds = true_bounds(3, 1.0, 1.0)
                label = 1.0 if rows[CANARY][1] else -1.0
                change = label * (bounds[:-1] + bounds[1:]).sum() / N / 2
                scores.append(change + noise)
                continue
            x, y = np.array(rows).T
            game = StableLogisticGame(x[:, None], y.astype(int), *JUDGES.values())
            clean = [secret_value(plan, Utilities(game), ASKED) for _ in range(n)]
            scores.append(np.array(clean) + noise)
    return scores


# All values ---------------------------------------------------------------------------------


def all_claim():
    ledger = Ledger(None, "audit", epsilon=10.0, delta=1e-5)
    fit(ROWS, epsilon=8.0, release="all", n_layers=1, noise="gaussian", ledger=ledger)
    return ledger.charges[0].event


@lru_cache
def all_runs(n, halved=False):
    """Values of the other rows in many fits on the data, and on their neighbour; clean ones."""
    patches = {"replace_bounds": half_bounds} if halved else {}
    runs, clean = [], []
    for rows in neighbours():
        with playing(worst_together, **patches):
            private = dict(release="all", n_layers=1, noise="gaussian")
            values = [fit(rows, epsilon=8.0, **private).values_ for _ in range(n)]
            runs.append(np.delete(values, CANARY, axis=1))
            clean.append(np.delete(fit(rows, epsilon=1e9, **private).values_, CANARY))
    return runs, clean


def all_scores(n=600, halved=False):
    runs, clean = all_runs(n, halved)
    return [run @ (clean[0] - clean[1]) for run in runs]


def all_noise(n=600, halved=False):
    runs, clean = all_runs(n, halved)
    return runs[0] - clean[0]


# The vector of all values -------------------------------------------------------------------


def vector_fit(rows, epsilon, **parameters):
    return fit(rows, epsilon, release="publish", n_layers=1, noise="gaussian", **parameters)


def vector_claim():
    ledger = Ledger(None, "audit", epsilon=10.0, delta=1e-5)
    vector_fit(ROWS, 8.0, ledger=ledger)
    return ledger.charges[0].event


@lru_cache
def vector_runs(n, others_only=False):
    """Published vectors on the data, and on their neighbour; clean ones."""
    patches = {"self_sensitivity": lambda *args: 0.0} if others_only else {}
    runs, clean = [], []
    for rows in neighbours():
        with playing(worst_vector, **patches):
            runs.append(np.array([vector_fit(rows, 8.0).values_ for _ in range(n)]))
            clean.append(vector_fit(rows, 1e9).values_)
    return runs, clean


def vector_scores(n=300, others_only=False):
    runs, clean = vector_runs(n, others_only)
    return [run @ (clean[0] - clean[1]) for run in runs]


def vector_noise(n=300, others_only=False):
    runs, clean = vector_runs(n, others_only)
    return runs[0] - clean[0]
