"""The designs of Layered Shapley: coalitions are drawn, evaluated, and averaged.

`play_layers` draws the coalitions of a `LayerPlan`, shuffle by shuffle. The same
coalitions are used for many players: a set and its extensions by one player, or a set
and its subsets without one member. For each player alone, coalitions have the
distribution that the design states.
"""

from dataclasses import dataclass, field
from math import comb
from typing import NamedTuple

import numpy as np
from sklearn import get_config

from ..._utils.parallel import tiles
from ...samplers import (
    all_subsets,
    distinct_subsets,
    partitions,
    systematic_counts,
)
from ..design import ENTRIES
from ._blocks import join_circle
from ._plan import n_subsets


class CoreCoalitions(NamedTuple):
    """Coalitions of one size that other rows are valued on.

    Parameters
    ----------
    members : ndarray of int of shape (m, size)
        Their members.
    weights : ndarray of shape (m,)
        Their weights; those of a size sum to one, at least on average.
    utilities : ndarray of shape (m,)
        Their utilities.
    """

    members: np.ndarray
    weights: np.ndarray
    utilities: np.ndarray


@dataclass
class LayerEstimate:
    """Estimate of the layers of one game.

    Parameters
    ----------
    layers : ndarray of shape (K + 1, n)
        Mean marginal contribution of each player to coalitions of each size.
    variance : ndarray of shape (n,)
        Squared standard errors of the values.
    core : list of CoreCoalitions
        Coalitions that other rows are valued on.
    """

    layers: np.ndarray
    variance: np.ndarray
    core: list = field(default_factory=list)


def n_steps(plan):
    """Number of estimates that `play_layers` yields."""
    if not len(plan.sampled):
        return 1
    n_parts = plan.n_shuffles if plan.design == "blocks" else 1
    return 1 + n_parts


def play_layers(plan, utilities, seeds):
    """Evaluate the coalitions of a plan, shuffle by shuffle.

    Parameters
    ----------
    plan : LayerPlan
        The plan.
    utilities : Utilities
        Utilities of the game.
    seeds : callable
        ``seeds(number)`` returns the random generator of an independent part.

    Yields
    ------
    estimate : LayerEstimate or None
        After the enumerated layers, if these are all, else None; then after each
        shuffle.
    """
    layers = np.zeros((len(plan.counts), plan.n))
    estimate = LayerEstimate(layers, np.zeros(plan.n))
    for k in np.flatnonzero(plan.enumerated):
        _enumerate_layer(int(k), plan, utilities, seeds(0), estimate)
    if len(plan.sampled) == 0:
        yield estimate
        return

    yield None  # nothing to keep yet, but a callback may stop the fit here
    if plan.design == "iid":
        for k in plan.sampled:
            _draw_iid(int(k), plan, utilities, seeds(1 + int(k)), estimate)
        estimate.variance += _variance_of_single_draws(plan, estimate.layers)
        yield estimate
    elif plan.design == "poisson":
        n_enumerated = len(estimate.core)
        for k in plan.sampled:
            _draw_poisson(int(k), plan, utilities, seeds(1 + int(k)), estimate)
        if len(estimate.core) == n_enumerated:
            # No coalition was drawn: the error is unknown.
            estimate.variance += np.inf
        yield estimate
    else:
        yield from _play_shuffles(plan, utilities, seeds, estimate)


def _play_shuffles(plan, utilities, seeds, exact):
    """Yield the mean over shuffles of blocks, with the exact estimate of layers."""
    layers = np.zeros_like(exact.layers)
    values = []
    core = []
    for n_done in range(1, plan.n_shuffles + 1):
        of_shuffle = _draw_blocks(plan, utilities, seeds(n_done), core)
        layers = layers + of_shuffle
        values.append(of_shuffle.sum(axis=0) / plan.n)

        # Without draws, the variance over shuffles is 0 but unknown.
        variance = np.full(plan.n, np.inf)
        if n_done > 1 and core:
            variance = _variance_of_mean(np.var(values, axis=0, ddof=1), n_done)
        scaled = [
            coalitions._replace(weights=coalitions.weights / n_done)
            for coalitions in core
        ]
        yield LayerEstimate(
            exact.layers + layers / n_done, variance, exact.core + scaled
        )


def _enumerate_layer(k, plan, utilities, rng, estimate):
    """Write the mean contributions to all coalitions of k others; adds to the core."""
    n = plan.n
    utilities.tabulate(k)
    if k + 1 < n:
        utilities.tabulate(k + 1)
    sets = all_subsets(n, k + 1)
    of_sets, without = utilities.without_each(sets)
    gains = of_sets[:, None] - without
    estimate.layers[k] = np.bincount(sets.ravel(), gains.ravel(), n) / comb(n - 1, k)
    if k == 0:
        return

    # The core has as many coalitions as are wanted, or all of them.
    total = comb(n, k)
    count = total
    if plan.counts[k] < n_subsets(n - 1, k):
        count = min(total, max(1, int(np.ceil(plan.counts[k]))))
    chosen = slice(None)
    if count < total:
        chosen = np.sort(rng.choice(total, count, replace=False))
    members = all_subsets(n, k)[chosen]
    weights = np.full(len(members), 1 / len(members))
    coalitions = CoreCoalitions(members, weights, utilities.tables[k][chosen])
    estimate.core.append(coalitions)


# Blocks -------------------------------------------------------------------------------


def _draw_blocks(plan, utilities, rng, core):
    """The layers (K + 1, n) of one shuffle; adds its coalitions to the core."""
    n = plan.n
    layers = np.zeros((len(plan.counts), n))
    sampled = plan.sampled

    # Fewer than one block a shuffle on average: some shuffles have one.
    means = plan.counts[sampled] / plan.n_shuffles
    is_rare = means < 1
    counts = systematic_counts(rng, np.where(is_rare, means, 0.0))
    counts = np.where(is_rare, counts, np.rint(means)).astype(np.int64)
    for k, count, mean in zip(sampled.tolist(), counts.tolist(), means):
        if count == 0:
            continue
        if not plan.in_circles(k):
            all_gains = _leave_blocks(k, count, utilities, rng, core, weight=1 / mean)
            layers[k] = sum(gains.sum(axis=0) for gains in all_gains) / mean
            continue

        n_left = count
        while n_left:
            n_blocks = min(n_left, (n - 1) // k)
            circle = join_circle(k, n_blocks, rng.permutation(n), utilities)
            layers[k] += circle.gains / count

            # Disjoint blocks are kept for the core.
            starts = np.arange(n_blocks) * k
            weights = np.full(n_blocks, 1 / count)
            coalitions = CoreCoalitions(
                circle.blocks[starts], weights, circle.utilities[starts]
            )
            core.append(coalitions)
            n_left -= n_blocks
    return layers


def _leave_blocks(k, count, utilities, rng, core, weight):
    """Yield gains of players in blocks of k + 1, over ``count`` independent partitions.

    Of shape (n_partitions, n), for a few of the partitions after the other. Adds the
    first block of each, without its first member, to the core.
    """
    n = utilities.n
    for tile in tiles(count, _n_partitions_at_a_time(n)):
        n_partitions = tile.stop - tile.start
        sets, is_once = partitions(rng, n, k + 1, n_partitions)
        of_sets, without = utilities.without_each(sets.reshape(-1, k + 1))
        without = without.reshape(sets.shape)
        changes = of_sets.reshape(n_partitions, -1, 1) - without
        gains = np.empty((n_partitions, n))
        np.put_along_axis(gains, sets[:, is_once], changes[:, is_once], axis=1)
        # Copies: the arrays of all blocks are not kept.
        coalitions = CoreCoalitions(
            sets[:, 0, 1:].copy(),
            np.full(n_partitions, weight),
            without[:, 0, 0].copy(),
        )
        core.append(coalitions)
        yield gains


def _n_partitions_at_a_time(n):
    """Number of partitions whose members, masks and gains fit into memory.

    Masks of their sets and subsets, about n * n bytes a partition, fit into `ENTRIES`;
    two copies of them, and about eight numbers for each player, into scikit-learn's
    `working_memory`.
    """
    n_bytes = 2 * n * n + 64 * n
    room = int(get_config()["working_memory"] * 2**20 // n_bytes)
    return max(1, min(ENTRIES // (n * n), room))


# Independent coalitions ---------------------------------------------------------------


def _draw_iid(k, plan, utilities, rng, estimate):
    """Write a layer from independent partitions, and add its variance."""
    count = int(plan.counts[k])
    n_done = 0
    mean = np.zeros(plan.n)
    squares = np.zeros(plan.n)  # of deviations from the mean
    core = estimate.core
    for gains in _leave_blocks(k, count, utilities, rng, core, weight=1 / count):
        # Chan, Golub and LeVeque (1983), equation 2.1.
        n_before = n_done
        n_done += len(gains)
        mean_of_block = gains.mean(axis=0)
        change = mean_of_block - mean
        squares += ((gains - mean_of_block) ** 2).sum(axis=0)
        squares += change**2 * n_before * len(gains) / n_done
        mean += change * (len(gains) / n_done)

    estimate.layers[k] = mean
    if count > 1:
        variance = _variance_of_mean(squares / (count - 1), count)
        estimate.variance += variance / plan.n**2


def _variance_of_single_draws(plan, layers):
    """Variance due to layers with one draw each, (n,).

    Consecutive layers have about the same mean: half of the squared difference of their
    draws is the variance of one.
    """
    single = layers[[k for k in plan.sampled if plan.counts[k] == 1]]
    if len(single) == 0:
        return np.zeros(plan.n)
    if len(single) == 1:
        return np.full(plan.n, np.inf)
    squares = (np.diff(single, axis=0) ** 2).sum(axis=0)
    return squares * len(single) / (2 * (len(single) - 1) * plan.n**2)


def _draw_poisson(k, plan, utilities, rng, estimate):
    """Write a layer, each coalition of which is drawn with the same probability.

    See `distinct_subsets`.
    """
    n = plan.n
    count = plan.counts[k]
    probability = count / n_subsets(n - 1, k)

    # A set of k + 1 players is a coalition of k others for each of its members.
    n_sets = n * count / (k + 1)
    sets = distinct_subsets(rng, n, k + 1, n_sets)
    if len(sets) == 0:
        return

    of_sets, without = utilities.without_each(sets)
    gains = (of_sets[:, None] - without) / count
    players = sets.ravel()
    estimate.layers[k] = np.bincount(players, gains.ravel(), n)
    squares = np.bincount(players, gains.ravel() ** 2, n) * count
    variance = (1 - probability) * _variance_of_mean(squares, count)
    estimate.variance += variance / n**2

    # The core has on average as many as a player joins. Sets are sorted: without their
    # first members, stored coalitions would not be uniform.
    stored = np.flatnonzero(rng.random(len(sets)) < (k + 1) / n)
    leaving = rng.integers(k + 1, size=len(stored))
    remains = np.arange(k + 1) != leaving[:, None]
    members = sets[stored][remains].reshape(-1, k)
    weights = np.full(len(members), 1 / count)
    coalitions = CoreCoalitions(members, weights, without[stored, leaving])
    estimate.core.append(coalitions)


def _variance_of_mean(variances, count):
    """Variances of means over ``count`` draws.

    The mean variance over players counts as one more draw, so that the error of a
    player whose draws were all equal is not 0.
    """
    return (variances + variances.mean() / max(count, 1)) / count
