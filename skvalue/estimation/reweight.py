"""Another semivalue from the coalitions of a fit: the precision to expect."""

import numpy as np

from .._utils.checks import as_ranges
from ..samplers import SizeStrata, neyman_allocation

_FEW = 4  # coalitions of its own to which those of a fit are at least worth
_RARE = 1000  # fewer draws than the semivalue's own by this factor are rare


def expected_variances(strata, counts, q, by_size):
    """Variance of a value of the semivalue ``q``, from draws of a fit and from its own.

    A mean over players; utilities of coalitions of the same size count as independent of them.

    Parameters
    ----------
    strata : SizeStrata
        The strata of the fit, with the weights of the semivalue: `SizeStrata.reweighted`.
    counts : ndarray of shape (n_strata,)
        Draws from them.
    q : ndarray of shape (n,)
        Its probabilities of sizes.
    by_size : ndarray of shape (3, n + 1)
        As in `SizeStrata.variance_terms`.

    Returns
    -------
    drawn, own : float
        The variance with these draws, and with as many of `SizeStrata.of`, in Neyman's allocation.
    """
    best = SizeStrata.of(q, strata.n_strata > 1)
    terms = best.variance_terms(q, by_size)
    draws = neyman_allocation(np.sqrt(terms), int(counts.sum()))
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = strata.variance_terms(q, by_size) / counts
    return np.nansum(drawn), (terms / np.maximum(draws, 1)).sum()


def refuse_rare(strata, counts, q):
    """Raise ValueError if sizes are so rare that the draws are worth few of the semivalue's own.

    The parameters are those of `expected_variances`, for utilities of the same variance.
    """
    even = np.stack([np.ones(len(q) + 1), np.zeros(len(q) + 1), np.ones(len(q) + 1)])
    drawn, own = expected_variances(strata, counts, q, even)
    if drawn * _FEW <= own * max(counts.sum(), _FEW):
        return
    wanted = counts.sum() * SizeStrata.of(q, stratified=False).probabilities[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = np.nan_to_num(wanted / (counts @ strata.probabilities))
    rare = np.flatnonzero(missing >= min(_RARE, missing.max()))
    raise ValueError(
        f"Coalitions of {as_ranges(rare)} players are drawn too rarely: for this semivalue "
        f"the {int(counts.sum()):,} coalitions are worth less than {_FEW} of its own."
    )
