"""Another semivalue from the coalitions of a fit: the precision to expect."""

import numpy as np

from .._utils.checks import as_ranges
from ..samplers import SizeStrata, neyman_allocation

# Sizes are rare if fewer draws than these have a player, or lack it, and draws by
# weight would be this many times as many, unless the sizes have hardly a weight.
_FEW, _RARE, _NEGLIGIBLE = 10, 5, 1e-3


def expected_variances(strata, counts, q, by_size):
    """Variance of a value of the semivalue ``q``, from draws of a fit and from its own.

    A mean over players; utilities of coalitions of the same size count as independent
    of them.

    Parameters
    ----------
    strata : SizeStrata
        The strata of the fit, with the weights of the semivalue:
        `SizeStrata.reweighted`.
    counts : ndarray of shape (n_strata,)
        Draws from them.
    q : ndarray of shape (n,)
        Its probabilities of sizes.
    by_size : ndarray of shape (3, n + 1)
        As in `SizeStrata.variance_terms`.

    Returns
    -------
    drawn, own : float
        The variance with these draws, and with as many of `SizeStrata.of`, in Neyman's
        allocation.
    """
    best = SizeStrata.of(q, strata.n_strata > 1)
    terms = best.variance_terms(q, by_size)
    draws = neyman_allocation(np.sqrt(terms), int(counts.sum()))
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = strata.variance_terms(q, by_size) / counts
    return np.nansum(drawn), (terms / np.maximum(draws, 1)).sum()


def refuse_rare(strata, counts, q):
    """Raise ValueError if the semivalue weights sizes that are rare in a stratum of the
    fit.

    The mean of the stratum would be based on a few coalitions with large importance
    weights: its standard error, estimated from the same coalitions, would be far too
    small. Sizes are taken together as in `SizeStrata.of`. The parameters are those of
    `expected_variances`.
    """
    members, own = np.arange(len(q) + 1) / len(q), SizeStrata.of(q).stratum
    drawn, draws = strata.probabilities.sum(axis=0), counts @ strata.probabilities
    rare, rare_weight = np.zeros(len(q) + 1, dtype=bool), 0.0
    for a, side in ((strata.inside, members), (strata.outside, 1 - members)):
        weights, hits = a * drawn * side, draws * side
        of_stratum = np.maximum(_totals(strata.stratum, weights), np.finfo(float).tiny)
        wanted = _totals(own, weights / of_stratum * _totals(strata.stratum, hits))
        found = _totals(own, hits)
        few = (weights > 0) & (found < _FEW) & (wanted > _RARE * found)
        rare_weight += weights[few].sum()
        rare |= few
    if rare_weight > _NEGLIGIBLE:
        raise ValueError(
            f"Coalitions of {as_ranges(np.flatnonzero(rare))} players are drawn too rarely for "
            f"this semivalue: of {int(counts.sum()):,} coalitions, fewer than {_FEW} of such sizes "
            "have, or lack, a given player. Fit the semivalue itself."
        )


def _totals(labels, x):
    """Sum of x over the entries with the label of each entry."""
    return np.bincount(labels + 1, x)[labels + 1]
