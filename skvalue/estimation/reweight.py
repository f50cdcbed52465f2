"""Another semivalue from the coalitions of a fit: the precision to expect."""

import numpy as np

from .._utils.checks import as_ranges
from ..samplers import SizeStrata, neyman_allocation

# Sizes are rare if fewer draws than these have a player, or lack it, and draws by
# weight would be this many times as many, unless the sizes have hardly a weight.
_FEW_DRAWS = 10
_RATIO = 5
_NEGLIGIBLE_WEIGHT = 1e-3


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
    own_strata = SizeStrata.of(q, strata.n_strata > 1)
    own_terms = own_strata.variance_terms(q, by_size)
    own_counts = neyman_allocation(np.sqrt(own_terms), int(counts.sum()))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = strata.variance_terms(q, by_size) / counts
    return np.nansum(terms), (own_terms / np.maximum(own_counts, 1)).sum()


def refuse_rare(strata, counts, q):
    """Raise ValueError if the semivalue weights sizes that are rare in a stratum.

    The mean of the stratum would be based on a few coalitions with large importance
    weights: its standard error, estimated from the same coalitions, would be far too
    small. Sizes are taken together as in `SizeStrata.of`. The parameters are those of
    `expected_variances`.
    """
    n = len(q)
    own_stratum = SizeStrata.of(q).stratum
    probabilities = strata.probabilities.sum(axis=0)
    n_draws = counts @ strata.probabilities  # expected, by size

    is_rare = np.zeros(n + 1, dtype=bool)
    rare_weight = 0.0
    has_player = np.arange(n + 1) / n
    for importance, fraction in (
        (strata.inside, has_player),
        (strata.outside, 1 - has_player),
    ):
        # Draws that have (or lack) a player: as they are, and in proportion to weights.
        weights = importance * probabilities * fraction
        n_drawn = n_draws * fraction
        total_weight = np.maximum(
            _sum_by_label(strata.stratum, weights), np.finfo(float).tiny
        )
        n_by_weight = weights / total_weight * _sum_by_label(strata.stratum, n_drawn)

        n_drawn = _sum_by_label(own_stratum, n_drawn)
        n_by_weight = _sum_by_label(own_stratum, n_by_weight)
        too_few = (n_drawn < _FEW_DRAWS) & (n_by_weight > _RATIO * n_drawn)
        too_few = too_few & (weights > 0)
        rare_weight += weights[too_few].sum()
        is_rare |= too_few

    if rare_weight > _NEGLIGIBLE_WEIGHT:
        raise ValueError(
            f"Coalitions of {as_ranges(np.flatnonzero(is_rare))} players are drawn too "
            f"rarely for this semivalue: of {int(counts.sum()):,} coalitions, fewer "
            f"than {_FEW_DRAWS} of such sizes have, or lack, a given player. Fit the "
            "semivalue itself."
        )


def _sum_by_label(labels, terms):
    """Sum of the terms over the entries with the label of each entry."""
    return np.bincount(labels + 1, terms)[labels + 1]
