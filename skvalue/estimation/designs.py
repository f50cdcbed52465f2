"""The designs by name, and the choice of one for a game."""

import numpy as np

from ..samplers import ORDERS
from ..semivalues import size_weights
from .exact import ExactDesign
from .marginals import MarginalDesign
from .orders import OrderDesign
from .process import MAX_COALITIONS, MAX_PLAYERS, ProcessDesign
from .subsets import SUBSETS, SubsetDesign

SAMPLERS = (*ORDERS, "subsets", "stratified", "process", "marginals", "exact")

_MAX_PLAYERS = 20  # whose coalitions can be enumerated
_FEW_COALITIONS = 2**12  # at most so many are enumerated by sampler="auto"


def choose_sampler(semivalue, n, limit=None, allows_process=False):
    """The sampler for n players and at most ``limit`` coalitions (None: any number).

    "exact" for few coalitions; "process", if it is allowed, for few players and a limit
    that it can take; "subsets" for Banzhaf values, "permutation" if the limit allows a
    permutation but no block of subsets, otherwise "stratified".
    """
    if limit is None:
        limit = np.inf
    if 2**n <= min(limit, _FEW_COALITIONS):
        return "exact"
    if allows_process and n <= MAX_PLAYERS and n + 2 <= limit <= MAX_COALITIONS:
        return "process"
    if max(limit, n - 1) <= SUBSETS:
        return "permutation"
    if isinstance(semivalue, str) and semivalue == "banzhaf":
        return "subsets"
    return "stratified"


def make_design(
    sampler, semivalue, n, truncation=None, adjustment=None, marginal=None, **options
):
    """The design of a sampler by name, for n players.

    Parameters
    ----------
    sampler : str
        One of `SAMPLERS`.
    semivalue : str, tuple or callable
        The semivalue, see `skvalue.semivalues.size_weights`.
    n : int
        Number of players.
    truncation : float, default=None
        Tolerance of "permutation" and "antithetic", see `OrderDesign`.
    adjustment : Adjustment, default=None
        How "stratified" and "subsets" adjust values.
    marginal : MarginalGame, default=None
        The game whose contributions "marginals" asks for.
    **options
        Those of `Design`.

    Returns
    -------
    design : Design
        The design; an enumeration for one player.

    Raises
    ------
    ValueError
        If "exact" would enumerate too many coalitions, or there are too many players
        for "process".
    """
    q = size_weights(semivalue, n)
    if sampler == "exact" or n == 1:
        if n > _MAX_PLAYERS:
            raise ValueError(
                "sampler='exact' enumerates the 2^n coalitions of at most "
                f"{_MAX_PLAYERS} players. Got {n} players."
            )
        return ExactDesign(q, **options)
    if sampler == "process":
        if n > MAX_PLAYERS:
            raise ValueError(
                f"sampler='process' takes at most {MAX_PLAYERS} players: it fits a "
                f"relevance for each of them. Got {n} players."
            )
        return ProcessDesign(q, **options)
    if sampler == "marginals":
        return MarginalDesign(q, marginal.n_trained, marginal.smooth, **options)
    if sampler in ORDERS:
        return OrderDesign(q, sampler, truncation, **options)
    return SubsetDesign(q, sampler == "stratified", adjustment, **options)
