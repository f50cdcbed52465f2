"""Private Layered Shapley: the sensitivity of values, the noise, and the report."""

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
    """Bound of the change of the value of one row when another row is replaced.

    Parameters
    ----------
    n : int
        Number of rows.
    n_layers : int
        Largest size of a coalition that a row joins.
    l2, max_norm, fit_intercept : float, float, bool
        As in `skvalue.games.StableLogisticGame`.
    design : {"blocks", "iid"}, default="blocks"
        With "blocks" a row is in at most one of the floor((n - 1) / k) blocks of layer k; with
        "iid" it may be in all coalitions of the layer.

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


def self_sensitivity(n, n_layers, l2, max_norm, fit_intercept=True):
    """Bound of the change of the value of a row when the row itself is replaced."""
    return float(replace_bounds(n_layers + 1, l2, max_norm, fit_intercept).sum() / n)


def participation(n, counts):
    """Probability that a given other row is in one of the independent coalitions of a query.

    Parameters
    ----------
    n : int
        Number of rows.
    counts : array-like of int of shape (K,)
        Number of coalitions of 1, ..., K others.

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
    """What is released and with which noise, independent of the rows."""

    kind: str  # "query": values on request; "all": each to its owner; "publish": all to everyone
    design: str  # "blocks" or "iid"
    epsilon: float  # of everything that is released
    max_queries: int  # for "query": number of values released
    noise: object  # of one value, or of the vector: a `LaplaceEvent` or `GaussianEvent`
    charge: object  # event of one release: the noise, or less if coalitions are secret
    total: object  # event of all releases
    delta: float  # of the guarantee; 0 with Laplace noise
    counts: np.ndarray  # (K + 1,): coalitions of each size that a value is based on
    n_shuffles: np.ndarray  # (K + 1,): for blocks, shuffles with (n - 1) // k blocks each


def plan_release(
    n, n_layers, *, epsilon, delta, release="query", noise="auto", max_queries=1, design="blocks",
    l2=1.0, max_norm=1.0, fit_intercept=True, accuracy=0.05, failure=0.05,
):  # fmt: skip
    """Choose noise and coalitions of a private fit, independent of the rows.

    Parameters
    ----------
    n, n_layers : int
        Number of rows, and largest size of a coalition that a row joins.
    epsilon, delta : float
        The privacy budget of everything that is released.
    release : {"query", "all", "publish"}, default="query"
        What is released.
    noise : {"auto", "laplace", "gaussian"}, default="auto"
        Distribution of the noise; "auto" is the one with the smaller standard deviation.
    max_queries : int, default=1
        For "query": number of values released.
    design : {"blocks", "iid"}, default="blocks"
        How coalitions are drawn.
    l2, max_norm, fit_intercept : float, float, bool
        Parameters of the game.
    accuracy, failure : float, default=0.05
        Parameters of `skvalue.samplers.layer_counts`, which gives the number of coalitions.

    Returns
    -------
    plan : ReleasePlan
        The plan of the release.
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
            itself = self_sensitivity(n, n_layers, *game)
            norms = [math.hypot(norms[0], itself), norms[1] + itself]
        event, delta = _smaller_noise(epsilon, delta, noise, *norms)
        charge = total = event
    else:
        if design == "iid":
            each = epsilon / max_queries
            odds = each + math.log(-math.expm1(-each)) - math.log(participation(n, counts[1:]))
            scale = one / float(np.logaddexp(odds, 0.0))  # ln(1 + (exp(epsilon) - 1) / p)
            charge, event, delta = OpaqueEvent(each), LaplaceEvent(scale * (1 + 1e-12), one), 0.0
        else:
            norms = math.sqrt(max_queries) * one, max_queries * one
            event, delta = _smaller_noise(epsilon, delta, noise, *norms)
            charge = event = replace(event, sensitivity=one)
        total = charge if max_queries == 1 else SelfComposedEvent(charge, max_queries)
    return ReleasePlan(
        release, design, epsilon, max_queries, event, charge, total, delta, counts, shuffles
    )


def _smaller_noise(epsilon, delta, noise, l2_norm, l1_norm):
    """The allowed event with the smallest standard deviation, and its delta."""
    gaussian = calibrate_gaussian(epsilon, delta, l2_norm)
    laplace = calibrate_laplace(epsilon, l1_norm)
    if noise == "gaussian" or (noise == "auto" and gaussian.scale < math.sqrt(2) * laplace.scale):
        return gaussian, delta
    return laplace, 0.0


def private_values(plan, utilities, players, seeds):
    """Values of some players without noise, from disjoint blocks of the others.

    Parameters
    ----------
    plan : ReleasePlan
        The number of shuffles of each layer.
    utilities : Utilities
        Utilities of the game.
    players : ndarray of int or None
        The players; None: all players, with half as many coalitions for each.
    seeds : callable
        ``seeds(k, shuffle)`` returns the random generator of an order.

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
                blocks, joining = circle_blocks(order, k, count)
                bases, joined = utilities.joined_by_each(blocks, joining)
                found = np.bincount(joining.ravel(), (joined - bases[:, None]).ravel(), n)
            else:
                found = np.array([_gains(utilities, order, k, count, i) for i in players])
            gains += found / count
        layers = layers + gains / plan.n_shuffles[k]
    return layers / n


def _gains(utilities, order, k, count, i):
    """Sum of the contributions of one player to the blocks that follow it on the circle."""
    place = int(np.flatnonzero(order == i)[0])
    blocks = order[(place + 1 + np.arange(count * k)) % len(order)].reshape(count, k)
    joined = np.column_stack([blocks, np.full(count, i)])
    return (utilities.of(joined) - utilities.of(blocks)).sum()


def secret_value(plan, utilities, i, noise_random_state=None):
    """Value of one player without noise, from new independent coalitions, which stay secret."""
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
    protects = "what a row contains, in the values of other rows"
    if vector:
        protects = "what each row contains, in the vector of all values"
    elif plan.kind == "query":
        protects += f" that are queried (at most {plan.max_queries})"
    not_protected = [
        "the validation points X_val and y_val, which are public",
        "the number of rows",
        "running times and error messages",
    ]
    if not vector:
        not_protected[1:1] = [
            "a row from its own value, which is for its owner (values_for)",
            "rows from anyone who has the fitted object, which is for the curator",
        ]
    report = make_report(
        plan.total,
        plan.delta,
        notion="central" if vector else "joint",
        unit="row",
        protects=protects,
        against="everyone" if vector else "the owners of all other rows together",
        not_protected=not_protected,
        assumptions=(
            "no row to value is also a validation point",
            "l2, max_norm, n_layers and all other parameters were chosen without looking at rows",
            "so was the preparation of the columns (scaling, selection, embeddings)",
            "other releases on the same rows are accounted for together with this one (Ledger)",
        ),
        noise_random_state=noise_random_state,
    )
    return replace(report, detection_ceiling=None)
