"""The designs by name, and the choice of one for a game."""

import numpy as np

from ..samplers import ORDERS
from ..semivalues import size_weights
from .exact import ExactDesign
from .marginals import MarginalDesign
from .orders import OrderDesign
from .subsets import SUBSETS, SubsetDesign

SAMPLERS = (*ORDERS, "subsets", "stratified", "marginals", "exact")

_LARGEST = 20  # most players whose coalitions can be enumerated
_FEW = 2**12  # most coalitions that sampler="auto" enumerates


def choose_sampler(semivalue, n, limit=None):
    """The sampler for n players and at most ``limit`` coalitions (None: any number).

    "exact" for few coalitions, "subsets" for Banzhaf values, "permutation" if the limit
    allows a permutation but no block of subsets, otherwise "stratified".
    """
    limit = np.inf if limit is None else limit
    if 2**n <= min(limit - 1, _FEW):
        return "exact"
    if max(limit, n - 1) <= SUBSETS:
        return "permutation"
    return (
        "subsets"
        if isinstance(semivalue, str) and semivalue == "banzhaf"
        else "stratified"
    )


def make_design(
    sampler, semivalue, n, truncation=None, adjustment=None, marginal=None, **options
):
    """The design of a sampler by name, for n players; ``options`` are those of
    `Design`.

    The `Adjustment` is used by "stratified" and "subsets" only, the `MarginalGame` by
    "marginals".

    Raises ValueError if "exact" would enumerate too many coalitions.
    """
    q = size_weights(semivalue, n)
    if sampler == "exact" or n == 1:
        if n > _LARGEST:
            raise ValueError(
                f"sampler='exact' enumerates the 2^n coalitions of at most {_LARGEST} players. "
                f"Got {n} players."
            )
        return ExactDesign(q, **options)
    if sampler == "marginals":
        return MarginalDesign(q, marginal.n_trained, marginal.smooth, **options)
    if sampler in ORDERS:
        return OrderDesign(q, sampler, truncation, **options)
    return SubsetDesign(q, sampler == "stratified", adjustment, **options)
