"""The designs of Layered Shapley: drawing and evaluating coalitions, and estimates of
the layers.

`play_layers` draws the coalitions of a `LayerPlan`, some of them at a time. The same
coalitions are used for many players: a set and its extensions by one player, or a set
and its subsets without one member. For each player alone, coalitions have the
distribution that the design states.
"""

from dataclasses import dataclass, field
from math import comb

import numpy as np

from .._utils.parallel import tiles
from .._utils.warned import add_counts, counted_warnings
from ..samplers import (
    all_subsets,
    circle_blocks,
    distinct_subsets,
    partitions,
    subset_ranks,
    systematic_counts,
)
from .design import ENTRIES
from .layer_plan import n_subsets


class Utilities:
    """Utilities of coalitions that are given by their members; those of whole layers
    are stored.

    Parameters
    ----------
    game : Game
        The game.
    warned : dict, default=None
        Counts of the warnings of the estimator's fits, which are added to it.

    Attributes
    ----------
    n_evaluated : int
        Number of coalitions evaluated.
    tables : dict of int to ndarray
        Utilities of all coalitions of a size, in the order of `all_subsets`.
    """

    def __init__(self, game, warned=None):
        self.game, self.n, self.warned = (
            game,
            game.n_players,
            {} if warned is None else warned,
        )
        self.tables = {0: np.array([game.empty_utility])}
        self.n_evaluated = 0

    @property
    def full(self):
        """Utility of the coalition of all players."""
        self.tabulate(self.n)
        return float(self.tables[self.n][0])

    def of_masks(self, masks):
        """Utilities of the coalitions in the rows of a bool array."""
        with counted_warnings() as found:
            utilities = self.game.utility(masks)
        add_counts(self.warned, found)
        self.n_evaluated += len(masks)
        return utilities

    def of(self, sets):
        """Utilities of the coalitions in the rows of an int array (m, size) of
        members."""
        size = sets.shape[1]
        if size in self.tables:
            return self.tables[size][subset_ranks(np.sort(sets, axis=1))]
        utilities = np.empty(len(sets))
        for part in tiles(len(sets), max(1, ENTRIES // self.n)):
            utilities[part] = self.of_masks(coalition_masks(sets[part], self.n))
        return utilities

    def tabulate(self, size):
        """Evaluate all coalitions of a size, once."""
        if size not in self.tables:
            self.tables[size] = self.of(all_subsets(self.n, size))

    def without_each(self, sets):
        """Utilities of sets, (m,), and of each without each of its members, (m,
        size)."""
        if sets.shape[1] in self.tables or sets.shape[1] - 1 in self.tables:
            rests = [self.of(np.delete(sets, j, axis=1)) for j in range(sets.shape[1])]
            return self.of(sets), np.stack(rests, axis=1)
        return self._next_to(sets, sets, joined=False)

    def joined_by_each(self, sets, players):
        """Utilities of sets, (m,), and of each with each of some players, (m,
        count)."""
        if sets.shape[1] in self.tables or sets.shape[1] + 1 in self.tables:
            joined = [self.of(np.column_stack([sets, column])) for column in players.T]
            return self.of(sets), np.stack(joined, axis=1)
        return self._next_to(sets, players, joined=True)

    def _next_to(self, sets, players, joined):
        """Utilities of sets, and of each after one of some players has joined, or has
        left."""
        m, count = players.shape
        base, changed = np.empty(m), np.empty((m, count))
        for part in tiles(m, max(1, ENTRIES // (self.n * (count + 1)))):
            others = players[part]
            # Each set is followed by those next to it: solvers start from the previous
            # solution.
            masks = coalition_masks(sets[part], self.n).repeat(count + 1, axis=0)
            masks = masks.reshape(len(others), count + 1, self.n)
            row, place = np.indices(others.shape)
            masks[row, place + 1, others] = joined
            found = self.of_masks(masks.reshape(-1, self.n)).reshape(
                len(others), count + 1
            )
            base[part], changed[part] = found[:, 0], found[:, 1:]
        return base, changed


def coalition_masks(sets, n):
    """Masks over n players, from the members in the rows of an int array."""
    masks = np.zeros((len(sets), n), dtype=bool)
    np.put_along_axis(masks, sets, True, axis=1)
    return masks


@dataclass
class LayerEstimate:
    """Estimate of the layers of one game."""

    layers: np.ndarray  # (K + 1, n): mean marginal contribution of each player, by size
    variance: np.ndarray  # (n,): squared standard errors of the values
    # Coalitions that other rows are valued on: (members, weights, utilities), one size
    # each. The weights of a size sum to one, at least on average.
    core: list = field(default_factory=list)


def n_steps(plan):
    """Number of estimates that `play_layers` yields."""
    return 1 + (plan.n_shuffles if plan.design == "blocks" else 1) * (
        len(plan.sampled) > 0
    )


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
    exact = LayerEstimate(np.zeros((len(plan.counts), plan.n)), np.zeros(plan.n))
    for k in np.flatnonzero(plan.enumerated):
        _enumerate(int(k), plan, utilities, seeds(0), exact)
    if len(plan.sampled) == 0:
        yield exact
        return
    yield None  # nothing to keep yet, but a callback may stop the fit here
    if plan.design != "blocks":
        known, draw = (
            len(exact.core),
            _play_iid if plan.design == "iid" else _play_poisson,
        )
        for k in plan.sampled:
            draw(int(k), plan, utilities, seeds(1 + int(k)), exact)
        if plan.design == "iid":
            exact.variance += _variance_of_single_draws(plan, exact.layers)
        elif len(exact.core) == known:  # no coalition was drawn: the error is unknown
            exact.variance += np.inf
        yield exact
        return
    layers, values, core = np.zeros_like(exact.layers), [], []
    for done in range(1, plan.n_shuffles + 1):
        found = _play_blocks(plan, utilities, seeds(done), core)
        layers = layers + found
        values.append(found.sum(axis=0) / plan.n)
        variance = np.full(plan.n, np.inf)
        if (
            done > 1 and core
        ):  # without draws, the variance over shuffles is 0 but unknown
            variance = _of_mean(np.var(values, axis=0, ddof=1), done)
        scaled = [(members, weights / done, known) for members, weights, known in core]
        yield LayerEstimate(exact.layers + layers / done, variance, exact.core + scaled)


def _enumerate(k, plan, utilities, rng, estimate):
    """Mean marginal contributions to all coalitions of k others; stores a sample for
    the core."""
    n = plan.n
    utilities.tabulate(k)
    if k + 1 < n:
        utilities.tabulate(k + 1)
    sets = all_subsets(n, k + 1)
    tops, rests = utilities.without_each(sets)
    gains = tops[:, None] - rests
    estimate.layers[k] = np.bincount(sets.ravel(), gains.ravel(), n) / comb(n - 1, k)
    if k == 0:
        return
    kept, total = utilities.tables[k], comb(n, k)
    wanted = plan.counts[k] if plan.counts[k] < n_subsets(n - 1, k) else np.inf
    count = total if wanted >= total else max(1, int(np.ceil(wanted)))
    chosen = (
        np.sort(rng.choice(total, count, replace=False))
        if count < total
        else slice(None)
    )
    members = all_subsets(n, k)[chosen]
    estimate.core.append(
        (members, np.full(len(members), 1 / len(members)), kept[chosen])
    )


def _play_blocks(plan, utilities, rng, core):
    """The layers (K + 1, n) of one shuffle; appends its coalitions to the core."""
    n, layers = plan.n, np.zeros((len(plan.counts), plan.n))
    sampled = plan.sampled
    means = plan.counts[sampled] / plan.n_shuffles
    counts = systematic_counts(rng, np.where(means < 1, means, 0.0))
    counts = np.where(means < 1, counts, np.rint(means)).astype(np.int64)
    for k, count, mean in zip(sampled.tolist(), counts.tolist(), means):
        if count == 0:
            continue
        if not plan.in_circles(k):
            gains = _leave_blocks(k, count, n, utilities, rng, core, 1 / mean)
            layers[k] = gains.sum(axis=0) / mean
            continue
        left, most = count, (n - 1) // k
        while left:
            some = min(left, most)
            gains, blocks, bases = _join_circle(k, some, rng.permutation(n), utilities)
            layers[k] += gains / count
            places = np.arange(some) * k
            core.append((blocks[places], np.full(some, 1 / count), bases[places]))
            left -= some
    return layers


def _join_circle(k, count, order, utilities):
    """Sums of gains of players that join ``count`` blocks each; all blocks; their
    utilities."""
    blocks, players = circle_blocks(order, k, count)
    bases, joined = utilities.joined_by_each(blocks, players)
    gains = np.bincount(players.ravel(), (joined - bases[:, None]).ravel(), utilities.n)
    return gains, blocks, bases


def _leave_blocks(k, count, n, utilities, rng, core, weight):
    """Gains (count, n) of players in blocks of k + 1 players, over independent
    partitions."""
    gains = np.empty((count, n))
    for part in tiles(count, max(1, ENTRIES // (n * n))):
        some = part.stop - part.start
        sets, once = partitions(rng, n, k + 1, some)
        tops, rests = utilities.without_each(sets.reshape(-1, k + 1))
        found = tops.reshape(some, -1, 1) - rests.reshape(sets.shape)
        players = sets[:, once]
        np.put_along_axis(gains[part], players, found[:, once], axis=1)
        known = rests.reshape(sets.shape)[:, 0, 0]
        core.append((sets[:, 0, 1:], np.full(some, weight), known))
    return gains


def _play_iid(k, plan, utilities, rng, estimate):
    count, n = int(plan.counts[k]), plan.n
    gains = _leave_blocks(k, count, n, utilities, rng, estimate.core, 1 / count)
    estimate.layers[k] = gains.mean(axis=0)
    if count > 1:
        estimate.variance += _of_mean(gains.var(axis=0, ddof=1), count) / n**2


def _of_mean(variances, count):
    """Variances of means over ``count`` draws.

    The mean variance over players counts as one more draw, so that the error of a
    player whose draws were all equal is not 0.
    """
    return (variances + variances.mean() / max(count, 1)) / count


def _variance_of_single_draws(plan, layers):
    """Variance due to layers with one draw each, from the differences of consecutive
    layers."""
    single = layers[[k for k in plan.sampled if plan.counts[k] == 1]]
    if len(single) == 0:
        return np.zeros(plan.n)
    if len(single) == 1:
        return np.full(plan.n, np.inf)
    differences = (np.diff(single, axis=0) ** 2).sum(axis=0)
    return differences * len(single) / (2 * (len(single) - 1) * plan.n**2)


def _play_poisson(k, plan, utilities, rng, estimate):
    """Draw each coalition of a layer with the same probability, see
    `distinct_subsets`."""
    n, count = plan.n, plan.counts[k]
    probability = count / n_subsets(n - 1, k)
    sets = distinct_subsets(rng, n, k + 1, n * count / (k + 1))
    if len(sets) == 0:
        return
    tops, rests = utilities.without_each(sets)
    gains = (tops[:, None] - rests) / count
    estimate.layers[k] = np.bincount(sets.ravel(), gains.ravel(), n)
    squares = _of_mean(np.bincount(sets.ravel(), gains.ravel() ** 2, n) * count, count)
    estimate.variance += (1 - probability) * squares / n**2
    # On average as many as a player joins. Sets are sorted: without their first
    # members, stored coalitions would not be uniform.
    kept = np.flatnonzero(rng.random(len(sets)) < (k + 1) / n)
    left = rng.integers(k + 1, size=len(kept))
    members = sets[kept][np.arange(k + 1) != left[:, None]].reshape(-1, k)
    known = rests[kept, left]
    estimate.core.append((members, np.full(len(members), 1 / count), known))


def block_values(utilities, n_shuffles, players, seeds):
    """Values of some players from disjoint blocks of the others, as private fits
    release them.

    Parameters
    ----------
    utilities : Utilities
        Utilities of the game.
    n_shuffles : ndarray of int of shape (K + 1,)
        Number of shuffles of each layer; that of layer 0 is ignored.
    players : ndarray of int or None
        The players; None: all players, with half as many coalitions for each.
    seeds : callable
        ``seeds(k, shuffle)`` returns the random generator of an order.

    Returns
    -------
    values : ndarray of shape (n_players,)
        Sums of the layers, over the number of players of the game.
    """
    n, some = (
        utilities.n,
        np.arange(utilities.n) if players is None else np.asarray(players),
    )
    values = utilities.of(some[:, None]) - utilities.game.empty_utility
    for k in range(1, len(n_shuffles)):
        count, layer = (n - 1) // k, np.zeros(len(some))
        for shuffle in range(n_shuffles[k]):
            order = seeds(k, shuffle).permutation(n)
            if players is None:
                gains = _join_circle(k, count, order, utilities)[0]
            else:
                gains = np.array(
                    [_gains_of(i, k, count, order, utilities) for i in some]
                )
            layer += gains / (count * n_shuffles[k])
        values = values + layer
    return values / n


def _gains_of(i, k, count, order, utilities):
    """Sum of the gains of one player that joins the blocks that follow it on the
    circle."""
    place = int(np.flatnonzero(order == i)[0])
    blocks = order[(place + 1 + np.arange(count * k)) % len(order)].reshape(count, k)
    joined = np.column_stack([blocks, np.full(count, i)])
    return (utilities.of(joined) - utilities.of(blocks)).sum()
