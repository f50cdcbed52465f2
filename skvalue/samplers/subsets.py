"""Random subsets, each used for all players (maximum sample reuse).

A semivalue is the difference of two means, over the coalitions with and without the
player,

    ``phi_i = sum_k q[k - 1] E[v(S) | i in S, |S| = k] - sum_k q[k] E[v(S) | i not in S,
    |S| = k]``

with the probabilities q of sizes of `skvalue.semivalues.size_weights`. Every coalition
contributes to one of the two means of every player (Wang and Jia 2023 for Banzhaf,
Kolpaczki et al. 2024 for the Shapley value). Sizes are drawn in strata; importance
weights within a stratum make its two means unbiased for the semivalue.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from .._utils.checks import as_ranges

# There are strata of sizes up to n/2, n/4, ..., and their mirror images.
_N_HALVINGS = 5


@dataclass(frozen=True)
class SizeStrata:
    """Strata of the coalition sizes 1..n-1, with probabilities and importance weights.

    Parameters
    ----------
    stratum : ndarray of int of shape (n + 1,)
        Stratum of every size 0..n; -1 for sizes of weight 0 in the semivalue, and for
        the sizes 0 and n, whose coalitions are known.
    probabilities : ndarray of shape (n_strata, n + 1)
        Probability of every size in a draw from each stratum.
    inside, outside : ndarrays of shape (n + 1,)
        Importance weight of a coalition of each size in the average over coalitions
        with, and without, a player.
    inside_weight, outside_weight : ndarrays of shape (n_strata,)
        Weight of the two means of each stratum in the semivalue.

    Examples
    --------
    >>> strata = SizeStrata.of(np.full(6, 1 / 6), stratified=False)
    >>> strata.probabilities.round(2).tolist()
    [[0.0, 0.2, 0.2, 0.2, 0.2, 0.2, 0.0]]
    """

    stratum: np.ndarray
    probabilities: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    inside_weight: np.ndarray
    outside_weight: np.ndarray

    @classmethod
    def of(cls, q, stratified=True):
        """Strata for the probabilities ``q`` of sizes 0..n-1.

        Parameters
        ----------
        q : ndarray of shape (n,)
            Probabilities of sizes, see `skvalue.semivalues.size_weights`.
        stratified : bool, default=True
            Whether there is more than one stratum; otherwise all sizes are in one.

        Returns
        -------
        strata : SizeStrata
            The strata.
        """
        n = len(q)
        with_player, without_player = _side_weights(q)
        weights = with_player + without_player
        if stratified:
            stratum = _stratum_of_sizes(n)
        else:
            stratum = np.zeros(n + 1, dtype=np.int64)

        # Strata of total weight 0 are left out, and the others numbered again.
        kept = np.flatnonzero(np.bincount(stratum, weights) > 0)
        new_numbers = np.full(stratum.max() + 1, -1)
        new_numbers[kept] = np.arange(len(kept))
        stratum = np.where(weights > 0, new_numbers[stratum], -1)
        is_in_stratum = stratum == np.arange(len(kept))[:, None]
        probabilities = np.where(is_in_stratum, weights, 0.0)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        return cls._weighted(stratum, probabilities, q)

    @classmethod
    def _weighted(cls, stratum, probabilities, q):
        """Strata that are drawn by `probabilities`, with the weights of a semivalue."""
        n = len(q)
        sizes = np.arange(n + 1)
        with_player, without_player = _side_weights(q)
        # Each size is in one stratum.
        probability = probabilities.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A player is in k/n of the coalitions of k players.
            inside = with_player * n / (sizes * probability)
            outside = without_player * n / ((n - sizes) * probability)
        is_in_stratum = stratum == np.arange(len(probabilities))[:, None]
        return cls(
            stratum=stratum,
            probabilities=probabilities,
            inside=np.where(probability > 0, inside, 0.0),
            outside=np.where(probability > 0, outside, 0.0),
            inside_weight=is_in_stratum @ with_player,
            outside_weight=is_in_stratum @ without_player,
        )

    def reweighted(self, q):
        """The same strata and draws, with the weights of another semivalue.

        Parameters
        ----------
        q : ndarray of shape (n,)
            Its probabilities of sizes.

        Returns
        -------
        strata : SizeStrata
            With other importance weights, and other weights of the means of the strata.

        Raises
        ------
        ValueError
            If sizes of nonzero weight are never drawn; it names them.

        Examples
        --------
        >>> strata = SizeStrata.of(np.full(4, 1 / 4), stratified=False)
        >>> strata.reweighted(np.array([1, 3, 3, 1]) / 8).outside.round(2).tolist()
        [0.0, 1.5, 2.25, 1.5, 0.0]
        """
        with_player, without_player = _side_weights(q)
        has_weight = with_player + without_player > 0
        never_drawn = np.flatnonzero(has_weight & (self.stratum < 0))
        if len(never_drawn):
            raise ValueError(
                f"Coalitions of {as_ranges(never_drawn)} players are never drawn, but "
                "have a weight in the semivalue."
            )
        return self._weighted(self.stratum, self.probabilities, q)

    def variance_terms(self, q, by_size):
        """Variance that a draw of each stratum adds to a value, averaged over players.

        Parameters
        ----------
        q : ndarray of shape (n,)
            Probabilities of sizes of the semivalue whose importance weights these are.
        by_size : ndarray of shape (3, n + 1)
            For the coalitions of every size the mean of 1, of the utility and of its
            square; from a sample, sums over it divided by the expected number of
            coalitions.

        Returns
        -------
        terms : ndarray of shape (n_strata,)
            Divided by the numbers of draws, they sum to the variance of a value. A
            single player is taken to change the moments little.

        Examples
        --------
        >>> q = np.full(6, 1 / 6)
        >>> strata = SizeStrata.of(q, stratified=False)
        >>> by_size = np.array([[1.0] * 7, [0.0] * 7, [1.0] * 7])
        >>> strata.variance_terms(q, by_size).round(2).tolist()
        [3.81]
        """
        ones, sums, squares = by_size
        is_in_stratum = self.stratum == np.arange(self.n_strata)[:, None]
        terms = np.zeros(self.n_strata)
        sides = zip(_side_weights(q), (self.inside, self.outside))
        for weights, importance in sides:
            by_stratum = is_in_stratum * weights
            totals = by_stratum @ ones
            means = by_stratum @ sums / np.where(totals > 0, totals, 1)
            centers = means[:, None]
            # Mean squared distances from the mean of the stratum, by size.
            spreads = squares - 2 * centers * sums + centers**2 * ones
            terms += (by_stratum * importance * spreads).sum(axis=1)
        return np.maximum(terms, 0.0)

    @property
    def n_strata(self):
        """Number of strata."""
        return len(self.probabilities)

    @property
    def side_probabilities(self):
        """Probability of every size in each stratum, given that a player is in, or out.

        Two arrays of shape (n_strata, n + 1): the distributions over which the weighted
        averages with `inside` and `outside` are taken; 0 in a stratum in which a side
        has no weight.
        """
        n = len(self.stratum) - 1
        inside = self.probabilities * (self.inside * np.arange(n + 1))
        outside = self.probabilities * (self.outside * np.arange(n, -1, -1))
        return _normalized(inside), _normalized(outside)


def _side_weights(q):
    """Weights of the mean utilities of every size 0..n, with and without a player.

    Those of the coalitions of no and of all players, whose utilities are known, are 0.
    """
    with_player = np.r_[0.0, q]
    without_player = np.r_[q, 0.0]
    with_player[-1] = 0.0
    without_player[0] = 0.0
    return with_player, without_player


def _normalized(weights):
    """The weights divided by the sum of their line; zeros if that is zero."""
    sums = weights.sum(axis=1, keepdims=True)
    return weights / np.maximum(sums, np.finfo(np.float64).tiny)


def _stratum_of_sizes(n):
    """Stratum of every size 0..n; edges are n/2, n/4, ... and their mirror images."""
    edges = np.floor(n * 0.5 ** np.arange(_N_HALVINGS, 0, -1))
    edges = np.unique(np.r_[edges, n - 1 - edges[::-1]])
    edges = edges[(edges >= 1) & (edges < n - 1)]
    return np.searchsorted(edges, np.arange(n + 1), side="left")


def draw_subsets(rng, strata, labels):
    """Draw one coalition from each of the given strata.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    strata : SizeStrata
        The strata.
    labels : array-like of int of shape (m,)
        Index of the stratum of each coalition.

    Returns
    -------
    masks : ndarray of bool of shape (m, n)
        The coalitions, uniform given their sizes.

    Examples
    --------
    >>> strata = SizeStrata.of(np.full(9, 1 / 9))
    >>> draw_subsets(np.random.default_rng(0), strata, [0, 1, 2]).shape
    (3, 9)
    """
    labels = np.asarray(labels)
    n = len(strata.stratum) - 1
    # A size is the number of cumulative probabilities below a random number.
    edges = np.cumsum(strata.probabilities, axis=1)[labels]
    thresholds = rng.random(len(labels))[:, None] * edges[:, -1:]
    sizes = (thresholds >= edges).sum(axis=1)
    return rng.permuted(np.arange(n) < sizes[:, None], axis=1)


def draw_distinct(rng, counts, taken=None):
    """Draw different coalitions, numbers of which are given for each size.

    Of the coalitions of a size those are drawn that were not taken before, uniformly
    if they are at least half of what is left. Fewer are consecutive pieces of random
    permutations, so that all players are members about equally often.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of random numbers.
    counts : array-like of int of shape (n + 1,)
        Number of coalitions of each size 0..n.
    taken : ndarray of bool of shape (m, n), default=None
        Coalitions that are not drawn again.

    Returns
    -------
    masks : ndarray of bool of shape (sum(counts), n)
        The coalitions, in the order of their sizes.

    Raises
    ------
    ValueError
        If there are fewer coalitions of a size than `counts` asks for.

    Examples
    --------
    >>> counts = [0, 4, 2, 0, 0]
    >>> masks = draw_distinct(np.random.default_rng(0), counts)
    >>> masks.sum(axis=1).tolist(), masks[4:].sum(axis=0).tolist()
    ([1, 1, 1, 1, 2, 2], [1, 1, 1, 1])
    """
    counts = np.asarray(counts)
    n = len(counts) - 1
    if taken is None:
        taken = np.zeros((0, n), dtype=bool)
    taken_sizes = taken.sum(axis=1)
    masks = [np.zeros((0, n), dtype=bool)]
    for size in np.flatnonzero(counts):
        taken_of_size = taken[taken_sizes == size]
        keys = {mask.tobytes() for mask in taken_of_size}
        n_left = comb(n, size) - len(keys)
        count = int(counts[size])
        if count > n_left:
            raise ValueError(
                f"counts must be at most {n_left} for the size {size}, since so many "
                f"coalitions of {size} of {n} players are left. Got {count}."
            )
        if 2 * (len(keys) + count) >= comb(n, size):
            masks.append(_draw_listed(rng, n, size, count, keys))
        else:
            n_before = taken_of_size.sum(axis=0)
            masks.append(_draw_balanced(rng, size, count, keys, n_before))
    return np.concatenate(masks)


def _draw_listed(rng, n, size, count, keys):
    """Coalitions of a size, from a list of all but those whose bytes are in a set."""
    members = np.array(list(combinations(range(n), size)), dtype=np.int64)
    masks = np.zeros((len(members), n), dtype=bool)
    np.put_along_axis(masks, members, True, axis=1)
    is_left = [mask.tobytes() not in keys for mask in masks]
    masks = masks[is_left]
    return masks[rng.permutation(len(masks))[:count]]


def _draw_balanced(rng, size, count, keys, n_before):
    """Coalitions of a size, pieces of permutations; their bytes are added to a set.

    ``n_before``, (n,), are the numbers of coalitions taken before that have a player.
    """
    n = len(n_before)
    masks = np.zeros((count, n), dtype=bool)
    # Players that are members less often than others come first.
    queue = rng.permutation(np.flatnonzero(n_before < n_before.max()))
    n_drawn = 0
    while n_drawn < count:
        if len(queue) < size:
            # Those left of the last permutation come first, then the others.
            order = rng.permutation(n)
            is_waiting = np.isin(order, queue)
            queue = np.concatenate([queue, order[~is_waiting], order[is_waiting]])
        mask = np.zeros(n, dtype=bool)
        mask[queue[:size]] = True
        queue = queue[size:]
        key = mask.tobytes()
        if key not in keys:
            keys.add(key)
            masks[n_drawn] = mask
            n_drawn += 1
    return masks


def neyman_allocation(std, count, floor=0.25):
    """Split a number of draws over strata in proportion to their standard deviations.

    Parameters
    ----------
    std : array-like of shape (n_strata,)
        Standard deviation that one draw of each stratum adds to the estimate. NaN means
        unknown and counts as the largest known one.
    count : int
        Number of draws.
    floor : float, default=0.25
        Fraction of the draws that is split equally, so that no stratum is left out.

    Returns
    -------
    counts : ndarray of int of shape (n_strata,)
        Number of draws from each stratum; they sum to `count`.

    Examples
    --------
    >>> neyman_allocation([3.0, 1.0], 100).tolist()
    [69, 31]
    """
    std = np.asarray(std, dtype=np.float64)
    largest = np.nanmax(std, initial=0.0)
    std = np.where(np.isnan(std), largest, std)
    total = std.sum()
    fractions = np.full(len(std), 1 / len(std))
    if total > 0:
        fractions = floor * fractions + (1 - floor) * std / total

    # Round down, and give the missing draws to the largest remainders.
    exact = fractions * count
    counts = np.floor(exact).astype(np.int64)
    n_missing = count - counts.sum()
    counts[np.argsort(counts - exact, kind="stable")[:n_missing]] += 1
    return counts
