"""Random subsets, of which every one is used for every player (maximum sample reuse).

A semivalue is the difference of two means: that of the coalitions which a player is in, and that of
those it is not in,

    ``phi_i = sum_k q[k - 1] E[v(S) | i in S, |S| = k] - sum_k q[k] E[v(S) | i not in S, |S| = k]``

with the chances q of sizes of `skvalue.semivalues.size_weights`. One coalition is an observation of
one of the two for all players at once (Wang and Jia 2023 for Banzhaf, Kolpaczki et al. 2024 for the
Shapley value). Sizes are drawn in strata; importance weights inside a stratum make its two means
those of the semivalue.
"""

from dataclasses import dataclass

import numpy as np

_HALVINGS = 5  # strata of sizes up to n/2, n/4, ..., and their mirror images


@dataclass(frozen=True)
class SizeStrata:
    """Ranges of coalition sizes 1..n-1, with chances and importance weights of every size.

    Parameters
    ----------
    stratum : ndarray of int of shape (n + 1,)
        Stratum of every size 0..n; -1 where the semivalue needs none of that size, and for the
        sizes 0 and n, whose coalitions are known.
    chances : ndarray of shape (n_strata, n + 1)
        Chance of every size in a draw from a stratum.
    inside, outside : ndarrays of shape (n + 1,)
        Weight of a coalition of each size in the mean of the coalitions which a player is in, or
        not in.
    inside_share, outside_share : ndarrays of shape (n_strata,)
        Part of the semivalue that the means of a stratum stand for.

    Examples
    --------
    >>> strata = SizeStrata.of(np.full(6, 1 / 6), stratified=False)
    >>> strata.chances.round(2).tolist()
    [[0.0, 0.2, 0.2, 0.2, 0.2, 0.2, 0.0]]
    """

    stratum: np.ndarray
    chances: np.ndarray
    inside: np.ndarray
    outside: np.ndarray
    inside_share: np.ndarray
    outside_share: np.ndarray

    @classmethod
    def of(cls, q, stratified=True):
        """Strata for the chances ``q`` of sizes 0..n-1; all sizes in one if not stratified.

        Parameters
        ----------
        q : ndarray of shape (n,)
            Chances of sizes, see `skvalue.semivalues.size_weights`.
        stratified : bool, default=True
            Whether there is more than one stratum.

        Returns
        -------
        strata : SizeStrata
            The strata.
        """
        n = len(q)
        sizes = np.arange(n + 1)
        joined, left = np.r_[0.0, q], np.r_[q, 0.0]  # weights of v(S) with and without a player
        joined[n] = left[0] = 0.0  # the utilities of all and of none are known
        weight = joined + left
        weight[[0, n]] = 0.0
        stratum = _stratum_of_sizes(n) if stratified else np.zeros(n + 1, dtype=np.int64)
        # Strata with next to no weight are left out of the draw if their sizes have none at all.
        used = np.flatnonzero(np.bincount(stratum, weight) > 0)
        number = np.full(stratum.max() + 1, -1)
        number[used] = np.arange(len(used))
        stratum = np.where(weight > 0, number[stratum], -1)
        member = stratum == np.arange(len(used))[:, None]
        chances = np.where(member, weight, 0.0)
        chances /= chances.sum(axis=1, keepdims=True)
        drawn = chances.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A player is in k/n of the coalitions of k players.
            inside = np.where(drawn > 0, joined * n / (sizes * drawn), 0.0)
            outside = np.where(drawn > 0, left * n / ((n - sizes) * drawn), 0.0)
        return cls(stratum, chances, inside, outside, member @ joined, member @ left)

    @property
    def n_strata(self):
        """Number of strata."""
        return len(self.chances)


def _stratum_of_sizes(n):
    """Stratum of every size 0..n: sizes halve from n/2 to both ends."""
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
        Number of a stratum for each coalition.

    Returns
    -------
    masks : ndarray of bool of shape (m, n)
        The coalitions, uniform among those of their sizes.

    Examples
    --------
    >>> strata = SizeStrata.of(np.full(9, 1 / 9))
    >>> draw_subsets(np.random.default_rng(0), strata, [0, 1, 2]).shape
    (3, 9)
    """
    labels = np.asarray(labels)
    n = len(strata.stratum) - 1
    edges = np.cumsum(strata.chances, axis=1)[labels]
    sizes = (rng.random(len(labels))[:, None] * edges[:, -1:] >= edges).sum(axis=1)
    return rng.permuted(np.arange(n) < sizes[:, None], axis=1)


def neyman_allocation(spread, count, floor=0.25):
    """Split a number of draws over strata, in proportion to what each adds to the error.

    Parameters
    ----------
    spread : array-like of shape (n_strata,)
        Standard deviation that one draw of each stratum adds to the estimate; NaN where unknown,
        which counts as the largest known.
    count : int
        Number of draws.
    floor : float, default=0.25
        Part of the draws that is split equally, so that no stratum is left unseen.

    Returns
    -------
    counts : ndarray of int of shape (n_strata,)
        Draws from each stratum; the sum is `count`.

    Examples
    --------
    >>> neyman_allocation([3.0, 1.0], 100).tolist()
    [69, 31]
    """
    spread = np.asarray(spread, dtype=np.float64)
    largest = np.nanmax(spread, initial=0.0)
    spread = np.where(np.isnan(spread), largest, spread)
    total = spread.sum()
    shares = np.full(len(spread), 1 / len(spread))
    if total > 0:
        shares = floor * shares + (1 - floor) * spread / total
    exact = shares * count
    counts = np.floor(exact).astype(np.int64)
    rest = np.argsort(counts - exact, kind="stable")[: count - counts.sum()]
    counts[rest] += 1
    return counts
