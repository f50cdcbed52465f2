"""The designs by name, and which one suits a game."""

import numpy as np

from ..samplers import ORDERS
from ..semivalues import size_weights
from .exact import ExactDesign
from .orders import OrderDesign
from .subsets import SUBSETS, SubsetDesign

SAMPLERS = (*ORDERS, "subsets", "stratified", "exact")

_LARGEST = 20  # players of whom all coalitions are enumerated
_FEW = 2**12  # coalitions that are enumerated without being asked to


def choose_sampler(semivalue, n, limit=None):
    """The sampler for n players and at most ``limit`` coalitions (None: any number).

    All coalitions that count, where they are few; uniform subsets for Banzhaf values; else subsets
    stratified by size, or an order where there is no room for a block of them, but for an order.

    Examples
    --------
    >>> choose_sampler("shapley", 10), choose_sampler("leave-one-out", 1000)
    ('exact', 'exact')
    >>> choose_sampler("shapley", 100), choose_sampler("banzhaf", 100)
    ('stratified', 'subsets')
    """
    limit = np.inf if limit is None else limit
    if size_weights(semivalue, n)[-1] == 1.0 or 2**n <= min(limit - 1, _FEW):
        return "exact"
    if max(limit, n - 1) <= SUBSETS:
        return "permutation"
    return "subsets" if isinstance(semivalue, str) and semivalue == "banzhaf" else "stratified"


def make_design(sampler, semivalue, n, truncation=None, **options):
    """The design of a sampler by name, for n players; ``options`` are those of `Design`.

    Raises ValueError where it needs more coalitions than can be enumerated.
    """
    q = size_weights(semivalue, n)
    if sampler == "exact" or n == 1:
        if n > _LARGEST and q[-1] != 1.0:
            raise ValueError(
                f"sampler='exact' enumerates the 2^n coalitions of at most {_LARGEST} players. "
                f"Got {n} players."
            )
        return ExactDesign(q, **options)
    if sampler in ORDERS:
        return OrderDesign(q, sampler, truncation, **options)
    return SubsetDesign(q, stratified=sampler == "stratified", **options)
