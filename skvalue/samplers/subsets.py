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

import numpy as np

from .._utils.checks import as_ranges

_HALVINGS = 5  # strata of sizes up to n/2, n/4, ..., and their mirror images


@dataclass(frozen=True)
class SizeStrata:
    """Strata of coalition sizes 1..n-1, with probabilities and importance weights of
    sizes.

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
        """Strata for the probabilities ``q`` of sizes 0..n-1; all sizes in one if not
        stratified.

        Parameters
        ----------
        q : ndarray of shape (n,)
            Probabilities of sizes, see `skvalue.semivalues.size_weights`.
        stratified : bool, default=True
            Whether there is more than one stratum.

        Returns
        -------
        strata : SizeStrata
            The strata.
        """
        n = len(q)
        weight = sum(_side_weights(q))
        stratum = (
            _stratum_of_sizes(n) if stratified else np.zeros(n + 1, dtype=np.int64)
        )
        # Strata of total weight 0 are left out.
        used = np.flatnonzero(np.bincount(stratum, weight) > 0)
        number = np.full(stratum.max() + 1, -1)
        number[used] = np.arange(len(used))
        stratum = np.where(weight > 0, number[stratum], -1)
        probabilities = np.where(stratum == np.arange(len(used))[:, None], weight, 0.0)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        return cls._weighted(stratum, probabilities, q)

    @classmethod
    def _weighted(cls, stratum, probabilities, q):
        n, (joined, left) = len(q), _side_weights(q)
        sizes, drawn = np.arange(n + 1), probabilities.sum(axis=0)
        member = stratum == np.arange(len(probabilities))[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            # A player is in k/n of the coalitions of k players.
            inside = np.where(drawn > 0, joined * n / (sizes * drawn), 0.0)
            outside = np.where(drawn > 0, left * n / ((n - sizes) * drawn), 0.0)
        return cls(
            stratum, probabilities, inside, outside, member @ joined, member @ left
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
        never = np.flatnonzero((sum(_side_weights(q)) > 0) & (self.stratum < 0))
        if len(never):
            raise ValueError(
                f"Coalitions of {as_ranges(never)} players are never drawn, but have a weight in "
                "the semivalue."
            )
        return self._weighted(self.stratum, self.probabilities, q)

    def variance_terms(self, q, by_size):
        """Variance that one draw of each stratum adds to a value, on average over the
        players.

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
        >>> strata.variance_terms(q, np.array([[1.0] * 7, [0.0] * 7, [1.0] * 7])).round(2).tolist()
        [3.81]
        """
        member = self.stratum == np.arange(self.n_strata)[:, None]
        seen, sums, squares = by_size
        terms = np.zeros(self.n_strata)
        for weights, a in zip(_side_weights(q), (self.inside, self.outside)):
            of_stratum = member * weights
            total = of_stratum @ seen
            centre = (of_stratum @ sums / np.where(total > 0, total, 1))[:, None]
            spread = squares - 2 * centre * sums + centre**2 * seen
            terms += (of_stratum * a * spread).sum(axis=1)
        return np.maximum(terms, 0.0)

    @property
    def n_strata(self):
        """Number of strata."""
        return len(self.probabilities)

    @property
    def side_probabilities(self):
        """Probability of every size in each stratum, given that a player is in, and is
        out.

        Two arrays of shape (n_strata, n + 1): the distributions over which the weighted
        averages with `inside` and `outside` are taken; 0 in a stratum in which a side
        has no weight.
        """
        n = len(self.stratum) - 1
        sides = self.inside * np.arange(n + 1), self.outside * np.arange(n, -1, -1)
        weights = [self.probabilities * side for side in sides]
        sums = [
            np.maximum(w.sum(axis=1, keepdims=True), np.finfo(float).tiny)
            for w in weights
        ]
        return weights[0] / sums[0], weights[1] / sums[1]


def _side_weights(q):
    """Weights of the mean utilities of every size 0..n, with and without a player.

    Those of the coalitions of no and of all players, whose utilities are known, are 0.
    """
    joined, left = np.r_[0.0, q], np.r_[q, 0.0]
    joined[-1] = left[0] = 0.0
    return joined, left


def _stratum_of_sizes(n):
    """Stratum of every size 0..n; the edges are n/2, n/4, ... and their mirror
    images."""
    edges = n * 0.5 ** np.arange(_HALVINGS, 0, -1)
    edges = np.unique(np.r_[np.floor(edges), n - 1 - np.floor(edges[::-1])])
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
    edges = np.cumsum(strata.probabilities, axis=1)[labels]
    sizes = (rng.random(len(labels))[:, None] * edges[:, -1:] >= edges).sum(axis=1)
    return rng.permuted(np.arange(n) < sizes[:, None], axis=1)


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
    exact = fractions * count
    counts = np.floor(exact).astype(np.int64)
    rest = np.argsort(counts - exact, kind="stable")[: count - counts.sum()]
    counts[rest] += 1
    return counts
