"""Private Layered Shapley: how far one row moves another's value, the noise, and the report."""

import math
import random
from dataclasses import dataclass, replace

import numpy as np

from ...privacy import (
    LaplaceEvent,
    OpaqueEvent,
    SelfComposedEvent,
    calibrate_gaussian,
    calibrate_laplace,
    make_report,
)
from ...samplers import circle_blocks, layer_counts
from ._bounds import contribution_bounds, replace_bounds

RELEASES = ("query", "all", "publish")
NOISES = ("auto", "laplace", "gaussian")


def value_sensitivity(n, n_layers, l2, max_norm, fit_intercept=True, design="blocks"):
    """Most by which replacing another row moves one row's value, in layers 0..n_layers.

    Parameters
    ----------
    n : int
        Number of rows.
    n_layers : int
        Largest size of a coalition that a row joins.
    l2, max_norm, fit_intercept : float, float, bool
        As in `skvalue.games.StableLogisticGame`.
    design : {"blocks", "iid"}, default="blocks"
        Whether a row is in one at most of the floor((n - 1) / k) blocks of a layer, or may be in
        all its coalitions.

    Returns
    -------
    sensitivity : float
        ``sum_k (gamma(k) + gamma(k + 1)) / (m_k n)``; m_k is 1 for "iid".

    Examples
    --------
    >>> round(value_sensitivity(1000, 3, 1.0, 1.0, fit_intercept=False), 9)
    3.895e-06
    """
    gamma = replace_bounds(n_layers + 1, l2, max_norm, fit_intercept)
    k = np.arange(1, n_layers + 1)
    blocks = (n - 1) // k if design == "blocks" else np.ones(n_layers)
    return float(((gamma[:-1] + gamma[1:]) / blocks).sum() / n)


def own_sensitivity(n, n_layers, l2, max_norm, fit_intercept=True):
    """Most by which replacing a row moves its own value."""
    return float(replace_bounds(n_layers + 1, l2, max_norm, fit_intercept).sum() / n)


def participation(n, counts):
    """Probability that a given other row is in one of a query's independent coalitions.

    Parameters
    ----------
    n : int
        Number of rows.
    counts : array-like of int of shape (K,)
        Coalitions of 1, ..., K others.

    Returns
    -------
    probability : float
        ``1 - prod_k (1 - k / (n - 1))^m_k``.

    Examples
    --------
    >>> round(participation(101, [2, 1]), 4)
    0.0395
    """
    sizes = np.arange(1, len(counts) + 1)
    with np.errstate(divide="ignore"):
        return float(-np.expm1((np.asarray(counts) * np.log1p(-sizes / (n - 1))).sum()))


@dataclass(frozen=True)
class ReleasePlan:
    """What will be released, and with which noise. It depends on no row."""

    kind: str  # "query": single values when asked; "all": each to its owner; "publish": the vector
    design: str  # "blocks" or "iid"
    epsilon: float  # of everything that is released
    max_queries: int  # for "query": number of values released
    noise: object  # on one value, or on the vector: a `LaplaceEvent` or `GaussianEvent`
    charge: object  # what one release costs: the noise, or less where coalitions are secret
    total: object  # what all releases cost
    delta: float  # of the guarantee; 0 with Laplace noise
    counts: np.ndarray  # (K + 1,): coalitions of each size that a value is based on
    n_shuffles: np.ndarray  # (K + 1,): for blocks, shuffles that are cut into (n - 1) // k each


def plan_release(
    n, n_layers, *, epsilon, delta, release="query", noise="auto", max_queries=1, design="blocks",
    l2=1.0, max_norm=1.0, fit_intercept=True, accuracy=0.05, failure=0.05,
):  # fmt: skip
    """Noise and coalitions of a private fit. They depend on no row.

    Parameters
    ----------
    n, n_layers : int
        Number of rows, and largest size of a coalition that a row joins.
    epsilon, delta : float
        The privacy asked, of everything that is released.
    release : {"query", "all", "publish"}, default="query"
        What is released.
    noise : {"auto", "laplace", "gaussian"}, default="auto"
        Its distribution; "auto" takes the one of smaller standard deviation.
    max_queries : int, default=1
        For "query": number of values released.
    design : {"blocks", "iid"}, default="blocks"
        How coalitions are drawn.
    l2, max_norm, fit_intercept : float, float, bool
        Of the game.
    accuracy, failure : float, default=0.05
        From which the number of coalitions follows, by `skvalue.samplers.layer_counts`.

    Returns
    -------
    plan : ReleasePlan
        What will be released.
    """
    game = (l2, max_norm, fit_intercept)
    bounds = contribution_bounds(n_layers, *game)
    wanted = np.ceil(layer_counts(bounds, accuracy, failure)[1:]).astype(np.int64)
    blocks = (n - 1) // np.arange(1, n_layers + 1)
    shuffles = np.maximum(1, -(-wanted // blocks)) if design == "blocks" else 0 * blocks
    counts = np.r_[1, blocks * shuffles if design == "blocks" else np.maximum(wanted, 1)]
    shuffles = np.r_[0, shuffles]
    one = value_sensitivity(n, n_layers, *game, design)
    if release != "query":
        norms = [np.sqrt(n - 1) * one, (n - 1) * one]  # L2, L1
        if release == "publish":
            own = own_sensitivity(n, n_layers, *game)
            norms = [math.hypot(norms[0], own), norms[1] + own]
        event, delta = _quieter(epsilon, delta, noise, *norms)
        charge = total = event
    else:
        if design == "iid":
            each = epsilon / max_queries
            odds = each + math.log(-math.expm1(-each)) - math.log(participation(n, counts[1:]))
            scale = one / float(np.logaddexp(odds, 0.0))  # ln(1 + (exp(epsilon) - 1) / p)
            charge, event, delta = OpaqueEvent(each), LaplaceEvent(scale * (1 + 1e-12), one), 0.0
        else:
            norms = math.sqrt(max_queries) * one, max_queries * one
            event, delta = _quieter(epsilon, delta, noise, *norms)
            charge = event = replace(event, sensitivity=one)
        total = charge if max_queries == 1 else SelfComposedEvent(charge, max_queries)
    return ReleasePlan(
        release, design, epsilon, max_queries, event, charge, total, delta, counts, shuffles
    )


def _quieter(epsilon, delta, noise, l2_norm, l1_norm):
    """The event of smaller standard deviation among those allowed, and its delta."""
    gaussian = calibrate_gaussian(epsilon, delta, l2_norm)
    laplace = calibrate_laplace(epsilon, l1_norm)
    if noise == "gaussian" or (noise == "auto" and gaussian.scale < math.sqrt(2) * laplace.scale):
        return gaussian, delta
    return laplace, 0.0


def private_values(plan, utilities, players, seeds):
    """Values without noise of some players, layer by layer, on disjoint blocks of the others.

    Parameters
    ----------
    plan : ReleasePlan
        Says how many shuffles.
    utilities : Utilities
        Of the game.
    players : ndarray of int or None
        Whose values; None: those of all players, at the cost of half as many coalitions each.
    seeds : callable
        ``seeds(k, shuffle)`` gives the random generator of an order.

    Returns
    -------
    values : ndarray
        The values.
    """
    n, all_players = utilities.n, players is None
    players = np.arange(n) if all_players else np.asarray(players)
    layers = utilities.of(players[:, None]) - utilities.game.empty_utility
    for k in range(1, len(plan.counts)):
        count, gains = (n - 1) // k, np.zeros(len(players))
        for shuffle in range(plan.n_shuffles[k]):
            order = seeds(k, shuffle).permutation(n)
            if all_players:
                blocks, who = circle_blocks(order, k, count)
                bases, joined = utilities.joined_by_each(blocks, who)
                found = np.bincount(who.ravel(), (joined - bases[:, None]).ravel(), n)
            else:
                found = np.array([_gains(utilities, order, k, count, i) for i in players])
            gains += found / count
        layers = layers + gains / plan.n_shuffles[k]
    return layers / n


def _gains(utilities, order, k, count, i):
    """Sum of one player's contributions to the blocks that follow it on the circle."""
    place = int(np.flatnonzero(order == i)[0])
    blocks = order[(place + 1 + np.arange(count * k)) % len(order)].reshape(count, k)
    joined = np.column_stack([blocks, np.full(count, i)])
    return (utilities.of(joined) - utilities.of(blocks)).sum()


def secret_value(plan, utilities, i, noise_random_state=None):
    """Exact value of one player on fresh independent coalitions, which stay secret."""
    draw = (
        random.SystemRandom() if noise_random_state is None else random.Random(noise_random_state)
    )
    n = utilities.n
    others = [j for j in range(n) if j != i]
    total = (utilities.of(np.array([[i]])) - utilities.game.empty_utility)[0]
    for k in range(1, len(plan.counts)):
        sets = np.array([draw.sample(others, k) for _ in range(plan.counts[k])])
        joined = np.column_stack([sets, np.full(len(sets), i)])
        total += (utilities.of(joined) - utilities.of(sets)).mean()
    return total / n


def layered_report(plan, noise_random_state=None):
    """The report of a private fit."""
    vector = plan.kind == "publish"
    protects = "what a row holds, in the values of other rows"
    if vector:
        protects = "what every row holds, in the vector of all values"
    elif plan.kind == "query":
        protects += f" that are asked for ({plan.max_queries} at most)"
    not_protected = [
        "the validation points X_val and y_val, which are public",
        "the number of rows",
        "running times and error messages",
    ]
    if not vector:
        not_protected[1:1] = [
            "a row from its own value, which is for its owner (values_for)",
            "rows from whoever holds the fitted object, which is for the curator",
        ]
    report = make_report(
        plan.total,
        plan.delta,
        notion="central" if vector else "joint",
        unit="row",
        protects=protects,
        against="everybody" if vector else "the owners of all other rows together",
        not_protected=not_protected,
        assumptions=(
            "no row to value is also a validation point",
            "l2, max_norm, n_layers and all other parameters were chosen without looking at rows",
            "so was whatever prepared the columns (scaling, selection, embeddings)",
            "other releases on the same rows are accounted for together with this one (Ledger)",
        ),
        noise_random_state=noise_random_state,
    )
    return replace(report, detection_ceiling=None)
