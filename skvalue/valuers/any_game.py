"""Semivalues of any game that is given by a function of coalitions."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from .._utils.checks import seed_of
from .._utils.sklearn import Interval, StrOptions, validate_params
from .._utils.warned import warn
from ..estimation import (
    BATCH,
    MAX_COALITIONS,
    SAMPLERS,
    RunState,
    Stopping,
    choose_sampler,
    make_design,
)
from ..games import FunctionGame, underflow_warnings
from ..semivalues import check_semivalue, size_weights

# Contributions of all players to a coalition need a model, not a utility.
_SAMPLERS = tuple(sampler for sampler in SAMPLERS if sampler != "marginals")

# Coalitions without a limit: for each player, and at least.
_FOR_EACH_PLAYER = 40
_DEFAULT = 500


@dataclass(frozen=True, eq=False)
class GameValues:
    """Semivalues of the players of a game: what `game_values` returns.

    Parameters
    ----------
    values : ndarray of shape (n_players,)
        The value of every player.
    errors : ndarray of shape (n_players,)
        Standard errors of the values over the choice of coalitions; 0 if all were
        evaluated.
    n_evaluations : int
        Number of coalitions evaluated, the empty one included.
    utility, empty_utility : float
        Utilities of all players together, and of the empty coalition.
    sampler : str
        The sampler used.
    interactions : ndarray of shape (n_players, n_players) or None
        Interactions of pairs of players, if they were asked for.

    Examples
    --------
    >>> from skvalue import game_values
    >>> gloves = lambda masks: (masks[:, 0] & masks[:, 1:].any(axis=1)).astype(float)
    >>> game_values(gloves, 3).values.round(3).tolist()
    [0.667, 0.167, 0.167]
    """

    values: np.ndarray
    errors: np.ndarray
    n_evaluations: int
    utility: float
    empty_utility: float
    sampler: str
    interactions: np.ndarray | None = None


@validate_params(
    {
        "utility": [callable],
        "n_players": [Interval(Integral, 1, None, closed="left")],
        "semivalue": [str, tuple, list, callable],
        "sampler": [StrOptions({"auto", *_SAMPLERS})],
        "max_evaluations": [Interval(Integral, 2, None, closed="left"), None],
        "interactions": ["boolean"],
        "random_state": ["random_state"],
    },
    prefer_skip_nested_validation=True,
)
def game_values(
    utility,
    n_players,
    semivalue: object = "shapley",
    *,
    sampler="auto",
    max_evaluations=None,
    interactions=False,
    random_state=None,
):
    """Semivalues of any game, from the utilities of some of its coalitions.

    The game need not train a model: players may be parties, features, prompts or
    machines. For a utility that takes long, a few hundred evaluations are enough for
    up to 32 players: see :ref:`few_players`.

    Parameters
    ----------
    utility : callable
        ``utility(masks)`` returns the utilities, (m,), of the m coalitions of a bool
        array of shape (m, n_players), True for members. It is asked for every coalition
        once, also for the empty one, and should give a coalition the same utility
        whenever it is asked.
    n_players : int
        Number of players.
    semivalue : {"shapley", "banzhaf", "leave-one-out"}, tuple or callable, \
            default="shapley"
        The semivalue; a tuple (alpha, beta) is Beta Shapley, a callable a custom
        semivalue, see `skvalue.semivalues.size_weights`.
    sampler : {"auto", "process", "stratified", "subsets", "permutation", \
            "antithetic", "exact"}, default="auto"
        How coalitions are chosen, and values computed; see `SemivalueValuer`. "auto"
        is "exact" if all coalitions are within `max_evaluations`, at most 4,096;
        "process", whose values are a posterior mean, for at most 32 players and 4,096
        evaluations; else "subsets" for Banzhaf values and "stratified" for others,
        which are unbiased if there are tens of evaluations for each player
        (:ref:`how much <strata_without_coalitions>` they are not else); "permutation"
        always is.
    max_evaluations : int, default=None
        Most coalitions to evaluate, the empty one included. None is 40 for each player,
        at least 500.
    interactions : bool, default=False
        Whether to compute the interactions of pairs of players, too, from the same
        coalitions. Needs the sampler "process" or "exact".
    random_state : int, RandomState or None, default=None
        Seed for drawing coalitions.

    Returns
    -------
    result : GameValues
        A frozen record of values, their errors, the number of evaluations and, if asked
        for, interactions.

    Raises
    ------
    ValueError
        If `semivalue` is none, `max_evaluations` does not fit the sampler, `utility`
        returns another number of utilities, or one that is not a real number of at most
        1e150 in absolute value, or interactions are
        asked of a sampler without them.

    Warns
    -----
    ImpreciseValuesWarning
        If all values are below 1e-150 in absolute value, so that the squares from which
        errors are computed are zero.

    See Also
    --------
    DataShapleyValuer : Values of rows in the game of training a model.
    skvalue.semivalues.enumerate_semivalue : Values by enumeration.

    Examples
    --------
    Ten suppliers, each of which covers some of 40 towns:

    >>> import numpy as np
    >>> from skvalue import game_values
    >>> covers = np.random.default_rng(0).random((10, 40)) < 0.2
    >>> def n_covered(masks):
    ...     return (masks.astype(int) @ covers > 0).sum(axis=1)
    >>> result = game_values(n_covered, 10, max_evaluations=100, random_state=0)
    >>> result.sampler, result.n_evaluations
    ('process', 100)
    >>> bool(np.isclose(result.values.sum(), n_covered(np.ones((1, 10), bool))[0]))
    True
    """
    semivalue = check_semivalue(semivalue, custom=True)
    if max_evaluations is None:
        max_evaluations = max(_FOR_EACH_PLAYER * n_players, _DEFAULT)
    game = FunctionGame(utility, n_players)

    # Only an enumeration evaluates the empty coalition itself.
    is_auto = sampler == "auto"
    if is_auto:
        sampler = "exact"
        if 2**n_players > min(max_evaluations, MAX_COALITIONS):
            sampler = choose_sampler(
                semivalue, n_players, max_evaluations - 1, allows_process=True
            )
    n_before = 0 if sampler == "exact" else 1
    if interactions and sampler not in ("process", "exact"):
        raise ValueError(
            "interactions must be False unless sampler is 'process' or 'exact', which "
            f"know the utility of any coalition. Got sampler={sampler!r}."
        )

    design = make_design(
        sampler,
        semivalue,
        n_players,
        seed=seed_of(random_state),
        empty_utility=game.empty_utility,
        size=BATCH,
    )
    Stopping(max_evaluations).refuse_few([design], sampler, n_before, is_auto)
    stopping = Stopping(max_evaluations - n_before)
    if sampler == "process":
        stopping.refuse_many([design], MAX_COALITIONS)
    run = RunState([design], [np.arange(n_players)], n_players, stopping)
    while (masks := run.ask()) is not None:
        run.tell(game.utility(masks))
    values, errors, _ = run.result()
    if not design.exact:
        for message, category in underflow_warnings(values):
            warn(message, category)

    of_pairs = None
    if interactions:
        of_pairs = np.zeros((n_players, n_players))
        if n_players > 1:
            of_pairs = design.interactions(size_weights(semivalue, n_players - 1))
    return GameValues(
        values=values,
        errors=errors,
        n_evaluations=n_before + design.n_evaluations,
        utility=float(design.full),
        empty_utility=game.empty_utility,
        sampler=sampler,
        interactions=of_pairs,
    )
